"""An ONNX model under construction, with seeded random weights; needs NumPy and onnx only."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

Array = NDArray[Any]
OPSET = 17


class OnnxModel:
    """Collects nodes and weights."""

    def __init__(self, name: str, seed: int, opset: int = OPSET) -> None:
        self.name, self.opset = name, opset
        self.random = np.random.default_rng(seed)
        self.nodes: list[NodeProto] = []
        self.weights: dict[str, Array] = {}
        self.types: dict[str, int] = {}

    def weight(self, name: str, *shape: int, scale: float | None = None) -> str:
        """Normal weights of deviation `scale`, by default 1 / sqrt(fan-in)."""
        fan_in = int(np.prod(shape[1:])) or 1
        scale = fan_in**-0.5 if scale is None else scale
        return self.array(name, (self.random.standard_normal(shape) * scale).astype(np.float32))

    def array(self, name: str, array: Array) -> str:
        """An initializer."""
        self.weights[name] = array
        return name

    def node(self, op: str, inputs: list[str], output: str | list[str], **attributes: Any) -> str:
        """Append a node; returns its first output."""
        outputs = [output] if isinstance(output, str) else output
        name = outputs[0].replace("/", "_")
        self.nodes.append(helper.make_node(op, inputs, outputs, name=name, **attributes))
        return outputs[0]

    def then(self, op: str, *inputs: str, **attributes: Any) -> str:
        """Append a node of one output, which gets a name of its own."""
        return self.node(op, list(inputs), f"{op.lower()}_{len(self.nodes)}", **attributes)

    def integers(self, *values: int) -> str:
        """An int64 initializer, named by its values."""
        return self.array("ints_" + "_".join(map(str, values)), np.array(values, np.int64))

    def number(self, value: float) -> str:
        """A float32 initializer of no dimensions, named by its value."""
        return self.array(f"number_{value!r}", np.array(value, np.float32))

    def finish(self, inputs: dict[str, list[Any]], outputs: dict[str, Any]) -> ModelProto:
        """The model; a dimension given as a string is symbolic, a shape may be left out (None)."""
        declared = [
            [
                helper.make_tensor_value_info(n, self.types.get(n, TensorProto.FLOAT), s)
                for n, s in values.items()
            ]
            for values in (inputs, outputs)
        ]
        weights = [numpy_helper.from_array(a, n) for n, a in self.weights.items()]
        graph = helper.make_graph(self.nodes, self.name, declared[0], declared[1], weights)
        opset = helper.make_opsetid("", self.opset)
        return helper.make_model(
            graph, opset_imports=[opset], ir_version=8, producer_name="benchmarks"
        )
