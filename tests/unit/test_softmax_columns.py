"""Softmaxes along any dimension, as an op of ONNX and as NumPy writes them, beside float64."""

# pyright: basic

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import irkit

RNG = np.random.default_rng(11)
SHAPES = [
    ((7, 9), 0),
    ((3, 5, 4, 6), 1),
    ((5, 3, 8), 0),
    ((2, 33, 17), 1),
    ((40, 1, 9), 0),
    ((6, 50), 1),
]


def softmax(x: Any, axis: int) -> Any:
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def node(shape: tuple[int | str, ...], axis: int) -> Any:
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in ("x", "y")]
    made = helper.make_node("Softmax", ["x"], ["y"], axis=axis)
    graph = helper.make_graph([made], "g", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def far(shape: tuple[int, ...]) -> Any:
    """Of all magnitudes: without the largest taken away most would be infinite, or nothing."""
    return (RNG.standard_normal(shape) * RNG.choice([1, 30, 1000], shape)).astype(np.float32)


@pytest.mark.parametrize("device", ["cpu1", "cpu2"])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_an_op(shape: tuple[int, ...], axis: int, device: str) -> None:
    program = irkit.compile(node(shape, axis), target="cpu", device=device)
    x = far(shape)
    np.testing.assert_allclose(program(x), softmax(x.astype(np.float64), axis), atol=3e-7)


def test_of_any_number_of_images() -> None:
    program = irkit.compile(node(("n", 5, 3, 6), 1), target="cpu")
    for rows in (0, 1, 4):
        x = far((rows, 5, 3, 6))
        np.testing.assert_allclose(program(x), softmax(x.astype(np.float64), 1), atol=3e-7)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_as_numpy_writes_it(shape: tuple[int, ...], axis: int, dtype: Any) -> None:
    program = irkit.jit(target="cpu")(lambda x: softmax(x, axis))
    x = far(shape).astype(dtype)
    exact = 3e-7 if dtype == np.float32 else 1e-15
    np.testing.assert_allclose(program(x), softmax(x, axis), atol=exact)
    for bad in (np.nan, np.inf, -np.inf):
        x.flat[:3] = bad
        np.testing.assert_allclose(program(x), softmax(x, axis), atol=exact)
    x[...] = -np.inf
    assert np.isnan(program(x)).all()
