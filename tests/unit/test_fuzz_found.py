"""What fuzzers broke in compiled modules and at import; for the rest see tests/filecheck/regress."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

import irkit
from irkit.driver.compiler.models import parse
from irkit.errors import InvalidModelError, UnsupportedError
from irkit.frontends import import_model
from irkit.interp import run_module

PADDED = """
func.func @main(%x: tensor<2x3xi16>) -> tensor<2x4xui64> {
  %0 = graph.cast %x {to = ui64} : (tensor<2x3xi16>) -> tensor<2x3xui64>
  %1 = graph.pad %0 {low = array<i64: 0, 1>, high = array<i64: 0, 0>, value = 1.0 : f64}
      : (tensor<2x3xui64>) -> tensor<2x4xui64>
  func.return %1 : tensor<2x4xui64>
}
"""
JOINED = """
func.func @main(%x: tensor<2x3xi16>) -> tensor<2x6xui64> {
  %0 = graph.cast %x {to = ui64} : (tensor<2x3xi16>) -> tensor<2x3xui64>
  %1 = graph.not %0 : (tensor<2x3xui64>) -> tensor<2x3xui64>
  %2 = graph.concat(%1, %0) {axis = 1 : i64}
      : (tensor<2x3xui64>, tensor<2x3xui64>) -> tensor<2x6xui64>
  func.return %2 : tensor<2x6xui64>
}
"""


@pytest.mark.parametrize("text", [PADDED, JOINED], ids=["pad", "concat"])
def test_large_unsigned_integers_stay_whole(text, monkeypatch, tmp_path):
    """A variable of uint64 that is int64 elsewhere is a float to Numba: 2^64 - 2 was something else."""
    monkeypatch.setenv("IRKIT_CACHE_DIR", str(tmp_path))
    x = np.array([[-2, 3, 0], [7, -1, -32768]], np.int16)
    module = parse(text)
    (want,) = run_module(module, {}, [x])
    (got,) = irkit.compile(module, target="cpu", cache=False).run([x])
    np.testing.assert_array_equal(got, want)
    assert got.dtype == want.dtype


def test_a_graph_whose_name_is_no_text():
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in "xy"]
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])], "grph", *([v] for v in values)
    )
    data = helper.make_model(graph).SerializeToString().replace(b"grph", b"\xadrph")
    with pytest.raises(InvalidModelError):
        import_model(ModelProto.FromString(data))


def test_a_dimension_that_is_inserted_twice():
    """It was a StopIteration."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    # What is computed ONNX's own check does not see.
    b = helper.make_tensor("b", TensorProto.INT64, [2], [1, -3])
    nodes = [
        helper.make_node("Mul", ["b", "b"], ["squares"]),
        helper.make_node("Sub", ["squares", "squares"], ["zeros"]),
        helper.make_node("Unsqueeze", ["x", "zeros"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "g", [x], [y], [b])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    with pytest.raises(UnsupportedError, match=r"axes = \[0, 0\]: one dimension is named twice"):
        import_model(model)
