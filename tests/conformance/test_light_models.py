"""Networks of the onnx package, without weights to download: all weights are one number each.

With the file's own weights every output is nearly the same, so that a wrong pad would not show; with
weights of many values ONNX Runtime is the judge.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, helper, numpy_helper

import irkit
from irkit.frontends.onnx import import_onnx
from irkit.interp.graph import run_graph

FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def path_of(name):
    return FOLDER / f"light_{name}.onnx"


def inputs_of(model):
    """What the onnx package made the expected output from."""
    known = {i.name for i in model.graph.initializer}
    feeds = {}
    for value in model.graph.input:
        if value.name not in known:
            shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
            count = np.prod(shape)
            feeds[value.name] = (np.arange(count) / count).astype(np.float32).reshape(shape)
    return feeds


def expected_of(name):
    return numpy_helper.to_array(onnx.load_tensor(str(FOLDER / f"light_{name}_output_0.pb")))


def varied(model: ModelProto) -> ModelProto:
    """The model with random weights of about the size that keeps activations in range."""
    rng = np.random.default_rng(3)
    known = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    for node in list(model.graph.node):
        if node.op_type != "ConstantOfShape":
            continue
        shape = known[node.input[0]]
        fan_in = max(np.prod(shape[1:]), 1)
        array = rng.standard_normal(shape) * (2 / fan_in) ** 0.5 if len(shape) > 1 else None
        if array is None:
            array = rng.uniform(0.5, 1.5, shape)
        model.graph.initializer.append(
            numpy_helper.from_array(array.astype(np.float32), node.output[0])
        )
        model.graph.node.remove(node)
    # From IR version 4 on, initializers are no inputs.
    model.ir_version = 8
    known = {i.name for i in model.graph.initializer}
    inputs = [v for v in model.graph.input if v.name not in known]
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    softmax = model.graph.node[-1]
    assert softmax.op_type == "Softmax"
    shape = [d.dim_value for d in model.graph.output[0].type.tensor_type.shape.dim]
    # Logits tell more than probabilities, most of which are 0.
    model.graph.node.remove(softmax)
    del model.graph.output[:]
    model.graph.output.append(
        helper.make_tensor_value_info(softmax.input[0], onnx.TensorProto.FLOAT, shape)
    )
    return model


def test_squeezenet_compiled():
    (x,) = inputs_of(onnx.load(path_of("squeezenet"))).values()
    model = varied(onnx.load(path_of("squeezenet")))
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"data_0": x})
    y = irkit.compile(model, target="cpu")(x)
    np.testing.assert_allclose(y, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("name", ["bvlc_alexnet", "resnet50"])
def test_many_weights(name):
    model = varied(onnx.load(path_of(name)))
    (x,) = feeds = list(inputs_of(model).values())
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (expected,) = session.run(None, {session.get_inputs()[0].name: x})
    imported = import_onnx(model)
    (y,) = run_graph(imported.module, imported.weights, feeds)
    np.testing.assert_allclose(y, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("name", ["bvlc_alexnet", "resnet50", "squeezenet"])
def test_equal_weights_are_kept_once(name):
    model = onnx.load(path_of(name))
    imported = import_onnx(model)
    arrays = list(imported.weights.values())
    assert len(arrays) == len({(a.shape, a.flat[0]) for a in arrays})
    (y,) = run_graph(imported.module, imported.weights, list(inputs_of(model).values()))
    np.testing.assert_allclose(y, expected_of(name), rtol=1e-3, atol=1e-7)
