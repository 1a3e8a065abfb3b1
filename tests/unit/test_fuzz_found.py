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


def one_node(op, opset, arrays, **attributes):
    """A model of one node over inputs like `arrays`."""
    node = helper.make_node(op, list(arrays), ["y"], **attributes)
    given = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in arrays.items()
    ]
    y = helper.make_tensor_value_info("y", given[0].type.tensor_type.elem_type, None)
    graph = helper.make_graph([node], "g", given, [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


ROW = np.ones((2, 4), np.float32)
HEADS = np.ones((1, 2, 3, 4), np.float32)
ANGLES = np.ones((1, 3, 2), np.float32)


@pytest.mark.parametrize(
    ("op", "opset", "arrays", "attribute", "reason"),
    [
        ("Celu", 12, {"x": ROW}, {"alpha": 0.0}, "alpha = 0.0: a finite number other than 0"),
        ("Celu", 12, {"x": ROW}, {"alpha": np.nan}, "alpha = nan: a finite number other than 0"),
        ("Celu", 12, {"x": ROW}, {"alpha": np.inf}, "alpha = inf: a finite number other than 0"),
        ("Selu", 12, {"x": ROW}, {"alpha": np.inf}, "alpha = inf: a finite number is needed"),
        ("Attention", 23, dict.fromkeys("qkv", HEADS), {"softcap": -1.0}, "softcap = -1.0: 0 or more"),
        ("Attention", 23, dict.fromkeys("qkv", HEADS), {"softcap": np.nan}, "softcap = nan: 0 or more"),
        ("Attention", 23, dict.fromkeys("qkv", HEADS), {"scale": -1.0}, "scale = -1.0: 0 or more"),
        ("Attention", 23, dict.fromkeys("qkv", HEADS), {"scale": np.nan}, "scale = nan: 0 or more"),
        ("Attention", 23, dict.fromkeys("qkv", HEADS), {"is_causal": 2}, "is_causal = 2: expected 0 or 1"),
        (
            "Attention",
            23,
            dict.fromkeys("qkv", HEADS),
            {"qk_matmul_output_mode": -1},
            "qk_matmul_output_mode = -1: 0, 1, 2 or 3 is needed",
        ),
        (
            "RotaryEmbedding",
            23,
            {"x": HEADS, "c": ANGLES, "s": ANGLES},
            {"interleaved": -1},
            "interleaved = -1: expected 0 or 1",
        ),
    ],
)  # fmt: skip
def test_attributes_that_runtimes_take_in_several_ways(op, opset, arrays, attribute, reason):
    with pytest.raises(UnsupportedError, match=rf"\({op}\): {reason}"):
        import_model(one_node(op, opset, arrays, **attribute))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_integers_to_negative_powers(dtype):
    """They are truncated; of 0, which is none, ONNX says nothing."""
    x, y = np.array([[-2, -1, 0, 1, 3], [-1, -3, -2, -1, -2]], dtype)
    imported = import_model(one_node("Pow", 18, {"x": x, "e": y}))
    (found,) = run_module(imported.module, imported.weights, [x, y])
    assert found.dtype == dtype
    assert found.tolist() == [0, -1, 0, 1, 0]
