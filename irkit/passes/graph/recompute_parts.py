"""`recompute-parts`: large values of which parts are read, as those of stencils, part by part."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.dialects.graph import (
    AbsOp,
    AddOp,
    AndOp,
    CompareOp,
    ExpandOp,
    GraphOp,
    MaxOp,
    MinOp,
    MulOp,
    NegOp,
    OrOp,
    ReshapeOp,
    SliceOp,
    SubOp,
    WhereOp,
)
from irkit.dialects.types import DYNAMIC, int_array, ints, tensor_type
from irkit.passes.gpu import gpu_of
from irkit.remarks import applied, missed

LARGE: Final = 1 << 19
"""Elements of a value that the nearer caches do not keep until it is read."""
PARTS: Final = 6
"""Parts of one value that are computed, each by itself: more of them take longer than the memory."""
MADE: Final = 96
"""Ops of a function that are made in all: what is made of them is to be one body."""
SIMPLE: Final = (
    AbsOp,
    AddOp,
    AndOp,
    CompareOp,
    MaxOp,
    MinOp,
    MulOp,
    NegOp,
    OrOp,
    SubOp,
    WhereOp,
)
RULE = "PartOfElementwise"

Part = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""Offsets, sizes and strides of a slice."""


def _shape(value: SSAValue) -> tuple[int, ...]:
    return tensor_type(value).get_shape()


def _part(op: SliceOp) -> Part:
    return tuple(ints(op.offsets)), tuple(ints(op.sizes)), tuple(ints(op.strides))


def _is_near_memory(value: SSAValue) -> bool:
    """Whether a value is an argument, a constant, a view of one, or simple arithmetic: what is fused behind
    a product, or a sum, stays there."""
    owner = value.owner
    while isinstance(owner, SliceOp | ReshapeOp | ExpandOp):
        owner = owner.operands[0].owner
    return isinstance(owner, (Block, arith.ConstantOp, *SIMPLE))


def _why_whole(op: Operation, slices: Sequence[Operation]) -> str | None:
    """Why a value stays whole; None if its parts are to be computed where they are read."""
    shape = _shape(op.results[0])
    if DYNAMIC in shape or prod(shape) < LARGE:
        return "its elements stay in the nearer caches"
    if not all(isinstance(s, SliceOp) for s in slices):
        return "something reads all of it"
    parts = {_part(s) for s in slices if isinstance(s, SliceOp)}
    if not 2 <= len(parts) <= PARTS:
        return f"{len(parts)} parts of it are read"
    return (
        None if all(map(_is_near_memory, op.operands)) else "it stands behind other than arithmetic"
    )


@dataclass
class _Parts:
    """Rewrites one block, from its end: an op's readers before it."""

    block: Block
    made: int = 0

    def run(self) -> None:
        """Look at each op."""
        for op in reversed(list(self.block.ops)):
            if op.parent is None or not isinstance(op, SIMPLE):
                continue
            slices = list(dict.fromkeys(use.operation for use in op.results[0].uses))
            reason = _why_whole(op, slices)
            if reason is None and self.made > MADE:
                reason = f"there are {self.made} of its like"
            if reason is not None:
                missed(op, RULE, "{}", reason)
                continue
            self._split(op, [s for s in slices if isinstance(s, SliceOp)])

    def _split(self, op: GraphOp, slices: Sequence[SliceOp]) -> None:
        applied(op, RULE, "{} parts of it are computed where they are read", len(slices))
        alike: dict[Part, list[SliceOp]] = defaultdict(list)
        for one in slices:
            alike[_part(one)].append(one)
        for part, readers in alike.items():
            operands = [self._sliced(v, part, op) for v in op.operands]
            made = type(op).make(operands, dict(op.properties))
            made.attributes.update(op.attributes)
            made.location = op.location
            Rewriter.insert_op(made, InsertPoint.before(op))
            self.made += 1
            for reader in readers:
                Rewriter.replace_op(reader, [], [made.results[0]])
        before = {v.owner for v in op.operands}
        Rewriter.erase_op(op)
        for owner in before:
            if isinstance(owner, SliceOp) and not owner.results[0].uses:
                Rewriter.erase_op(owner)

    def _sliced(self, value: SSAValue, part: Part, op: Operation) -> SSAValue:
        """The part of an operand, which broadcasts to what `op` gives."""
        shape, whole = _shape(value), _shape(op.results[0])
        own = [
            (0, 1, 1) if n == 1 != extent else where
            for n, extent, *where in zip(
                shape, whole[len(whole) - len(shape) :], *self._last(part, len(shape)), strict=True
            )
        ]
        if all((o, s, t) == (0, n, 1) for (o, s, t), n in zip(own, shape, strict=True)):
            return value
        while isinstance(value.owner, SliceOp):
            inner = zip(*_part(value.owner), strict=True)
            own = [(p + o * u, s, t * u) for (o, s, t), (p, _, u) in zip(own, inner, strict=True)]
            value = value.owner.operands[0]
        names = ("offsets", "sizes", "strides")
        props = {k: int_array(list(n)) for k, n in zip(names, zip(*own, strict=True), strict=True)}
        made = SliceOp.make([value], props)
        made.location = op.location
        Rewriter.insert_op(made, InsertPoint.before(op))
        return made.results[0]

    @staticmethod
    def _last(part: Part, rank: int) -> Part:
        offsets, sizes, strides = ([*p][len(p) - rank :] for p in part)
        return tuple(offsets), tuple(sizes), tuple(strides)


@dataclass(frozen=True)
class RecomputeParts(ModulePass):
    """Compute the parts of a large value that others read, where a few additions, products, comparisons and
    choices take less time than the memory that the value would be written to and read from.

    Values of 2^19 elements or more that are simple arithmetic of arguments, and of which nothing but two to
    six slices are read. Parts of what they are made of are parts in their turn, so that a stencil of stencils
    (fluxes of a Laplacian) is one sweep, without values between. On a CPU alone; `device` is the vDevice that
    is planned for. Exact.

    ```mlir
    %s = graph.add %x, %y : (tensor<1000x1002xf64>, tensor<1000x1002xf64>) -> tensor<1000x1002xf64>
    %l = graph.slice %s {offsets = array<i64: 0, 0>, sizes = array<i64: 1000, 1001>, ...}
    %r = graph.slice %s {offsets = array<i64: 0, 1>, sizes = array<i64: 1000, 1001>, ...}
    ```
    becomes
    ```mlir
    %a = graph.slice %x {offsets = array<i64: 0, 0>, sizes = array<i64: 1000, 1001>, ...}
    %b = graph.slice %y {offsets = array<i64: 0, 0>, sizes = array<i64: 1000, 1001>, ...}
    %l = graph.add %a, %b : (tensor<1000x1001xf64>, tensor<1000x1001xf64>) -> tensor<1000x1001xf64>
    %c = graph.slice %x {offsets = array<i64: 0, 1>, sizes = array<i64: 1000, 1001>, ...}
    %d = graph.slice %y {offsets = array<i64: 0, 1>, sizes = array<i64: 1000, 1001>, ...}
    %r = graph.add %c, %d : (tensor<1000x1001xf64>, tensor<1000x1001xf64>) -> tensor<1000x1001xf64>
    ```
    """

    name = "recompute-parts"
    device: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if gpu_of(self.device) is not None:
            return
        for function in op.ops:
            if isinstance(function, FuncOp) and len(function.body.blocks) == 1:
                _Parts(function.body.block).run()
