"""A contraction seen as a matrix product: C[b, m, (l, c)] = sum_k A[b, m, k] * B[b, k, (l, c)].

Every contraction sorts its loops into four groups: those that both operands have (b, k), and those of
one alone (m; l and c). A convolution is one too: A is the filter, and B the input seen through its
windows, with k = (channel, window) and c = (row, column of the output).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import (
    FloatAttr,
    IntegerAttr,
    UnrealizedConversionCastOp,
    i8,
    i32,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)

from irkit.dialects.linalg_generic import is_contraction, is_elementwise, maps
from irkit.dialects.roperator_root import Root
from irkit.dialects.tensor_ops.interface import Kind
from irkit.dialects.tensor_ops.registry import in_memory, kind_of
from irkit.dialects.types import DYNAMIC, ints, tensor_type, ui8

_LINEAR = (AffineBinaryOpKind.Add, AffineBinaryOpKind.Mul)


@dataclass(frozen=True)
class Product:
    """How the loops of a contraction are grouped: positions of loops, in loop order.

    `a` and `b` are input numbers. A is an operand in memory whose elements lie as [batch, m, k] does, or, where
    it is `packed`, as [batch, m // 16, k, m % 16]. `columns` is the last run of B's own loops, `lead` those
    before it.
    """

    op: linalg.GenericOp
    a: int
    b: int
    batch: tuple[int, ...]
    m: tuple[int, ...]
    lead: tuple[int, ...]
    columns: tuple[int, ...]
    k: tuple[int, ...]
    sizes: tuple[int, ...]
    packed: bool = False

    def extents(self, dims: tuple[int, ...]) -> tuple[int, ...]:
        """Sizes of a group's loops."""
        return tuple(self.sizes[d] for d in dims)

    def extent(self, dims: tuple[int, ...]) -> int:
        """Size of a group; DYNAMIC if it has the batch."""
        sizes = self.extents(dims)
        return DYNAMIC if DYNAMIC in sizes else math.prod(sizes)

    @property
    def in_place(self) -> BlockArgument:
        """A in memory."""
        operand = in_memory(self.op.inputs[self.a])
        assert operand is not None
        return operand

    @property
    def transposed(self) -> bool:
        """Whether A's rows run faster than B's columns in the result."""
        return bool(self.columns) and self.m[-1] > self.columns[-1]


def used_loops(amap: AffineMap) -> set[int]:
    """Loops that an indexing map reads."""
    return {e.position for r in amap.results for e in r.dfs() if isinstance(e, AffineDimExpr)}


# Of equal roots, each of which also has its own at hand: the cost of every grid asks for it.
_known: WeakKeyDictionary[Root, Product | None] = WeakKeyDictionary()


def as_product(root: Root) -> Product | None:
    """`root` as a product, None if it is none.

    Of two ways, the one whose A is no batch and has more rows: A is read in place, B is packed.
    """
    if "product" not in root.counted:
        if root not in _known:
            _known[root] = _find_product(root)
        root.counted["product"] = _known[root]
    return root.counted["product"]


PACKED_ROWS = 16
"""Rows of A that lie side by side, term by term, where it is packed."""


def as_packed_product(root: Root) -> Product | None:
    """`root` as a product of a packed A, as `pack-filters` leaves it; None if it is none."""
    if "packed product" not in root.counted:
        root.counted["packed product"] = _find_product(root, packed=True)
    return root.counted["packed product"]


def as_block_product(root: Root) -> Product | None:
    """`root` as a product of A packed, whose rows are the last loop of the result, as `pack-factors` leaves it;
    None if it is none."""
    if "block product" not in root.counted:
        found = _ways(root, packed=True)
        blocks = [p for p in found if p.packed and p.m[-1] == len(root.parallel) - 1]
        root.counted["block product"] = next(iter(blocks), None)
    return root.counted["block product"]


def packed_layout(batch: Sequence[int], m: int, k: Sequence[int]) -> list[AffineExpr]:
    """How a packed A is indexed, by the positions of loops."""
    row = AffineExpr.dimension(m)
    outer = [AffineExpr.dimension(d) for d in batch]
    terms = [AffineExpr.dimension(d) for d in k]
    return [*outer, row // PACKED_ROWS, *terms, row % PACKED_ROWS]


def _find_product(root: Root, packed: bool = False) -> Product | None:
    return max(_ways(root, packed), key=_rows_of_a, default=None)


def _ways(root: Root, packed: bool) -> list[Product]:
    """As one operand is A, or the other."""
    if len(root.chain) != 1 or not is_contraction(root.chain[0]):
        return []
    return [p for a in (0, 1) if (p := _with_a(root, root.chain[0], a, packed)) is not None]


def _rows_of_a(product: Product) -> int:
    return product.extent(product.m)


def _with_a(root: Root, op: linalg.GenericOp, a: int, packed: bool) -> Product | None:
    sizes = (*root.parallel, *root.reduction)
    k = tuple(range(len(root.parallel), len(sizes)))
    a_map, b_map = maps(op)[a], maps(op)[1 - a]
    of_a, of_b = used_loops(a_map), used_loops(b_map)
    batch = tuple(sorted((of_a & of_b) - set(k)))
    m, own = tuple(sorted(of_a - of_b)), sorted(of_b - of_a)
    layout: list[AffineExpr] = [AffineDimExpr(d) for d in (*batch, *m, *k)]
    if packed and len(m) == 1:
        layout = packed_layout(batch, m[0], k)
    in_place = in_memory(op.inputs[a]) is not None and list(a_map.results) == layout
    covered = set(k) <= of_b and of_a | of_b == set(range(len(sizes)))
    if not (in_place and covered and m and own) or used_loops(maps(op)[2]) & set(k):
        return None
    first = len(own) - 1
    while first and own[first - 1] == own[first] - 1:
        first -= 1
    lead, columns = tuple(own[:first]), tuple(own[first:])
    return Product(op, a, 1 - a, batch, m, lead, columns, k, sizes, packed and len(m) == 1)


@dataclass(frozen=True)
class Window:
    """One dimension of a padded operand: index = sum of factors[loop] * loop + offset, in [0, size).

    `guarded` tells whether an index may lie outside, where the element is zero, or `padding_of` the product.
    """

    factors: dict[int, int]
    offset: int
    size: int
    guarded: bool


def windows(product: Product) -> tuple[BlockArgument, list[Window]] | None:
    """B as an operand in memory and how its dimensions are indexed; None if B is computed."""
    source, low = product.op.inputs[product.b], list[int]()
    padded = isinstance(source.owner, tensor.PadOp)
    if isinstance(source.owner, tensor.PadOp):
        pad = source.owner
        fill = _fill_of(pad)
        if fill is None or (fill and not of_bytes(product)):
            return None
        low, source = ints(pad.static_low), pad.source
    operand = in_memory(source)
    if operand is None:
        return None
    found: list[Window] = []
    outer = tensor_type(product.op.inputs[product.b]).get_shape()
    shape = tensor_type(source).get_shape()
    for d, expr in enumerate(maps(product.op)[product.b].results):
        factors = linear_factors(expr, len(product.sizes))
        if factors is None:
            return None
        constant = expr.eval([0] * len(product.sizes), [])
        offset = constant - (low[d] if padded else 0)
        found.append(Window(factors, offset, shape[d], shape[d] != outer[d]))
    return operand, found


def linear_factors(expr: AffineExpr, loops: int) -> dict[int, int] | None:
    """What each loop adds to `expr` per step; None if it has a division or remainder."""
    for inner in expr.dfs():
        if isinstance(inner, AffineBinaryOpExpr) and inner.kind not in _LINEAR:
            return None
    zero = [0] * loops
    base = expr.eval(zero, [])
    steps = {d: expr.eval([int(i == d) for i in range(loops)], []) - base for d in range(loops)}
    return {d: step for d, step in steps.items() if step}


def of_bytes(product: Product) -> bool:
    """Whether it is one of bytes in sums of i32: signed or unsigned, either factor."""
    op = product.op
    types = {tensor_type(v).element_type for v in op.inputs}
    return types <= {i8, ui8} and tensor_type(op.results[0]).element_type == i32


def padding_of(product: Product) -> int:
    """What stands where an index of B lies outside; other than 0 in a product of bytes alone."""
    source = product.op.inputs[product.b].owner
    fill = _fill_of(source) if isinstance(source, tensor.PadOp) else 0
    return int(fill or 0)


def _fill_of(pad: tensor.PadOp) -> float | None:
    """The one number that pads; None where it is none, or something is cut off."""
    terminator = pad.region.block.last_op
    value = terminator.operands[0].owner if terminator is not None else None
    element = tensor_type(pad.result).element_type
    if isinstance(value, UnrealizedConversionCastOp):
        value = value.inputs[0].owner
    if not isinstance(value, arith.ConstantOp) or any(n < 0 for n in ints(pad.static_low)):
        return None
    if not isinstance(value.value, FloatAttr | IntegerAttr):
        return None
    found = value.value.value.data
    return found % 256 if element == ui8 else found


def columns_run_on(product: Product, root: Root, body: Block) -> bool:
    """Whether the result's columns may be counted through: what is fused behind and before the root
    reads every operand by all columns in order, or by none."""
    if product.transposed or len(product.columns) == 1:
        return True
    parallel = len(root.parallel)
    first = parallel - len(product.columns)
    if product.columns != tuple(range(first, parallel)):
        return False
    behind = _behind(root, body)
    return all(_runs_on(op, list(product.columns)) for op in behind)


def _behind(root: Root, body: Block) -> list[Operation]:
    """Ops that the results or the initial value need, the root's own inputs apart."""
    assert body.last_op is not None
    pending: list[SSAValue] = [*body.last_op.operands, root.chain[0].outputs[0]]
    found: dict[Operation, None] = {}
    while pending:
        owner = pending.pop().owner
        if not isinstance(owner, Operation) or owner in found or owner is root.op:
            continue
        found[owner] = None
        pending.extend(owner.operands)
    return list(found)


def _runs_on(op: Operation, columns: list[int]) -> bool:
    if kind_of(op) in (Kind.FREE, Kind.STORED):
        return True
    if not isinstance(op, linalg.GenericOp) or not is_elementwise(op):
        return False
    wanted = [AffineDimExpr(d) for d in columns]
    return all(
        list(m.results[len(m.results) - len(columns) :]) == wanted
        or not used_loops(m) & set(columns)
        for m in maps(op)
    ) and not any(isinstance(inner, linalg.IndexOp) for inner in op.body.walk())
