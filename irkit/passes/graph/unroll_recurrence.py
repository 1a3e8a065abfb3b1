"""`unroll-recurrence`: one cell per step, layers connected cell to cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter

from irkit.dialects.graph import (
    ConcatOp,
    GruCellOp,
    GruOp,
    LstmCellOp,
    LstmOp,
    ReshapeOp,
    RnnCellOp,
    RnnOp,
    SliceOp,
    TransposeOp,
)
from irkit.dialects.graph.canonicalization import keeps_order
from irkit.dialects.graph.recurrent import CellOp, LayerOp
from irkit.dialects.precision import inherit
from irkit.dialects.types import DYNAMIC, int_array, tensor_type
from irkit.remarks import applied, missed

RULE = "UnrollLayer"

Steps = dict[SSAValue, list[SSAValue]]
"""Output of an unrolled layer → its value at each step."""


def _source(value: SSAValue) -> SSAValue:
    """Where the elements of `value` come from, in the same row-major order."""
    while True:
        owner = value.owner
        if not (
            isinstance(owner, ReshapeOp) or (isinstance(owner, TransposeOp) and keeps_order(owner))
        ):
            return value
        value = owner.x


def _steps_of(x: SSAValue, known: Steps, ops: list[Operation]) -> list[SSAValue]:
    """x[t] for each step: the producing layer's own values if there is one, else slices."""
    source = _source(x)
    if source in known and source.type == x.type:
        return known[source]
    steps, *row = tensor_type(x).get_shape()
    values: list[SSAValue] = []
    for step in range(steps):
        where = {"offsets": (step, 0, 0), "sizes": (1, *row), "strides": (1, 1, 1)}
        one = SliceOp.make([x], {k: int_array(v) for k, v in where.items()})
        cell_input = _reshape(one.y, row)
        ops += [one, cell_input]
        values.append(cell_input.y)
    return values


def _reshape(x: SSAValue, shape: Sequence[int]) -> ReshapeOp:
    return ReshapeOp.make([x], {"shape": int_array(shape)})


_CELLS: dict[type[LayerOp], type[CellOp]] = {
    GruOp: GruCellOp,
    LstmOp: LstmCellOp,
    RnnOp: RnnCellOp,
}


def _unroll(op: LayerOp, known: Steps) -> None:
    ops: list[Operation] = []
    states = op.initial
    inputs = _steps_of(op.x, known, ops)
    outputs = list(inputs)
    props = {name: value for name, value in op.properties.items() if name != "reverse"}
    for number in op.order:
        cell = _CELLS[type(op)].make([inputs[number], *states, *op.parameters], props)
        inherit(cell, op)
        ops.append(cell)
        states = list(cell.results)
        outputs[number] = states[0]
    rows = [_reshape(value, (1, *tensor_type(value).get_shape())) for value in outputs]
    stack = ConcatOp.make([row.y for row in rows], {"axis": IntegerAttr(0, i64)})
    ops += [*rows, stack]
    known[stack.y] = outputs
    PatternRewriter(op).replace(op, ops, [stack.y, *states])


@dataclass(frozen=True)
class UnrollRecurrence(ModulePass):
    """Replace each `graph.lstm`, `graph.gru` and `graph.rnn` by one cell per step.

    A layer that reads another's output, directly or through reshapes, is connected to its cells
    step by step, so that the cells of a stack form a wavefront. A layer in reverse has its last step
    first. Layers with a dynamic number of steps stay as they are. Exact: the cells do what the layer did.

    ```mlir
    %y, %hn, %cn = graph.lstm %x, %h, %c, %w, %r, %b : (tensor<2x1x8xf32>, ...)
    ```
    becomes
    ```mlir
    %0 = graph.slice %x {offsets = array<i64: 0, 0, 0>, sizes = array<i64: 1, 1, 8>, ...}
    %1 = graph.reshape %0 {shape = array<i64: 1, 8>}
    %2 = graph.slice %x {offsets = array<i64: 1, 0, 0>, sizes = array<i64: 1, 1, 8>, ...}
    %3 = graph.reshape %2 {shape = array<i64: 1, 8>}
    %h1, %c1 = graph.lstm_cell %1, %h, %c, %w, %r, %b
    %hn, %cn = graph.lstm_cell %3, %h1, %c1, %w, %r, %b
    %4 = graph.reshape %h1 {shape = array<i64: 1, 1, 4>}
    %5 = graph.reshape %hn {shape = array<i64: 1, 1, 4>}
    %y = graph.concat(%4, %5) {axis = 0 : i64}
    ```
    """

    name = "unroll-recurrence"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        known: Steps = {}
        for layer in list(op.walk()):
            if not isinstance(layer, LayerOp):
                continue
            if tensor_type(layer.x).get_shape()[0] == DYNAMIC:
                missed(layer, RULE, "the number of steps is dynamic")
                continue
            applied(layer, RULE, "{} steps", tensor_type(layer.x).get_shape()[0])
            _unroll(layer, known)
