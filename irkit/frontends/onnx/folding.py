"""Nodes whose inputs are all known at import are computed then, by ONNX's own reference.

Exporters write the shapes of initial states and reshapes as small sub-graphs of such nodes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper
from onnx.reference import ReferenceEvaluator

from irkit.frontends.onnx.extents import RULES, NotAnExtent, computed
from irkit.frontends.onnx.node import Node
from irkit.weights import Array

MOVERS = frozenset(
    ("Concat", "Gather", "Identity", "Reshape", "Slice", "Squeeze", "Unsqueeze", "Where")
)
"""These carry the mark of a dynamic size along unharmed."""
MARKED_INPUTS = {"Concat": slice(0, None), "Where": slice(1, None)}
"""Which inputs of a mover may hold marks, where it is not the first alone."""
MADE_OF_SHAPES = frozenset(("ConstantOfShape", "Expand"))
"""With a dynamic size in their shape, these make tensors of the program."""
READ_THE_SHAPE = frozenset(("Shape", "Size"))
"""These do not look at what an array holds."""

FOLDABLE = MOVERS | frozenset(
    (
        "Abs", "Add", "And", "Cast", "CastLike", "Ceil", "Clip", "Constant", "ConstantOfShape",
        "CumSum", "Div", "Equal", "Exp", "EyeLike", "Expand", "Flatten", "Floor", "GatherElements",
        "GatherND", "Greater", "GreaterOrEqual", "IsInf", "IsNaN", "Less", "LessOrEqual", "Log",
        "Max", "Min", "Mod", "Mul", "Neg", "NonZero", "Not", "OneHot", "Or", "Pad", "Pow", "Range",
        "Reciprocal", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum", "Round", "ScatterElements",
        "ScatterND", "Shape", "Sign", "Size", "Split", "Sqrt", "Sub", "Tile", "Transpose", "Trilu",
        "Where", "Xor",
    )
)  # fmt: skip
MAX_ELEMENTS = 1 << 28
"""No folded array is larger: a few bytes of a model must not ask for all memory."""


def fold(node: Node, has_handler: bool) -> list[Array] | None:
    """The node's outputs; None unless it is one of FOLDABLE with every input known.

    None too where ONNX's reference fails and the node `has_handler`: graph ops then compute it of
    constants, and know more cases.
    """
    op = node.proto.op_type
    arrays = [v for v in node.inputs if v is not None]
    if op not in FOLDABLE or not all(isinstance(v, np.ndarray) for v in arrays):
        return None
    if any(node.symbolic) and op in MADE_OF_SHAPES:
        return None
    if any(node.symbolic) and op in RULES:
        return [_computed(node)]
    if any(node.symbolic) and not _keeps_marks(node):
        node.refuse("", "it computes with the dynamic batch size")
    _check_size(node)
    try:
        with np.errstate(all="ignore"):
            outputs = [_reshaped(node)] if op in ("Squeeze", "Unsqueeze") else _by_reference(node)
    except (ArithmeticError, IndexError, RuntimeError, TypeError, ValueError) as error:
        if has_handler and not any(node.symbolic):
            return None
        node.refuse("", f"its constant inputs do not fit it ({' '.join(str(error).split())})")
    if op == "ConstantOfShape" and outputs[0].size:
        # One element stands for all until somebody wants them: light models have 100 MB of these.
        return [np.broadcast_to(outputs[0].flat[0], outputs[0].shape)]
    return outputs


def _by_reference(node: Node) -> list[Array]:
    feeds = {n: v for n, v in zip(node.proto.input, node.inputs, strict=True) if n}
    evaluator: Any = ReferenceEvaluator(_alone(node.proto, node.opset))
    return [np.asarray(v) for v in evaluator.run(None, feeds)]


def _reshaped(node: Node) -> Array:
    """Squeeze or Unsqueeze: up to operator set 12 the reference takes axes one by one, in the order given."""
    x, axes = node.shape_array(0), axes_of(node)
    if node.proto.op_type == "Unsqueeze":
        return np.expand_dims(x, tuple(axes or ()))
    return np.squeeze(x, None if axes is None else tuple(axes))


def axes_of(node: Node) -> list[int] | None:
    """Axes of Squeeze and Unsqueeze: an attribute up to operator set 12, an input since."""
    if node.opset < 13:
        return node.attribute("axes", None)
    return None if node.given(1) is None else node.array(1).ravel().tolist()


def _keeps_marks(node: Node) -> bool:
    op = node.proto.op_type
    if op == "Cast":
        return node.attribute("to", None) == TensorProto.INT64
    # Only the data may hold marks, not the indices or axes.
    moved = list(node.symbolic)
    allowed = MARKED_INPUTS.get(op, slice(0, 1))
    moved[allowed] = [False] * len(moved[allowed])
    return op in READ_THE_SHAPE or (op in MOVERS and not any(moved))


def _computed(node: Node) -> Array:
    """Arithmetic on sizes."""
    a, b = (node.shape_array(i) for i in (0, 1))
    if a.dtype != np.int64 or b.dtype != np.int64:
        node.refuse("", "it computes with the dynamic batch size")
    try:
        return computed(node.proto.op_type, a, b)
    except NotAnExtent:
        node.refuse("", "it computes with the dynamic batch size, and gives no multiple of it")


def _check_size(node: Node) -> None:
    op = node.proto.op_type
    if op == "Range":
        start, limit, step = (float(node.array(i).item()) for i in range(3))
        elements = abs((limit - start) / step) if step else 0.0
    elif op in ("ConstantOfShape", "Expand", "Tile"):
        sizes = node.array(0 if op == "ConstantOfShape" else 1).ravel()
        elements = math.prod(max(float(s), 1.0) for s in sizes)
    else:
        return
    if elements > MAX_ELEMENTS:
        node.refuse("", f"a constant of more than {MAX_ELEMENTS} elements")


def _alone(proto: NodeProto, opset: int) -> ModelProto:
    """A model of just this node."""
    inputs = [helper.make_empty_tensor_value_info(n) for n in proto.input if n]
    outputs = [helper.make_empty_tensor_value_info(n) for n in proto.output if n]
    graph = helper.make_graph([proto], "node", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
