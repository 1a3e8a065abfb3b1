"""`fuse-rows`: elements and sums along rows of one another, as one op over rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Final

from xdsl.context import Context
from xdsl.dialects import tensor
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irkit.dialects import te
from irkit.dialects.functions import is_straight
from irkit.dialects.linalg_generic import (
    combiner,
    is_elementwise,
    is_plain,
    maps,
)
from irkit.dialects.rowwise import CHEAP
from irkit.dialects.tensor_ops.reshape import RESHAPES
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.passes.gpu import gpu_of
from irkit.passes.tensor.row_ops import Rows, summed_by
from irkit.remarks import applied, missed

FUSE: Final = "FuseRows"
LONGEST: Final = 1 << 14
"""Elements of a row that one block goes through in less time than a launch takes, or a wait for others."""
LARGEST: Final = 160
"""Ops of a body: longer ones take registers that rows in them need."""
MOST_OPERANDS: Final = 12
_MADE: Final = (linalg.GenericOp, linalg.FillOp, tensor.EmptyOp, *RESHAPES)


@dataclass
class Cluster:
    """What is computed with the elements of rows that `end` gives: ops over elements, and sums with what is
    made of them. `barred` ops are computed apart."""

    rows: Rows
    end: linalg.GenericOp
    barred: set[Operation] = field(default_factory=set[Operation])
    ops: set[Operation] = field(default_factory=set[Operation])

    def grow(self) -> None:
        """Take in all that may belong to it; again, while some of it has to be apart."""
        while True:
            self.ops = set()
            self._take(self.end)
            apart = {op for op in self.ops if op is not self.end and self._why_apart(op)}
            if not apart:
                return
            self.barred |= apart

    def inputs(self, op: Operation) -> Iterator[SSAValue]:
        """Operands of an op that another in the cluster may give."""
        if isinstance(op, RESHAPES):
            yield op.src
        if not isinstance(op, linalg.GenericOp):
            return
        for value, amap in zip(op.inputs, maps(op), strict=False):
            same = not self.rows.has_elements(op) or self.rows.reads_row(value, amap)
            if same or amap == AffineMap.identity(len(self.rows.shape)):
                yield value

    def gives(self, op: Operation, value: SSAValue, amap: AffineMap) -> bool:
        """Whether what a place reads of an op is what the op has at that place, or in that row."""
        if op not in self.ops:
            return False
        if self.rows.has_elements(op):
            return amap == AffineMap.identity(len(self.rows.shape))
        return self.rows.reads_row(value, amap)

    def _take(self, op: Operation) -> None:
        pending = [op]
        while pending:
            taken = pending.pop()
            if taken in self.ops:
                continue
            self.ops.add(taken)
            for value in self.inputs(taken):
                if isinstance(value.owner, Operation) and self._belongs(value):
                    pending.append(value.owner)

    def _belongs(self, value: SSAValue) -> bool:
        op = value.owner
        assert isinstance(op, Operation)
        if op in self.barred or op.parent is not self.end.parent:
            return False
        rows = self.rows
        return rows.has_elements(op) or rows.sums(op) or rows.is_same(op)

    def _why_apart(self, op: Operation) -> bool:
        if self.rows.has_elements(op):
            return not self._users(op) <= self.ops and not self._is_light(op)
        return self.rows.sums(op) and self._is_needed(op) and not self._reads_anyway(op)

    @staticmethod
    def _is_light(op: Operation) -> bool:
        """Whether elements are computed here as soon as read, if they are in memory too."""
        assert isinstance(op, linalg.GenericOp)
        whole = AffineMap.identity(len(op.iterator_types))
        cheap = all(isinstance(o, (*CHEAP, linalg.YieldOp)) for o in op.body.block.ops)
        return cheap and maps(op)[: len(op.inputs)].count(whole) <= 1

    @staticmethod
    def _users(op: Operation) -> set[Operation]:
        return {use.operation for result in op.results for use in result.uses}

    def _is_needed(self, op: Operation) -> bool:
        """Whether something else needs a sum, or what is made of it."""
        pending, seen = [op], set[Operation]([self.end])
        while pending:
            made = pending.pop()
            if made in seen:
                continue
            seen.add(made)
            users = self._users(made)
            if not users <= self.ops:
                return True
            pending += (user for user in users if self.rows.is_same(user))
        return False

    def _reads_anyway(self, op: Operation) -> bool:
        """Whether rows that the terms of a sum are made of, which is computed elsewhere too, are read for
        something else."""
        (terms,) = self.inputs(op)
        return self._rows_read(terms, op) <= self._rows_read(self.end.results[0], op)

    def _rows_read(self, value: SSAValue, but: Operation) -> set[SSAValue]:
        """Rows in memory that a value is made of, without what one sum alone needs."""
        pending, seen, found = [value], set[SSAValue](), set[SSAValue]()
        while pending:
            value = pending.pop()
            maker = value.owner
            if value in seen or maker is but:
                continue
            seen.add(value)
            if isinstance(maker, Operation) and maker in self.ops:
                pending += self.inputs(maker)
            elif tensor_type(value).get_shape() == self.rows.shape:
                found.add(value)
        return found

    @property
    def sums(self) -> list[Operation]:
        """Sums along rows in it."""
        return [op for op in self.ops if self.rows.sums(op)]


@dataclass
class _Body:
    """The body of the op that a cluster becomes."""

    cluster: Cluster
    block: Block = field(default_factory=Block)
    operands: dict[tuple[SSAValue, AffineMap], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, AffineMap], SSAValue]
    )
    _known: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])

    def of(self, value: SSAValue, amap: AffineMap) -> SSAValue:
        """The scalar that a value is, read by a map of the rows' loops."""
        op = value.owner
        if not isinstance(op, Operation) or not self.cluster.gives(op, value, amap):
            return self._operand(value, amap)
        if value not in self._known:
            self._known[value] = self.computed(op)
        return self._known[value]

    def _operand(self, value: SSAValue, amap: AffineMap) -> SSAValue:
        key = (value, amap)
        if key not in self.operands:
            element = tensor_type(value).element_type
            self.operands[key] = self.block.insert_arg(element, len(self.operands))
        return self.operands[key]

    def computed(self, op: Operation) -> SSAValue:
        """The scalar that an op of the cluster gives."""
        if isinstance(op, RESHAPES):
            return self.of(op.src, self._row_map(op.src))
        assert isinstance(op, linalg.GenericOp)
        rows = self.cluster.rows
        whole = rows.has_elements(op) or rows.sums(op)
        own = maps(op)[: len(op.inputs)]
        if not whole:
            own = [self._row_map(v) for v in op.inputs]
        arguments = op.body.block.args
        scope: dict[SSAValue, SSAValue] = {
            a: self.of(v, m) for a, v, m in zip(arguments, op.inputs, own, strict=False) if a.uses
        }
        found = combiner(op) if rows.sums(op) else None
        for inner in op.body.block.ops:
            if isinstance(inner, linalg.YieldOp) or (found is not None and inner is found[1]):
                continue
            copy = inner.clone(scope)
            copy.location = inner.location
            self.block.add_op(copy)
            scope.update(zip(inner.results, copy.results, strict=True))
        if found is None:
            end = op.body.block.last_op
            assert end is not None
            return scope.get(end.operands[0], end.operands[0])
        (term,) = (v for v in found[1].operands if v is not arguments[-1])
        reduced = te.RowReduceOp(scope.get(term, term), found[0])
        reduced.location = op.location
        self.block.add_op(reduced)
        return reduced.y

    def _row_map(self, value: SSAValue) -> AffineMap:
        """How rows read what there is one of for each."""
        rank = len(self.cluster.rows.shape)
        lead = AffineMap.identity(rank).results[:-1]
        unit = (AffineConstantExpr(0),) * (len(tensor_type(value).get_shape()) == rank)
        return AffineMap(rank, 0, (*lead, *unit))


def _fuse(cluster: Cluster, block: Block) -> bool:
    """Make a cluster of several ops, one a sum, one op; whether it is."""
    end, rows = cluster.end, cluster.rows
    reason = _why_not(cluster)
    if reason is not None:
        missed(end, FUSE, "{}", reason)
        return False
    whole, shape = AffineMap.identity(len(rows.shape)), rows.shape
    body = _Body(cluster)
    body.block.add_op(te.YieldOp(body.computed(end)))
    if (shape, whole) not in {(tensor_type(v).get_shape(), m) for v, m in body.operands}:
        missed(end, FUSE, "nothing that it reads has its rows")
        return False
    if len(body.operands) > MOST_OPERANDS or len(list(body.block.ops)) > LARGEST:
        missed(end, FUSE, "it is too much for registers")
        return False
    made = te.RowwiseOp(
        [v for v, _ in body.operands],
        [m for _, m in body.operands],
        Region(body.block),
        tensor_type(end.results[0]).get_shape(),
    )
    made.location = end.location
    made.y.name_hint = end.results[0].name_hint
    applied(end, FUSE, "{} sums along its rows are computed here", len(cluster.sums))
    Rewriter.replace_op(end, made)
    _erase_dead(block)
    return True


def _why_not(cluster: Cluster) -> str | None:
    columns = cluster.rows.shape[-1]
    if not 1 < columns <= LONGEST:
        return f"its rows have {'an unknown number of' if columns == DYNAMIC else columns} elements"
    cluster.grow()
    if not cluster.sums:
        return "it needs no sum along its rows that is to be computed here"
    generics = (op for op in cluster.ops if isinstance(op, linalg.GenericOp))
    if sum(len(list(op.body.block.ops)) for op in generics) > 2 * LARGEST:
        return "it is too much for registers"
    ends_in_row = not cluster.rows.has_elements(cluster.end)
    if ends_in_row and len(cluster.sums) < 2:
        return "one sum alone is a reduction"
    return None


def _rows_behind(op: linalg.GenericOp) -> Rows | None:
    """The rows along which what an elementwise op is made of is summed."""
    lead = tensor_type(op.results[0]).get_shape()
    pending, seen = list(op.inputs), set[SSAValue]()
    while pending:
        value = pending.pop()
        inner = value.owner
        if value in seen or not isinstance(inner, (linalg.GenericOp, *RESHAPES)):
            continue
        seen.add(value)
        if isinstance(inner, RESHAPES):
            pending.append(inner.src)
        elif is_elementwise(inner):
            same = math.prod(tensor_type(inner.results[0]).get_shape()) == math.prod(lead)
            pending += inner.inputs if same else ()
        elif (found := summed_by(inner)) is not None and found.lead == lead:
            return found
    return None


def _made_of_sums(block: Block) -> set[Operation]:
    """Sums along rows, and what is made of them element by element."""
    found: set[Operation] = set()
    for op in block.ops:
        light = isinstance(op, RESHAPES) or is_elementwise(op)
        if (light and any(v.owner in found for v in op.operands)) or summed_by(op) is not None:
            found.add(op)
    return found


def fuse_block(block: Block) -> None:
    """Fuse rows of a function's body, the last elements first."""
    worth = _made_of_sums(block)
    for op in reversed(list(block.ops)):
        if op not in worth or op.parent is None or not is_plain(op):
            continue
        assert isinstance(op, linalg.GenericOp)
        rows = Rows(tensor_type(op.results[0]).get_shape())
        if rows.shape and rows.has_elements(op) and _fuse(Cluster(rows, op), block):
            continue
        if (behind := _rows_behind(op)) is not None and behind.is_same(op):
            _fuse(Cluster(behind, op), block)


def _erase_dead(block: Block) -> None:
    for op in reversed(list(block.ops)):
        if isinstance(op, _MADE) and not any(result.uses for result in op.results):
            Rewriter.erase_op(op)


@dataclass(frozen=True)
class FuseRows(ModulePass):
    """Compute elements of rows together with the sums along these rows that they hang on, for a GPU.

    Elementwise ops, sums (also largest and smallest elements) along the last dimension from nothing on, and
    what is made of these, one for each row, become one `te.rowwise`, whose rows are read once and stay in
    registers. So does what is made of two sums or more, one for each row. What something else reads is
    computed apart, and read, if it is not as soon computed; a sum that something else needs is computed here
    once more where its terms are at hand. Of rows of more than 16384 elements, of which a block
    would take too long, nothing is. `device` is the vDevice that is planned for: on a CPU nothing changes.

    Numeric risk: sums are in another order.

    ```mlir
    %0 = linalg.generic {... "reduction"} ins(%x) outs(%zeros) {... addf ...}
    %1 = linalg.generic {maps = [(i, j) -> (i, j), (i, j) -> (i), (i, j) -> (i, j)]}
        ins(%x, %0) outs(%e) {... divf ...}
    ```
    becomes
    ```mlir
    %1 = te.rowwise %x [(i, j) -> (i, j)] {
    ^bb0(%2: f32):
      %3 = te.row_reduce %2 {kind = "add"} : f32
      %4 = arith.divf %2, %3 : f32
      te.yield %4 : f32
    }
    ```
    """

    name = "fuse-rows"
    requires: ClassVar[tuple[str, ...]] = ("tensor",)
    produces: ClassVar[str] = "tensor"
    device: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if gpu_of(self.device) is None:
            return
        for function in op.walk():
            if is_straight(function):
                fuse_block(function.body.block)
