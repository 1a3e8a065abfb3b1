"""`vectorise-loops`: loops whose turns need nothing of one another, as ops on all turns at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from xdsl.context import Context
from xdsl.dialects import scf, tensor
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern

from irkit.context import weights_of
from irkit.dialects.loop_places import trips_of
from irkit.errors import UnsupportedError
from irkit.passes.graph.loops.all_turns import AllTurns, Emitter, OneByOne, elements, shape_of
from irkit.passes.graph.loops.running import running_sum
from irkit.passes.graph.loops.stores import Carried, carried_array
from irkit.rewriting import Rule, rewrite
from irkit.weights import WeightStore

FEW: Final = 1 << 16
"""Elements that a value may have of all turns, whatever the loop's arrays have."""
TIMES: Final = 4
"""Otherwise as many as so many of the largest array that the loop reads or writes."""


@dataclass
class AllTurnsAtOnce(Rule):
    """for n: y[n] = f(x[n]); s += g(x[n])  ->  y[first:] = f(x[first:]); s += sum(g(x[first:]))"""

    weights: WeightStore

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: scf.ForOp, rewriter: PatternRewriter, /):
        emit = Emitter(self.weights)
        try:
            found = _behind(op, emit)
        except (OneByOne, UnsupportedError) as reason:
            emit.give_up()
            return self.no_match(op, "{}", reason)
        rewriter.replace(op, emit.ops, found)


def _behind(loop: scf.ForOp, emit: Emitter) -> list[SSAValue]:
    """What a loop's results are. Raises OneByOne, UnsupportedError."""
    if trips_of(loop).count < 2 or not loop.results:
        raise OneByOne("it has one turn, or carries nothing")
    numbers = range(len(loop.results))
    carried = [running_sum(loop, n) or carried_array(loop, n) for n in numbers]
    arrays = [c for c in carried if isinstance(c, Carried)]
    turns = AllTurns(loop, emit)
    for array in arrays:
        turns.same.update(dict.fromkeys(array.values(), array.start))
    for op in _needed(loop, arrays, [v for c in carried for v in c.needs()]):
        turns.add(op)
        _check_size(loop, emit.ops)
    found = [c.behind(turns) for c in carried]
    _check_size(loop, emit.ops)
    return found


def _needed(loop: scf.ForOp, arrays: Sequence[Carried], values: list[SSAValue]) -> list[Operation]:
    """Ops of the body on which values hang, in order; parts that are read of an array that is also written
    are as they were before the loop."""
    needed: set[Operation] = set()
    while values:
        op = values.pop().owner
        if not isinstance(op, Operation) or op.parent is not loop.body.block or op in needed:
            continue
        needed.add(op)
        if isinstance(op, tensor.ExtractSliceOp):
            for array in (a for a in arrays if op.source in a.values()):
                array.check_read(op)
            continue
        values += [v for v in op.operands if isinstance(v.type, TensorType)]
    return [op for op in loop.body.block.ops if op in needed]


def _check_size(loop: scf.ForOp, made: Sequence[Operation]) -> None:
    """Raise OneByOne where a value of all turns is much larger than the arrays that a loop is about."""
    arrays = [v for op in loop.walk() for v in op.operands if isinstance(v.type, TensorType)]
    largest = max((prod(shape_of(v)) for v in arrays), default=0)
    if elements(made) > max(FEW, TIMES * largest):
        raise OneByOne(f"what all turns compute has {elements(made)} elements")


@dataclass(frozen=True)
class VectoriseLoops(ModulePass):
    """Compute all turns of a loop at once, where each writes its own row or column of arrays, or adds to a
    sum, and reads nothing that another writes.

    A value of the body becomes one of all turns, with one dimension more: rows of arrays become the arrays, a
    row times a matrix the product of two matrices. What is written through a mask, as slices that grow or
    shrink with the turn are, stays a choice by that mask; of turns that write the same element the last has
    it. Loops stay whose values would be much larger than their arrays, and those that add up floats, each
    step of which is rounded. Exact, but that products of matrices sum in their own order.

    ```mlir
    %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%x = %y) -> (tensor<8x8xf64>) {
      %row = tensor.extract_slice %a[%i, 0] [1, 9] [1, 1] : tensor<8x9xf64> to tensor<1x9xf64>
      %p = graph.matmul %row, %b : (tensor<1x9xf64>, tensor<9x8xf64>) -> tensor<1x8xf64>
      %w = tensor.insert_slice %p into %x[%i, 0] [1, 8] [1, 1] : tensor<1x8xf64> into tensor<8x8xf64>
      scf.yield %w : tensor<8x8xf64>
    }
    ```
    becomes
    ```mlir
    %r = graph.matmul %a, %b : (tensor<8x9xf64>, tensor<9x8xf64>) -> tensor<8x8xf64>
    ```
    """

    name = "vectorise-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if any(isinstance(inner, scf.ForOp) for inner in op.walk()):
            rewrite(op, [AllTurnsAtOnce(weights_of(ctx))])
