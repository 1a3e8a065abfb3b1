"""`share-convolutions`: convolutions of many terms and few results, whose terms the vEUs of a GPU share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import BoolAttr, IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern

from irkit.context import weights_of
from irkit.dialects.constants import constant, constant_array
from irkit.dialects.graph import AddOp, CastOp, ConvOp, ReduceOp, ReshapeOp
from irkit.dialects.precision import inherit, precision_of
from irkit.dialects.types import DYNAMIC, int_array, tensor_type
from irkit.passes.gpu import gpu_of
from irkit.rewriting import Rule, rewrite
from irkit.weights import Array, WeightStore

TILES: Final = {(64, 32): 12.0, (64, 64): 13.4, (128, 64): 20.0}
"""Filters and pixels of a tile → nanoseconds for one term of its sums, in TF32."""
END: Final = 1500.0
"""Nanoseconds in which a tile begins and ends."""
SECOND: Final = 3000.0
"""Nanoseconds of a second step: vEUs wait for one another, and read what they wrote."""
SUMMED: Final = (50.0, 0.0015)
"""Nanoseconds for each part that the second step sums, and for each sum of a part that it reads."""
GAIN: Final = 0.7
"""It is done where no more than this share of the time is left."""
NEARLY: Final = 1.1
"""Fewer parts are taken where they take no more than so many times as long: less is written and read."""
TOGETHER: Final = 8
"""Channels of a part are a multiple: two runs of four, which are read at once."""


@dataclass(frozen=True)
class Extents:
    """A convolution as a product for each of its groups."""

    groups: int
    filters: int
    pixels: int
    channels: int
    window: int

    def nanoseconds(self, parts: int, veus: int) -> float:
        """What it takes with the channels in so many parts, about."""
        results = self.groups * self.filters * self.pixels
        terms = self.channels // parts * self.window
        second = SECOND + SUMMED[0] * parts + SUMMED[1] * results * parts
        return (second if parts > 1 else 0.0) + min(
            math.ceil(self.groups * parts * self._tiles(*tile) / veus) * (END + terms * each)
            for tile, each in TILES.items()
        )

    def _tiles(self, down: int, across: int) -> int:
        return math.ceil(self.filters / down) * math.ceil(self.pixels / across)

    def parts(self, veus: int) -> int:
        """Into how many parts its channels are best cut; 1 where they stay together."""
        counts = [n for n in range(2, veus + 1) if self.channels % (n * TOGETHER) == 0]
        times = {n: self.nanoseconds(n, veus) for n in counts}
        least = min(times.values(), default=math.inf)
        if least > GAIN * self.nanoseconds(1, veus):
            return 1
        return next(n for n, time in times.items() if time <= NEARLY * least)


def extents_of(op: ConvOp) -> Extents:
    """The sizes of a convolution; all are known."""
    images, _, *sides = tensor_type(op.y).get_shape()
    outputs, channels, *kernel = tensor_type(op.w).get_shape()
    groups = op.group.value.data
    pixels = images * math.prod(sides)
    return Extents(groups, outputs // groups, pixels, channels, math.prod(kernel))


@dataclass
class ShareConvolution(Rule):
    """conv(x, w) = sum over parts of the channels of conv(part of x, part of w)"""

    veus: int
    weights: WeightStore

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ConvOp, rewriter: PatternRewriter, /):
        why = self._why_whole(op)
        if why:
            return self.no_match(op, "{}", why)
        extents = extents_of(op)
        parts = extents.parts(self.veus)
        if parts == 1:
            return self.no_match(op, "its results, or too few terms, leave no vEU without work")
        made = self._made(op, extents, parts)
        rewriter.replace(op, made, [made[-1].results[0]])

    def _why_whole(self, op: ConvOp) -> str:
        """Why a convolution is none that tensor cores compute and whose parts are known; empty if it is."""
        if precision_of(op).strict:
            return "it is of float32's own precision"
        if any(DYNAMIC in tensor_type(v).get_shape() for v in (op.x, op.y)):
            return "it has open dimensions"
        if isinstance(op.w.owner, CastOp):
            return "its filters are stored in other elements, which are read in less time"
        if constant_array(op.w, self.weights) is None:
            return "its filters are no constant"
        return ""

    def _made(self, op: ConvOp, extents: Extents, parts: int) -> list[Operation]:
        """A convolution of a group for each part, the sum of those, and the bias behind it."""
        made: list[Operation] = []
        filters = self._filters(op, extents.groups, parts, made)
        shared = IntegerAttr(extents.groups * parts, i64)
        found = _added(ConvOp.make([op.x, filters], {**op.properties, "group": shared}), made)
        inherit(made[-1], op)
        images, outputs, *sides = tensor_type(op.y).get_shape()
        split = [images, extents.groups, parts, extents.filters, *sides]
        axis = 2
        if extents.groups == 1:
            split, axis = [images, parts, outputs, *sides], 1
        found = _added(ReshapeOp.make([found], {"shape": int_array(split)}), made)
        found = _added(ReduceOp.make([found], _sum_over(axis)), made)
        if extents.groups > 1:
            found = _added(
                ReshapeOp.make([found], {"shape": int_array([images, outputs, *sides])}), made
            )
        if op.b is not None:
            lies = {"shape": int_array([outputs, *[1] * len(sides)])}
            bias = _added(ReshapeOp.make([op.b], lies), made)
            _added(AddOp.make([found, bias]), made)
        return made

    def _filters(self, op: ConvOp, groups: int, parts: int, made: list[Operation]) -> SSAValue:
        """Those of each part, one behind the other."""
        stored = constant_array(op.w, self.weights)
        assert stored is not None
        return _added(constant(in_parts(stored, groups, parts), self.weights), made)


def in_parts(filters: Array, groups: int, parts: int) -> Array:
    """Filters O×C×kernel of so many groups as those of `groups * parts`: a part of the channels each."""
    outputs, channels, *kernel = filters.shape
    split = filters.reshape(groups, outputs // groups, parts, channels // parts, *kernel)
    turned = np.ascontiguousarray(split.swapaxes(1, 2))
    return turned.reshape(outputs * parts, channels // parts, *kernel)


def _added(op: Operation, made: list[Operation]) -> SSAValue:
    made.append(op)
    return op.results[0]


def _sum_over(axis: int) -> dict[str, Attribute]:
    return {
        "kind": StringAttr("sum"),
        "axes": int_array([axis]),
        "keepdims": BoolAttr.from_bool(False),
    }


@dataclass(frozen=True)
class ShareConvolutions(ModulePass):
    """Make of a convolution of so few results that most vEUs of a GPU would have none, one of parts of its
    channels, as groups, and a sum of what these give, always in the same order.

    Into how many parts, an estimate says: of tiles of sums that are computed side by side, term after term,
    and of a second step, which makes all vEUs wait. It is done for convolutions that tensor cores compute
    (their precision is tf32, bf16 or f16), whose filters are constant and whose sizes are known. A part has
    a multiple of 8 channels. Filters that are stored in 16 bits stay, with which it was
    no faster. What is of float32's own precision, and everything on a CPU, stays.

    Numeric risk: floats are added in another order, as a GPU's kernels do anyway.

    ```mlir
    %y = graph.conv %x, %w, %b {irkit.precision = "tf32", group = 1 : i64, ...}
      : (tensor<1x512x7x7xf32>, tensor<512x512x3x3xf32>, tensor<512xf32>) -> tensor<1x512x7x7xf32>
    ```
    becomes
    ```mlir
    %0 = graph.conv %x, %parts {irkit.precision = "tf32", group = 8 : i64, ...}
      : (tensor<1x512x7x7xf32>, tensor<4096x64x3x3xf32>) -> tensor<1x4096x7x7xf32>
    %1 = graph.reshape %0 {...} : (tensor<1x4096x7x7xf32>) -> tensor<1x8x512x7x7xf32>
    %2 = graph.reduce %1 {kind = "sum", axes = array<i64: 1>, ...} : ... -> tensor<1x512x7x7xf32>
    %y = graph.add %2, %bias : (tensor<1x512x7x7xf32>, tensor<512x1x1xf32>) -> tensor<1x512x7x7xf32>
    ```
    """

    name = "share-convolutions"
    device: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        gpu = gpu_of(self.device)
        if gpu is None:
            return
        rewrite(op, [ShareConvolution(gpu.veus, weights_of(ctx))])
