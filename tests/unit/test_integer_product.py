"""Products of 16-bit integers in sums of 32 bits on a CPU: instructions, rKernels, what wraps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

import irkit
from irkit.rkernels import registry
from irkit.runtime.intrinsics import cpu_bytes, cpu_integers
from irkit.runtime.intrinsics.cpu import int8p, int16p, int32p, uint8p

WIDTH = 32


def multiplied(a, b):
    """A @ B by the intrinsic: 8 rows at most, 32 columns."""
    rows, k = a.shape
    panel = np.zeros((-(-k // 2), WIDTH, 2), np.int16)
    for t in range(k):
        panel[t // 2, :, t % 2] = b[t]
    if k % 2:
        panel[-1, :, 1] = 12345  # beside the last term: read, and counts nothing
    sums = np.zeros((rows, WIDTH), np.int32)

    @njit
    def run(a, panel, sums, rows, k):
        cpu_integers.multiply_pairs(8, 2, rows, int16p(a), 0, k, int16p(panel), 0, int32p(sums), 32)

    run(a.ctypes.data, panel.ctypes.data, sums.ctypes.data, rows, k)
    return sums


@pytest.mark.parametrize("pairs", [0, 8, 16])
@pytest.mark.parametrize("shape", [(1, 1), (3, 2), (8, 37), (7, 64)])
def test_instructions(pairs: int, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch):
    """All give sums modulo 2^32, the least of all products among them."""
    if pairs > cpu_integers._widest():
        pytest.skip("this processor has no such instruction")
    monkeypatch.setattr(cpu_integers, "_widest", lambda: pairs)
    rng = np.random.default_rng(shape[1])
    a = rng.integers(-(2**15), 2**15, shape).astype(np.int16)
    b = rng.integers(-(2**15), 2**15, (shape[1], WIDTH)).astype(np.int16)
    a[0], b[:, 0] = -(2**15), -(2**15)
    want = (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32)
    np.testing.assert_array_equal(multiplied(a, b), want)


MATMUL = """
func.func @main(%a: tensor<{m}x{k}xi16>, %b: tensor<{k}x{n}xi16>) -> tensor<{m}x{n}xi32> {{
  %0 = graph.cast %a {{to = i32}} : (tensor<{m}x{k}xi16>) -> tensor<{m}x{k}xi32>
  %1 = graph.cast %b {{to = i32}} : (tensor<{k}x{n}xi16>) -> tensor<{k}x{n}xi32>
  %y = graph.matmul %0, %1 : (tensor<{m}x{k}xi32>, tensor<{k}x{n}xi32>) -> tensor<{m}x{n}xi32>
  func.return %y : tensor<{m}x{n}xi32>
}}
"""
CONV = """
func.func @main(%x: tensor<2x{c}x{h}x9xi16>, %w: tensor<{o}x{c}x3x2xi16>) -> tensor<2x{o}x{y}x{z}xi32> {{
  %0 = graph.cast %x {{to = i32}} : (tensor<2x{c}x{h}x9xi16>) -> tensor<2x{c}x{h}x9xi32>
  %1 = graph.cast %w {{to = i32}} : (tensor<{o}x{c}x3x2xi16>) -> tensor<{o}x{c}x3x2xi32>
  %y = graph.conv %0, %1 {{strides = array<i64: {s}, {s}>, pads = array<i64: 1, 1, 1, 0>,
    dilations = array<i64: 1, 1>, group = 1 : i64}} : (tensor<2x{c}x{h}x9xi32>, tensor<{o}x{c}x3x2xi32>)
    -> tensor<2x{o}x{y}x{z}xi32>
  func.return %y : tensor<2x{o}x{y}x{z}xi32>
}}
"""


def numbers(seed: int, *shape: int):
    return np.random.default_rng(seed).integers(-(2**15), 2**15, shape).astype(np.int16)


def agrees(text: str, arrays):
    """What the program gives, which has an integer product."""
    module = irkit.parse(text)
    program = irkit.compile(module, device="cpu1")
    names = {r["rkernel"].split(".")[0] for r in program.report()["roperators"].values()}
    assert "integer_product" in names
    (got,) = program.run(arrays)
    return got


@settings(max_examples=3, deadline=None)
@given(st.integers(8, 40), st.integers(17, 70), st.integers(16, 70))
def test_matmul(m: int, k: int, n: int):
    a, b = numbers(m, m, k), numbers(n, k, n)
    want = (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32)
    np.testing.assert_array_equal(agrees(MATMUL.format(m=m, k=k, n=n), [a, b]), want)


@settings(max_examples=3, deadline=None)
@given(st.integers(5, 9), st.integers(8, 20), st.integers(7, 12), st.integers(1, 2))
def test_conv(c: int, o: int, h: int, s: int):
    x, w = numbers(c, 2, c, h, 9), numbers(o, o, c, 3, 2)
    y, z = (h + 2 - 3) // s + 1, (9 + 1 - 2) // s + 1
    wide = np.pad(x.astype(np.int64), ((0, 0), (0, 0), (1, 1), (1, 0)))
    want = np.zeros((2, o, y, z), np.int64)
    for i in range(3):
        for j in range(2):
            part = wide[:, :, i : i + s * (y - 1) + 1 : s, j : j + s * (z - 1) + 1 : s]
            want += np.einsum("bchw,oc->bohw", part, w[:, :, i, j].astype(np.int64))
    got = agrees(CONV.format(c=c, o=o, h=h, s=s, y=y, z=z), [x, w])
    np.testing.assert_array_equal(got, want.astype(np.int32))


def test_both_tiles_are_registered():
    names = {k.name for k in registry.registered("cpu")}
    assert {"integer_product.blocked", "integer_product.wide"} <= names


def fours(a, b, signed):
    """A @ B of bytes by the intrinsics: 8 rows at most, 32 columns."""
    rows, k = a.shape
    panel = np.full((-(-k // 4) * 4, WIDTH), 77, b.dtype)
    panel[:k] = b
    a = a.reshape(-1).copy()
    sums = np.zeros((rows, WIDTH), np.int32)
    turned = int(a.dtype == b.dtype)
    of_a, of_b = (int8p if x.dtype == np.int8 else uint8p for x in (a, b))

    @njit
    def run(a, panel, sums, rows, k):
        cpu_bytes.interleave_fours(32, turned, k, of_b(panel))
        cpu_bytes.multiply_fours(
            8, 2, signed, rows, of_a(a), 0, k, of_b(panel), 0, int32p(sums), 32
        )

    run(a.ctypes.data, panel.ctypes.data, sums.ctypes.data, rows, k)
    return sums


@pytest.mark.parametrize("lanes", [0, 8, 16])
@pytest.mark.parametrize("kinds", ["u8 s8", "s8 u8", "s8 s8", "u8 u8"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 2), (8, 37), (7, 64), (5, 7)])
def test_instructions_of_bytes(lanes: int, kinds: str, shape, monkeypatch: pytest.MonkeyPatch):
    """Nothing saturates, whatever the signs; with one signedness B's are 128 more or less."""
    if lanes > cpu_bytes._widest():
        pytest.skip("this processor has no such instruction")
    monkeypatch.setattr(cpu_bytes, "_widest", lambda: lanes)
    rng = np.random.default_rng(shape[1])
    types = [np.dtype(np.int8 if k == "s8" else np.uint8) for k in kinds.split()]
    a, b = (
        rng.integers(np.iinfo(t).min, np.iinfo(t).max + 1, s).astype(t)
        for t, s in zip(types, (shape, (shape[1], WIDTH)), strict=True)
    )
    a[0], b[:, 0] = np.iinfo(a.dtype).max, np.iinfo(b.dtype).max
    signed = int(a.dtype == np.int8)
    wide = b.astype(np.int64)
    if types[0] == types[1]:
        wide = wide + 128 if signed else wide - 128
    np.testing.assert_array_equal(fours(a, b, signed), a.astype(np.int64) @ wide)
