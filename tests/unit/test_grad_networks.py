"""Gradients of ONNX networks by their initializers: a perceptron with softmax cross-entropy, compiled."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np
import pytest

import irkit
from irkit.errors import UnsupportedError
from irkit.training.optimizers import SGD

onnx = pytest.importorskip("onnx")

SIZES = (784, 256, 100, 10)


def mlp() -> tuple[Any, dict[str, np.ndarray]]:
    """784-256-100-10, of an open batch."""
    rng, helper = np.random.default_rng(0), onnx.helper
    held: dict[str, np.ndarray] = {}
    nodes: list[Any] = []
    x = "x"
    for i, (a, b) in enumerate(itertools.pairwise(SIZES)):
        held[f"w{i}"] = (rng.standard_normal((b, a)) / np.sqrt(a)).astype(np.float32)
        held[f"b{i}"] = (rng.standard_normal(b) / 10).astype(np.float32)
        nodes.append(helper.make_node("Gemm", [x, f"w{i}", f"b{i}"], [f"z{i}"], transB=1))
        nodes.append(helper.make_node("Relu", [f"z{i}"], [f"a{i}"]))
        x = f"a{i}"
    nodes.pop()
    kind = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "mlp",
        [helper.make_tensor_value_info("x", kind, ["batch", 784])],
        [helper.make_tensor_value_info("z2", kind, ["batch", 10])],
        [onnx.numpy_helper.from_array(v, k) for k, v in held.items()],
    )
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9), held


def cross_entropy(z: Any, labels: Any) -> Any:
    z = z - z.max(axis=1, keepdims=True)
    logarithms = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
    return -np.take_along_axis(logarithms, labels[:, None], 1).mean()


def reference(
    held: dict[str, np.ndarray], x: np.ndarray, labels: np.ndarray
) -> tuple[float, dict[str, np.ndarray]]:
    """Loss and gradients in float64, written by hand."""
    w = {k: v.astype(np.float64) for k, v in held.items()}
    layers = [x.astype(np.float64)]
    for i in range(3):
        z = layers[-1] @ w[f"w{i}"].T + w[f"b{i}"]
        layers.append(np.maximum(z, 0) if i < 2 else z)
    z = layers.pop()
    p = np.exp(z - z.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    rows = np.arange(len(labels))
    loss = -np.log(p[rows, labels]).mean()
    d = p
    d[rows, labels] -= 1
    d /= len(labels)
    found: dict[str, np.ndarray] = {}
    for i in (2, 1, 0):
        found[f"w{i}"], found[f"b{i}"] = d.T @ layers[i], d.sum(0)
        d = (d @ w[f"w{i}"]) * (layers[i] > 0)
    return loss, found


def test_the_gradient_of_a_perceptron_compiled() -> None:
    model, held = mlp()
    rng = np.random.default_rng(1)
    x, labels = rng.standard_normal((100, 784)).astype(np.float32), rng.integers(0, 10, 100)
    options: dict[str, Any] = {"target": "cpu", "cache": False}
    step = irkit.value_and_grad(model, parameters=list(held), loss=cross_entropy, **options)
    value, found = step(held, x, labels)
    loss, wanted = reference(held, x, labels)
    assert value.dtype == np.float32
    np.testing.assert_allclose(value, loss, rtol=1e-5)
    for name, want in wanted.items():
        assert found[name].dtype == np.float32
        np.testing.assert_allclose(found[name], want, rtol=1e-4, atol=1e-6)
    assert step.report()["proved"]
    # Three products forward; backward one for each weight, and one for each layer but the first.
    assert step.ir("graph").count("graph.gemm") == 8


def test_networks_by_name() -> None:
    model, held = mlp()
    with pytest.raises(UnsupportedError, match="no initializer of the model has this name"):
        irkit.network(model, ["w9"])
    for named in (irkit.network, partial(irkit.value_and_grad, loss=None)):
        with pytest.raises(
            UnsupportedError, match="parameters='b2': expected a list of names of init"
        ):
            named(model, parameters="b2")
    with pytest.raises(UnsupportedError, match="parameters='b2': expected a list of names of init"):
        irkit.training_step(model, cross_entropy, SGD(0.1), parameters="b2")
    with pytest.raises(UnsupportedError, match="expected an onnx"):
        irkit.network(held)
    network = irkit.network(model, ["b2"])
    assert network.inputs == ("x",)
    np.testing.assert_array_equal(network.parameters["b2"], held["b2"])
    x = np.ones((2, 784), np.float32)
    with pytest.raises(UnsupportedError, match="is called with"):
        network({"b1": held["b2"]}, x)
    with pytest.raises(UnsupportedError, match="'b2' is expected as tensor<10xf32>, got"):
        network({"b2": held["b2"].astype(np.float64)}, x)
