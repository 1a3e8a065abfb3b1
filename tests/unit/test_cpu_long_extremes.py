"""The largest and the least of many floats: of eight runs of terms, with the bits that index order has."""

# pyright: basic
from __future__ import annotations

import numpy as np
import pytest

import irkit


def _compiled(shape: tuple[int, ...], kind: str, element: str):
    x, axis = f"tensor<{'x'.join(map(str, shape))}x{element}>", len(shape) - 1
    y = f"tensor<{''.join(f'{s}x' for s in shape[:-1])}{element}>"
    how = f'{{kind = "{kind}", axes = array<i64: {axis}>, keepdims = false}}'
    module = irkit.parse(
        f"func.func @main(%x: {x}) -> {y} {{ %y = graph.reduce %x {how} : ({x}) -> {y} "
        f"func.return %y : {y} }}"
    )
    return irkit.compile(module, device="cpu2", cache=False)


def _in_order(x: np.ndarray, kind: str) -> np.ndarray:
    """Term after term: the first NaN, of zeros the last."""
    best = np.full(x.shape[:-1], -np.inf if kind == "max" else np.inf, x.dtype)
    for n in range(x.shape[-1]):
        term = x[..., n]
        kept = (best > term if kind == "max" else best < term) | np.isnan(best)
        best = np.where(kept, best, term)
    return best


def _inputs(shape: tuple[int, ...], dtype: type) -> list[np.ndarray]:
    rng = np.random.default_rng(shape[-1])
    found = [rng.standard_normal(shape).astype(dtype) for _ in range(2)]
    for share in (0.1, 0.5, 0.9):
        zeros = np.where(rng.random(shape) < share, -0.0, 0.0).astype(dtype)
        found.append(zeros)
        # Zeros in the first runs alone.
        few = np.arange(shape[-1]) < shape[-1] // 4
        found += [np.where(few, zeros, other).astype(dtype) for other in (-1.0, 1.0)]
    found.append(np.where(rng.random(shape) < 0.01, np.nan, found[0]).astype(dtype))
    found.append(np.full(shape, np.inf, dtype))
    found.append(-found[-1])
    return found


@pytest.mark.parametrize("kind", ["max", "min"])
@pytest.mark.parametrize("shape", [(33,), (64,), (1001,), (3, 71), (40_003,)])
@pytest.mark.parametrize("element", ["f32", "f64"])
def test_bits_are_those_of_index_order(kind: str, shape: tuple[int, ...], element: str) -> None:
    dtype = np.float32 if element == "f32" else np.float64
    program = _compiled(shape, kind, element)
    assert "rKernel reduce.eighths" in program.source
    for x in _inputs(shape, dtype):
        (got,) = program.run([x])
        want = _in_order(x, kind)
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(
            np.signbit(got[~np.isnan(got)]), np.signbit(want[~np.isnan(want)])
        )


def test_integers_and_short_rows_are_not_cut() -> None:
    assert "reduce.eighths" not in _compiled((1000,), "max", "i32").source
    assert "reduce.eighths" not in _compiled((3, 8), "max", "f32").source
