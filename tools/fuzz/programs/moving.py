"""Steps that move elements: views of views of views."""

from __future__ import annotations

import math

import numpy as np
from xdsl.dialects.builtin import f32, f64, i32, i64
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.types import DYNAMIC, is_float, is_integer, numpy_dtype
from tools.fuzz.programs.facts import Facts, hull, limits
from tools.fuzz.programs.program import RandomProgram, element_of, shape_of


def static_axes(shape: list[int]) -> list[int]:
    """Dimensions that are no batch."""
    return [d for d, s in enumerate(shape) if s != DYNAMIC]


def reshape(p: RandomProgram, x: SSAValue) -> None:
    """Factors of the number of elements, ones put in and left out."""
    shape = shape_of(x)
    if DYNAMIC in shape[1:] or (p.anywhere and DYNAMIC in shape and p.draw.chance(0.3)):
        return fold(p, x)
    lead = [DYNAMIC] if shape[:1] == [DYNAMIC] else []
    count = math.prod(shape[len(lead) :])
    want: list[int] = []
    while count > 1 and len(want) < 4:
        factor = p.draw.random.choice([f for f in range(1, count + 1) if count % f == 0])
        want.append(factor)
        count //= factor
    if count != 1:
        want.append(count)
    if len(want) + len(lead) < 5 and p.draw.chance(0.3):
        want.insert(p.draw.random.randint(0, len(want)), 1)
    if not lead and p.draw.chance(0.1) and math.prod(want) == 1:
        want = []
    p.put(graph.ReshapeOp, [x], p.facts[x], shape=[*lead, *want])


def fold(p: RandomProgram, x: SSAValue) -> None:
    """A dimension beside the batch made one with it, as heads are, or taken out of it again."""
    shape, factor = shape_of(x), p.factor(x)
    at = shape.index(DYNAMIC)
    near = [d for d in (at - 1, at + 1) if 0 <= d < len(shape) and shape[d] > 0]
    if shape.count(DYNAMIC) > 1:
        return
    if factor > 1 and p.draw.chance(0.5):
        apart = p.draw.random.choice(([DYNAMIC, factor], [factor, DYNAMIC]))
        want = [*shape[:at], *apart, *shape[at + 1 :]]
        p.put(graph.ReshapeOp, [x], p.facts[x], factor=1, shape=want)
    elif near:
        gone = p.draw.random.choice(near)
        want = [s for d, s in enumerate(shape) if d != gone]
        if factor * shape[gone] <= 8:
            p.put(graph.ReshapeOp, [x], p.facts[x], factor=factor * shape[gone], shape=want)


def squeeze(p: RandomProgram, x: SSAValue) -> None:
    """Ones go, or come."""
    shape = shape_of(x)
    if p.draw.chance(0.5):
        want = [s for d, s in enumerate(shape) if s != 1 or (d and p.draw.chance(0.4))]
    else:
        want = list(shape)
        least = int(shape[:1] == [DYNAMIC])
        want.insert(p.draw.random.randint(least, len(want)), 1)
    if len(want) <= 5:
        p.put(graph.ReshapeOp, [x], p.facts[x], shape=want)


def expand(p: RandomProgram, x: SSAValue) -> None:
    """Broadcast ones, and perhaps a dimension in front."""
    shape = shape_of(x)
    want = [p.draw.random.choice((1, 2, 3)) if s == 1 else s for s in shape]
    if len(want) < 5 and DYNAMIC not in want and p.draw.chance(0.3):
        want.insert(0, p.draw.random.choice((1, 2)))
    p.put(graph.ExpandOp, [x], p.facts[x], shape=want)


def transpose(p: RandomProgram, x: SSAValue) -> None:
    """Any order; the batch stays in front where it is in front in all of the program."""
    shape = shape_of(x)
    fixed = int(shape[:1] == [DYNAMIC] and not p.anywhere)
    rest = list(range(fixed, len(shape)))
    p.draw.random.shuffle(rest)
    p.put(graph.TransposeOp, [x], p.facts[x], permutation=[*range(fixed), *rest])


def slices(p: RandomProgram, x: SSAValue) -> None:
    """Parts of some dimensions, forwards and backwards."""
    offsets, sizes, steps = [], [], []
    for extent in shape_of(x):
        offset, size, step = 0, extent, 1
        if extent > 0 and p.draw.chance(0.6):
            offset, size, step = _part(p, extent)
        offsets.append(offset), sizes.append(size), steps.append(step)
    p.put(graph.SliceOp, [x], p.facts[x], offsets=offsets, sizes=sizes, strides=steps)


def _part(p: RandomProgram, extent: int) -> tuple[int, int, int]:
    offset = p.draw.random.randrange(extent)
    step = p.draw.random.choice((1, 1, 1, 2, 3, -1, -1, -2))
    room = (extent - 1 - offset) // step if step > 0 else offset // -step
    size = p.draw.random.choice((room + 1, p.draw.random.randint(1, room + 1)))
    return offset, size, step


def concat(p: RandomProgram, x: SSAValue) -> None:
    """With itself, with others that fit, with constants."""
    shape, element = shape_of(x), element_of(x)
    axes = static_axes(shape)
    if not axes:
        return
    axis = p.draw.random.choice(axes)
    fits = [
        v
        for v in p.values
        if element_of(v) == element
        and len(shape_of(v)) == len(shape)
        and all(
            a == b or d == axis for d, (a, b) in enumerate(zip(shape_of(v), shape, strict=True))
        )
    ]
    parts = [x, *p.draw.random.choices(fits, k=p.draw.random.randint(0, 2))]
    if DYNAMIC not in shape and p.draw.chance(0.3):
        size = p.draw.random.choice((1, 2))
        parts.append(
            p.random_constant(element, [size if d == axis else s for d, s in enumerate(shape)])
        )
    p.draw.random.shuffle(parts)
    p.put(graph.ConcatOp, parts, hull(*(p.facts[v] for v in parts)), axis=axis)


def pad(p: RandomProgram, x: SSAValue) -> None:
    """Some dimensions, by a value that its type can hold."""
    shape, element = shape_of(x), element_of(x)
    value = float(p.draw.random.choice((0, 0, 1, -1) if is_float(element) else (0, 0, 1)))
    sizes = (0, 0, 1, 2)
    low, high = ([0 if s == DYNAMIC else p.draw.random.choice(sizes) for s in shape] for _ in "lh")
    if is_float(element) and p.draw.chance(0.2):
        value = p.draw.random.choice((-math.inf, 0.1))
    inside = Facts(value, value, 0.0, value == 0.1, True)
    if not math.isfinite(value):
        inside = Facts(0.0, 0.0, finite=False)
    inside = Facts(inside.low, inside.high, 0.0, value != 0.1, inside.finite)
    p.put(graph.PadOp, [x], hull(p.facts[x], inside), low=low, high=high, value=value)


def _indices(p: RandomProgram, extent: int, shape: list[int]) -> SSAValue:
    """Integers in [0, extent): a constant of any integer type, or of the program's own values."""
    known = [
        v
        for v in p.values
        if is_integer(element_of(v))
        and p.facts[v].low >= 0
        and p.facts[v].high < extent
        and DYNAMIC not in shape_of(v)
        and len(shape_of(v)) <= 2
    ]
    if known and p.draw.chance(0.5):
        return p.draw.random.choice(known)
    dtype = numpy_dtype(p.draw.random.choice((i32, i64)))
    return p.constant(p.draw.rng.integers(0, extent, shape).astype(dtype))


def gather(p: RandomProgram, x: SSAValue) -> None:
    """Rows picked by a constant, or by what was computed."""
    shape = shape_of(x)
    axes = [d for d in static_axes(shape) if shape[d] > 0]
    if not axes:
        return
    axis = p.draw.random.choice(axes)
    wanted = [p.draw.random.randint(1, 3) for _ in range(p.draw.random.choice((0, 1, 1, 2)))]
    indices = _indices(p, shape[axis], wanted)
    p.put(graph.GatherOp, [x, indices], p.facts[x], axis=axis)


def gather_elements(p: RandomProgram, x: SSAValue) -> None:
    """By a constant, where there is no batch, or by what was computed."""
    shape = shape_of(x)
    axes = [d for d in static_axes(shape) if shape[d] > 0]
    if not axes:
        return
    axis = p.draw.random.choice(axes)
    known = [
        v
        for v in p.values
        if is_integer(element_of(v)) and p.facts[v].low >= 0 and p.facts[v].high < shape[axis]
    ]
    if known and p.draw.chance(0.7):
        p.put(graph.GatherElementsOp, [x, p.draw.random.choice(known)], p.facts[x], axis=axis)
    elif DYNAMIC not in shape:
        wanted = [p.draw.random.randint(1, 4) if d == axis else s for d, s in enumerate(shape)]
        picked = p.draw.rng.integers(0, shape[axis], wanted).astype(np.int64)
        p.put(graph.GatherElementsOp, [x, p.constant(picked)], p.facts[x], axis=axis)


def scatter_add(p: RandomProgram, x: SSAValue) -> None:
    """Rows of what was computed, or of a constant, added to places that a constant or a value names."""
    shape, element = shape_of(x), element_of(x)
    if DYNAMIC in shape or shape[:1] in ([], [0]) or element not in (f32, f64):
        return
    wanted = [p.draw.random.randint(1, 6) for _ in range(p.draw.random.choice((0, 1, 1, 2)))]
    numbers = _indices(p, shape[0], wanted)
    some = p.draw.rng.integers(-3, 4, [*shape_of(numbers), *shape[1:]])
    added = p.constant(some.astype(numpy_dtype(element)))
    count = math.prod(shape_of(numbers))
    known = p.facts[x]
    # Rounded in one order at every level: what was exact stays so.
    low, high = known.low - 3 * count, known.high + 3 * count
    facts = Facts(low, high, known.error, known.whole, known.finite)
    p.put(graph.ScatterAddOp, [x, numbers, added], facts)


def indices(p: RandomProgram, x: SSAValue) -> None:
    """Integers that can pick something: a remainder, where x has integers."""
    if not is_integer(element_of(x)) or limits(element_of(x))[1] < 8:
        return
    divisor = p.constant(np.array(p.draw.random.choice((1, 2, 3)), numpy_dtype(element_of(x))))
    p.put(graph.ModOp, [x, divisor], Facts(0.0, p.facts[divisor].high - 1))


STEPS = [
    reshape, reshape, squeeze, squeeze, expand, transpose, transpose, slices, slices, slices,
    concat, concat, pad, gather, gather_elements, scatter_add, indices,
]  # fmt: skip
