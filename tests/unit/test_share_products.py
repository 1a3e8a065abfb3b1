"""share-products: the parts of products, and their sum, are what the statement says."""

from __future__ import annotations

import re

import numpy as np
import pytest

import irkit
from irkit.context import IrkitContext
from irkit.dialects.graph import ExpressionOp
from irkit.dialects.types import tensor_type
from irkit.interp.graph import run_graph
from irkit.passes.graph.differentiate import Differentiate
from irkit.passes.graph.share_products import ShareProducts
from irkit.weights import WeightStore


def text(statement: str, d: str, x: str, y: str, order: str = "") -> str:
    """A statement of two tensors, the first of which may be a transposed one."""
    given, turned = d, ""
    if order:
        sizes = d.split("x")
        places = [int(n) for n in order.split(",")]
        before = [sizes[places.index(n)] for n in range(len(places))]
        given = "x".join([*before, sizes[-1]])
        permutation = f"{{permutation = array<i64: {order}>}}"
        turned = f"%t = graph.transpose %d {permutation} : (tensor<{given}>) -> tensor<{d}>"
    return f"""func.func @main(%d: tensor<{given}>, %x: tensor<{x}>) -> tensor<{y}> {{
      {turned}
      %y = graph.expression {"%t" if order else "%d"}, %x {{text = "{statement}"}}
        : (tensor<{d}>, tensor<{x}>) -> tensor<{y}>
      func.return %y : tensor<{y}>
    }}"""


WINDOWS = "W(m, t) +=! D(m, n, h) * X(n, h + t) where t in 0:3"
CASES = {
    "filters": (text(WINDOWS, "8x64x100xf32", "64x102xf32", "8x3xf32"), "part, m, n, h"),
    "transposed": (
        text(WINDOWS, "8x64x100xf64", "64x102xf64", "8x3xf64", "1,0,2"), "part, m, n, h"
    ),
    "one row a part": (
        text(WINDOWS, "8x64x1000xf32", "64x1002xf32", "8x3xf32", "1,0,2"), "part, m, n, h"
    ),
    "one factor alone": (
        text("C(m, j) +=! A(m, k) * B(k, j)", "5x6000xf32", "6000x7xf32", "5x7xf32"), "part, m, k"
    ),
    "names that are taken": (
        text("C(part, j) +=! A(part, k) * B(k, j)", "5x6000xf32", "6000x7xf32", "5x7xf32"),
        "part_, part, k",
    ),
}  # fmt: skip
WHOLE = {
    "many results": text("C(m, j) +=! A(m, k) * B(k, j)", "900x512xf32", "512x900xf32", "900x900xf32"),
    "few terms": text("C(m, j) +=! A(m, k) * B(k, j)", "5x300xf32", "300x7xf32", "5x7xf32"),
    "a window alone": text("C(m) +=! A(m, h) * B(h + t)", "5x9000xf32", "9004xf32", "5xf32"),
    "a largest product": text("C(m, j) max=! A(m, k) * B(k, j)", "5x6000xf32", "6000x7xf32", "5x7xf32"),
    "a number": text("C(m, j) +=! A(m, k) * B(k, j) * k", "5x6000xf32", "6000x7xf32", "5x7xf32"),
}  # fmt: skip


def shared(module: object, device: str = "h200") -> list[str]:
    ShareProducts(device=device).apply(IrkitContext(), module)  # type: ignore[arg-type]
    module.verify()  # type: ignore[attr-defined]
    return [op.text.data for op in module.walk() if isinstance(op, ExpressionOp)]  # type: ignore[attr-defined]


def computed(module: object, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    (main,) = module.ops  # type: ignore[attr-defined]
    given = [
        rng.standard_normal(a.type.get_shape()).astype(f"float{str(a.type.element_type)[1:]}")
        for a in main.body.block.args
    ]
    return run_graph(module, WeightStore(), given)[0]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", CASES)
def test_parts_are_the_whole(name: str) -> None:
    source, read = CASES[name]
    module = irkit.parse(source)
    before = computed(module)
    first, last = shared(module)
    assert f"({read})" in first
    assert "_parts(" in last
    np.testing.assert_allclose(computed(module), before, rtol=1e-3, atol=1e-2)
    assert shared(module) == [first, last]


@pytest.mark.parametrize("name", WHOLE)
def test_what_stays(name: str) -> None:
    module = irkit.parse(WHOLE[name])
    before = str(module)
    shared(module)
    assert str(module) == before


def gemm(a: str, b: str, y: str, element: str = "f32", alpha: float = 1.0) -> str:
    types = [f"tensor<{shape}x{element}>" for shape in (a, b, y)]
    how = f"{{trans_a = true, trans_b = false, alpha = {alpha} : f64, beta = 0.0 : f64}}"
    return f"""func.func @main(%a: {types[0]}, %b: {types[1]}) -> {types[2]} {{
      %y = graph.gemm %a, %b {how} : ({types[0]}, {types[1]}) -> {types[2]}
      func.return %y : {types[2]}
    }}"""


@pytest.mark.parametrize(
    ("source", "steps"),
    [
        (gemm("4096x64", "4096x40", "64x40"), 2),
        (gemm("129x400", "129x300", "400x300", "f64"), 1),
        (gemm("127x400", "127x400", "400x400"), 0),
        (gemm("4096x10", "4096x7", "10x7"), 0),
        (gemm("256x400", "256x300", "400x300", alpha=0.5), 0),
        (gemm("256x400", "256x300", "400x300", "i32"), 0),
    ],
)
def test_the_gradient_of_a_weight(source: str, steps: int) -> None:
    module = irkit.parse(source)
    integer = "i32" in source
    before = computed(module) if not integer else None
    assert len(shared(module)) == steps
    if before is not None:
        np.testing.assert_allclose(computed(module), before, rtol=1e-3, atol=1e-3)


def test_a_cpu_sums_in_order() -> None:
    module = irkit.parse(CASES["filters"][0])
    before = str(module)
    shared(module, "cpu2")
    assert str(module) == before


def test_the_gradient_of_filters_is_a_tiled_product_of_many_rtasks() -> None:
    source = """func.func @main(%x: tensor<64x16x14x14xf32>, %w: tensor<32x16x3x3xf32>) -> tensor<f32> {
      %y = graph.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>,
        dilations = array<i64: 1, 1>, group = 1 : i64}
        : (tensor<64x16x14x14xf32>, tensor<32x16x3x3xf32>) -> tensor<64x32x14x14xf32>
      %z = graph.mul %y, %y : (tensor<64x32x14x14xf32>, tensor<64x32x14x14xf32>) -> tensor<64x32x14x14xf32>
      %l = graph.reduce %z {kind = "sum", axes = array<i64: 0, 1, 2, 3>, keepdims = false}
        : (tensor<64x32x14x14xf32>) -> tensor<f32>
      func.return %l : tensor<f32>
    }"""
    module = irkit.parse(source)
    Differentiate(with_respect_to=("w",)).apply(IrkitContext(), module)
    found = irkit.compile(module, device="h200", cache=False)
    used = re.findall(r"rkernel = \"((?:product|planes)\.\w+)\"", found.ir("schedule"))
    assert len(used) == 2
    report = found.report()["roperators"].values()
    assert (
        min(r["rtasks"] for r in report if r["rkernel"].split(".")[0] in ("product", "planes")) > 31
    )


def test_an_image_is_a_part_where_a_block_has_its_results() -> None:
    """Without a copy of a factor: of one image more than one dimension is none."""
    statement = "W(m, c, t) +=! D(n, m, h) * X(n, c, h + t) where t in 0:3"
    for size, turned in ((100, True), (200, False)):
        module = irkit.parse(
            text(statement, f"64x8x{size}xf32", f"64x16x{size + 2}xf32", "8x16x3xf32")
        )
        shared(module)
        (parts, _) = (op for op in module.walk() if isinstance(op, ExpressionOp))
        assert (tensor_type(parts.results[0]).get_shape()[0] == 64) != turned
