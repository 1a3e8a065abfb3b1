"""Products of bytes: zero points are taken off behind them, at every level; exact modulo 2^32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import irkit
from irkit.context import IrkitContext
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.interp import run_module
from irkit.passes.graph.quantise_products import QuantiseProducts

KINDS = {"i8": np.int8, "ui8": np.uint8}


def bytes_of(rng: Any, kind: str, *shape: int) -> Any:
    limits = np.iinfo(KINDS[kind])
    found = rng.integers(limits.min, limits.max + 1, shape).astype(KINDS[kind])
    found.reshape(-1)[:2] = (limits.min, limits.max)[: found.size]
    return found


def dense(array: Any) -> str:
    return f"dense<{array.tolist()}>"


def matmul(
    m: int, k: int, n: int, kinds: tuple[str, str], zeros: tuple[Any, Any], w: Any = None
) -> str:
    """(x - zeros[0]) @ (w - zeros[1]); w is an argument where it is not given."""
    a, b = kinds
    text = [f"func.func @main(%x: tensor<{m}x{k}x{a}>"]
    text[0] += f", %w: tensor<{k}x{n}x{b}>" if w is None else ""
    text[0] += f") -> tensor<{m}x{n}xi32> {{"
    if w is not None:
        text.append(f"  %w = arith.constant {dense(w)} : tensor<{k}x{n}x{b}>")
    for v, kind, shape, zero in (("x", a, f"{m}x{k}", zeros[0]), ("w", b, f"{k}x{n}", zeros[1])):
        text.append(
            f"  %{v}0 = graph.cast %{v} {{to = i32}} : (tensor<{shape}x{kind}>) -> tensor<{shape}xi32>"
        )
        sizes = "".join(f"{s}x" for s in np.shape(zero))
        text.append(f"  %{v}z = arith.constant {dense(np.asarray(zero))} : tensor<{sizes}i32>")
        text.append(
            f"  %{v}1 = graph.sub %{v}0, %{v}z : "
            f"(tensor<{shape}xi32>, tensor<{sizes}i32>) -> tensor<{shape}xi32>"
        )
    text.append(
        f"  %y = graph.matmul %x1, %w1 : (tensor<{m}x{k}xi32>, tensor<{k}x{n}xi32>) -> tensor<{m}x{n}xi32>"
    )
    return "\n".join([*text, f"  func.return %y : tensor<{m}x{n}xi32>", "}"])


def wrapped(x: Any) -> Any:
    return x.astype(np.int64).astype(np.int32)


def at_graph(text: str, inputs: list[Any]) -> tuple[str, Any]:
    """The graph with its products in bytes, and what it computes."""
    module = irkit.parse(text)
    ctx = IrkitContext()
    register_dialects(ctx)
    QuantiseProducts().apply(ctx, module)
    return str(module), run_module(module, ctx.weights, inputs)[0]


PAIRS = [("ui8", "i8"), ("i8", "i8"), ("ui8", "ui8"), ("i8", "ui8")]


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 9), st.integers(1, 20), st.integers(1, 9), st.sampled_from(PAIRS),
    st.sampled_from(["one", "each", "none"]), st.sampled_from(["one", "each", "none"]), st.booleans(),
    st.integers(0, 999),
)  # fmt: skip
def test_zero_points_of_a_matmul(
    m: int, k: int, n: int, kinds: Any, rows: str, columns: str, known: bool, seed: int
):
    rng = np.random.default_rng(seed)
    x, w = bytes_of(rng, kinds[0], m, k), bytes_of(rng, kinds[1], k, n)
    shapes = {"one": (), "each": (m, 1), "none": None}, {"one": (), "each": (n,), "none": None}
    zeros = []
    for kind, how, shape in zip(kinds, (rows, columns), shapes, strict=True):
        size = shape[how]
        zeros.append(
            np.zeros((), int)
            if size is None
            else bytes_of(rng, kind, *(size or (1,))).astype(int).reshape(size)
        )
    want = wrapped((x.astype(np.int64) - zeros[0]) @ (w.astype(np.int64) - zeros[1]))
    text = matmul(m, k, n, kinds, (zeros[0], zeros[1]), w if known else None)
    made, got = at_graph(text, [x] if known else [x, w])
    np.testing.assert_array_equal(got, want)
    assert "to = i16" not in made


CONV = """
func.func @main(%x: tensor<2x{c}x{h}x9x{a}>) -> tensor<2x{o}x{y}x{z}xi32> {{
  %w = arith.constant {w} : tensor<{o}x{c}x3x2x{b}>
  %x0 = graph.cast %x {{to = i32}} : (tensor<2x{c}x{h}x9x{a}>) -> tensor<2x{c}x{h}x9xi32>
  %w0 = graph.cast %w {{to = i32}} : (tensor<{o}x{c}x3x2x{b}>) -> tensor<{o}x{c}x3x2xi32>
  %s = arith.constant dense<{s}> : tensor<i32>
  %t = arith.constant {t} : tensor<{ts}xi32>
  %x1 = graph.sub %x0, %s : (tensor<2x{c}x{h}x9xi32>, tensor<i32>) -> tensor<2x{c}x{h}x9xi32>
  %w1 = graph.sub %w0, %t : (tensor<{o}x{c}x3x2xi32>, tensor<{ts}xi32>) -> tensor<{o}x{c}x3x2xi32>
  %b = arith.constant {bias} : tensor<{o}xi32>
  %y = graph.conv %x1, %w1, %b {{strides = array<i64: {d}, {d}>, pads = array<i64: 1, 1, 1, 0>,
    dilations = array<i64: 1, 1>, group = 1 : i64}}
    : (tensor<2x{c}x{h}x9xi32>, tensor<{o}x{c}x3x2xi32>, tensor<{o}xi32>) -> tensor<2x{o}x{y}x{z}xi32>
  func.return %y : tensor<2x{o}x{y}x{z}xi32>
}}
"""


def convolution(
    seed: int, c: int, o: int, h: int, d: int, kinds: tuple[str, str], zeros: str
) -> tuple[str, Any, Any]:
    """The module, an image, and what it gives; zero points of the image, of both, or of each filter."""
    rng = np.random.default_rng(seed)
    x, w = bytes_of(rng, kinds[0], 2, c, h, 9), bytes_of(rng, kinds[1], o, c, 3, 2)
    s = int(bytes_of(rng, kinds[0], 3)[2])
    t = np.zeros((1, 1, 1, 1), int)
    if zeros != "image":
        t = bytes_of(rng, kinds[1], o, 1, 1, 1).astype(int)
        t = t[:1] if zeros == "both" else t
    bias = rng.integers(-(2**31), 2**31, o)
    y, z = (h + 2 - 3) // d + 1, (9 + 1 - 2) // d + 1
    ts = "x".join(map(str, t.shape))
    text = CONV.format(
        c=c,
        o=o,
        h=h,
        y=y,
        z=z,
        d=d,
        s=s,
        t=dense(t),
        ts=ts,
        w=dense(w),
        a=kinds[0],
        b=kinds[1],
        bias=dense(bias),
    )
    wide = np.pad(x.astype(np.int64) - s, ((0, 0), (0, 0), (1, 1), (1, 0)))
    want = np.zeros((2, o, y, z), np.int64) + bias[:, None, None]
    for i in range(3):
        for j in range(2):
            part = wide[:, :, i : i + d * (y - 1) + 1 : d, j : j + d * (z - 1) + 1 : d]
            want += np.einsum("bchw,oc->bohw", part, (w.astype(np.int64) - t)[:, :, i, j])
    return text, x, wrapped(want)


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 999), st.integers(1, 5), st.integers(1, 6), st.integers(3, 8), st.integers(1, 2),
    st.sampled_from(PAIRS), st.sampled_from(["image", "both", "filters"]),
)  # fmt: skip
def test_zero_points_of_a_convolution(
    seed: int, c: int, o: int, h: int, d: int, kinds: Any, zeros: str
):
    text, x, want = convolution(seed, c, o, h, d, kinds, zeros)
    made, got = at_graph(text, [x])
    np.testing.assert_array_equal(got, want)
    assert "to = i16" not in made


@pytest.mark.parametrize("kinds", PAIRS)
def test_programs_of_a_cpu(kinds: tuple[str, str]):
    """By an integer rKernel, and bytes alone lie in memory."""
    rng = np.random.default_rng(7)
    for m, k, n in ((9, 21, 17), (64, 130, 70), (1, 7, 33)):
        x, w = bytes_of(rng, kinds[0], m, k), bytes_of(rng, kinds[1], k, n)
        zeros = (
            np.asarray(int(bytes_of(rng, kinds[0], 3)[2])),
            bytes_of(rng, kinds[1], n).astype(int),
        )
        program = irkit.compile(irkit.parse(matmul(m, k, n, kinds, zeros)), device="cpu1")
        want = wrapped((x.astype(np.int64) - zeros[0]) @ (w.astype(np.int64) - zeros[1]))
        np.testing.assert_array_equal(program.run([x, w])[0], want)
    text, x, want = convolution(3, 7, 20, 12, 1, kinds, "image")
    program = irkit.compile(irkit.parse(text), device="cpu1")
    names = {r["rkernel"] for r in program.report()["roperators"].values()}
    assert names & {"byte_planes.blocked", "byte_planes.wide"}
    np.testing.assert_array_equal(program.run([x])[0], want)
    for level in ("tensor", "task"):
        module = irkit.parse(text)
        ctx = IrkitContext()
        register_dialects(ctx)
        run_level(ctx, module, "graph", "cpu1")
        run_level(ctx, module, "tensor", "cpu1")
        if level == "task":
            run_level(ctx, module, "task", "cpu1")
        np.testing.assert_array_equal(run_module(module, ctx.weights, [x])[0], want)
