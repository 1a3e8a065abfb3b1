"""`gather-gates`: gates that are parts of a product's columns as sums of a unit, side by side."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, f32
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint

from irkit.dialects import graph
from irkit.dialects.graph.elementwise import BinaryOp, UnaryOp
from irkit.dialects.precision import inherit
from irkit.dialects.types import DYNAMIC, int_array, ints, tensor_type
from irkit.passes.gpu import gpu_of
from irkit.rewriting import Rule, rewrite
from irkit.rkernels.cuda.gate_product import COUNTS

LEAST: Final = 16
"""Rows at least, those of a tile: of fewer `group-products` makes cells."""
TILE: Final = (64, 64)
"""Rows and columns of a tile that keeps a vEU busy."""
TURNS: Final = 2
"""So many such tiles a vEU has at most: of more, warp groups or packed terms do more at once than one launch
less a step saves."""


@dataclass(frozen=True)
class Gate:
    """A part of a product's columns with something added: what `ops` give, each of which is that. Added is
    `start`, or the part of it that `cut` says."""

    ops: tuple[Operation, ...]
    start: SSAValue
    cut: graph.SliceOp | None


def _shape(value: SSAValue) -> tuple[int, ...]:
    return tensor_type(value).get_shape()


def gates_of(op: graph.GemmOp | graph.MatmulOp, veus: int) -> list[Gate] | str:
    """The gates that a product makes, from left to right, or why it makes none."""
    if (reason := _why_no_product(op)) is not None:
        return reason
    rows, columns = _shape(op.y)
    tiles = math.ceil(rows / TILE[0]) * math.ceil(columns / TILE[1])
    if rows < LEAST or tiles > TURNS * veus:
        return "it has few rows, or so many results that a product does more at once by itself"
    if (added := _added(op.y)) is None:
        parts = _parts(op.y)
        return parts if isinstance(parts, str) else _gates_of_parts(parts)
    whole, start = added
    parts = _parts(whole)
    if isinstance(parts, str):
        return parts
    if not all(
        isinstance(u.operation, UnaryOp | BinaryOp) for p in parts for s in p for u in s.y.uses
    ):
        return "something that is not elementwise reads a part of its columns"
    return [Gate(slices, start, slices[0]) for slices in parts]


def _added(value: SSAValue) -> tuple[SSAValue, SSAValue] | None:
    """The sum that alone reads a value, and what it adds, a matrix like it or a row; None where there is no
    such sum."""
    use = next(iter(value.uses))
    if len(list(value.uses)) > 1 or not isinstance(use.operation, graph.AddOp):
        return None
    start = use.operation.operands[1 - use.index]
    kinds = (_shape(value), _shape(value)[1:])
    return (use.operation.results[0], start) if _shape(start) in kinds else None


def _gates_of_parts(parts: tuple[tuple[graph.SliceOp, ...], ...]) -> list[Gate] | str:
    """Parts to each of which something is added."""
    own, found = {part for slices in parts for part in slices}, list[Gate]()
    for part, *others in parts:
        added = _added(part.y) if part.y.uses and not others else None
        if added is None or added[1].owner in own or not isinstance(added[0].owner, Operation):
            return "to a part of its columns nothing is added, or another part"
        found.append(Gate((added[0].owner,), added[1], None))
    return found


def _why_no_product(op: graph.GemmOp | graph.MatmulOp) -> str | None:
    plain = isinstance(op, graph.MatmulOp) or (
        not op.trans_a.value.data and op.c is None and op.alpha.value.data == 1
    )
    if not plain or len(_shape(op.a)) != 2 or len(_shape(op.b)) != 2:
        return "it is no plain product of matrices"
    if tensor_type(op.y).element_type != f32 or DYNAMIC in (*_shape(op.a), *_shape(op.b)):
        return "it is of other elements, or of open dimensions"
    return None if op.y.uses else "nothing reads it"


def _parts(value: SSAValue) -> tuple[tuple[graph.SliceOp, ...], ...] | str:
    """The parts of equal width that a matrix's columns are read by."""
    rows, columns = _shape(value)
    found = dict[int, list[graph.SliceOp]]()
    for use in value.uses:
        part = use.operation
        if not isinstance(part, graph.SliceOp) or set(ints(part.strides)) != {1}:
            return "something reads all of its columns"
        if ints(part.sizes)[0] != rows:
            return "something reads a part of its rows"
        found.setdefault(ints(part.offsets)[1], []).append(part)
    if len(found) not in COUNTS:
        return f"it has {len(found)} parts, not 2, 4 or 8"
    width, left = divmod(columns, len(found))
    sizes = {ints(part.sizes)[1] for parts in found.values() for part in parts}
    if left or sizes != {width} or sorted(found) != [n * width for n in range(len(found))]:
        return "its parts are not equally wide, or leave columns out"
    return tuple(tuple(found[first]) for first in sorted(found))


@dataclass
class GatherGates(Rule):
    """(a @ [b, c] + s) in two parts = the sums (a @ b, a @ c) of each column, and s in two parts"""

    veus: int

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.GemmOp | graph.MatmulOp, rewriter: PatternRewriter, /):
        found = gates_of(op, self.veus)
        if isinstance(found, str):
            return self.no_match(op, "{}", found)
        *_, sums = made = _sums(op, len(found))
        _insert(made, op, op, rewriter)
        for number, gate in enumerate(found):
            first = gate.ops[0]
            # What is added may be made behind the product.
            before = first if gate.cut is None else gate.cut.x.owner
            assert isinstance(before, Operation)
            *_, value = made = _gate(gate, sums.results[0], number)
            _insert(made, before, first, rewriter)
            for old in gate.ops:
                rewriter.replace(old, [], list(value.results))
        _erase_unread(op, rewriter)


def _erase_unread(op: Operation, rewriter: PatternRewriter) -> None:
    """An op and those that read it."""
    for use in list(op.results[0].uses):
        _erase_unread(use.operation, rewriter)
    rewriter.erase(op)


def _insert(
    made: list[Operation], before: Operation, like: Operation, rewriter: PatternRewriter
) -> None:
    for inner in made:
        inner.location = like.location
    rewriter.insert(made, InsertPoint.before(before))


def _sums(product: graph.GemmOp | graph.MatmulOp, count: int) -> list[Operation]:
    """What makes rows×units×gates: the product, the columns of a unit side by side. Terms run fastest in the
    second factor, as tiles of tensor cores read them."""
    b, made = product.b, list[Operation]()
    if isinstance(product, graph.MatmulOp) or not product.trans_b.value.data:
        made.append(graph.TransposeOp.make([b], {"permutation": int_array([1, 0])}))
        b = made[-1].results[0]
    columns, terms = _shape(b)
    by_gate = {"shape": int_array([count, columns // count, terms])}
    made.append(graph.ReshapeOp.make([b], by_gate))
    text = StringAttr("C(m, n, g) +=! A(m, k) * B(g, n, k)")
    made.append(graph.ExpressionOp.make([product.a, made[-1].results[0]], {"text": text}))
    inherit(made[-1], product)
    return made


def _gate(gate: Gate, sums: SSAValue, number: int) -> list[Operation]:
    """What makes one gate."""
    start, made, rank = gate.start, list[Operation](), len(_shape(gate.start))
    if gate.cut is not None:
        cut = {"offsets": gate.cut.offsets, "sizes": gate.cut.sizes, "strides": gate.cut.strides}
        own = {name: int_array(ints(numbers)[-rank:]) for name, numbers in cut.items()}
        made.append(graph.SliceOp.make([start], own))
        start = made[-1].results[0]
    where = "m, n" if rank == 2 else "n"
    text = StringAttr(f"Y(m, n) = S({where}) + C(m, n, {number})")
    made.append(graph.ExpressionOp.make([start, sums], {"text": text}))
    return made


@dataclass(frozen=True)
class GatherGatesPass(ModulePass):
    """Make of a product to which a matrix or a row is added, and which elementwise ops read by 2, 4 or 8
    parts of equally many columns, one whose sums of a unit, a column of each part, lie side by side.

    Such are the gates of a recurrent cell. Behind such a product what is made of the gates is computed where
    they are, so that a step of a recurrence is one launch. Of float32 and 16 rows or more, and of so few
    results that most of a GPU's time goes by waiting; what is added may also be so to each part. On a GPU
    only.

    Numeric risk: floats are added in another order.

    ```mlir
    %0 = graph.matmul %h, %r : (tensor<32x64xf32>, tensor<64x128xf32>) -> tensor<32x128xf32>
    %1 = graph.add %x, %0 : (tensor<32x128xf32>, tensor<32x128xf32>) -> tensor<32x128xf32>
    %2 = graph.slice %1 {offsets = array<i64: 0, 0>, sizes = array<i64: 32, 64>, ...}
    %3 = graph.slice %1 {offsets = array<i64: 0, 64>, sizes = array<i64: 32, 64>, ...}
    ```
    becomes
    ```mlir
    %4 = graph.transpose %r {permutation = array<i64: 1, 0>} : ... -> tensor<128x64xf32>
    %5 = graph.reshape %4 {shape = array<i64: 2, 64, 64>} : ... -> tensor<2x64x64xf32>
    %6 = graph.expression %h, %5 {text = "C(m, n, g) +=! A(m, k) * B(g, n, k)"} : ... -> tensor<32x64x2xf32>
    %7 = graph.slice %x {offsets = array<i64: 0, 0>, sizes = array<i64: 32, 64>, ...}
    %2 = graph.expression %7, %6 {text = "Y(m, n) = S(m, n) + C(m, n, 0)"} : ... -> tensor<32x64xf32>
    %8 = graph.slice %x {offsets = array<i64: 0, 64>, sizes = array<i64: 32, 64>, ...}
    %3 = graph.expression %8, %6 {text = "Y(m, n) = S(m, n) + C(m, n, 1)"} : ... -> tensor<32x64xf32>
    ```
    """

    name = "gather-gates"
    device: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        gpu = gpu_of(self.device)
        if gpu is not None:
            rewrite(op, [GatherGates(gpu.veus)])
