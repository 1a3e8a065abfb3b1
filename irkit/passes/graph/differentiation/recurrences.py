"""Recurrences before they are differentiated: layers of many steps as loops over cells, and what a loop
multiplies of its input as one product before it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp, YieldOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.pattern_rewriter import PatternRewriter

from irkit.dialects import graph
from irkit.dialects.graph.gradients import rule_of
from irkit.dialects.graph.gradients.rule import Composed
from irkit.dialects.graph.recurrent import CellOp, LayerOp
from irkit.dialects.loops import is_loop
from irkit.dialects.types import tensor_type
from irkit.passes.graph.differentiation.asking import bound_loops
from irkit.passes.graph.differentiation.chunks import chunk_loops
from irkit.passes.graph.differentiation.segment_loops import outline_segments
from irkit.passes.graph.differentiation.tape import Tape
from irkit.passes.graph.hoist_from_loops import HoistInvariant, HoistRowProducts
from irkit.passes.graph.unpack_nibbles import unpack_all
from irkit.remarks import applied
from irkit.rewriting import rewrite
from irkit.weights import WeightStore

WRITTEN_OUT = 32
"""Steps of a layer that are written out, one after another; more are a loop. Between two turns of a loop all
vEUs meet, and what a step of a layer makes for the step before goes through memory: 32 steps of 128 units
and rows, forward and back, take 1.5 times as long on an H200 as written out. What is compiled of a loop
does not grow with its steps."""
RULE: Final = "LayerAsLoop"

CELLS: Final[dict[type[LayerOp], type[CellOp]]] = {
    graph.GruOp: graph.GruCellOp,
    graph.LstmOp: graph.LstmCellOp,
    graph.RnnOp: graph.RnnCellOp,
}


def prepared(
    function: FuncOp,
    chosen: Sequence[int],
    weights: WeightStore,
    *,
    reverse: bool = True,
    chunked: bool = False,
) -> FuncOp:
    """A function that computes the same, to be differentiated by its arguments `chosen`; itself where there
    is nothing to prepare. `reverse`: in reverse mode. `chunked`: of loops only what chunks of their rounds
    begin with is to be kept."""
    layers = [op for op in function.body.block.ops if isinstance(op, LayerOp)]
    packed = any(isinstance(op, graph.NibbleMatmulOp) for op in function.walk())
    loops = any(is_loop(op) for op in function.body.block.ops)
    if not any(map(is_long, layers)) and not loops and not packed:
        return function
    module = ModuleOp([copy := function.clone()])
    if packed:
        unpack_all(module, weights)
    arguments = [copy.body.block.args[n] for n in chosen]
    for op in list(_hanging_on(arguments, copy.body.block)):
        if isinstance(op, LayerOp) and is_long(op):
            as_loop(op, weights)
    block = copy.body.block
    if reverse and any(is_loop(op) for op in block.ops):
        outline_segments(block, set(_hanging_on(arguments, block)), weights)
        bound_loops(block, arguments, weights)
    rewrite(module, [HoistInvariant(), HoistRowProducts()])
    if chunked:
        chunk_loops(copy, weights)
    copy.detach()
    return copy


def is_long(op: LayerOp) -> bool:
    """Whether the steps of a layer are a loop."""
    return tensor_type(op.x).get_shape()[0] > WRITTEN_OUT


def _hanging_on(values: Iterable[SSAValue], block: Block) -> Iterable[Operation]:
    """Ops of a block whose operands hang on some values."""
    moved = set(values)
    for op in block.ops:
        if any(v in moved for inner in op.walk() for v in inner.operands):
            moved.update(op.results)
            yield op


def as_loop(op: LayerOp, weights: WeightStore) -> None:
    """Put a loop over the steps of a layer in its place: its cell, in parts. Every state is written to its
    row where it is read."""
    tape = Tape(before := Block(), weights)
    tape.like = op
    steps = tensor_type(op.x).get_shape()[0]
    first, last, one = (tape.index(n) for n in (0, steps, 1))
    starts = list(op.initial)
    if read := bool(op.results[0].uses):
        zero = tape.constant(np.zeros((), tape.ops.dtype(op.results[0])))
        starts.insert(0, tape.ops.expand(zero, tape.ops.shape(op.results[0])))
    body = Block(arg_types=[first.type, *(v.type for v in starts)])
    _step(op, Tape(body, weights), read)
    loop = tape.add(ForOp(first, last, one, starts, Region(body)))
    applied(op, RULE, "{} steps", steps)
    made = list(before.ops)
    for inner in made:
        inner.detach()
    left = [*([] if read else [None]), *loop.results]
    PatternRewriter(op).replace(op, made, left)


def _step(op: LayerOp, tape: Tape, read: bool) -> None:
    """The body of the loop; `read`: whether it writes the rows of all steps."""
    tape.like = op
    number = tape.block.args[0]
    steps = tensor_type(op.x).get_shape()[0]
    if op.order.step < 0:
        number = tape.add(arith.SubiOp(tape.index(steps - 1), number)).results[0]
    rows, states = tape.block.args[1 : 1 + read], tape.block.args[1 + read :]
    kept = {n: p for n, p in op.properties.items() if n != "reverse"}
    cell = CELLS[type(op)].make([tape.row(op.x, number), *states, *op.parameters], kept)
    rule = rule_of(cell)
    assert isinstance(rule, Composed)
    left = rule.expand(tape.ops, cell)
    filled = [tape.with_row(v, number, left[0]) for v in rows]
    cell.erase()
    tape.add(YieldOp(*filled, *left))
