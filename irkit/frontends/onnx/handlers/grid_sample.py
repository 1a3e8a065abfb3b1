"""GridSample: values of images between their pixels, at coordinates that are computed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from xdsl.dialects.builtin import f32, f64, i64
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.graph.composition import OpenOps
from irkit.dialects.types import is_float
from irkit.frontends.onnx.handlers.arithmetic import cast, element_of
from irkit.frontends.onnx.node import Handler, Node, Value

_PADDINGS = ("zeros", "border", "reflection")
# Names of before operator set 20 are those of two dimensions.
_MODES = {
    "bilinear": "linear",
    "bicubic": "cubic",
    "linear": "linear",
    "cubic": "cubic",
    "nearest": "nearest",
}
_SHARPNESS = -0.75


@dataclass(frozen=True)
class Axis:
    """A spatial dimension: its extent, and what coordinates in [-1, 1] are of it."""

    extent: int
    corners: bool

    @property
    def borders(self) -> tuple[float, float]:
        """Between these lies the image: centres of its first and last pixel, or their outer edges."""
        return (0.0, self.extent - 1.0) if self.corners else (-0.5, self.extent - 0.5)


@dataclass(frozen=True)
class Tap:
    """Of each result a neighbour along one axis: where it lies, its weight, and if it is of the image (None:
    all are)."""

    index: SSAValue
    weight: SSAValue | None
    inside: SSAValue | None


class Sampler:
    """Places along axes, of images whose outside is `padding`."""

    def __init__(self, o: OpenOps[SSAValue], padding: str) -> None:
        self.o = o
        self.padding = padding

    def taps(self, mode: str, given: SSAValue, axis: Axis) -> list[Tap]:
        """The neighbours of coordinates in [-1, 1] along an axis."""
        x = self._in_pixels(given, axis)
        if mode == "nearest":
            return [self._tap(self._placed(self.o(graph.RoundOp, x), axis), None, axis)]
        # At a border a cubic's neighbours are moved one by one, as by PyTorch and ONNX Runtime.
        if (mode, self.padding) != ("cubic", "border"):
            x = self._placed(x, axis)
        first = self.o(graph.FloorOp, x)
        at = self.o.sub(x, first)
        weights = _cubic(self.o, at) if mode == "cubic" else self._linear(at)
        start = 1 - len(weights) // 2
        places = (self._plus(first, start + n) for n in range(len(weights)))
        return [self._tap(place, w, axis) for place, w in zip(places, weights, strict=True)]

    def _in_pixels(self, x: SSAValue, axis: Axis) -> SSAValue:
        """Coordinates of which 0 is the centre of the first pixel."""
        o, shifted = self.o, self._plus(x, 1)
        if axis.corners:
            return self._times(self._times(shifted, 0.5), axis.extent - 1)
        return self._times(o.sub(self._times(shifted, axis.extent), o.like(1, x)), 0.5)

    def _linear(self, at: SSAValue) -> list[SSAValue]:
        return [self.o.sub(self.o.like(1, at), at), at]

    def _placed(self, x: SSAValue, axis: Axis) -> SSAValue:
        """Coordinates brought between the borders, as the padding says; those between stay."""
        low, high = axis.borders
        match self.padding:
            case "border":
                x = self._unless(self.o.below(x, low), 0, x)
                return self._unless(self.o.above(x, high), axis.extent - 1, x)
            case "reflection":
                return self._reflected(x, low, high)
            case _:
                return x

    def _reflected(self, x: SSAValue, low: float, high: float) -> SSAValue:
        """Thrown back at the borders, as often as it takes."""
        o, span = self.o, high - low
        if span == 0:
            return self._times(x, 0)
        beyond = o.where(o.below(x, low), o.sub(o.like(low, x), x), o.sub(x, o.like(high, x)))
        turns = o(graph.FloorOp, o.div(beyond, o.like(span, x)))
        rest = o.sub(beyond, self._times(turns, span))
        half = self._times(turns, 0.5)
        back = o.compare(o(graph.FloorOp, half), half, "eq")
        # Below the image an even number of turns ends at its beginning; above it, at its end.
        from_low = o.compare(back, o.below(x, low), "eq")
        there = o.where(from_low, self._plus(rest, low), o.sub(o.like(high, x), rest))
        return o.where(o.below(x, low), there, o.where(o.above(x, high), there, x))

    def _tap(self, place: SSAValue, weight: SSAValue | None, axis: Axis) -> Tap:
        o, inside = self.o, None
        if self.padding == "zeros":
            inside = o(graph.AndOp, o.above(place, -1), o.below(place, axis.extent))
        if self.padding == "reflection":
            place = self._reflected(place, *axis.borders)
        # Comparisons that NaN fails: what is no number lies at the beginning.
        place = o.where(o.above(place, 0), place, o.like(0, place))
        place = o.where(o.below(place, axis.extent - 1), place, o.like(axis.extent - 1, place))
        return Tap(o(graph.CastOp, place, to=i64), weight, inside)

    def _unless(self, outside: SSAValue, number: float, x: SSAValue) -> SSAValue:
        return self.o.where(outside, self.o.like(number, x), x)

    def _plus(self, x: SSAValue, number: float) -> SSAValue:
        return x if number == 0 else self.o.add(x, self.o.like(number, x))

    def _times(self, x: SSAValue, number: float) -> SSAValue:
        return self.o.mul(x, self.o.like(number, x))


def _cubic(o: OpenOps[SSAValue], at: SSAValue) -> list[SSAValue]:
    """Weights of four neighbours, of which the second lies `at` before (R. Keys, Cubic convolution
    interpolation for digital image processing, 1981)."""
    a = _SHARPNESS

    def polynomial(x: SSAValue, *terms: float) -> SSAValue:
        return reduce(
            lambda y, term: o.add(o.mul(y, x), o.like(term, x)), terms[1:], o.like(terms[0], x)
        )

    def near(x: SSAValue) -> SSAValue:
        return polynomial(x, a + 2, -(a + 3), 0, 1)

    def far(x: SSAValue) -> SSAValue:
        return polynomial(x, a, -5 * a, 8 * a, -4 * a)

    one = o.like(1, at)
    rest = o.sub(one, at)
    return [far(o.add(at, one)), near(at), near(rest), far(o.add(rest, one))]


def _grid_sample(node: Node) -> Sequence[Value]:
    x, grid = node.operand(0), node.operand(1)
    mode, padding = (
        str(node.attribute("mode", "linear")),
        str(node.attribute("padding_mode", "zeros")),
    )
    corners = bool(node.attribute("align_corners", 0))
    if mode not in _MODES:
        node.refuse(f"mode = {mode!r}", f"it is none of {', '.join(_MODES)}")
    if padding not in _PADDINGS:
        node.refuse(f"padding_mode = {padding!r}", f"it is none of {', '.join(_PADDINGS)}")
    if _MODES[mode] != "nearest" and not is_float(element_of(x)):
        node.refuse(f"mode = {mode!r}", "only mode 'nearest' takes integers")
    o = OpenOps[SSAValue](node.emit_all, node.tensor)
    rows, channels, *extents = o.shape(x)
    _, *wanted, depth = o.shape(grid)
    if depth != len(extents) or len(wanted) != len(extents):
        node.refuse(node.name_of(1), f"it does not have coordinates of {len(extents)} dimensions")
    places = math.prod(wanted)
    grid = cast(node, grid, f64 if element_of(grid) == f64 else f32)
    grid = o.reshape(grid, [rows, 1, places, depth])
    sampler, axes = Sampler(o, padding), [Axis(n, corners) for n in extents]
    # The last coordinate is the first dimension's.
    given = [o.reshape(o.cut(grid, 3, depth - 1 - d, 1), [rows, 1, places]) for d in range(depth)]
    taps = [sampler.taps(_MODES[mode], g, axis) for g, axis in zip(given, axes, strict=True)]
    flat = o.reshape(x, [rows, channels, math.prod(extents)])
    y = _summed(o, flat, taps, extents)
    return [o.reshape(y, [rows, channels, *wanted])]


def _summed(
    o: OpenOps[SSAValue], x: SSAValue, taps: Sequence[Sequence[Tap]], extents: Sequence[int]
) -> SSAValue:
    """The neighbours of x (rows, channels, pixels) by their weights: rows, channels, results."""
    found = [_picked(o, x, corner, extents) for corner in itertools.product(*taps)]
    # The innermost axis first.
    for axis in reversed(taps):
        weights = [tap.weight for tap in axis]
        size = len(axis)
        runs = (found[n : n + size] for n in range(0, len(found), size))
        found = [_weighted(o, run, weights) for run in runs]
    return found[0]


def _weighted(
    o: OpenOps[SSAValue], values: Sequence[SSAValue], weights: Sequence[SSAValue | None]
) -> SSAValue:
    terms: list[SSAValue] = []
    for value, weight in zip(values, weights, strict=True):
        terms.append(value if weight is None else o.mul(value, o.cast(weight, o.dtype(value))))
    return reduce(o.add, terms)


def _picked(
    o: OpenOps[SSAValue], x: SSAValue, corner: Sequence[Tap], extents: Sequence[int]
) -> SSAValue:
    """One neighbour of each result; 0 where it is none of the image."""
    strides = [math.prod(extents[d + 1 :]) for d in range(len(extents))]
    parts = [o.mul(t.index, o.like(s, t.index)) for t, s in zip(corner, strides, strict=True)]
    index = reduce(o.add, parts)
    rows, channels, _ = o.shape(x)
    index = o.expand(index, [rows, channels, o.shape(index)[2]])
    value = o(graph.GatherElementsOp, x, index, axis=2)
    masks = [tap.inside for tap in corner if tap.inside is not None]
    if not masks:
        return value
    inside = reduce(lambda a, b: o(graph.AndOp, a, b), masks)
    return o.where(inside, value, o.constant(np.zeros((), o.dtype(value))))


HANDLERS: dict[str, Handler] = {"GridSample": _grid_sample}
