"""What few elements need: loops are vectors all the same, and each element has its own value."""

# pyright: basic
from __future__ import annotations

import re
import zlib
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

import irkit
from irkit.runtime import machine_code
from irkit.runtime.intrinsics import engine
from irkit.runtime.intrinsics.cpu_trigonometry64 import NEAR

TEXT = """
from irkit.runtime.intrinsics.cpu import float64p
from irkit.runtime.intrinsics.cpu_approximations import cos_float64, sin_float64
from irkit.runtime.intrinsics.engine import cfunc

@cfunc("void(int64, int64, int64)", error_model="numpy")
def kernel(count, at, to):
    p, q = float64p(at), float64p(to)
    for j in range(count):
        q[j] = sin_float64(p[j]) + cos_float64(p[j] * 2)
"""


def _wide() -> bool:
    return bool(llvm.get_host_cpu_features().get("avx2"))


@pytest.mark.skipif(not _wide(), reason="the processor's vectors have two elements")
def test_the_loop_is_of_vectors_that_ask_and_branch() -> None:
    text = zlib.decompress(machine_code.lower(TEXT).partition(b"\0")[2]).decode()
    module = llvm.parse_assembly(text)
    engine._optimise(engine._rkernel_codegen(), module)
    body = str(module)
    assert "fma.v8f64" in body or "fma.v4f64" in body
    # Functions of vectors are inlined: they ask whether any element is far, and call the function of one.
    assert "call double @irkit.seldom.sin_far" in body
    assert not re.search(r"call <. x double> @irkit", body)
    assert "define weak_odr" not in body


@irkit.jit(target="cpu")
def sines(x: Any) -> Any:
    return np.sin(x), np.cos(x)


@pytest.mark.parametrize("count", [1, 3, 8, 29, 257])
def test_far_elements_at_any_place(count: int) -> None:
    rng = np.random.default_rng(count)
    x = rng.uniform(-50, 50, count)
    at = rng.random(count) < 0.1
    at[rng.integers(count)] = True
    x[at] = rng.choice([1e15, -3e300, NEAR, -NEAR * 1.5, np.inf, -np.inf, np.nan, -0.0], at.sum())
    with np.errstate(invalid="ignore"):
        wanted = np.sin(x), np.cos(x)
    for got, want in zip(sines(x), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-15, atol=1e-16)
        assert np.array_equal(np.signbit(got), np.signbit(want)) or np.isnan(want).any()
