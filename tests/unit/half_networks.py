"""ONNX networks in float16 and bfloat16, and the same in float32 with the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HALVES = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
_CODES = {
    "float16": TensorProto.FLOAT16,
    "bfloat16": TensorProto.BFLOAT16,
    "float32": TensorProto.FLOAT,
}


@dataclass
class Network:
    """A network under construction: random weights that the 16-bit type holds, in `element`."""

    half: str
    element: str
    nodes: list[Any] = field(default_factory=list[Any])
    weights: list[Any] = field(default_factory=list[Any])
    random: Any = field(default_factory=lambda: np.random.default_rng(0))

    def weight(self, name: str, *shape: int) -> str:
        """A weight of normal numbers."""
        values = (self.random.standard_normal(shape) * 0.3).astype(HALVES[self.half])
        dtype = HALVES.get(self.element, np.dtype(np.float32))
        self.weights.append(numpy_helper.from_array(values.astype(np.float32).astype(dtype), name))
        return name

    def add(self, op: str, inputs: list[str], outputs: list[str], **attributes: Any) -> None:
        """A node."""
        self.nodes.append(helper.make_node(op, inputs, outputs, **attributes))

    def model(self, x: list[Any], y: list[Any]) -> onnx.ModelProto:
        """From `x` to `y`."""
        code = _CODES[self.element]
        graph = helper.make_graph(
            self.nodes,
            "network",
            [helper.make_tensor_value_info("x", code, x)],
            [helper.make_tensor_value_info("y", code, y)],
            self.weights,
        )
        opset = 17 if self.element == "float16" else 22
        imports = [helper.make_opsetid("", opset)]
        return helper.make_model(graph, opset_imports=imports, ir_version=8)


def perceptron(n: Network) -> onnx.ModelProto:
    """Products with a batch of any size, and a softmax."""
    n.add("Gemm", ["x", n.weight("w1", 70, 80), n.weight("b1", 80)], ["a"], alpha=2.0)
    n.add("Relu", ["a"], ["c"])
    n.add("Gemm", ["c", n.weight("w2", 10, 80), n.weight("b2", 10)], ["d"], transB=1)
    n.add("Softmax", ["d"], ["y"], axis=1)
    return n.model(["n", 70], ["n", 10])


def convolutions(n: Network) -> onnx.ModelProto:
    """Convolutions of all kinds, pools and a product."""
    n.add("Conv", ["x", n.weight("w1", 16, 3, 3, 3), n.weight("b1", 16)], ["a"], pads=[1, 1, 1, 1])
    n.add("Relu", ["a"], ["c"])
    n.add("MaxPool", ["c"], ["p"], kernel_shape=[2, 2], strides=[2, 2])
    n.add("Conv", ["p", n.weight("w2", 24, 16, 3, 3)], ["e"], pads=[1, 1, 1, 1])
    n.add("Sigmoid", ["e"], ["g"])
    n.add("Conv", ["g", n.weight("w3", 24, 1, 3, 3)], ["k"], group=24, pads=[1, 1, 1, 1])
    n.add("ConvTranspose", ["k", n.weight("w4", 24, 4, 2, 2)], ["t"], strides=[2, 2])
    n.add("GlobalAveragePool", ["t"], ["q"])
    n.add("Flatten", ["q"], ["z"])
    n.add("MatMul", ["z", n.weight("f", 4, 10)], ["y"])
    return n.model([1, 3, 10, 10], [1, 10])


def recurrent(n: Network) -> onnx.ModelProto:
    """An LSTM and a GRU."""
    w, r = n.weight("w", 1, 64, 8), n.weight("r", 1, 64, 16)
    n.add("LSTM", ["x", w, r, n.weight("b", 1, 128)], ["o", "hn", "cn"], hidden_size=16)
    n.add("Squeeze", ["o"], ["s"])
    w, r = n.weight("gw", 1, 36, 16), n.weight("gr", 1, 36, 12)
    n.add("GRU", ["s", w, r, n.weight("gb", 1, 72)], ["u", "gh"], hidden_size=12)
    n.add("Squeeze", ["gh"], ["y"])
    return n.model([4, 2, 8], [2, 12])


def attention(n: Network) -> onnx.ModelProto:
    """A residual, a layer norm, products of activations, a softmax, elementwise functions."""
    n.add("MatMul", ["x", n.weight("w", 32, 32)], ["a"])
    n.add("Add", ["a", "x"], ["c"])
    n.add("LayerNormalization", ["c", n.weight("g", 32), n.weight("b", 32)], ["d"], axis=-1)
    n.add("Transpose", ["d"], ["e"], perm=[0, 2, 1])
    n.add("MatMul", ["d", "e"], ["k"])
    n.add("Softmax", ["k"], ["m"], axis=-1)
    n.add("MatMul", ["m", "d"], ["o"])
    n.add("Tanh", ["o"], ["y"])
    return n.model([2, 7, 32], [2, 7, 32])


NETWORKS: dict[str, Callable[[Network], onnx.ModelProto]] = {
    "perceptron": perceptron,
    "convolutions": convolutions,
    "recurrent": recurrent,
    "attention": attention,
}


def build(name: str, half: str, element: str = "") -> onnx.ModelProto:
    """A network whose numbers are of type `half`, computed in it, or in `element`."""
    return NETWORKS[name](Network(half, element or half))


def draw(model: onnx.ModelProto, half: str, rows: int = 3) -> np.ndarray:
    """An input of normal numbers."""
    shape = [d.dim_value or rows for d in model.graph.input[0].type.tensor_type.shape.dim]
    return np.random.default_rng(1).standard_normal(shape).astype(HALVES[half])
