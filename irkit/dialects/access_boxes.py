"""Which elements each rTask of an rOperator reads and writes: a box per operand and per result.

Boxes come from the body and the grid alone. Results: the root's part is carried forward through the
epilogue. Operands: what the results need is carried backward, by interval arithmetic on the indexing
maps. A box may be larger than what is touched, never smaller.

The batch (a dynamic leading dimension) is counted in shares: a grid of g parts along it makes its
extent g, and part p is the interval [p, p + 1).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith, tensor
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)

from irkit.dialects import te
from irkit.dialects.roperator_root import Root, find_root, iterators, loop_sizes, maps
from irkit.dialects.task import ROperatorOp
from irkit.dialects.types import DYNAMIC, ints, tensor_type
from irkit.errors import UnsupportedError

Interval = tuple[int, int]
Box = tuple[Interval, ...]


def part(size: int, parts: int, number: int) -> Interval:
    """Part `number` of `parts` of a dimension; the batch is counted in shares."""
    if size == DYNAMIC:
        return number, number + 1
    return size * number // parts, size * (number + 1) // parts


def grid_of(op: ROperatorOp, root: Root) -> list[int]:
    """The grid over the root's parallel dimensions; ones before `partition-rtasks`.

    Raises UnsupportedError for one of another rank, or that cuts more than the batch of a row-wise root.
    """
    grid = list(ints(op.grid)) or [1] * len(root.parallel)
    where = f"grid {grid} of @{op.sym_name.data}"
    if len(grid) != len(root.parallel):
        raise UnsupportedError(f"{where}: its root has {len(root.parallel)} parallel dimensions")
    if root.parallel[:1] == (DYNAMIC,) and any(g != 1 for g in grid[1:]):
        raise UnsupportedError(f"{where}: a row-wise rOperator is cut along the batch alone")
    return grid


def operand_boxes(op: ROperatorOp) -> tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]]:
    """Boxes of the operands and of the results: one tasks×rank×2 array each.

    Raises UnsupportedError for a grid that does not fit the root, or rows that depend on other rows.
    """
    root = find_root(op.body.block)
    grid = grid_of(op, root)
    check_rows(op, root)
    shares = grid[0] if root.parallel and root.parallel[0] == DYNAMIC else 1
    per_task = [
        _task_boxes(
            op,
            root,
            [part(s, g, n) for s, g, n in zip(root.parallel, grid, cell, strict=True)],
            shares,
        )
        for cell in itertools.product(*(range(g) for g in grid))
    ]
    reads, writes = zip(*per_task, strict=True)
    return _some_read(_stack(reads)), _stack(writes)


def _some_read(operands: list[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    """An operand of which no rTask reads anything is read in its first element all the same: what a launch
    takes comes before it, whether it matters or not."""
    for boxes in operands:
        if not (boxes[:, :, 0] < boxes[:, :, 1]).all(axis=1).any():
            boxes[0] = (0, 1)
    return operands


def check_rows(op: ROperatorOp, root: Root) -> None:
    """Raises UnsupportedError for a row of the batch that needs other rows.

    Shares of a batch run in any order, on buffers that hold any number of rows. Looks at the middle one
    of three shares, whatever the grid.
    """
    batch = [n for n, a in enumerate(op.body.block.args) if has_batch(a)]
    if not batch:
        return
    row_wise = root.parallel[:1] == (DYNAMIC,)
    reads = (
        _task_boxes(op, root, [(1, 2), *((0, s) for s in root.parallel[1:])], 3)[0]
        if row_wise
        else []
    )
    if row_wise and all(reads[n][0] in ((1, 2), (0, 0)) for n in batch):
        return
    sources = f" (from {op.sources.data})" if op.sources is not None else ""
    raise UnsupportedError(
        f"@{op.sym_name.data}{sources}: a row of the batch that depends on other rows"
    )


def has_batch(value: SSAValue) -> bool:
    """Whether a value's leading dimension is the batch."""
    return tensor_type(value).get_shape()[:1] == (DYNAMIC,)


def _stack(boxes: Sequence[list[Box]]) -> list[NDArray[np.int64]]:
    return [
        np.array(list(column), dtype=np.int64).reshape(len(boxes), -1, 2)
        for column in zip(*boxes, strict=True)
    ]


def _task_boxes(
    op: ROperatorOp, root: Root, cell: list[Interval], shares: int
) -> tuple[list[Box], list[Box]]:
    analysis = _BoxPropagation(root, cell, shares)
    block = op.body.block
    results = [analysis.forward(v) for v in op.terminator.values]
    for value, box in zip(op.terminator.values, results, strict=True):
        analysis.demand(value, box)
    if root.op is not None:
        analysis.demand(root.op.results[0], analysis.root_box())
    for inner in reversed(list(block.ops)):
        analysis.backward(inner)
    nothing = [tuple((0, 0) for _ in tensor_type(a).get_shape()) for a in block.args]
    reads = [analysis.demanded.get(a, none) for a, none in zip(block.args, nothing, strict=True)]
    return reads, results


class _BoxPropagation:
    """Forward and backward propagation for one rTask."""

    def __init__(self, root: Root, cell: list[Interval], shares: int) -> None:
        self.root, self.cell, self.shares = root, cell, shares
        self.demanded: dict[SSAValue, Box] = {}

    def full(self, value: SSAValue) -> Box:
        """All of a value."""
        shape = tensor_type(value).get_shape()
        return tuple((0, self.shares if s == DYNAMIC else s) for s in shape)

    def root_box(self) -> Box:
        """The rTask's part of what the root defines."""
        assert self.root.op is not None
        if not isinstance(self.root.op, linalg.GenericOp):
            return tuple(self.cell)
        parallel = [d for d, p in enumerate(iterators(self.root.op)) if p]
        where = dict(zip(parallel, self.cell, strict=True))
        out = maps(self.root.op)[-1]
        return tuple(where[e.position] for e in out.results if isinstance(e, AffineDimExpr))

    def forward(self, value: SSAValue) -> Box:
        """The part of a result that the rTask computes, from its part of the root."""
        if self.root.op is None:
            return tuple(self.cell)
        if value is self.root.op.results[0]:
            return self.root_box()
        op = value.owner
        if not isinstance(op, linalg.GenericOp) or not self._after_root(value):
            raise UnsupportedError("a result that is no elementwise function of the root")
        loops = self._loops_from_root(op)
        number = next(i for i, result in enumerate(op.results) if result is value)
        out = maps(op)[len(op.inputs) + number]
        return tuple(_interval(e, loops) for e in out.results)

    def _loops_from_root(self, op: linalg.GenericOp) -> list[Interval]:
        """Loop intervals of an epilogue op: given by operands whose part is known, else full."""
        sizes = loop_sizes(op)
        loops = [(0, self.shares if s == DYNAMIC else s) for s in sizes]
        for operand, amap in zip(op.inputs, maps(op), strict=False):
            if not self._after_root(operand):
                continue
            for expr, interval in zip(amap.results, self.forward(operand), strict=True):
                if isinstance(expr, AffineDimExpr):
                    loops[expr.position] = interval
        return loops

    def _after_root(self, value: SSAValue) -> bool:
        assert self.root.op is not None
        if value is self.root.op.results[0]:
            return True
        op = value.owner
        if not isinstance(op, linalg.GenericOp) or op in self.root.chain:
            return False
        return any(self._after_root(v) for v in op.inputs)

    def demand(self, value: SSAValue, box: Box) -> None:
        """`box` of `value` is needed too; an empty one is nothing, wherever it lies."""
        if any(a >= b for a, b in box):
            return
        known = self.demanded.get(value)
        if known is not None:
            box = tuple((min(a, c), max(b, d)) for (a, b), (c, d) in zip(known, box, strict=True))
        self.demanded[value] = box

    def backward(self, op: Operation) -> None:
        """Carry what is needed of an op's results to its operands."""
        needed = [r for r in op.results if r in self.demanded]
        if not needed:
            return
        if isinstance(op, linalg.GenericOp):
            self._generic(op)
            return
        rule = _BACKWARD.get(type(op))
        if rule is not None:
            rule(self, op, self.demanded[needed[0]])
            return
        for operand in op.operands:
            if hasattr(operand.type, "get_shape"):
                self.demand(operand, self.full(operand))

    def _generic(self, op: linalg.GenericOp) -> None:
        loops = [(0, self.shares if s == DYNAMIC else s) for s in loop_sizes(op)]
        for number, result in enumerate(op.results):
            if result not in self.demanded:
                continue
            out = maps(op)[len(op.inputs) + number]
            for expr, interval in zip(out.results, self.demanded[result], strict=True):
                if isinstance(expr, AffineDimExpr):
                    loops[expr.position] = interval
        for operand, amap in zip(op.operands, maps(op), strict=True):
            self.demand(operand, tuple(_interval(e, loops) for e in amap.results))


def _interval(expr: AffineExpr, loops: Sequence[Interval]) -> Interval:
    """Half-open range of an affine expression over loop ranges."""
    if isinstance(expr, AffineDimExpr):
        return loops[expr.position]
    if isinstance(expr, AffineConstantExpr):
        return expr.value, expr.value + 1
    if not isinstance(expr, AffineBinaryOpExpr):
        raise UnsupportedError(f"indexing map with {expr}")
    (a, b), (c, d) = _interval(expr.lhs, loops), _interval(expr.rhs, loops)
    if expr.kind == AffineBinaryOpKind.Add:
        return a + c, b + d - 1
    if expr.kind == AffineBinaryOpKind.Mul:
        corners = [a * c, a * (d - 1), (b - 1) * c, (b - 1) * (d - 1)]
        return min(corners), max(corners) + 1
    raise UnsupportedError(f"indexing map with {expr.kind}")


def _clip(interval: Interval, size: int) -> Interval:
    low = min(max(interval[0], 0), size)
    return low, max(min(interval[1], size), low)


def _pad(boxes: _BoxPropagation, op: Operation, box: Box) -> None:
    assert isinstance(op, tensor.PadOp)
    low = ints(op.static_low)
    limits = [b for _, b in boxes.full(op.source)]
    boxes.demand(
        op.source,
        tuple(_clip((a - o, b - o), n) for (a, b), o, n in zip(box, low, limits, strict=True)),
    )


def _strided(interval: Interval, offset: int, step: int) -> Interval:
    """What `interval` of a slice is of its source."""
    first, last = offset + interval[0] * step, offset + (interval[1] - 1) * step
    return min(first, last), max(first, last) + 1


def _extract_slice(boxes: _BoxPropagation, op: Operation, box: Box) -> None:
    assert isinstance(op, tensor.ExtractSliceOp)
    offsets, steps = ints(op.static_offsets), ints(op.static_strides)
    if len(box) != len(offsets):
        boxes.demand(op.source, boxes.full(op.source))
        return
    boxes.demand(
        op.source,
        tuple(_strided(interval, o, s) for interval, o, s in zip(box, offsets, steps, strict=True)),
    )


def _reshape(boxes: _BoxPropagation, op: Operation, box: Box) -> None:
    """Exact where the leading dimension is kept; all of every other dimension."""
    source, result = op.operands[0], op.results[0]
    full = boxes.full(source)
    same_lead = full and box and full[0] == boxes.full(result)[0]
    boxes.demand(source, (box[0], *full[1:]) if same_lead else full)


def _concat(boxes: _BoxPropagation, op: Operation, box: Box) -> None:
    assert isinstance(op, tensor.ConcatOp)
    axis, start = op.dim.value.data, 0
    for operand in op.inputs:
        full = boxes.full(operand)
        moved = list(box)
        moved[axis] = _clip((box[axis][0] - start, box[axis][1] - start), full[axis][1])
        boxes.demand(operand, tuple(moved))
        start += full[axis][1]


def _gather(boxes: _BoxPropagation, op: Operation, box: Box) -> None:
    assert isinstance(op, te.GatherOp)
    axis, rank = op.axis.value.data, tensor_type(op.indices).get_num_dims()
    boxes.demand(op.indices, box[axis : axis + rank])
    full = boxes.full(op.data)
    boxes.demand(op.data, (*box[:axis], full[axis], *box[axis + rank :]))


def _gather_elements(boxes: _BoxPropagation, op: Operation, box: Box) -> None:
    assert isinstance(op, te.GatherElementsOp)
    axis = op.axis.value.data
    boxes.demand(op.indices, box)
    full = boxes.full(op.data)
    boxes.demand(op.data, (*box[:axis], full[axis], *box[axis + 1 :]))


def _softmax(boxes: _BoxPropagation, op: Operation, box: Box) -> None:
    source = op.operands[0]
    boxes.demand(source, (*box[:-1], boxes.full(source)[-1]))


def _argmax(boxes: _BoxPropagation, op: Operation, box: Box) -> None:
    source = op.operands[0]
    boxes.demand(source, (*box, boxes.full(source)[-1]))


def _forest(boxes: _BoxPropagation, op: Operation, box: Box) -> None:
    x, *arrays = op.operands
    boxes.demand(x, (box[0], boxes.full(x)[1]))
    for operand in arrays:
        boxes.demand(operand, boxes.full(operand))


def _nothing(boxes: _BoxPropagation, op: Operation, box: Box) -> None:
    """The op reads no tensor's elements."""


_BACKWARD: dict[type[Operation], Callable[[_BoxPropagation, Operation, Box], None]] = {
    arith.ConstantOp: _nothing,
    linalg.FillOp: _nothing,
    tensor.EmptyOp: _nothing,
    tensor.DimOp: _nothing,
    tensor.PadOp: _pad,
    tensor.ExtractSliceOp: _extract_slice,
    tensor.CollapseShapeOp: _reshape,
    tensor.ExpandShapeOp: _reshape,
    tensor.ConcatOp: _concat,
    te.GatherOp: _gather,
    te.GatherElementsOp: _gather_elements,
    te.SoftmaxOp: _softmax,
    te.ArgmaxOp: _argmax,
    te.ForestOp: _forest,
    te.PerfectForestOp: _forest,
}
