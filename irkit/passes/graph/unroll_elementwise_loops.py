"""`unroll-elementwise-loops`: several turns at once of loops that have each element go its own way."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Final

from xdsl.context import Context
from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import IndexType, ModuleOp, TensorType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern

from irkit.dialects import graph
from irkit.dialects.graph.integer import IntegerOp
from irkit.dialects.graph.logic import BitwiseOp, CompareOp
from irkit.dialects.loop_places import Trips, trips_of
from irkit.dialects.types import tensor_type
from irkit.errors import UnsupportedError
from irkit.passes.graph.loops.all_turns import ELEMENTWISE
from irkit.passes.graph.loops.unrolling import copy_of_turn
from irkit.rewriting import Rule, rewrite

LIGHT: Final = (
    *(graph.AbsOp, graph.AddOp, graph.CastOp, graph.ClipOp, graph.CopysignOp, graph.DivOp),
    *(graph.FmaOp, graph.IsNanOp, graph.MaxOp, graph.MinOp, graph.MulOp, graph.NegOp, graph.NotOp),
    *(graph.ReluOp, graph.SqrtOp, graph.SubOp, graph.WhereOp, CompareOp, BitwiseOp, IntegerOp),
)
"""An instruction or two; of other functions each counts as `FUNCTION` of them."""
FUNCTION: Final = 8
OPS: Final = 32
"""Ops of all turns at once: what they compute has room in registers, and is compiled soon."""


class SeveralTurnsAtOnce(Rule):
    """for n < 8: x = f(x)  ->  for n < 2: x = f(f(f(f(x))))"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: scf.ForOp, rewriter: PatternRewriter, /):
        try:
            trips = trips_of(op)
        except UnsupportedError as reason:
            return self.no_match(op, "{}", reason)
        other = _other_than_elementwise(op)
        if other is not None:
            return self.no_match(op, "{}", other)
        times = _times(op, trips.count)
        if times < 2:
            return self.no_match(op, "it has few turns, or turns of many ops")
        _unroll(op, trips, times, rewriter)


def _other_than_elementwise(loop: scf.ForOp) -> str | None:
    """What a body has that makes an element of a turn of other elements; None if there is nothing."""
    for op in loop.body.block.ops:
        if not isinstance(op, ELEMENTWISE) and not _is_number(op):
            return f"'{op.name}' is not elementwise"
    values = [*loop.body.block.args[1:], *(v for op in loop.body.block.ops for v in op.results)]
    shapes = {tensor_type(v).get_shape() for v in values if isinstance(v.type, TensorType)}
    if len({shape for shape in shapes if prod(shape) != 1}) > 1:
        return "it hands on arrays of several shapes"
    return None


def _is_number(op: Operation) -> bool:
    """A constant, what is made of the number of a turn, or the end of a body."""
    others = tensor.FromElementsOp | tensor.SplatOp | scf.YieldOp
    return op.name.startswith("arith.") or isinstance(op, others)


def _times(loop: scf.ForOp, count: int) -> int:
    """How many turns at once leave the fewest launches; of those the fewest."""
    ops = [op for op in loop.body.block.ops if isinstance(op, ELEMENTWISE)]
    size = sum(1 if isinstance(op, LIGHT) else FUNCTION for op in ops)
    most = min(count, OPS // size) if size else 1
    return min(range(1, most + 1), key=lambda n: (count // n + (count % n > 0), n), default=1)


def _unroll(loop: scf.ForOp, trips: Trips, times: int, rewriter: PatternRewriter) -> None:
    """Have a loop do `times` turns in each of its own, and those that are left behind it."""
    rounds = trips.count // times
    body = Block(arg_types=[v.type for v in loop.body.block.args])
    for new, old in zip(body.args, loop.body.block.args, strict=True):
        new.name_hint = old.name_hint
    turns = _Turns(loop, [*body.args[1:]])
    for n in range(times):
        further = _index(n * trips.step)
        number = arith.AddiOp(body.args[0], further.result)
        turns.add(number.result, further, number)
    body.add_ops([*turns.made, scf.YieldOp(*turns.carried)])
    first, step = _index(trips.first), _index(trips.step * times)
    end = _index(trips.first + trips.step * times * rounds)
    made = scf.ForOp(first, end, step, [*loop.iter_args], Region(body))
    made.location = loop.location
    behind = _Turns(loop, [*made.results])
    for n in range(times * rounds, trips.count):
        number = _index(trips.first + trips.step * n)
        behind.add(number.result, number)
    rewriter.replace(loop, [first, end, step, made, *behind.made], behind.carried)


def _index(number: int) -> arith.ConstantOp:
    return arith.ConstantOp.from_int_and_width(number, IndexType())


@dataclass
class _Turns:
    """Copies of a body, one behind another; `carried` is what the last hands on."""

    loop: scf.ForOp
    carried: list[SSAValue]
    made: list[Operation] = field(default_factory=list[Operation])

    def add(self, number: SSAValue, *before: Operation) -> None:
        """One more, of this number, which the ops `before` make."""
        values = [number, *self.carried]
        ops, self.carried = copy_of_turn(self.loop, values)
        self.made += [*before, *ops]


@dataclass(frozen=True)
class UnrollElementwiseLoops(ModulePass):
    """Of a loop that computes each element of arrays of that element alone do several turns at once.

    Turns that follow each other become one elementwise op (`fuse-elementwise`), which keeps an element in
    registers between them: arrays are read and written once for all of them, and vEUs meet once. Loops
    stay whose ops move elements or sum over them. Exact.

    ```mlir
    %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%x = %y) -> (tensor<8xf64>) {
      %z = graph.mul %x, %x : (tensor<8xf64>, tensor<8xf64>) -> tensor<8xf64>
      scf.yield %z : tensor<8xf64>
    }
    ```
    becomes
    ```mlir
    %r = scf.for %i = %d0 to %d2 step %d1 iter_args(%x = %y) -> (tensor<8xf64>) {
      %z = graph.mul %x, %x : (tensor<8xf64>, tensor<8xf64>) -> tensor<8xf64>
      %w = graph.mul %z, %z : (tensor<8xf64>, tensor<8xf64>) -> tensor<8xf64>
      scf.yield %w : tensor<8xf64>
    }
    ```
    """

    name = "unroll-elementwise-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if any(isinstance(inner, scf.ForOp) for inner in op.walk()):
            rewrite(op, [SeveralTurnsAtOnce()])
