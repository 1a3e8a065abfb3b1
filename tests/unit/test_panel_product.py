"""Products of which both operands are packed, compiled for a CPU and in emulation, as interpreted."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cpu_emulator import run as emulate
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_costs import text
from test_product import roperators

import irkit
from irkit.dialects.panel_products import as_panel_product
from irkit.dialects.roperator_body import find_root
from irkit.dialects.types import tensor_type
from irkit.frontends.module import ImportedModel, ModelInfo
from irkit.interp import run_module
from irkit.rkernels import registry
from irkit.rkernels.bind import bind
from irkit.weights import WeightStore

OTHERS = (
    "conv", "depthwise", "gemm", "gemv", "generated", "pixels", "planes", "product", "reduce",
)  # fmt: skip
VARIANTS = ["panel_product.blocked", "panel_product.wide"]


@contextmanager
def only(variant: str) -> Generator[None]:
    """Of the rKernels of products there is this one, and it takes what others would."""
    kernel = replace(registry.find("cpu", variant), legal=lambda _: True)
    with pytest.MonkeyPatch.context() as patch:
        for family in OTHERS:
            patch.setitem(registry._REGISTERED, ("cpu", family), [])
        patch.setitem(registry._REGISTERED, ("cpu", kernel.family), [kernel])
        yield


def drawn(module: Any, seed: int = 0) -> list[Any]:
    (main,) = (op for op in module.body.block.ops if op.sym_name.data == "main")
    rng = np.random.default_rng(seed)
    kinds = {"f32": np.float32, "f64": np.float64, "f16": np.float16}
    types = [tensor_type(a) for a in main.body.block.args]
    shapes = [[3 if n < 0 else n for n in t.get_shape()] for t in types]
    return [
        rng.standard_normal(shape).astype(kinds[str(t.element_type)])
        for shape, t in zip(shapes, types, strict=True)
    ]


def judge(source: str, variant: str, atol: float = 3e-6) -> None:
    """Compiled as interpreted, in two modes."""
    arrays = drawn(irkit.parse(source))
    wanted = run_module(irkit.parse(source), WeightStore(), arrays)
    for mode in ("serial", "persistent"):
        with only(variant):
            module = irkit.parse(source)
            program = irkit.compile(module, "cpu", device="cpu2", mode=mode, cache=False)
        assert variant in program.ir()
        for got, want in zip(program.run(arrays), wanted, strict=True):
            scale = float(np.abs(want).max(initial=1))
            np.testing.assert_allclose(got / scale, want / scale, atol=atol)


def gemm(m: int, n: int, k: int, a: bool, b: bool, element: str = "f32") -> str:
    shapes = ((k, m) if a else (m, k), (n, k) if b else (k, n), (m, n))
    x, y, z = (f"tensor<{r}x{c}x{element}>" for r, c in shapes)
    lies = f"trans_a = {str(a).lower()}, trans_b = {str(b).lower()}"
    return text("gemm", f"{x}, {y}", z, f"{{{lies}, alpha = 1.0 : f64, beta = 0.0 : f64}}")


def expression(line: str, types: str, result: str) -> str:
    return text("expression", types, result, f'{{text = "{line}"}}')


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("lies", [(False, False), (False, True), (True, False), (True, True)])
def test_several_blocks_of_each_kind(variant: str, lies: tuple[bool, bool]):
    """More rows, columns and terms than a block has, and none a multiple of it."""
    judge(gemm(307, 291, 531, *lies), variant)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("sizes", [(2, 2, 1), (3, 70, 5), (70, 3, 5), (33, 17, 300), (9, 100, 257)])
def test_small_and_odd(variant: str, sizes: tuple[int, int, int]):
    judge(gemm(*sizes, True, False), variant)
    judge(gemm(*sizes, True, True), variant)


@pytest.mark.parametrize("lies", [(False, False), (True, True)])
def test_many_rows_and_columns(lies: tuple[bool, bool]):
    """Several blocks of the largest size: of rows, of columns, and of those that stay in a nearer cache."""
    judge(gemm(1045, 1100, 270, *lies, "f64"), "panel_product.wide", 1e-13)


def test_long_panels_are_cut():
    """Where A is too large for the second-level cache, all of it is read for every few columns; where it is
    not, or where few columns use a copy of A, copying it takes longer."""
    chosen = {
        (k, n): family(gemm(512, n, k, False, False, "f64"))
        for k in (192, 1024, 3000)
        for n in (40, 512)
    }
    far = {size for size, kind in chosen.items() if kind == "panel_product"}
    assert far == {(1024, 512), (3000, 512)}
    assert set(chosen.values()) == {"product", "panel_product"}


def test_transposed_factors_are_not_copied_first():
    """A program reads `a.T` and `b.T` where they lie, and NumPy's answer is its own."""

    @irkit.jit(target="cpu")
    def multiplied(a: Any, b: Any) -> Any:
        return a.T @ b.T

    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((70, 65)), rng.standard_normal((57, 70))
    np.testing.assert_allclose(multiplied(a, b), a.T @ b.T, atol=1e-11)
    b[3, 5], a[2, 4] = np.nan, np.inf
    with np.errstate(invalid="ignore"):
        wanted = a.T @ b.T
    np.testing.assert_allclose(multiplied(a, b), wanted, atol=1e-11)
    assert multiplied.ir("schedule").count("task.roperator @") == 1


def test_doubles():
    judge(gemm(41, 50, 300, True, False, "f64"), "panel_product.wide", 1e-14)


WINDOWS = {
    "filters": (
        "W(m, c, s, t) +=! D(n, m, y, x) * X(n, c, y + s, x + t) where s in 0:3, t in 0:3",
        "tensor<3x9x8x20xf32>, tensor<3x5x10x22xf32>",
        "tensor<9x5x3x3xf32>",
    ),
    "filters of steps": (
        "W(m, c, s, t) +=! D(n, m, y, x) * X(n, c, 2 * y + 3 * s, 2 * x + t) where s in 0:2, t in 0:4",
        "tensor<2x4x5x6xf32>, tensor<2x3x12x14xf32>",
        "tensor<4x3x2x4xf32>",
    ),
    "several batches": (
        "C(b, m, n) +=! A(k, b, m) * B(b, n, k)",
        "tensor<35x3x10xf32>, tensor<3x40x35xf32>",
        "tensor<3x10x40xf32>",
    ),
    "columns around rows": (
        "C(p, m, q) +=! A(j, m, k) * B(k, p, q, j)",
        "tensor<4x6x7xf32>, tensor<7x3x5x4xf32>",
        "tensor<3x6x5xf32>",
    ),
    "turned windows": (
        "C(m, x) +=! A(k, m) * B(x - k + 6)",
        "tensor<7x5xf32>, tensor<18xf32>",
        "tensor<5x12xf32>",
    ),
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("name", WINDOWS)
def test_loops_of_any_order(variant: str, name: str):
    judge(expression(*WINDOWS[name]), variant)


PADDED = """func.func @main(%d: tensor<2x6x9x18xf32>, %x: tensor<2x3xHxWxf32>) -> tensor<6x3x3x5xf32> {
  %p = graph.pad %x {low = array<i64: 0, 0, 2, 1>, high = array<i64: 0, 0, 1, 3>, value = 0.0 : f64}
    : (tensor<2x3xHxWxf32>) -> tensor<2x3x11x22xf32>
  %w = graph.expression %d, %p
    {text = "W(m, c, s, t) +=! D(n, m, y, x) * X(n, c, y + s, x + t) where s in 0:3, t in 0:5"}
    : (tensor<2x6x9x18xf32>, tensor<2x3x11x22xf32>) -> tensor<6x3x3x5xf32>
  func.return %w : tensor<6x3x3x5xf32>
}"""


@pytest.mark.parametrize("variant", VARIANTS)
def test_what_is_padded(variant: str):
    judge(PADDED.replace("HxW", "8x18"), variant)


CONV = (
    "{strides = array<i64: 2, 1>, pads = array<i64: 1, 2, 0, 1>, dilations = array<i64: 1, 2>, "
    "group = 2 : i64}"
)


@pytest.mark.parametrize("variant", VARIANTS)
def test_convolution_of_groups(variant: str):
    types = "tensor<3x6x9x11xf32>, tensor<8x3x3x2xf32>"
    judge(text("conv", types, "tensor<3x8x4x12xf32>", CONV), variant)


def test_rows_of_a_batch_and_what_is_fused():
    source = """func.func @main(%x: tensor<?x60xf32>, %w: tensor<60x45xf32>, %b: tensor<45xf32>)
    -> tensor<?x45xf32> {
  %y = graph.gemm %x, %w, %b {trans_a = false, trans_b = false, alpha = 1.0 : f64, beta = 1.0 : f64}
    : (tensor<?x60xf32>, tensor<60x45xf32>, tensor<45xf32>) -> tensor<?x45xf32>
  %z = graph.relu %y : (tensor<?x45xf32>) -> tensor<?x45xf32>
  func.return %z : tensor<?x45xf32>
}"""
    judge(source, "panel_product.wide")


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_products_in_emulation(data: st.DataObject):
    """Nothing is read or written outside of what there is."""
    m, n, k = (data.draw(st.integers(2, most)) for most in (20, 40, 12))
    tasks = data.draw(st.integers(1, 3))
    source = gemm(m, n, k, data.draw(st.booleans()), data.draw(st.booleans()))
    module = irkit.parse(source)
    arrays = drawn(module, m * n)
    (want,) = run_module(module, WeightStore(), arrays)
    variant = data.draw(st.sampled_from(VARIANTS))
    with only(variant):
        info = ModelInfo("network", ("x0", "x1"), ("y",), source="test")
        (op,) = roperators(ImportedModel(irkit.parse(source), WeightStore(), info), f"cpu{tasks}")
    kernel = registry.find("cpu", variant)
    got = np.full(want.size, np.nan, np.float32)
    binding = bind(op, find_root(op.body.block), kernel, 1)
    for task in range(op.tasks):
        emulate(kernel, binding, [*arrays, got], task, op.tasks, 1)
    np.testing.assert_allclose(got.reshape(want.shape), want, rtol=1e-4, atol=1e-4)


def family(source: str) -> str:
    """The family whose rKernel a CPU takes for a product."""
    ir = irkit.compile(irkit.parse(source), "cpu", device="cpu2", cache=False).ir("schedule")
    return re.findall(r'rkernel = "(\w+)\.', ir)[0]


def root(source: str) -> Any:
    info = ModelInfo("network", ("x0", "x1"), ("y",), source="test")
    (op,) = roperators(ImportedModel(irkit.parse(source), WeightStore(), info))
    return find_root(op.body.block)


def test_columns_are_those_that_fill_tiles():
    few, many = (
        as_panel_product(root(gemm(*s, 64, True, False))) for s in ((256, 100), (100, 256))
    )
    assert (few.transposed, few.extent(few.columns)) == (True, 256)
    assert (many.transposed, many.extent(many.columns)) == (False, 256)
    same = as_panel_product(root(gemm(64, 64, 64, True, True)))
    assert not same.transposed


@pytest.mark.parametrize("sizes", [(100, 10, 1000), (300, 7, 2000)])
def test_transposed_factors_are_not_read_one_by_one(sizes: tuple[int, int, int]):
    program = irkit.compile(
        irkit.parse(gemm(*sizes, True, True)), "cpu", device="cpu2", cache=False
    )
    assert "gemm.dot" not in program.ir()


def test_windows_of_an_image_are_not_copied_pixel_by_pixel():
    """A few filters over many pixels: packed, they would be columns, and panels of eight pixels the rows."""
    source = """
func.func @main(%x: tensor<1x32x64x64xf32>) -> tensor<1x3x128x128xf32> {
  %w = arith.constant dense<0.5> : tensor<32x3x4x4xf32>
  %y = graph.conv_transpose %x, %w {strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>,
       dilations = array<i64: 1, 1>, group = 1 : i64, output_padding = array<i64: 0, 0>}
       : (tensor<1x32x64x64xf32>, tensor<32x3x4x4xf32>) -> tensor<1x3x128x128xf32>
  return %y : tensor<1x3x128x128xf32>
}
"""
    ir = irkit.compile(irkit.parse(source), "cpu", device="cpu2", cache=False).ir()
    assert "planes.wide" in ir or "product.wide" in ir
    assert "panel_product" not in ir
