"""What operators of the domain ai.onnx.ml make of scores: their transformations, and class labels.

Where ONNX leaves open what happens, ONNX Runtime's answer is taken, or the node is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import f32, f64, i64
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.types import DYNAMIC, is_float, numpy_dtype, tensor_type
from irkit.frontends.onnx.handlers.arithmetic import cast, element_of, scalar
from irkit.frontends.onnx.node import Node
from irkit.weights import Array

# What SOFTMAX_ZERO takes for no zero.
_ZERO = 1e-7
# The constant of Winitzki's formula.
_WINITZKI = 0.147
TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
"""In the order of their numbers."""


def rows(node: Node, index: int = 0, doubles: bool = False) -> SSAValue:
    """Input `index`, rows×features, in float32; float64 stays with `doubles`."""
    x = node.operand(index)
    if tensor_type(x).get_num_dims() != 2 or tensor_type(x).get_shape()[1] == DYNAMIC:
        node.refuse(node.name_of(index), f"expected rows and a number of features, got {x.type}")
    keeps = doubles and element_of(x) == f64
    return x if keeps else cast(node, x, f32)


def numbers(node: Node, name: str, dtype: Any = np.float32) -> Array:
    """Attribute `name`, a list of numbers; empty if it is left out."""
    return np.array(node.attribute(name, []), dtype)


def finite(node: Node, name: str) -> Array:
    """Attribute `name`, a list of finite float32."""
    found = numbers(node, name)
    if not np.isfinite(found).all():
        node.refuse(name, "a number that is not finite")
    return found


def transform_of(node: Node) -> str:
    """Attribute post_transform."""
    return known_transform(node, node.attribute("post_transform", "NONE"))


def known_transform(node: Node, name: str) -> str:
    """A transformation's name, if it is imported."""
    if name not in TRANSFORMS:
        node.refuse(f"post_transform = {name!r}", f"expected one of {', '.join(TRANSFORMS)}")
    return name


def transformed(node: Node, scores: SSAValue, name: str) -> SSAValue:
    """What a transformation makes of rows×columns."""
    match name:
        case "LOGISTIC":
            return node.emit(graph.SigmoidOp, scores)
        case "SOFTMAX":
            return node.emit(graph.SoftmaxOp, scores, axis=1)
        case "SOFTMAX_ZERO":
            return _softmax_zero(node, scores)
        case "PROBIT":
            return _probit(node, scores)
        case _:
            return scores


def of_one(node: Node, score: SSAValue, name: str) -> SSAValue:
    """What a transformation makes of a single column: of others than PROBIT, runtimes make several things."""
    if name not in ("NONE", "PROBIT"):
        node.refuse(f"post_transform = {name!r}", "of one target")
    return transformed(node, score, name)


def _probit(node: Node, scores: SSAValue) -> SSAValue:
    """Quantiles of the normal distribution, by Winitzki's formula for the inverse of erf, which ONNX Runtime
    computes in float32 one operation after another: about 0.5 what it rounds off is seen."""
    x = cast(node, scores, f32)

    def number(value: float) -> SSAValue:
        return scalar(node, value, x)

    one, a = number(1), np.float32(_WINITZKI)
    y = node.emit(graph.SubOp, node.emit(graph.MulOp, x, number(2)), one)
    rest = node.emit(graph.MulOp, node.emit(graph.SubOp, one, y), node.emit(graph.AddOp, one, y))
    log = node.emit(graph.LogOp, rest)
    half = node.emit(graph.MulOp, log, number(0.5))
    v = node.emit(graph.AddOp, half, number(float(np.float32(2) / (np.float32(np.pi) * a))))
    part = node.emit(graph.MulOp, log, number(float(np.float32(1) / a)))
    root = node.emit(graph.SqrtOp, node.emit(graph.SubOp, node.emit(graph.MulOp, v, v), part))
    size = node.emit(graph.SqrtOp, node.emit(graph.SubOp, root, v))
    size = node.emit(graph.MulOp, size, number(2**0.5))
    below = node.emit(graph.CompareOp, y, number(0), predicate="lt")
    found = node.emit(graph.WhereOp, below, node.emit(graph.NegOp, size), size)
    return cast(node, found, element_of(scores))


def _softmax_zero(node: Node, scores: SSAValue) -> SSAValue:
    """Softmax of what is not 0."""
    most = node.emit(graph.ReduceOp, scores, kind="max", axes=[1], keepdims=True)
    counts = node.emit(
        graph.CompareOp,
        node.emit(graph.AbsOp, scores),
        scalar(node, _ZERO, scores),
        predicate="gt",
    )
    power = node.emit(graph.ExpOp, node.emit(graph.SubOp, scores, most))
    total = node.emit(graph.WhereOp, counts, power, scalar(node, 0, scores))
    total = node.emit(graph.ReduceOp, total, kind="sum", axes=[1], keepdims=True)
    small = node.emit(graph.MulOp, scores, node.emit(graph.ExpOp, node.emit(graph.NegOp, most)))
    return node.emit(graph.DivOp, node.emit(graph.WhereOp, counts, power, small), total)


def labels_of(node: Node, integers: str, strings: str) -> Array:
    """The class labels, as int64; the numbers of those that are strings."""
    if texts := node.attribute(strings, []):
        node.ignore(integers)
        return node.strings.codes(texts)
    found = numbers(node, integers, np.int64)
    if not len(found):
        node.refuse(integers, "there are no class labels")
    return found


def picked(node: Node, labels: Array, number: SSAValue) -> SSAValue:
    """The labels of these numbers of classes."""
    if node.has("classlabels_strings"):
        return node.strings.mark(node.emit(graph.GatherOp, node.tensor(labels), number, axis=0))
    if np.array_equal(labels, np.arange(len(labels))):
        return number
    return node.emit(graph.GatherOp, node.tensor(labels), number, axis=0)


def first_largest(node: Node, scores: SSAValue) -> SSAValue:
    """The first column of the largest score, as a loop finds it that starts with the first column: NaN is
    larger than nothing, and nothing is larger than it."""
    lowest = scalar(node, -np.inf, scores)
    nan = node.emit(graph.IsNanOp, scores)
    best = node.emit(
        graph.ArgmaxOp, node.emit(graph.WhereOp, nan, lowest, scores), axis=1, keepdims=False
    )
    first = node.emit(graph.ReshapeOp, column(node, nan, 0), shape=[DYNAMIC])
    return node.emit(graph.WhereOp, first, node.tensor(np.zeros(1, np.int64)), best)


def column(node: Node, x: SSAValue, number: int) -> SSAValue:
    """One column of x, rows×1."""
    return node.emit(graph.GatherOp, x, node.tensor(np.array([number])), axis=1)


def one_of_two(node: Node, score: SSAValue, limit: float) -> SSAValue:
    """0 or 1 of each row, whose one score is above a limit."""
    above = node.emit(graph.CompareOp, score, scalar(node, limit, score), predicate="gt")
    return node.emit(graph.ReshapeOp, cast(node, above, i64), shape=[DYNAMIC])


def both_columns(node: Node, score: SSAValue, name: str, is_part: bool) -> SSAValue:
    """A score (rows×1) beside that of the other class: the rest to 1 if it `is_part`, else its negative."""
    if name == "PROBIT":
        node.refuse(f"post_transform = {name!r}", "of one score of two classes")
    if name == "LOGISTIC":
        first = node.emit(graph.SigmoidOp, node.emit(graph.NegOp, score))
        return beside(node, [first, node.emit(graph.SigmoidOp, score)])
    other = (
        node.emit(graph.SubOp, scalar(node, 1, score), score)
        if is_part
        else node.emit(graph.NegOp, score)
    )
    return beside(node, [other, score])


def beside(node: Node, parts: Sequence[SSAValue]) -> SSAValue:
    """Columns side by side."""
    return node.emit(graph.ConcatOp, *parts, axis=1)


def check_length(node: Node, name: str, found: Array, want: int) -> None:
    """Refuse a list of another length."""
    if len(found) != want:
        node.refuse(name, f"it has {len(found)} numbers, expected {want}")


def is_floating(x: SSAValue) -> bool:
    """Whether a tensor holds floats."""
    return is_float(element_of(x))


def as_dtype(x: SSAValue) -> np.dtype[Any]:
    """NumPy's name of a tensor's elements."""
    return numpy_dtype(element_of(x))
