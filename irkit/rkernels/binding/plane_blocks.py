"""Planes in a block's shared memory: what their elements are, where pixels are, and the terms of a window."""

from __future__ import annotations

import itertools
import math
import operator
from collections import Counter
from dataclasses import dataclass, replace

from irkit.dialects.planes import Axis, Plane
from irkit.dialects.products import padding_of
from irkit.dialects.types import tensor_type
from irkit.errors import UnsupportedError
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.elements import delinearised, literal, strides
from irkit.rkernels.binding.fetching import loop_names, split_position, weighted_sum

SIDE_BY_SIDE = 4
"""Pixels of which a thread has sums."""
_PRINTED, _ROW = 32, 64
"""Terms that are printed one by one: of several loops, and of one that is longer."""


_BANKS, _GAPS = 32, (8, 4)
"""Elements of shared memory that are read at once; gaps behind rows, and behind planes, that are tried."""


def spread(plane: Plane) -> Plane:
    """The planes with gaps by which neighbouring columns lie in different banks of shared memory, as far as
    that can be."""
    rows = itertools.product(*(range(most) for most in _GAPS[: len(plane.axes)]))
    offered = (_with_gaps(plane, gaps) for gaps in rows)
    return min(offered, key=lambda p: (_turns(p), p.channel_elements))


def _with_gaps(plane: Plane, gaps: tuple[int, ...]) -> Plane:
    """Gaps of the last axis, of the one before, and so on."""
    axes, widths = list(plane.axes), len(plane.axes)
    for number, gap in enumerate(gaps):
        at = widths - 1 - number
        axes[at] = replace(plane.axes[at], gap=gap)
    return replace(plane, axes=tuple(axes))


def _turns(plane: Plane) -> int:
    """How many elements the warps that read the first columns read one behind another."""
    extents = plane.product.extents(plane.product.columns)
    points = itertools.islice(itertools.product(*map(range, extents)), 8 * _BANKS)
    places = [sum(map(operator.mul, point, plane.strides)) for point in points]
    warps = (places[n : n + _BANKS] for n in range(0, len(places), _BANKS))
    return sum(max(Counter(place % _BANKS for place in warp).values()) for warp in warps)


@dataclass(frozen=True)
class Layout:
    """Where in shared memory the filters and the threads' sums begin, behind the planes, in elements; a term
    of the filters is `pitch` behind the one before."""

    filters: int
    pitch: int
    sums: int

    @staticmethod
    def of(plane: Plane, rows: int, chunk: int) -> Layout:
        """For threads that have sums of so many filters, and so many channels at a time."""
        filters = _fours(chunk * plane.channel_elements)
        product = plane.product
        pitch = math.ceil(product.extent(product.m) / rows) * rows + 4
        return Layout(filters, pitch, filters + chunk * plane.channel_terms * pitch)


def _fours(count: int) -> int:
    return math.ceil(count / 4) * 4


def plane_blocks(binder: Binder, plane: Plane) -> None:
    """`CHANNELS`, `STEP`, `TERMS`, `FILTERS`, `PITCH`, `SUMS`, `ELEMENT`, `PIXELS`,
    `RUN_TERMS`, `WINDOW` and `SHIFT`."""
    plane = spread(plane)
    rows, chunk = binder.parameter("TM"), binder.parameter("CHUNK")
    layout = Layout.of(plane, rows, chunk)
    for name, value in {
        "CHANNELS": plane.channel_count,
        "STEP": plane.channel_elements,
        "TERMS": plane.channel_terms,
        "FILTERS": layout.filters,
        "PITCH": layout.pitch,
        "SUMS": layout.sums,
    }.items():
        binder.literal(name, value)
    _element(binder, plane)
    _pixels(binder, plane)
    _window(binder, plane, layout.pitch, rows)


def _element(binder: Binder, plane: Plane) -> None:
    """`ELEMENT(OPERANDS, b, l, n, e)`: element e of the planes from channel n on."""
    product, lines = plane.product, list[str]()
    names = loop_names(product, "bl", lines)
    strides_ = [axis.stride for axis in plane.axes]
    phases = [axis.phase for axis in plane.axes]
    # Of the first nothing is assumed: it has the channels of a chunk.
    channel, *inner = split_position("e", [plane.channel_count + 1, *strides_, *phases], lines)
    lines.append(f"channel = add32(n, {channel})")
    found = split_position("channel", product.extents(plane.channels), lines)
    names |= dict(zip(plane.channels, found, strict=True))
    memory = strides(tensor_type(plane.source).get_shape())
    moved = {axis.dimension for axis in plane.axes}
    address, offset = dict[int, int](), 0
    for d, view in enumerate(plane.views):
        if d in moved:
            continue
        offset += view.offset * memory[d]
        for loop, factor in view.factors.items():
            address[loop] = address.get(loop, 0) + factor * memory[d]
    lines.append(f"at = {weighted_sum(names, address, offset)}")
    tests: list[str] = []
    for number, axis in enumerate(plane.axes):
        phase, place = inner[number], inner[len(plane.axes) + number]
        start = f"add32({phase}, {axis.origin})"
        lines.append(f"x{number} = mad32({place}, {axis.stride}, {start})")
        lines.append(f"at = mad32(x{number}, {memory[axis.dimension]}, at)")
        if axis.origin < 0 or axis.phase * axis.stride + axis.origin > axis.size:
            tests.append(f"within32(x{number}, {axis.size})")
    pointer = f"p{plane.source.index}"
    if tests:
        zero = literal(padding_of(product), tensor_type(plane.source).element_type)
        lines.append(f"inside = {' & '.join(tests)}")
        # The load has no branch: outside the first element is read.
        lines.append(f"value = {pointer}[at if inside else 0]")
        lines.append(f"return value if inside else {zero}")
    else:
        lines.append(f"return {pointer}[at]")
    binder.binding.function("ELEMENT", f"{binder.binding.operands}, b, l, n, e", lines)


def _pixels(binder: Binder, plane: Plane) -> None:
    """`PIXELS(first, step, last)`: where the windows of columns first, first + step, ... begin in a channel,
    none beyond the last."""
    lines: list[str] = []
    for number in range(SIDE_BY_SIDE):
        lines.append(f"c{number} = min(first + {number} * step, last)")
        found = delinearised(f"c{number}", plane.product.extents(plane.product.columns))
        place = " + ".join(f"({i}) * {s}" for i, s in zip(found, plane.strides, strict=True))
        lines.append(f"q{number} = uint64({place})")
    lines.append(f"return ({', '.join(f'q{number}' for number in range(SIDE_BY_SIDE))})")
    binder.binding.function("PIXELS", "first, step, last", lines)


def printed_loops(plane: Plane) -> tuple[int, ...] | None:
    """The last loops over a window, whose terms are printed; None where that cannot be done: they are too
    many, or an axis is moved by one of them and by another loop."""
    taps = plane.product.k[len(plane.channels) :]
    if plane.channels != plane.product.k[: len(plane.channels)]:
        return None
    for begin in range(len(taps) + 1):
        inner = taps[begin:]
        most = _ROW if len(inner) == 1 else _PRINTED
        if math.prod(plane.product.extents(inner)) <= most:
            return inner if _apart(plane, set(inner)) and (inner or not taps) else None
    return None


def _apart(plane: Plane, inner: set[int]) -> bool:
    return all(set(axis.steps) <= inner or not set(axis.steps) & inner for axis in plane.axes)


def _window(binder: Binder, plane: Plane, pitch: int, rows: int) -> None:
    """`WINDOW(sums, staged, filters, columns, shift)`: one run of terms added, `RUN_TERMS` of them, whose
    filters begin at `filters`; `SHIFT(run)`: where its places are, seen from those of the first run."""
    inner = printed_loops(plane)
    if inner is None:
        raise UnsupportedError("the terms of a window cannot be printed")
    product = plane.product
    lines: list[str] = []
    points = itertools.product(*(range(size) for size in product.extents(inner)))
    for term, point in enumerate(points):
        place = plane.place(dict(zip(inner, point, strict=True)))
        given = f"sums, staged, filters + {term * pitch}, columns, shift, {place}, {rows}"
        lines.append(f"sums = window_sums({given})")
    binder.literal("RUN_TERMS", len(lines))
    lines.append("return sums")
    binder.binding.function("WINDOW", "sums, staged, filters, columns, shift", lines)
    taps = product.k[len(plane.channels) :]
    outer = taps[: len(taps) - len(inner)]
    lines = []
    # Of the first nothing is assumed: it has the channels of a chunk.
    sizes = [plane.channel_count + 1, *product.extents(outer)]
    channel, *found = split_position("run", sizes, lines)
    names = dict(zip(outer, found, strict=True))
    lines.append(f"shift = mad32({channel}, {plane.channel_elements}, int32(0))")
    for number, axis in enumerate(plane.axes):
        steps = {d: step for d, step in axis.steps.items() if d in names}
        if steps:
            lines.append(f"along = {weighted_sum(names, steps)}")
            lines += _moved(plane, number, axis)
    lines.append("return uint64(shift)")
    binder.binding.function("SHIFT", "run", lines)


def _moved(plane: Plane, number: int, axis: Axis) -> list[str]:
    """What an axis adds to a place, moved `along` from the first."""
    if axis.stride == 1:
        return [f"shift = mad32(along, {plane.strides[number]}, shift)"]
    return [
        f"steps, phase = divide32(along, {axis.stride})",
        f"shift = mad32(phase, {plane.phase_step(number)}, shift)",
        f"shift = mad32(steps, {plane.strides[number]}, shift)",
    ]
