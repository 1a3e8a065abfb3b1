"""A random ONNX network while it is made: nodes, weights, and the type and shape of every value."""

# pyright: basic

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TypeProto, helper, numpy_helper, shape_inference

Array = np.ndarray[Any, Any]
MOST_ELEMENTS = 3000
OPSET = 21


class NotMade(Exception):
    """A step that the value at hand does not allow: another is tried."""


@dataclass(frozen=True)
class Value:
    """A value by name: its element type and its shape for the batch that is fed first."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def is_float(self) -> bool:
        """Whether elements are floats."""
        return np.dtype(self.dtype).kind == "f"


@dataclass
class Network:
    """Nodes so far. `batch`: the leading size that stays open, if any."""

    rng: random.Random
    batch: int | None = None
    inputs: list[Value] = field(default_factory=list[Value])
    nodes: list[NodeProto] = field(default_factory=list[NodeProto])
    weights: dict[str, Array] = field(default_factory=dict[str, Array])
    values: list[Value] = field(default_factory=list[Value])

    def input(self, dtype: str, shape: Sequence[int]) -> Value:
        """Another input."""
        made = Value(f"x{len(self.inputs)}", dtype, tuple(shape))
        self.inputs.append(made)
        self.values.append(made)
        return made

    def constant(self, array: Any) -> Value:
        """Another weight."""
        array = np.asarray(array)
        made = Value(f"w{len(self.weights)}", str(array.dtype), array.shape)
        self.weights[made.name] = array
        return made

    def numbers(self, dtype: str, shape: Sequence[int], scale: float = 1.0) -> Value:
        """A weight of random numbers."""
        return self.constant(random_array(self.rng, dtype, shape, scale))

    def add(self, op: str, *operands: Value | None, outputs: int = 1, **attributes: Any) -> Value:
        """A node; its first output. Raises NotMade where ONNX has no such node."""
        return self.add_all(op, *operands, outputs=outputs, **attributes)[0]

    def add_all(
        self, op: str, *operands: Value | None, outputs: int = 1, **attributes: Any
    ) -> list[Value]:
        """A node; all its outputs."""
        names = [f"v{len(self.nodes)}_{n}" for n in range(outputs)]
        given = ["" if v is None else v.name for v in operands]
        node = helper.make_node(op, given, names, name=f"n{len(self.nodes)}", **attributes)
        found = self._types(node, [v for v in operands if v is not None])
        made = [_value(n, found.get(n)) for n in names]
        if any(np.prod(v.shape, dtype=np.int64) > MOST_ELEMENTS for v in made):
            raise NotMade("too large")
        self.nodes.append(node)
        return made

    def _types(self, node: NodeProto, operands: Sequence[Value]) -> dict[str, TypeProto]:
        types = {v.name: _type(v) for v in operands}
        data = {
            v.name: numpy_helper.from_array(self.weights[v.name], v.name)
            for v in operands
            if v.name in self.weights
        }
        schema = onnx.defs.get_schema(node.op_type, OPSET)
        opsets = [helper.make_opsetid("", OPSET)]
        try:
            return shape_inference.infer_node_outputs(
                schema, node, types, data, opset_imports=opsets, ir_version=10
            )
        except (shape_inference.InferenceError, onnx.checker.ValidationError) as error:
            raise NotMade(str(error)) from error

    def keep(self, value: Value) -> None:
        """Later steps may use it."""
        self.values.append(value)

    def model(self) -> ModelProto:
        """The network as a model, whose outputs are what nothing reads, and the last value."""
        read = {n for node in self.nodes for n in node.input}
        outputs = [v for v in self.values if v.name not in read] or self.values[-1:]
        shown = [o for o in outputs if o not in self.inputs][:4] or self.values[-1:]
        graph = helper.make_graph(
            self.nodes,
            "random",
            [self._declared(v) for v in self.inputs],
            [helper.make_empty_tensor_value_info(v.name) for v in shown],
            [numpy_helper.from_array(a, n) for n, a in self.weights.items()],
        )
        opsets = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)

    def _declared(self, value: Value) -> Any:
        sizes: list[int | str] = list(value.shape)
        if self.batch is not None and sizes and sizes[0] == self.batch:
            sizes[0] = "N"
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(value.dtype))
        return helper.make_tensor_value_info(value.name, kind, sizes)

    def feeds(self, seed: int, batch: int | None = None) -> dict[str, Array]:
        """Arrays for the inputs; `batch`: the size of the open batch in this call."""
        rng, made = random.Random(seed), dict[str, Array]()
        for value in self.inputs:
            shape = list(value.shape)
            if batch is not None and shape and shape[0] == self.batch:
                shape[0] = batch
            made[value.name] = random_array(rng, value.dtype, shape)
        return made


def random_array(rng: random.Random, dtype: str, shape: Sequence[int], scale: float = 1.0) -> Array:
    """Random elements: floats about 0, integers of one digit, any booleans."""
    numbers, kind = np.random.default_rng(rng.randrange(1 << 30)), np.dtype(dtype)
    if kind.kind == "f":
        return np.asarray(numbers.normal(size=shape) * scale).astype(kind)
    if kind == np.bool_:
        return np.asarray(numbers.integers(0, 2, shape)).astype(kind)
    return np.asarray(numbers.integers(0 if kind.kind == "u" else -9, 9, shape)).astype(kind)


def _type(value: Value) -> TypeProto:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(value.dtype))
    return helper.make_tensor_type_proto(kind, value.shape)


def _value(name: str, found: TypeProto | None) -> Value:
    if found is None or not found.tensor_type.HasField("shape"):
        raise NotMade("a shape that is not known")
    dims = found.tensor_type.shape.dim
    if not all(d.HasField("dim_value") and d.dim_value > 0 for d in dims):
        raise NotMade("a size that is not known, or 0")
    dtype = helper.tensor_dtype_to_np_dtype(found.tensor_type.elem_type)
    return Value(name, str(dtype), tuple(d.dim_value for d in dims))
