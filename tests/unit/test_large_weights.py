"""Models with weights of a size that ONNX's checker and shape inference do not get to see."""

# pyright: basic

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import irkit
from irkit.errors import InvalidModelError
from irkit.frontends.onnx.without_weights import LARGEST, without_weights

SIDE = int(LARGEST**0.5) + 1
RNG = np.random.default_rng(2)


def product(weight):
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, (3, SIDE)) for n in ("x", "y")]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["z"]),
        helper.make_node("Add", ["z", "b"], ["y"]),
    ]
    small = numpy_helper.from_array(np.ones(SIDE, np.float32), "b")
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], [weight, small])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def large():
    return (RNG.standard_normal((SIDE, SIDE)) / 8).astype(np.float32)


def test_all_but_their_numbers_is_copied():
    w = large()
    model = product(numpy_helper.from_array(w, "w"))
    model.metadata_props.add(key="k", value="v")
    before = model.SerializeToString()
    for shapes in (True, False):
        light, hidden = without_weights(model, shapes)
        assert [t.name for t in hidden] == ["w"]
        assert [t.name for t in light.graph.initializer] == ["w", "b"]
        assert len(light.SerializeToString()) < 4 * SIDE + 2000
        light.graph.initializer[0].CopyFrom(model.graph.initializer[0])
        assert light.SerializeToString() == before
    assert without_weights(ModelProto()) == (ModelProto(), [])
    x = RNG.standard_normal((3, SIDE)).astype(np.float32)
    np.testing.assert_allclose(irkit.compile(model, target="cpu")(x), x @ w + 1, atol=1e-4)


def test_bad_ones_are_refused():
    short = numpy_helper.from_array(large(), "w")
    short.raw_data = short.raw_data[:-4]
    with pytest.raises(InvalidModelError, match=r"not a valid ONNX model: .*w.* too small"):
        irkit.compile(product(short), target="cpu")
    twice = numpy_helper.from_array(large(), "w")
    twice.float_data.extend([1.0])
    with pytest.raises(InvalidModelError, match=r"not a valid ONNX model: .*w"):
        irkit.compile(product(twice), target="cpu")
    # Of so many elements there are few bytes.
    endless = TensorProto(name="w", data_type=1, dims=[1 << 40, SIDE], raw_data=b"1234")
    with pytest.raises(InvalidModelError, match=r"not a valid ONNX model: .*w"):
        irkit.compile(product(endless), target="cpu")
    other = numpy_helper.from_array(np.ones((SIDE, SIDE + 1), np.float32), "w")
    with pytest.raises(InvalidModelError, match="not a valid ONNX model"):
        irkit.compile(product(other), target="cpu")
