"""Precision of contractions: how factors are rounded, at each level, and what `irkit.compile` takes."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.parser import Parser

import irkit
from irkit.context import IrkitContext
from irkit.dialects.precision import NAMES, Precision, precision_of, rounded
from irkit.dialects.task import ROperatorOp
from irkit.driver.compiler.report import roperator_facts
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.interp import run_module

LOW = ("tf32", "bf16", "f16")
EDGES = np.array(
    [0, 1, 0x7F800000, 0x7FC00001, 0x7F800001, 0x7F7FFFFF, 0x007FFFFF, 0x00800000, 0x477FEFFF, 0x477FF000],
    np.uint32,
)  # fmt: skip


def _words(seed: int) -> np.ndarray:
    """float32 of random bits, and of those beside ties: all exponents, all kinds of low bits."""
    random = np.random.default_rng(seed)
    bits = random.integers(0, 2**32, 200_000, np.uint32)
    low = random.choice(
        np.array([0, 1, 0xFFF, 0x1000, 0x1001, 0x7FFF, 0x8000, 0x8001], np.uint32), 200_000
    )
    near = (bits & np.uint32(0xFFFF0000)) | low
    return np.concatenate([bits, near, EDGES, EDGES | np.uint32(1 << 31)]).view(np.float32)


def _tf32(x: float) -> float:
    """The nearest number with 11 significant bits and fp32's exponents; of two as near, the even one."""
    exact = Fraction(x)
    exponent = max(np.frexp(x)[1] - 11, -126 - 10)
    return float(round(exact / Fraction(2) ** int(exponent)) * Fraction(2) ** int(exponent))


def test_bf16_is_rounded_as_ml_dtypes_rounds() -> None:
    x = _words(1)
    with np.errstate(all="ignore"):
        want = x.astype(ml_dtypes.bfloat16).astype(np.float32)
    np.testing.assert_array_equal(rounded(x, Precision.BF16), want)


def test_f16_is_rounded_as_numpy_rounds() -> None:
    x = _words(2)
    with np.errstate(all="ignore"):
        want = x.astype(np.float16).astype(np.float32)
    np.testing.assert_array_equal(rounded(x, Precision.F16), want)


def test_tf32_is_rounded_to_nearest_even() -> None:
    x = _words(3)
    x = x[np.isfinite(x)][::80]
    with np.errstate(over="ignore"):
        want = np.array([_tf32(float(v)) for v in x], np.float64).astype(np.float32)
    np.testing.assert_array_equal(rounded(x, Precision.TF32), want)


def test_tf32_keeps_nan_and_infinity() -> None:
    x = EDGES.view(np.float32)
    got = rounded(x, Precision.TF32)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(x))
    assert got[2] == np.inf
    assert rounded(np.array(3.4028235e38, np.float32), Precision.TF32) == np.inf


def test_strict_precisions_leave_factors() -> None:
    x = _words(4)
    for precision in (Precision.FLOAT32, Precision.IEEE):
        assert rounded(x, precision) is x
    wide = np.array([1 / 3])
    assert rounded(wide, Precision.BF16) is wide


MODEL = """
func.func @main(%x: tensor<?x6xf32>, %w: tensor<6x5xf32>, %h: tensor<?x4xf32>, %wi: tensor<12x5xf32>,
    %r: tensor<12x4xf32>, %b: tensor<16xf32>) -> tensor<?x4xf32> attributes {{irkit.precision = "{0}"}} {{
  %0 = graph.gemm %x, %w {{trans_a = false, trans_b = false, alpha = 0.7 : f64, beta = 1.0 : f64}}
    : (tensor<?x6xf32>, tensor<6x5xf32>) -> tensor<?x5xf32>
  %1 = graph.gru_cell %0, %h, %wi, %r, %b {{linear_before_reset = {1}}}
    : (tensor<?x5xf32>, tensor<?x4xf32>, tensor<12x5xf32>, tensor<12x4xf32>, tensor<16xf32>)
    -> tensor<?x4xf32>
  func.return %1 : tensor<?x4xf32>
}}
"""


def _parsed(text: str) -> tuple[IrkitContext, ModuleOp]:
    ctx = IrkitContext()
    register_dialects(ctx)
    found = Parser(ctx, text).parse_module()
    return ctx, found


def _inputs(seed: int) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    shapes = ((3, 6), (6, 5), (3, 4), (12, 5), (12, 4), (16,))
    return [random.standard_normal(s).astype(np.float32) for s in shapes]


@pytest.mark.parametrize("before", ["true", "false"])
@pytest.mark.parametrize("name", NAMES)
def test_every_level_rounds_alike(name: str, before: str) -> None:
    inputs = _inputs(5)
    _, strict = _parsed(MODEL.format("float32", before))
    plain = run_module(strict, {}, inputs)[0]
    ctx, module = _parsed(MODEL.format(name, before))
    run_level(ctx, module, "graph", "cpu2")
    want = run_module(module, ctx.weights, inputs)[0]
    for level in ("tensor", "task"):
        run_level(ctx, module, level, "cpu2")
        np.testing.assert_allclose(
            run_module(module, ctx.weights, inputs)[0], want, rtol=0, atol=1e-6
        )
    asked = {precision_of(op) for op in module.walk() if isinstance(op, linalg.GenericOp)}
    assert asked == {Precision.FLOAT32, Precision(name)}
    # Rounding shows, and is of the size that the format has.
    error = float(np.abs(want - plain).max())
    roundoff = Precision(name).unit_roundoff
    assert (error == 0) == (roundoff == 0)
    assert error <= 40 * roundoff


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(LOW), st.integers(1, 40))
def test_a_product_is_the_product_of_rounded_factors(seed: int, name: str, k: int) -> None:
    random = np.random.default_rng(seed)
    a, b = (random.standard_normal(s).astype(np.float32) * 100 for s in ((2, k), (k, 3)))
    text = f"""
    func.func @main(%a: tensor<2x{k}xf32>, %b: tensor<{k}x3xf32>) -> tensor<2x3xf32> {{
      %y = graph.matmul %a, %b {{irkit.precision = "{name}"}}
        : (tensor<2x{k}xf32>, tensor<{k}x3xf32>) -> tensor<2x3xf32>
      func.return %y : tensor<2x3xf32>
    }}"""
    ctx, module = _parsed(text)
    exact = [rounded(v, Precision(name)).astype(np.float64) for v in (a, b)]
    want, size = exact[0] @ exact[1], np.abs(exact[0]) @ np.abs(exact[1])
    for level in ("graph", "tensor", "task"):
        run_level(ctx, module, level, "cpu2")
        got = run_module(module, ctx.weights, [a, b])[0]
        assert np.all(np.abs(got - want) <= size * k * 2.0**-24)


def _network() -> onnx.ModelProto:
    random = np.random.default_rng(6)
    w = onnx.numpy_helper.from_array(random.standard_normal((8, 4)).astype(np.float32), "w")
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 8])
    y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", 4])
    node = onnx.helper.make_node("MatMul", ["x", "w"], ["y"])
    graph = onnx.helper.make_graph([node], "net", [x], [y], [w])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])


@pytest.mark.parametrize("name", NAMES)
def test_a_program_says_its_precision_and_runs(name: str) -> None:
    model = _network()
    program = irkit.compile(model, "cpu", precision=name, cache=False)
    x = np.random.default_rng(7).standard_normal((3, 8)).astype(np.float32)
    exact = x.astype(np.float64) @ onnx.numpy_helper.to_array(model.graph.initializer[0])
    np.testing.assert_allclose(program(x), exact, atol=60 * Precision(name).unit_roundoff + 1e-5)
    said = f'irkit.precision = "{name}"' in program.ir("schedule")
    assert said == (name != "float32")
    found = program.report()["roperators"]["gemm_0"]
    less = {"allowed": name, "products": "float32"}
    assert (less.items() <= found.items()) == (name in LOW)
    assert ("products" in found) == (name in LOW)


WIDE = """
func.func @main(%x: tensor<2048x512xf32>, %w: tensor<512x2048xf32>) -> tensor<2048x2048xf32>
    attributes {irkit.precision = "PRECISION"} {
  %y = graph.matmul %x, %w : (tensor<2048x512xf32>, tensor<512x2048xf32>) -> tensor<2048x2048xf32>
  func.return %y : tensor<2048x2048xf32>
}
"""


@pytest.mark.parametrize("name", NAMES)
def test_a_report_says_what_products_on_tensor_cores_are_in(name: str) -> None:
    ctx = IrkitContext()
    register_dialects(ctx)
    module = Parser(ctx, WIDE.replace("PRECISION", name)).parse_module()
    for level in ("graph", "tensor", "task", "schedule"):
        run_level(ctx, module, level, "a100")
    found = roperator_facts(op for op in module.ops if isinstance(op, ROperatorOp))
    facts = next(f for f in found.values() if f["rkernel"].startswith("product."))
    less = {"allowed": name, "products": name}
    assert (less.items() <= facts.items()) == (name in LOW)
    assert ("products" in facts) == (name in LOW)


@pytest.mark.parametrize("name", ["half", "float16", 16, ("tf32",)])
def test_other_words_are_refused(name: object) -> None:
    with pytest.raises(
        irkit.UnsupportedError, match=r"precision=.*expected one of float32, ieee, tf32"
    ):
        irkit.compile(_network(), "cpu", precision=name)  # pyright: ignore[reportArgumentType]
