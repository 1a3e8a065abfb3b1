"""`irkit.accuracy`: errors per output against strict arithmetic, overflows of float16 by name."""

from __future__ import annotations

import io
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import irkit
from irkit.dialects.precision import Precision, rounded
from irkit.driver.tools.run import RunTool


def network(dtype: type, scale: float) -> onnx.ModelProto:
    """y = relu(x @ w1) @ w2, z = clip(relu(x @ w1), 0, 6); node names 'first' and 'second'."""
    code = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    random = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array((random.standard_normal(s) * scale).astype(dtype), n)
        for n, s in (("w1", (16, 24)), ("w2", (24, 5)))
    ]
    limits = [numpy_helper.from_array(np.array(v, dtype), n) for n, v in (("lo", 0), ("hi", 6))]
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["a"], name="first"),
        helper.make_node("Relu", ["a"], ["r"], name="relu"),
        helper.make_node("Clip", ["r", "lo", "hi"], ["z"], name="clip"),
        helper.make_node("MatMul", ["r", "w2"], ["y"], name="second"),
    ]
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", code, ["n", 16])],
        [helper.make_tensor_value_info(n, code, ["n", w]) for n, w in (("y", 5), ("z", 24))],
        [*weights, *limits],
    )
    opset = 22 if dtype is ml_dtypes.bfloat16 else 17
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def rows(dtype: type, seed: int = 1):
    return np.random.default_rng(seed).standard_normal((4, 16)).astype(dtype)


@pytest.mark.parametrize("name", ["tf32", "bf16", "f16"])
def test_errors_are_those_of_rounded_factors(name: str):
    """On a CPU nothing is lost, which is the report's news; the numbers are those of the two programs."""
    report = irkit.accuracy(
        network(np.float32, 0.3), [rows(np.float32)], precision=name, device="cpu1"
    )
    assert list(report.outputs) == ["y", "z"]
    assert report.overflow is None
    model, x = network(np.float32, 0.3), rows(np.float32)
    low = irkit.compile(model, device="cpu1", precision=name).run([x])
    high = irkit.compile(model, device="cpu1").run([x])
    for found, got, want in zip(report.outputs.values(), low, high, strict=True):
        assert found.absolute == np.abs(got.astype(np.float64) - want).max()
        assert found.largest == np.abs(want).max()
    assert report.products == ("float32",)
    assert "all products are in float32" in str(report)
    assert irkit.accuracy(model, [x], device="cpu1").products == ()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_models_of_16_bit_floats_are_held_against_float32(dtype: type):
    x = rows(dtype)
    report = irkit.accuracy(network(dtype, 0.3), {"x": x}, device="cpu1")
    w1, w2 = (
        numpy_helper.to_array(w).astype(np.float64)
        for w in network(dtype, 0.3).graph.initializer[:2]
    )
    want = np.maximum(x.astype(np.float64) @ w1, 0) @ w2
    got = irkit.compile(network(dtype, 0.3), device="cpu1").run([x])[0].astype(np.float64)
    found = report.outputs["y"]
    assert found.absolute == pytest.approx(np.abs(got - want).max(), rel=1e-3)
    assert found.relative == pytest.approx(np.abs((got - want) / want).max(), rel=1e-3)
    assert 0 < found.to_largest < 0.02
    assert (found.lost, found.elements) == (0, 20)
    assert report.overflow is None


def test_the_first_op_that_overflows_is_named():
    """Clip hides it from output z, which is wrong all the same."""
    x = rows(np.float16) * np.float16(200)
    report = irkit.accuracy(network(np.float16, 100.0), [x], device="cpu1")
    assert report.overflow is not None
    assert report.overflow.op.startswith("node 'first' (graph.")
    assert set(report.overflow.outputs) == {"y", "z"}
    w1 = numpy_helper.to_array(network(np.float16, 100.0).graph.initializer[0]).astype(np.float64)
    assert report.overflow.largest == pytest.approx(
        np.abs(x.astype(np.float64) @ w1).max(), rel=1e-4
    )
    assert report.outputs["y"].lost > 0
    assert report.outputs["z"].lost == 0
    text = str(report)
    assert "overflow in node 'first'" in text
    assert "'y', 'z'" in text


def test_an_overflow_of_a_factor_is_found_where_f16_is_asked_for():
    """The interpreters round factors; a CPU computes more exactly, and loses nothing."""
    x = rows(np.float32) * np.float32(1e6)
    report = irkit.accuracy(network(np.float32, 0.3), [x], precision="f16", device="cpu1")
    assert report.overflow is not None
    assert report.overflow.op.startswith("node 'first'")
    assert report.overflow.largest >= np.abs(x).max()
    assert not np.isfinite(rounded(x, Precision.F16)).all()


def test_random_inputs_and_sizes():
    report = irkit.accuracy(network(np.float16, 0.3), batch=7, seed=3, device="cpu1")
    assert report.outputs["y"].elements == 35
    assert report.outputs["y"].absolute > 0


def test_bad_requests_are_one_clear_error():
    model = network(np.float32, 0.3)
    with pytest.raises(irkit.UnsupportedError, match="precision='half': expected one of"):
        irkit.accuracy(model, precision="half")
    with pytest.raises(irkit.InvalidInputError, match="expected 1 inputs, got 2"):
        irkit.accuracy(model, [rows(np.float32)] * 2, device="cpu1")
    with pytest.raises(irkit.InvalidInputError, match="expected inputs x; got q"):
        irkit.accuracy(model, {"q": rows(np.float32)}, device="cpu1")
    with pytest.raises(irkit.InvalidInputError, match="'x'"):
        irkit.accuracy(model, [rows(np.float32)[:, :3]], device="cpu1")


STATE = """
func.func @main(%x: tensor<2x3xf32>, %h: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
    attributes {irkit.state = array<i64: 1, 1>} {
  %0 = graph.add %x, %h : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %0, %0 : tensor<2x3xf32>, tensor<2x3xf32>
}
"""


def test_state_is_an_argument_and_a_result():
    report = irkit.accuracy(irkit.parse(STATE), device="cpu1")
    assert [o.absolute for o in report.outputs.values()] == [0.0, 0.0]


def run(*arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    status = RunTool(io.StringIO(), out, err).main(arguments)
    return status, out.getvalue(), err.getvalue()


def test_command_line(tmp_path: Path):
    path = tmp_path / "model.onnx"
    onnx.save(network(np.float16, 100.0), path)
    np.savez(tmp_path / "x.npz", rows(np.float16) * np.float16(200))
    status, text, _ = run(
        str(path), "--accuracy", "--device=cpu1", f"--inputs={tmp_path / 'x.npz'}"
    )
    assert status == 0
    assert "overflow in node 'first'" in text
    status, _, errors = run(str(path), "--accuracy", "--level=graph")
    assert status == 1
    assert "--accuracy and --precision need --level=numba" in errors
    status, _, errors = run("-", "--accuracy")
    assert (status, "need a file, not stdin" in errors) == (1, True)
    status, _, errors = run(str(path), "--accuracy", "--precision=half", "--device=cpu1")
    assert (status, "precision='half'" in errors) == (1, True)
