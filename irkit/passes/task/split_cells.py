"""`split-cells`: recurrent cells of many rows as products and what is made of the sums, if it is faster."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects import func, tensor
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    ModuleOp,
    TensorType,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.context import weights_of
from irkit.dialects.linalg_generic import is_elementwise, maps, row_term
from irkit.dialects.loop import schedule_on
from irkit.dialects.precision import inherit
from irkit.dialects.roperator_root import Root
from irkit.dialects.task import LaunchOp, ROperatorOp, YieldOp
from irkit.dialects.tensor_ops.interface import Kind
from irkit.dialects.tensor_ops.registry import kind_of
from irkit.dialects.types import tensor_type
from irkit.errors import UnsupportedError
from irkit.passes.gpu import device_of
from irkit.passes.task.cell_weights import CellWeights, by_rows_of, collapsed
from irkit.passes.task.launch_constants import launches_of
from irkit.passes.task.outlining import Outliner, erase_dead
from irkit.passes.task.pack_factors import blocks_ns
from irkit.passes.task.partition_rtasks import Partition
from irkit.remarks import applied, missed
from irkit.rkernels.legality import root_of
from irkit.schedule.model import VDevice

RULE = "SplitCell"
WAITS = 2
"""Waits of one vEU for another that one more launch takes on the way from step to step."""

ENOUGH, ENOUGH_ON_A_GPU = 0.85, 0.5
"""Of the estimated time of a cell at once, what it may take split. Estimates are no better: on an H200 a wave
of ten LSTM cells of 256 units over 64 rows takes 30 µs, and 57 by estimate."""

COMPUTED = (Kind.LIGHT, Kind.HEAVY)

Factor = Callable[[SSAValue], tuple[SSAValue, bool]]
"""What gives weights (unit, sum, term) as a matrix, and whether it has a row for each sum, or a column."""


def cell_of(op: ROperatorOp) -> Root | str:
    """The root of a cell that can be split, or why it cannot be."""
    try:
        root = root_of(op)
    except UnsupportedError as error:
        return str(error)
    if root.family != "recurrent_cell" or root.value is None:
        return "it is no recurrent cell"
    if schedule_on(root.op) is not None:
        return "it is to be run by a schedule"
    if root.parallel[0] == 1:
        return "it has one row"
    for use in root.value.uses:
        user = use.operation
        if not isinstance(user, linalg.GenericOp) or not is_elementwise(user):
            return "its sums are results, or seen under another shape"
        _, _, *group = maps(user)[use.index].results
        if not all(isinstance(e, AffineConstantExpr) for e in group):
            return "which of a unit's sums is read hangs on where the unit is"
    if any(kind_of(o) is Kind.VIEW and not _is_argument(o.operands[0]) for o in op.body.block.ops):
        return "what it computes is seen under another shape"
    return root


def _is_argument(value: SSAValue) -> bool:
    return isinstance(value, BlockArgument)


class _Splitter:
    """Puts products and one more launch in the place of a cell's launch."""

    def __init__(self, launch: LaunchOp, op: ROperatorOp, root: Root, factor: Factor) -> None:
        self.launch, self.op, self.root, self.factor = launch, op, root, factor
        arguments = zip(op.body.block.args, launch.arguments, strict=True)
        self.env: dict[SSAValue, SSAValue] = dict(arguments)
        self.sums: SSAValue | None = None

    def run(self, outliner: Outliner) -> None:
        """Everything, in place."""
        products: list[list[Operation]] = []
        known: list[Operation] = []
        for op in self.op.body.block.ops:
            if isinstance(op, linalg.GenericOp) and op in self.root.chain:
                products.append(self._product(op, known))
            elif not isinstance(op, YieldOp):
                known.append(self._copied(op))
        for old, value in zip(self.launch.outputs, self.op.terminator.values, strict=True):
            new = self.env[value]
            new.name_hint = old.name_hint
            old.replace_all_uses_with(new)
        Rewriter.erase_op(self.launch)
        for product in products:
            outliner.outline(product)
        outliner.outline([o for o in _living(known) if kind_of(o) in COMPUTED])

    def _insert(self, op: Operation, like: Operation) -> SSAValue:
        op.location = like.location
        Rewriter.insert_op(op, InsertPoint.before(self.launch))
        return op.results[0]

    def _copied(self, op: Operation) -> Operation:
        """An op of the body, outside. What reads sums unit by unit reads them where they lie now."""
        copy = op.clone(self.env if self.sums is None else {**self.env, self._cell: self.sums})
        if isinstance(op, linalg.GenericOp) and isinstance(copy, linalg.GenericOp):
            read = zip(op.operands, maps(op), strict=True)
            found = [self._where(m) if v is self.root.value else m for v, m in read]
            copy.indexing_maps = ArrayAttr(map(AffineMapAttr, found))
        self._insert(copy, op)
        self.env |= dict(zip(op.results, copy.results, strict=True))
        return copy

    @property
    def _cell(self) -> SSAValue:
        assert self.root.value is not None
        return self.root.value

    def _where(self, amap: AffineMap) -> AffineMap:
        """How the sums of a row, one dimension, are read as `amap` reads them unit by unit."""
        row, unit, *group = amap.results
        sizes = self.root.parallel[2:]
        together, number = math.prod(sizes), _number(group, sizes)
        column = unit if together == 1 else unit * together + number
        return AffineMap(amap.num_dims, amap.num_symbols, (row, column))

    def _product(self, op: linalg.GenericOp, known: Sequence[Operation]) -> list[Operation]:
        """A term as a product of matrices, and before it that of `known` by which its start is computed."""
        term = row_term(op)
        assert term is not None
        before: list[Operation] = []
        if self.sums is None:
            before = self._start(self.env[op.outputs[0]], known)
        assert self.sums is not None
        w, by_rows = self.factor(self.env[term.w])
        row, column, k = (AffineDimExpr(d) for d in range(3))
        inputs, indices = [self.env[term.x], w], [(row, k), (column, k) if by_rows else (k, column)]
        if op.inputs[0] is not term.x:
            inputs, indices = inputs[::-1], indices[::-1]
        product = linalg.GenericOp(
            inputs,
            [self.sums],
            op.body.clone(),
            ArrayAttr(AffineMapAttr(AffineMap(3, 0, i)) for i in (*indices, (row, column))),
            ArrayAttr([*[IteratorTypeAttr.parallel()] * 2, IteratorTypeAttr.reduction()]),
            [self.sums.type],
        )
        inherit(product, op)
        self.sums = self._insert(product, op)
        return [*before, product]

    def _start(self, start: SSAValue, known: Sequence[Operation]) -> list[Operation]:
        """Sets what the sums start from, those of a row in one dimension; returns what computes it."""
        owner = start.owner
        if isinstance(owner, linalg.FillOp):
            filled = linalg.FillOp(owner.inputs, [self._empty(owner)], [_joined(start, 1)])
            self.sums = self._insert(filled, owner)
            return []
        if owner in known and isinstance(owner, linalg.GenericOp) and _repeats_a_row(owner):
            return [self._repeated(owner)]
        flat = collapsed(start, [[0], [*range(1, tensor_type(start).get_num_dims())]])
        self.sums = self._insert(flat, self.launch)
        made = _needed(start, known)
        return [*made, flat] if made else []

    def _empty(self, op: linalg.FillOp | linalg.GenericOp) -> SSAValue:
        """A destination as an op's own, the sums of a row in one dimension."""
        owner = op.outputs[0].owner
        sizes = list(owner.dynamic_sizes) if isinstance(owner, tensor.EmptyOp) else []
        return self._insert(tensor.EmptyOp(sizes, _joined(op.outputs[0], 1)), op)

    def _repeated(self, op: linalg.GenericOp) -> Operation:
        """The start of all rows, which is one row."""
        given = op.inputs[0]
        row = collapsed(given, [[*range(tensor_type(given).get_num_dims())]])
        self._insert(row, op)
        loops = tuple(AffineDimExpr(d) for d in range(2))
        repeated = linalg.GenericOp(
            [row.result],
            [self._empty(op)],
            op.body.clone(),
            ArrayAttr(AffineMapAttr(AffineMap(2, 0, i)) for i in (loops[1:], loops)),
            ArrayAttr([IteratorTypeAttr.parallel()] * 2),
            [_joined(op.results[0], 1)],
        )
        self.sums = self._insert(repeated, op)
        return repeated


def _number(group: Sequence[AffineExpr], sizes: Sequence[int]) -> int:
    """Which of a unit's sums it is."""
    found = 0
    for expr, size in zip(group, sizes, strict=True):
        assert isinstance(expr, AffineConstantExpr)
        found = found * size + expr.value
    return found


def _joined(value: SSAValue, first: int) -> TensorType:
    """The type of a value whose dimensions from `first` on are one."""
    kind = tensor_type(value)
    shape = kind.get_shape()
    return TensorType(kind.element_type, [*shape[:first], math.prod(shape[first:])])


def _repeats_a_row(op: linalg.GenericOp) -> bool:
    """Whether every row is the one operand, as it is."""
    of_row, whole = maps(op)[0], maps(op)[-1]
    one = len(op.inputs) == len(op.results) == 1 and is_elementwise(op)
    identity = AffineMap.identity(whole.num_dims)
    return one and whole == identity and of_row.results == whole.results[1:]


def _living(ops: Sequence[Operation]) -> list[Operation]:
    """Those whose results are read; others, which products have replaced or taken along, are gone."""
    for op in reversed([o for o in ops if o.parent]):
        if not any(r.uses for r in op.results):
            Rewriter.erase_op(op)
    return [o for o in ops if o.parent]


def _needed(value: SSAValue, known: Sequence[Operation]) -> list[Operation]:
    """What of `known` computes `value`, in order."""
    found: set[Operation] = set()
    pending = [value]
    while pending:
        owner = pending.pop().owner
        if isinstance(owner, Operation) and owner in known and owner not in found:
            found.add(owner)
            pending.extend(owner.operands)
    return [op for op in known if op in found and kind_of(op) in COMPUTED]


def _estimate(op: ROperatorOp, by_rows: bool, device: VDevice, known: bool) -> float:
    """About how long a cell takes that is split, in ns, its weights a row for each sum, or a column, or,
    where they are `known`, in blocks of columns; infinitely long where no rKernel can compute a part."""
    block = Block(arg_types=op.body.block.arg_types)
    types = list(op.function_type.inputs), list(op.function_type.outputs)
    launch = LaunchOp(op.sym_name.data, list(block.args), types[1])
    block.add_ops([launch, func.ReturnOp(*launch.outputs)])
    module = ModuleOp([cell := op.clone(), func.FuncOp("main", types, Region(block))])

    def factor(w: SSAValue) -> tuple[SSAValue, bool]:
        kind = tensor_type(by_rows_of(w).result)
        sizes = kind.get_shape() if by_rows else kind.get_shape()[::-1]
        kind = TensorType(kind.element_type, sizes)
        return block.insert_arg(kind, len(block.args)), by_rows

    _Splitter(launch, cell, root_of(cell), factor).run(Outliner(module))
    Rewriter.erase_op(cell)
    made = [o for o in module.ops if isinstance(o, ROperatorOp)]
    partition = Partition(module, device)
    in_blocks = known and device.kind != "cuda"
    try:
        computed = sum(
            min(blocks_ns(partition, o) if in_blocks else math.inf, partition.fastest_ns(o))
            for o in made
        )
    except UnsupportedError:
        return math.inf
    return computed + (len(made) - 1) * WAITS * device.wait_ns


@dataclass(frozen=True)
class SplitCells(ModulePass):
    """Compute a recurrent cell of many rows as products of matrices and a launch that makes states of their
    sums, where `device` is estimated to take less time for that than for the cell at once.

    A cell at once is fast for few rows: one launch a step, whose weights stay where they are. Of many rows
    it is bound by multiply-adds, of which products by tiles, and on tensor cores, do far more. Weights that
    are constants are laid out for the faster of both ways to read them. With `always`, all cells of more
    than one row are split. No value changes.

    ```mlir
    %h, %c = task.launch @recurrent_cell_0(%x, %w, %sums, %state)
    ```
    becomes
    ```mlir
    %gates = task.launch @gemm_0(%x, %w_as_matrix, %sums_as_matrix)
    %h, %c = task.launch @map_0(%gates, %state)
    ```
    """

    name = "split-cells"
    requires: ClassVar[tuple[str, ...]] = ("task",)
    produces: ClassVar[str] = "task"
    device: str = "cpu"
    always: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        device = device_of(self.device)
        enough = ENOUGH_ON_A_GPU if device.kind == "cuda" else ENOUGH
        weights, partition = CellWeights(weights_of(ctx)), Partition(op, device)
        for cell in [o for o in op.ops if isinstance(o, ROperatorOp)]:
            root = cell_of(cell)
            if isinstance(root, str):
                missed(cell, RULE, "{}", root)
                continue
            known = weights.are_known(root, launches_of(op, cell))
            ways = {by_rows: _estimate(cell, by_rows, device, known) for by_rows in (True, False)}
            by_rows = min(ways, key=ways.__getitem__)
            if ways[by_rows] == math.inf:
                missed(cell, RULE, "no rKernel can compute its parts")
                continue
            whole = partition.fastest_ns(cell.clone())
            if ways[by_rows] > enough * whole and not self.always:
                missed(
                    cell, RULE, "an estimated {:.0f} ns, and {:.0f} at once", ways[by_rows], whole
                )
                continue
            applied(cell, RULE, "an estimated {:.0f} ns, not {:.0f}", ways[by_rows], whole)
            _split_all(op, cell, root, weights, by_rows)


def _split_all(
    module: ModuleOp, cell: ROperatorOp, root: Root, weights: CellWeights, by_rows: bool
) -> None:
    """Split every launch of a cell, which is no longer needed then."""
    outliner = Outliner(module)
    for launch in launches_of(module, cell):
        main = _function_of(launch)
        _Splitter(launch, cell, root, lambda w, at=launch: weights.matrix(w, at, by_rows)).run(
            outliner
        )
        erase_dead(main)
    Rewriter.erase_op(cell)


def _function_of(op: Operation) -> func.FuncOp:
    parent = op.parent_op()
    while not isinstance(parent, func.FuncOp):
        assert parent is not None
        parent = parent.parent_op()
    return parent
