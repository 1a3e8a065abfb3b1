"""`group-products`: products of few rows that share an operand as one, unit by unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, FloatAttr, ModuleOp, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.context import weights_of
from irkit.dialects.constants import constant, constant_array
from irkit.dialects.functions import is_straight
from irkit.dialects.linalg_generic import is_contraction, is_elementwise, iterators, maps
from irkit.dialects.precision import inherit
from irkit.dialects.tensor_ops.interface import Kind
from irkit.dialects.tensor_ops.registry import kind_of
from irkit.dialects.types import DYNAMIC, ints, is_float, numpy_dtype, tensor_type
from irkit.passes.tensor.joining import Operand, join, why_not_joined
from irkit.remarks import applied, missed
from irkit.weights import Array, WeightStore

RULE = "GroupProducts"
ROWS, GROUP = 8, 16
"""At most so many rows, and products in one: what rKernels of row-wise products are for."""

_ROW, _UNIT, _GATE, _K = (AffineDimExpr(d) for d in range(4))


@dataclass(frozen=True)
class Piece:
    """`width` columns of a product, from column `first`: `value` is all of it, or a slice."""

    value: SSAValue
    first: int


@dataclass
class Candidate:
    """A product sum_k x[m, k] * w[n, k] of few rows, whose columns elementwise ops read in pieces."""

    op: linalg.GenericOp
    weights: Array
    """n×k."""
    start: Array
    """What the sums start from, n."""
    pieces: list[Piece]

    @property
    def width(self) -> int:
        """Columns of a piece."""
        return tensor_type(self.pieces[0].value).get_shape()[1]

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for those that can be one."""
        op = self.op
        return (
            id(op.inputs[0]),
            self.width,
            self.weights.shape[1],
            str(op.attributes),
            self.weights.dtype.str,
        )

    def readers(self) -> list[linalg.GenericOp]:
        """The elementwise ops that read the pieces."""
        users = [u.operation for p in self.pieces for u in p.value.uses]
        return [op for op in dict.fromkeys(users) if isinstance(op, linalg.GenericOp)]


def candidate_of(op: linalg.GenericOp, weights: WeightStore) -> Candidate | str:
    """`op` as a candidate, or why it is none."""
    if not is_contraction(op) or iterators(op) != [True, True, False]:
        return "it is no product of two matrices"
    rows, columns = tensor_type(op.results[0]).get_shape()
    if rows == DYNAMIC or rows > ROWS:
        return f"it has more rows than {ROWS}, or is open in them"
    if not is_float(tensor_type(op.results[0]).element_type):
        return "it is no product of floats"
    array = _weights(op, weights)
    if array is None:
        return "its second operand is no constant"
    start = _start(op.outputs[0], columns, array, weights)
    if start is None:
        return "it starts from what is not the same constant in all rows"
    pieces = _pieces(op, columns)
    return pieces if isinstance(pieces, str) else Candidate(op, array, start, pieces)


def _weights(op: linalg.GenericOp, weights: WeightStore) -> Array | None:
    x, w, out = maps(op)
    d = [AffineDimExpr(n) for n in range(3)]
    if list(x.results) != [d[0], d[2]] or list(out.results) != [d[0], d[1]]:
        return None
    if constant_array(op.inputs[0], weights) is not None:
        return None
    array = constant_array(op.inputs[1], weights)
    if array is None or list(w.results) == [d[1], d[2]]:
        return array
    return array.T if list(w.results) == [d[2], d[1]] else None


def _start(value: SSAValue, columns: int, like: Array, weights: WeightStore) -> Array | None:
    """The constant row that every row of `value` is."""
    op = value.owner
    if isinstance(op, linalg.FillOp):
        number = constant_array(op.inputs[0], weights)
        return None if number is None else np.full(columns, number)
    if not isinstance(op, linalg.GenericOp) or not is_elementwise(op):
        return None
    block = op.body.block
    (yielded,) = block.last_op.operands if block.last_op is not None else (None,)
    if yielded is None:
        return None
    if isinstance(yielded.owner, arith.ConstantOp):
        number = constant_array(yielded, weights)
        return None if number is None else np.full(columns, number)
    if len(op.inputs) != 1 or yielded is not block.args[0] or len(list(block.ops)) != 1:
        return None
    array, read = constant_array(op.inputs[0], weights), maps(op)[0]
    if array is None or array.size != columns or read.results[-1:] != (AffineDimExpr(1),):
        return None
    return array.reshape(columns)


def _pieces(op: linalg.GenericOp, columns: int) -> list[Piece] | str:
    """Columns by how they are read, or why they are not in pieces."""
    value = op.results[0]
    users = [use.operation for use in value.uses]
    if users and all(_reads_in_place(u, value) for u in users):
        return [Piece(value, 0)]
    pieces: list[Piece] = []
    for user in users:
        piece = _slice(user, columns)
        if piece is None:
            return "something else than elementwise ops reads its columns"
        pieces.append(piece)
    widths = {tensor_type(p.value).get_shape()[1] for p in pieces}
    return pieces if len(widths) == 1 else "nothing reads it, or pieces of several widths"


def _slice(op: Operation, columns: int) -> Piece | None:
    if not isinstance(op, tensor.ExtractSliceOp) or op.offsets or op.sizes or op.strides:
        return None
    rows, width = tensor_type(op.result).get_shape()
    offsets = ints(op.static_offsets)
    whole = tensor_type(op.source).get_shape()[0] == rows and set(ints(op.static_strides)) == {1}
    users = [use.operation for use in op.result.uses]
    read = bool(users) and all(_reads_in_place(u, op.result) for u in users)
    return Piece(op.result, offsets[1]) if whole and read and columns % width == 0 else None


def _reads_in_place(op: Operation, value: SSAValue) -> bool:
    """Whether an elementwise op reads `value` where it computes."""
    if not isinstance(op, linalg.GenericOp) or not is_elementwise(op) or value in op.outputs:
        return False
    identity = AffineMap.identity(2)
    return all(m == identity for v, m in zip(op.inputs, maps(op), strict=False) if v is value)


def _readers(members: Sequence[Candidate]) -> list[linalg.GenericOp]:
    """All that read pieces, in program order."""
    wanted = {op for member in members for op in member.readers()}
    found: list[linalg.GenericOp] = []
    op: Operation | None = members[0].op
    while op is not None and len(found) < len(wanted):
        if op in wanted and isinstance(op, linalg.GenericOp):
            found.append(op)
        op = op.next_op
    return found


class Depths:
    """How many heavy ops one after another are before a value at the most: when it can be there."""

    def __init__(self, block: Block) -> None:
        self.of: dict[SSAValue, int] = {}
        for op in block.ops:
            own = kind_of(op) is Kind.HEAVY
            before = max((self.of.get(v, 0) for v in op.operands), default=0)
            self.of |= dict.fromkeys(op.results, before + own)

    def ready(self, op: linalg.GenericOp) -> int:
        """When an elementwise op can be computed."""
        return max((self.of.get(v, 0) for v in op.inputs), default=0)

    def why_apart(self, readers: Sequence[linalg.GenericOp]) -> str | None:
        """Why ops are better computed by themselves."""
        if len({self.ready(op) for op in readers}) == 1:
            return None
        return "what reads it does not all wait for as many products"


def _why_not_one(group: Sequence[Candidate], depths: Depths) -> str | None:
    """Why products and what reads them do not become one each; None if they do."""
    if sum(len(c.pieces) for c in group) > GROUP:
        return f"they have more pieces than {GROUP}"
    readers = _readers(group)
    return depths.why_apart(readers) or why_not_joined(readers)


def _grouped(candidates: Sequence[Candidate], depths: Depths) -> list[list[Candidate]]:
    """Candidates of one operand, those together that can be one, in program order."""
    groups: list[list[Candidate]] = []
    for candidate in candidates:
        for group in groups:
            if _why_not_one([*group, candidate], depths) is None:
                group.append(candidate)
                break
        else:
            groups.append([candidate])
    return groups


@dataclass(frozen=True)
class Packer:
    """Makes constants of weights; those of another step of the same cell are there already."""

    store: WeightStore
    known: dict[tuple[object, ...], arith.ConstantOp]

    def packed(self, group: Sequence[Candidate]) -> arith.ConstantOp:
        """units×products×k, the pieces of a group side by side."""
        width = group[0].width
        pieces = [(c, p.first) for c in group for p in c.pieces]
        # Weights that are constant have the array as an attribute, and it says which they are.
        names = [getattr(c.op.inputs[1].owner, "value", None) for c, _ in pieces]
        key = (width, *names, *(str(maps(c.op)[1]) for c, _ in pieces), *(n for _, n in pieces))
        if key not in self.known:
            array = np.stack([c.weights[n : n + width] for c, n in pieces], 1)
            self.known[key] = constant(np.ascontiguousarray(array), self.store)
        return self.known[key].clone()


def _group(group: Sequence[Candidate], packer: Packer) -> list[SSAValue]:
    """One product before the first of them, and one op that reads it in the place of their readers; returns
    what both give."""
    first, width, readers = group[0].op, group[0].width, _readers(group)
    pieces = [(c, p) for c in group for p in c.pieces]
    t = tensor_type(first.results[0])
    starts = np.stack([c.start[p.first : p.first + width] for c, p in pieces], 1)
    starts = starts.astype(numpy_dtype(t.element_type))
    w = packer.packed(group)
    empty = tensor.EmptyOp([], TensorType(t.element_type, [t.get_shape()[0], width, len(pieces)]))
    start = _started(starts, empty, packer.store)
    product = linalg.GenericOp(
        [first.inputs[0], w.result],
        [start[-1].results[0]],
        first.body.clone(),
        _maps((_ROW, _K), (_UNIT, _GATE, _K), (_ROW, _UNIT, _GATE), loops=4),
        ArrayAttr([*[IteratorTypeAttr.parallel()] * 3, IteratorTypeAttr.reduction()]),
        [empty.tensor.type],
    )
    inherit(product, first)
    for op in [w, empty, *start, product]:
        op.location = first.location  # pyright: ignore[reportAttributeAccessIssue]
        Rewriter.insert_op(op, InsertPoint.before(first))
    total = product.results[0]
    gates = [(_ROW, _UNIT, AffineConstantExpr(g)) for g in range(len(pieces))]
    read: dict[SSAValue, Operand] = {
        p.value: (total, AffineMap(2, 0, g)) for (_, p), g in zip(pieces, gates, strict=True)
    }
    return [total, *join(readers, read).results]


def _maps(*indices: tuple[AffineExpr, ...], loops: int) -> ArrayAttr[AffineMapAttr]:
    return ArrayAttr(AffineMapAttr(AffineMap(loops, 0, index)) for index in indices)


def _started(starts: Array, empty: tensor.EmptyOp, weights: WeightStore) -> list[Operation]:
    """Ops, the last of which gives `starts` (units×products) for every row."""
    t = tensor_type(empty.tensor)
    if not starts.any():
        zero = arith.ConstantOp(FloatAttr(0.0, t.element_type))  # pyright: ignore
        return [zero, linalg.FillOp([zero.result], [empty.tensor], [t])]
    row = constant(starts, weights)
    block = Block(arg_types=[t.element_type, t.element_type])
    block.add_op(linalg.YieldOp(block.args[0]))
    copied = linalg.GenericOp(
        [row.result],
        [empty.tensor],
        Region(block),
        _maps((_UNIT, _GATE), (_ROW, _UNIT, _GATE), loops=3),
        ArrayAttr([IteratorTypeAttr.parallel()] * 3),
        [t],
    )
    return [row, copied]


def group_block(block: Block, weights: WeightStore) -> None:
    """Group the products of a function's body, in place."""
    depths, packer = Depths(block), Packer(weights, {})
    found: dict[tuple[object, ...], list[Candidate]] = {}
    for op in block.ops:
        if not isinstance(op, linalg.GenericOp) or is_elementwise(op):
            continue
        candidate = candidate_of(op, weights)
        if isinstance(candidate, str):
            missed(op, RULE, "{}", candidate)
        else:
            found.setdefault(candidate.key, []).append(candidate)
    for candidates in found.values():
        for group in _grouped(candidates, depths):
            _rewrite(group, depths, packer)


def _rewrite(group: Sequence[Candidate], depths: Depths, packer: Packer) -> None:
    first = group[0].op
    if sum(len(c.pieces) for c in group) < 2:
        return missed(first, RULE, "no other product of its first operand is read where it is")
    if (reason := _why_not_one(group, depths)) is not None:
        return missed(first, RULE, "{}", reason)
    ready, own = depths.ready(_readers(group)[0]), depths.of.get(first.results[0], 0)
    for candidate in group:
        applied(candidate.op, RULE, "one of {} products", sum(len(c.pieces) for c in group))
    product, *results = _group(group, packer)
    depths.of |= {product: own, **dict.fromkeys(results, ready)}
    if results:
        _last_first(product, results[0], depths)
    return None


def _last_first(product: SSAValue, read: SSAValue, depths: Depths) -> None:
    """Put groups that only `read`'s op reads behind a product that comes later than they do: what is read is
    computed behind the first one in program order, and nothing else should wait for that."""
    reader, op = read.owner, product.owner
    assert isinstance(reader, linalg.GenericOp)
    assert isinstance(op, linalg.GenericOp)
    for value in dict.fromkeys(reader.inputs):
        other = value.owner
        if not isinstance(other, linalg.GenericOp) or len(other.iterator_types) != 4:
            continue
        alone = {use.operation for use in value.uses} == {reader}
        if alone and depths.of.get(value, 0) < depths.of[product]:
            other.detach()
            Rewriter.insert_op(other, InsertPoint.after(op))


@dataclass(frozen=True)
class GroupProducts(ModulePass):
    """Make products of few rows by constants that share their first operand, and what reads them, one each.

    Gates of a recurrent cell: x @ w1, x @ w2, or parts of the columns of one x @ w, that elementwise ops
    read place by place. Their weights are laid out unit by unit, all the columns that a unit needs side by
    side, as rKernels of cells read them, and the elementwise ops become one with all their results, which
    `form-roperators` then computes where the sums are made: a cell that was two launches or more is one. At
    most 8 rows and 16 products, rows known. What reads the products must wait for equally many others, so
    that nothing comes later than it did. Run after `fuse-elementwise`.

    No numeric risk: each element is the sum of the same terms, in an order that a contraction never says.

    ```mlir
    %0 = linalg.generic {(m, n, k) -> (m, k), (k, n), (m, n)} ins(%x, %w1) outs(%zero)
    %1 = linalg.generic {(m, n, k) -> (m, k), (k, n), (m, n)} ins(%x, %w2) outs(%zero)
    %2 = linalg.generic {(m, n) -> (m, n), (m, n), (m, n)} ins(%0, %1) outs(%e) { ... math.tanh ... }
    ```
    becomes
    ```mlir
    %0 = linalg.generic {(m, u, g, k) -> (m, k), (u, g, k), (m, u, g)} ins(%x, %w) outs(%zero)
    %2 = linalg.generic {(m, u) -> (m, u, 0), (m, u, 1), (m, u)} ins(%0, %0) outs(%e) { ... math.tanh ... }
    ```
    """

    name = "group-products"
    requires: ClassVar[tuple[str, ...]] = ("tensor",)
    produces: ClassVar[str] = "tensor"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        weights = weights_of(ctx)
        for function in op.walk():
            if is_straight(function):
                group_block(function.body.block, weights)
        for inner in reversed(list(op.walk())):
            if kind_of(inner) is not None and not any(r.uses for r in inner.results):
                Rewriter.erase_op(inner)
