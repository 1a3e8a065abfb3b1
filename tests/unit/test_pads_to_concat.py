"""pads-to-concat: sums of padded parts that lie side by side give the same bits as one concatenation."""

from __future__ import annotations

import random

import numpy as np
import pytest

import irkit
from irkit.context import IrkitContext
from irkit.dialects.graph import ConcatOp
from irkit.interp.graph import run_graph
from irkit.passes.graph.pads_to_concat import PadsToConcat
from irkit.weights import WeightStore

ELEMENTS = {
    "f32": np.float32,
    "f64": np.float64,
    "f16": np.float16,
    "i32": np.int32,
    "i1": np.bool_,
}
ODD = [np.nan, np.inf, -np.inf, -0.0]


def text(shape: list[int], axis: int, places: list[tuple[int, int]], element: str) -> str:
    """The sum, in the order given, of operands that go from a first place along an axis to a last."""

    def dims(size: int) -> str:
        return "x".join(str(size if d == axis else s) for d, s in enumerate(shape))

    whole = f"tensor<{dims(shape[axis])}x{element}>"
    lines, arguments, total = list[str](), list[str](), ""
    for n, (first, last) in enumerate(places):
        part = f"tensor<{dims(last - first)}x{element}>"
        low = [first if d == axis else 0 for d in range(len(shape))]
        high = [shape[axis] - last if d == axis else 0 for d in range(len(shape))]
        arguments.append(f"%x{n}: {part}")
        lines.append(
            f"%p{n} = graph.pad %x{n} {{low = array<i64: {str(low)[1:-1]}>, "
            f"high = array<i64: {str(high)[1:-1]}>, value = 0.0 : f64}} : ({part}) -> {whole}"
        )
        if n:
            lines.append(f"%s{n} = graph.add {total}, %p{n} : ({whole}, {whole}) -> {whole}")
        total = f"%s{n}" if n else "%p0"
    body = " ".join(lines)
    return f"func.func @main({', '.join(arguments)}) -> {whole} {{ {body} func.return {total} : {whole} }}"


def drawn(seed: int) -> tuple[str, list[np.ndarray]]:
    """A sum, and arrays in which there is what adds oddly."""
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    shape = [draw.randint(1, 5) for _ in range(draw.randint(1, 4))]
    axis, element = draw.randrange(len(shape)), draw.choice(list(ELEMENTS))
    shape[axis] = draw.randint(4, 12)
    ends = sorted(draw.sample(range(1, shape[axis]), 3))
    places = [(0, ends[0]), (ends[0], ends[1]), (ends[1], ends[2]), (ends[2], shape[axis])]
    places = draw.sample(places, draw.randint(2, 4))
    arrays: list[np.ndarray] = []
    for first, last in places:
        size = [last - first if d == axis else s for d, s in enumerate(shape)]
        x = rng.integers(-3, 4, size).astype(ELEMENTS[element])
        if element.startswith("f"):
            x = np.where(rng.random(size) < 0.5, rng.choice(ODD, size), x).astype(x.dtype)
        arrays.append(x)
    return text(shape, axis, places, element), arrays


@pytest.mark.parametrize("seed", range(40))
def test_random_parts(seed: int) -> None:
    source, arrays = drawn(seed)
    module, weights = irkit.parse(source), WeightStore()
    (before,) = run_graph(module, weights, arrays)
    PadsToConcat().apply(IrkitContext(weights=weights), module)
    module.verify()
    (after,) = run_graph(module, weights, arrays)
    assert any(isinstance(op, ConcatOp) for op in module.walk())
    np.testing.assert_array_equal(after, before)
    if before.dtype.kind == "f":
        np.testing.assert_array_equal(
            np.signbit(after[after == 0]), np.signbit(before[before == 0])
        )


@pytest.mark.parametrize("seed", range(4))
def test_compiled(seed: int) -> None:
    """With the signs of zeros."""
    source, arrays = drawn(seed)
    module = irkit.parse(source)
    (want,) = run_graph(module, WeightStore(), arrays)
    got = irkit.compile(module, cache=False)(*arrays)
    np.testing.assert_array_equal(got, want)
    if want.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(got[got == 0]), np.signbit(want[want == 0]))
