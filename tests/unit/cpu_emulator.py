"""Runs bound CPU rKernels as plain Python: slow, and exact about what memory they may touch.

Operands are flat arrays of just their size and scratch is an array of just the bytes that the rKernel asks
for, so that an access past the end is an IndexError; one before the beginning is looked for.
"""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false
from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from irkit.dialects.fused import multiply_add
from irkit.rkernels.binding.binder import Binding
from irkit.rkernels.rkernel import RKernel
from irkit.rkernels.templates import specialise, template_source
from irkit.runtime.intrinsics.cpu_approximations import ULP


class Memory:
    """A flat array that has no elements before its first."""

    def __init__(self, array: Any) -> None:
        self.array = array

    @property
    def dtype(self) -> Any:
        return self.array.dtype

    def _at(self, index: Any) -> int:
        if index < 0:
            raise IndexError(f"element {index}")
        return int(index)

    def __getitem__(self, index: Any) -> Any:
        return self.array[self._at(index)]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.array[self._at(index)] = value

    def run(self, start: Any, length: int) -> Any:
        """`length` elements from `start` on, all of which must be there."""
        at = self._at(start)
        if at + length > len(self.array):
            raise IndexError(f"elements {at} to {at + length} of {len(self.array)}")
        return self.array[at : at + length]


def _dot_rows(
    rows: int, k: int, x: Memory, at_x: int, w: Memory, at_w: int, y: Memory, at_y: int
) -> None:
    products = w.run(at_w, rows * k).reshape(rows, k) * x.run(at_x, k)
    y.run(at_y, rows)[:] = products.sum(axis=1, dtype=y.dtype)


def _dot_rows_of_each(
    count: int, rows: int, k: int, x: Memory, at_x: int, w: Memory, at_w: int, y: Memory, at_y: int,
    step: int,
) -> None:  # fmt: skip
    for n in range(count):
        _dot_rows(rows, k, x, at_x + n * k, w, at_w, y, at_y + n * step)


def _dot_rows_of_two(
    rows: int, k0: int, x0: Memory, at_x0: int, w0: Memory, at_w0: int, k1: int, x1: Memory,
    at_x1: int, w1: Memory, at_w1: int, y: Memory, at_y: int,
) -> None:  # fmt: skip
    _dot_rows(rows, k0, x0, at_x0, w0, at_w0, y, at_y)
    first = y.run(at_y, rows).copy()
    _dot_rows(rows, k1, x1, at_x1, w1, at_w1, y, at_y)
    y.run(at_y, rows)[:] += first


def _dot_rows_of_two_each(
    count: int, rows: int, k0: int, x0: Memory, at_x0: int, w0: Memory, at_w0: int, k1: int,
    x1: Memory, at_x1: int, w1: Memory, at_w1: int, y: Memory, at_y: int, step: int,
) -> None:  # fmt: skip
    for n in range(count):
        of_x = at_x0 + n * k0, at_x1 + n * k1
        _dot_rows_of_two(
            rows, k0, x0, of_x[0], w0, at_w0, k1, x1, of_x[1], w1, at_w1, y, at_y + n * step
        )


def _multiply_tile(
    most: int, vectors: int, lanes: int, rows: int, a: Memory, at_a: int, k: int, b: Memory, at_b: int,
    c: Memory, at_c: int, width: int,
) -> None:  # fmt: skip
    across = lanes * vectors
    for row in range(rows):
        sums = np.zeros(across, c.dtype)
        for i in range(k):
            sums += a[at_a + row * k + i] * b.run(at_b + i * width, across)
        c.run(at_c + row * width, across)[:] = sums


def _multiply_blocks(
    most: int, vectors: int, rows: int, k: int, a: Memory, at_a: int, below_a: int, step_a: int,
    b: Memory, at_b: int, beside: int, c: Memory, at_c: int, width: int, anew: int,
) -> None:  # fmt: skip
    assert 0 < rows <= most
    for row in range(rows):
        for n in range(vectors):
            into = c.run(at_c + row * width + 16 * n, 16)
            sums = np.zeros(16, into.dtype) if anew else into.copy()
            for i in range(k):
                term = a[at_a + row * below_a + i * step_a]
                sums += term * b.run(at_b + n * beside + 16 * i, 16)
            into[:] = sums


def _multiply_panels(
    most: int, vectors: int, lanes: int, rows: int, k: int, a: Memory, at_a: int, at_b: int, at_c: int,
    width: int, anew: int,
) -> None:  # fmt: skip
    across = lanes * vectors
    assert rows <= most
    for row in range(rows):
        into = a.run(at_c + row * width, across)
        sums = np.zeros(across, into.dtype) if anew else into.copy()
        for i in range(k):
            sums += a[at_a + i * most + row] * a.run(at_b + i * across, across)
        into[:] = sums


def _add_tile(
    most: int, vectors: int, lanes: int, rows: int, k: int, a: Memory, at_a: int, below_a: int,
    b: Memory, at_b: int, below_b: int, c: Memory, at_c: int, below_c: int, anew: int,
) -> None:  # fmt: skip
    across = lanes * vectors
    assert rows <= most
    for row in range(rows):
        into = c.run(at_c + row * below_c, across)
        sums = np.zeros(across, into.dtype) if anew else into.copy()
        for i in range(k):
            sums += a[at_a + row * below_a + i] * b.run(at_b + i * below_b, across)
        into[:] = sums


def _multiply_strided(
    most: int, vectors: int, rows: int, k: int, a: Memory, at_a: int, below_a: int, b: Memory,
    at_b: int, below_b: int, c: Memory, at_c: int, below_c: int,
) -> None:  # fmt: skip
    across = 16 * vectors
    for row in range(rows):
        sums = np.zeros(across, c.dtype)
        for i in range(k):
            sums += a[at_a + row * below_a + i] * b.run(at_b + i * below_b, across)
        c.run(at_c + row * below_c, across)[:] = sums


def _multiply_planes(
    most: int, vectors: int, rows: int, a: Memory, at_a: int, channels: int, step: int, terms: int,
    places: Memory, b: Memory, at_b: int, c: Memory, at_c: int,
) -> None:  # fmt: skip
    across = 16 * vectors
    assert rows <= most
    for row in range(rows):
        sums = np.zeros(across, c.dtype)
        for n in range(channels):
            for t in range(terms):
                factor = a[at_a + (row * channels + n) * terms + t]
                sums += factor * b.run(at_b + n * step + places[t], across)
        c.run(at_c + row * across, across)[:] = sums


def _turn_rows(rows: int, a: Memory, at_a: int, k: int, b: Memory, at_b: int) -> None:
    for i in range(16):
        row = a.run(at_a + min(i, rows - 1) * k, k)
        b.run(at_b, 16 * k)[i::16] = row


def _turn_runs(
    rows: int, lanes: int, width: int, panel: Memory, at: int, source: Memory, begins: Memory,
    lows: Memory, highs: Memory, count: int,
) -> None:  # fmt: skip
    assert count <= lanes
    assert rows <= min(lanes, width)
    for i in range(rows):
        for e in range(count):
            inside = lows[i] <= e < highs[i]
            panel[at + e * width + i] = source[begins[i] + e] if inside else 0


def _expect_runs(rows: int, source: Memory, starts: Memory, offset: int) -> None:
    """What is fetched may lie anywhere: nothing is read."""
    assert rows >= 2


def _turn_whole_runs(
    rows: int, lanes: int, width: int, panel: Memory, at: int, source: Memory, starts: Memory,
    offset: int,
) -> None:  # fmt: skip
    assert rows <= min(lanes, width)
    for i in range(rows):
        for e in range(lanes):
            panel[at + e * width + i] = source[starts[i] + offset + e]


def multiply_pixels(
    vectors: int, rows: int, columns: int, width: int, pitch: int, a: Memory, at_a: int, channels: int,
    step: int, terms: int, places: Memory, b: Memory, at_b: int, c: Memory, at_c: int, apart: int,
    ahead: int,
) -> None:  # fmt: skip
    assert rows * columns <= 16
    assert columns <= width if rows == 1 else columns == width
    k = channels * terms
    filters = a.run(at_a, 16 * vectors * k).reshape(vectors, k, 16)
    a.run(ahead, 16 * k)  # what is asked for is there
    at = [n * step + places[t] for n in range(channels) for t in range(terms)]
    for tile in range(0, width, columns):
        x = min(tile, width - columns)
        pixels = [y * pitch + x + i for y in range(rows) for i in range(columns)]
        terms_of = [[b[at_b + place + pixel] for pixel in pixels] for place in at]
        for number, sums in enumerate(
            (filters.transpose(0, 2, 1) @ terms_of).reshape(-1, len(pixels))
        ):
            written = c.run(at_c + number * apart + x, 16)
            written[:] = np.nan
            written[: len(pixels)] = sums


def _copy_every(
    stride: int, widest: int, count: int, a: Memory, at: int, b: Memory, to: int
) -> None:
    assert widest <= count
    b.run(to, count)[:] = a.run(at, stride * (count - 1) + 1)[::stride].copy()


def _copy_run(count: int, a: Memory, at: int, b: Memory, to: int) -> None:
    b.run(to, count)[:] = a.run(at, count)


def _add_windows(
    rows: int, width: int, pitch: int, places: Sequence[int], plane: Memory, at: int, filters: Memory,
    first: int, to: int,
) -> None:  # fmt: skip
    lanes = width if width >= 16 else next(n for n in (4, 8, 16) if n >= width)
    for row in range(rows):
        sums = np.zeros(lanes, plane.dtype)
        for term, place in enumerate(places):
            sums += filters[first + term] * plane.run(at + place + row * pitch, lanes)
        plane.run(to + row * width, lanes)[:] = sums


def _interleave_fours(width: int, turned: int, k: int, panel: Memory) -> None:
    for group in range(-(-k // 4)):
        fours = panel.run(4 * group * width, 4 * width)
        bits = fours.view(np.uint8).reshape(4, width).T.reshape(-1) ^ np.uint8(128 * turned)
        fours[:] = bits.view(fours.dtype)


def _multiply_fours(
    most: int, vectors: int, of_signed: int, rows: int, a: Memory, at_a: int, k: int, b: Memory,
    at_b: int, c: Memory, width: int,
) -> None:  # fmt: skip
    across = 16 * vectors
    assert rows <= most
    for row in range(rows):
        sums = np.zeros(across, np.int64)
        for group in range(-(-k // 4)):
            fours = b.run(4 * (group * width + at_b), 4 * across)
            terms = fours.view(np.uint8 if of_signed else np.int8).reshape(across, 4)
            count = min(4, k - 4 * group)
            factors = a.run(at_a + row * k + 4 * group, count).astype(np.int64)
            sums += terms[:, :count].astype(np.int64) @ factors
        c.run(at_b + row * width, across)[:] = sums.astype(np.int32)


def _add_nibbles(
    most: int, width: int, centred: int, rows: int, terms: int, x: Memory, at_x: int, below_x: int,
    packed: Memory, at: int, scales: Memory, zeros: Memory, at_block: int, c: Memory, at_c: int, anew: int,
) -> None:  # fmt: skip
    assert rows <= most
    lines = packed.run(at, terms // 2 * width).reshape(-1, 1, width).view(np.int8)
    both = np.concatenate([(lines << 4) >> 4, lines >> 4], axis=1).reshape(terms, width)
    matrix = both.astype(np.float32)
    if not centred:
        matrix = matrix - zeros.run(at_block, width)
    for row in range(rows):
        into = c.run(at_c + row * width, width)
        sums = x.run(at_x + row * below_x, terms) @ matrix * scales.run(at_block, width)
        into[:] = sums if anew else into + sums


def _extremes(
    largest: int,
    lanes: int,
    stride: int,
    shape: Sequence[int],
    steps: Sequence[int],
    source: Memory,
    at: int,
    target: Memory,
) -> None:
    for lane in range(lanes):
        terms = [
            source[at + lane * stride + sum(n * s for n, s in zip(point, steps, strict=True))]
            for point in itertools.product(*map(range, shape))
        ]
        target[lane] = (np.max if largest else np.min)(terms)


def _packed_node(nodes: Memory, index: int, x: Memory) -> tuple[Any, Any, Any]:
    words = nodes.run(4 * int(index), 4)
    return words[: x.dtype.itemsize // 4].view(x.dtype)[0], words[2], words[3]


def _choose_ways(
    rows: int, strict: int, column: Memory, at: int, threshold: float, way: Memory, near: int, far: int,
    to: int,
) -> None:  # fmt: skip
    x = column.run(at, rows)
    below = x < threshold if strict else x <= threshold
    way.run(to, rows)[:] = np.where(below, way.run(near, rows), way.run(far, rows))


def _store_vector(target: Memory, at: int, vector: Any) -> None:
    target.run(at, len(vector))[:] = vector


_VECTORS: dict[str, Any] = {
    "load_vector": lambda lanes, source, at: source.run(at, lanes).copy(),
    "spread_vector": lambda lanes, element: np.full(lanes, element),
    "store_vector": _store_vector,
    "add_product": lambda a, b, c: a * b + c,
    "add_vectors": np.add,
    "multiply_vectors": np.multiply,
    "greater_vectors": np.maximum,
    "smaller_vectors": np.minimum,
}

_FUNCTIONS: dict[str, Any] = {
    "acos": np.arccos,
    "asin": np.arcsin,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "cos": np.cos,
    "cosh": np.cosh,
    "erf": math.erf,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log10": np.log10,
    "log2": np.log2,
    "sinh": np.sinh,
    "log1p": np.log1p,
    "pow": np.power,
    "sin": np.sin,
    "tanh": np.tanh,
}


def _rounded(function: Any, kind: Any) -> Any:
    """A function whose result is of a type."""
    return lambda *x: kind(function(*x))


def _names(scratch: Any) -> dict[str, Any]:
    names: dict[str, Any] = {
        "math": math,
        "floor": np.floor,
        **dict(rint=np.rint, cbrt=np.cbrt, exp2=np.exp2, log2=np.log2, fmod=np.fmod),
        "as_it_is": lambda x: x,
        "fma": multiply_add,
        "quotient": lambda x, y, *reciprocal: x / y,
        "fused": lambda f: f,
        "add_nibbles": _add_nibbles,
        "add_windows": _add_windows,
        "choose_ways": _choose_ways,
        "copy_every": _copy_every,
        "copy_run": _copy_run,
        "interleave_fours": _interleave_fours,
        "four_vectors_at_a_time": lambda: None,
        "last_vector_of_fewer_lanes": lambda: None,
        "multiply_fours": _multiply_fours,
        "dot_rows": _dot_rows,
        "dot_rows_of_two": _dot_rows_of_two,
        "dot_rows_of_two_each": _dot_rows_of_two_each,
        "dot_rows_of_each": _dot_rows_of_each,
        "element_by_element": lambda: None,
        "expect_runs": _expect_runs,
        "extremes": _extremes,
        "packed_node": _packed_node,
        "add_tile": _add_tile,
        "multiply_blocks": _multiply_blocks,
        "multiply_panels": _multiply_panels,
        "multiply_strided": _multiply_strided,
        "multiply_pixels": multiply_pixels,
        "multiply_planes": _multiply_planes,
        "multiply_tile": _multiply_tile,
        "turn_rows": _turn_rows,
        "turn_runs": _turn_runs,
        "turn_whole_runs": _turn_whole_runs,
        **_VECTORS,
    }
    for approximation in ULP:
        function, _, kind = approximation.partition("_")
        names[approximation] = _rounded(_FUNCTIONS[function], np.dtype(kind).type)
    for name, reduced in (("row_sum", np.sum), ("row_maximum", np.max), ("row_minimum", np.min)):
        names[name] = lambda row, count, of=reduced: of(row.run(0, count))
    names["row_largest"] = lambda row, count: np.fmax.reduce(row.run(0, count), initial=-np.inf)
    names["row_squares"] = lambda row, count: np.sum(row.run(0, count) ** 2)
    for bits in (8, 16, 32, 64):
        for kind in ("int", "uint"):
            names[f"{kind}{bits}"] = getattr(np, f"{kind}{bits}")
    for dtype in map(np.dtype, ("float32", "float64", "int8", "uint8", "int32", "int64")):
        whole = scratch[: len(scratch) // dtype.itemsize * dtype.itemsize]
        names[dtype.name] = dtype.type
        names[f"{dtype.name}p"] = lambda at, d=dtype, s=whole: Memory(s[at:].view(d))
        names[f"stack_{dtype.name}"] = lambda n, d=dtype: Memory(np.zeros(n, d))
    return names


def run(
    rkernel: RKernel, binding: Binding, arrays: Sequence[Any], task: int, tasks: int, rows: int
) -> None:
    """Run one of `tasks` rTasks over flat operands. Raises what it raises."""
    body = specialise(template_source(rkernel), rkernel.function, "kernel", binding.names)
    names = _names(np.full(binding.scratch_bytes, 0xAB, dtype=np.uint8))
    exec(compile("\n".join([*binding.functions, body]), "<rKernel>", "exec"), names)
    pointers = [Memory(a.reshape(-1)) for a in arrays]
    with np.errstate(all="ignore"):
        names["kernel"](task, tasks, rows, 0, *pointers)
