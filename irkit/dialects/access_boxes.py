"""Which elements each rTask of an rOperator reads and writes: a box per operand and per result.

Boxes come from the body and the grid alone. Results: the root's part is carried forward through the
epilogue. Operands: what the results need is carried backward, op by op, as each op's model says
(`tensor_ops/`). A box may be larger than what is touched, never smaller.

The batch (a dynamic leading dimension) is counted in shares: a grid of g parts along it makes its
extent g, and part p is the interval [p, p + 1).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue

from irkit.dialects.roperator_body import find_root
from irkit.dialects.roperator_root import Root
from irkit.dialects.task import ROperatorOp
from irkit.dialects.tensor_ops.interface import Box, Extents, Interval
from irkit.dialects.tensor_ops.registry import model_of
from irkit.dialects.types import DYNAMIC, ints, tensor_type
from irkit.errors import UnsupportedError


def part(size: int, parts: int, number: int) -> Interval:
    """Part `number` of `parts` of a dimension; the batch is counted in shares."""
    if size == DYNAMIC:
        return number, number + 1
    return size * number // parts, size * (number + 1) // parts


def grid_of(op: ROperatorOp, root: Root, grid: Sequence[int] | None = None) -> list[int]:
    """The grid over the root's parallel dimensions: the op's, or `grid`; ones where neither says more.

    Raises UnsupportedError for one of another rank, or that cuts more than the batch of a row-wise root.
    """
    grid = list(ints(op.grid) if grid is None else grid) or [1] * len(root.parallel)
    where = f"grid {grid} of @{op.sym_name.data}"
    if len(grid) != len(root.parallel):
        raise UnsupportedError(f"{where}: its root has {len(root.parallel)} parallel dimensions")
    if root.parallel[:1] == (DYNAMIC,) and any(g != 1 for g in grid[1:]):
        raise UnsupportedError(f"{where}: a row-wise rOperator is cut along the batch alone")
    return grid


def operand_boxes(
    op: ROperatorOp, grid: Sequence[int] | None = None
) -> tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]]:
    """Boxes of the operands and of the results in the op's grid, or in `grid`: one tasks×rank×2 array each.

    Raises UnsupportedError for a grid that does not fit the root, or rows that depend on other rows.
    """
    root = find_root(op.body.block)
    grid = grid_of(op, root, grid)
    check_rows(op, root)
    extents = Extents(grid[0] if root.parallel and root.parallel[0] == DYNAMIC else 1)
    per_task = [
        _task_boxes(
            op,
            root,
            [part(s, g, n) for s, g, n in zip(root.parallel, grid, cell, strict=True)],
            extents,
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
        _task_boxes(op, root, [(1, 2), *((0, s) for s in root.parallel[1:])], Extents(3))[0]
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
    op: ROperatorOp, root: Root, cell: list[Interval], extents: Extents
) -> tuple[list[Box], list[Box]]:
    analysis = _BoxPropagation(root, cell, extents)
    block = op.body.block
    results = analysis.forward(block)
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
    """Forward and backward propagation for one rTask: what each op says of its own boxes, put together."""

    def __init__(self, root: Root, cell: list[Interval], extents: Extents) -> None:
        self.root, self.cell, self.extents = root, cell, extents
        self.demanded: dict[SSAValue, Box] = {}

    def root_box(self) -> Box:
        """The rTask's part of what the root defines."""
        model = model_of(self.root.op) if self.root.op is not None else None
        return model.root_box(self.root, self.cell) if model is not None else tuple(self.cell)

    def forward(self, body: Block) -> list[Box]:
        """The parts of the results that the rTask computes, from its part of the root.

        Raises UnsupportedError for a result of which no op says what follows from the root.
        """
        assert body.last_op is not None
        results = body.last_op.operands
        if self.root.op is None or self.root.value is None:
            return [tuple(self.cell) for _ in results]
        computed: dict[SSAValue, Box | None] = {self.root.value: self.root_box()}
        for op in body.ops:
            if op not in self.root.chain and any(v in computed for v in op.operands):
                self._follow(op, computed)
        boxes = [computed.get(v) for v in results]
        if any(box is None for box in boxes):
            raise UnsupportedError("a result that is no elementwise function of the root")
        return [box for box in boxes if box is not None]

    def _follow(self, op: Operation, computed: dict[SSAValue, Box | None]) -> None:
        """What is computed of the results of an op behind the root."""
        model = model_of(op)
        if model is None:
            return
        known = [computed.get(v) for v in op.operands]
        computed.update(zip(op.results, model.result_boxes(op, known, self.extents), strict=True))

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
        needed = [self.demanded.get(r) for r in op.results]
        if all(box is None for box in needed):
            return
        for operand, box in zip(op.operands, self._read(op, needed), strict=True):
            if box is not None:
                self.demand(operand, box)

    def _read(self, op: Operation, needed: Sequence[Box | None]) -> Sequence[Box | None]:
        model = model_of(op)
        if model is not None:
            return model.operand_boxes(op, needed, self.extents)
        return [
            self.extents.whole(v) if isinstance(v.type, TensorType) else None for v in op.operands
        ]
