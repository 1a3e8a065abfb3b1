"""Sums of rows by a few lanes on a GPU, in every mode, at random shapes, against float64.

Skipped where there is no CUDA device.
"""

from __future__ import annotations

import numpy as np
import pytest

import irkit
from irkit.runtime.cuda.availability import why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


@pytest.mark.parametrize("number", range(16))
def test_products_with_few_columns(number: int) -> None:
    rng = np.random.default_rng(number)
    kind, dtype = (("f32", np.float32), ("f64", np.float64))[number % 2]
    rows, columns = int(rng.integers(1, 5000)), int(rng.integers(1, 9))
    terms = int(rng.integers(8, (40, 700, 5000)[number % 3]))
    left, right, result = f"{rows}x{terms}", f"{terms}x{columns}", f"{rows}x{columns}"
    text = f"""func.func @main(%x: tensor<{left}x{kind}>, %w: tensor<{right}x{kind}>)
        -> tensor<{result}x{kind}> {{
      %y = graph.matmul %x, %w : (tensor<{left}x{kind}>, tensor<{right}x{kind}>)
        -> tensor<{result}x{kind}>
      func.return %y : tensor<{result}x{kind}>
    }}"""
    x = rng.standard_normal((rows, terms)).astype(dtype)
    w = rng.standard_normal((terms, columns)).astype(dtype)
    compiled = irkit.compile(irkit.parse(text), target="cuda", cache=False)
    names = {r["rkernel"] for r in compiled.report()["roperators"].values()}
    sizes = np.abs(x).astype(float) @ np.abs(w)
    for mode in ("per-op", "per-wave", "persistent"):
        compiled._first.executor.mode = mode
        (got,) = compiled.run([x, w])
        error = np.abs(got - x.astype(float) @ w) / sizes
        assert error.max() <= 20 * np.finfo(dtype).eps, (mode, names)


def test_they_are_chosen() -> None:
    """Of shapes that others take longer for; which they are at random ones, the costs say."""
    text = """func.func @main(%x: tensor<32768x512xf64>, %w: tensor<512x2xf64>) -> tensor<32768x2xf64> {
      %y = graph.matmul %x, %w : (tensor<32768x512xf64>, tensor<512x2xf64>) -> tensor<32768x2xf64>
      func.return %y : tensor<32768x2xf64>
    }"""
    compiled = irkit.compile(irkit.parse(text), target="cuda", cache=False)
    assert "reduce.lanes" in {r["rkernel"] for r in compiled.report()["roperators"].values()}
