"""Linear models and support vector machines of the domain ai.onnx.ml, in float32."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.frontends import coupling
from irkit.frontends.onnx.handlers.arithmetic import scalar
from irkit.frontends.onnx.handlers.ml_scores import (
    beside,
    both_columns,
    check_length,
    finite,
    first_largest,
    labels_of,
    numbers,
    of_one,
    one_of_two,
    picked,
    rows,
    transform_of,
    transformed,
)
from irkit.frontends.onnx.node import Handler, Node, Value
from irkit.weights import Array


def _width(x: SSAValue) -> int:
    return tensor_type(x).get_shape()[1]


def _product(node: Node, x: SSAValue, matrix: Array, row: Array) -> SSAValue:
    """rows×columns: x times `matrix` (features×columns), and a row."""
    y = node.emit(graph.MatmulOp, x, node.tensor(np.ascontiguousarray(matrix)))
    return node.emit(graph.AddOp, y, node.tensor(row[None]))


def _scores(node: Node, x: SSAValue, row: Array) -> SSAValue:
    weights = finite(node, "coefficients")
    check_length(node, "coefficients", weights, _width(x) * len(row))
    return _product(node, x, weights.reshape(len(row), -1).T, row)


def _linear_classifier(node: Node) -> Sequence[Value]:
    node.ignore("multi_class")  # it says how the model was trained
    labels = labels_of(node, "classlabels_ints", "classlabels_strings")
    name, x, row = transform_of(node), rows(node), finite(node, "intercepts")
    if len(row) == 1 and len(labels) == 2:
        score = _scores(node, x, row)
        label = picked(node, labels, one_of_two(node, score, 0))
        return [label, both_columns(node, score, name, is_part=True)]
    check_length(node, "intercepts", row, len(labels))
    if len(row) == 1:
        node.refuse("classlabels_ints", "one class")
    scores = _scores(node, x, row)
    label = picked(node, labels, first_largest(node, scores))
    return [label, transformed(node, scores, name)]


def _linear_regressor(node: Node) -> Sequence[Value]:
    targets, name, x = int(node.attribute("targets", 1)), transform_of(node), rows(node)
    row = finite(node, "intercepts")
    row = row if len(row) else np.zeros(targets, np.float32)
    check_length(node, "intercepts", row, targets)
    return [(of_one if targets == 1 else transformed)(node, _scores(node, x, row), name)]


# Support vector machines


def _kernels(node: Node, x: SSAValue, vectors: Array) -> SSAValue:
    """rows×vectors."""
    kind = node.attribute("kernel_type", "LINEAR")
    given = finite(node, "kernel_params")
    if len(given):
        check_length(node, "kernel_params", given, 3)
    gamma, shift, degree = given.tolist() or (0.0, 0.0, 0.0)
    across = node.tensor(np.ascontiguousarray(vectors.T))
    if kind == "RBF":
        return _radial(node, x, vectors, gamma)
    product = node.emit(graph.MatmulOp, x, across)
    if kind == "LINEAR":
        return product
    scaled = node.emit(graph.MulOp, product, scalar(node, gamma, product))
    moved = node.emit(graph.AddOp, scaled, scalar(node, shift, product))
    if kind == "SIGMOID":
        return node.emit(graph.TanhOp, moved)
    if kind != "POLY":
        node.refuse(f"kernel_type = {kind!r}", "expected LINEAR, POLY, RBF or SIGMOID")
    return node.emit(graph.PowOp, moved, scalar(node, degree, moved))


def _radial(node: Node, x: SSAValue, vectors: Array, gamma: float) -> SSAValue:
    """exp(-gamma |x - v|²), of differences themselves: products would round to less."""
    count, features = vectors.shape
    row = node.emit(graph.ReshapeOp, x, shape=[DYNAMIC, 1, features])
    apart = node.emit(graph.SubOp, row, node.tensor(vectors.reshape(1, count, features)))
    squares = node.emit(graph.MulOp, apart, apart)
    far = node.emit(graph.ReduceOp, squares, kind="sum", axes=[2], keepdims=False)
    return node.emit(graph.ExpOp, node.emit(graph.MulOp, far, scalar(node, -gamma, far)))


def _vectors(node: Node, x: SSAValue, count: int) -> Array:
    found = finite(node, "support_vectors")
    check_length(node, "support_vectors", found, count * _width(x))
    return found.reshape(count, -1)


def _machine_regressor(node: Node) -> Sequence[Value]:
    node.require("post_transform", "NONE")
    x, weights, rho = rows(node), finite(node, "coefficients"), finite(node, "rho")
    count = int(node.attribute("n_supports", 0))
    check_length(node, "rho", rho, 1)
    vectors = _vectors(node, x, count)
    if count:
        near = _kernels(node, x, vectors)
    else:
        node.ignore("kernel_type", "kernel_params")
        near = x
    check_length(node, "coefficients", weights, _width(near))
    score = _product(node, near, weights[:, None], rho)
    if not node.attribute("one_class", 0):
        return [score]
    inside = node.emit(graph.CompareOp, score, scalar(node, 0, score), predicate="gt")
    return [node.emit(graph.WhereOp, inside, scalar(node, 1, score), scalar(node, -1, score))]


def _machine_classifier(node: Node) -> Sequence[Value]:
    labels = labels_of(node, "classlabels_ints", "classlabels_strings")
    each = numbers(node, "vectors_per_class", np.int64)
    slopes, shifts = finite(node, "prob_a"), finite(node, "prob_b")
    if len(labels) < 2:
        node.refuse("classlabels_ints", "one class")
    name, x = transform_of(node), rows(node)
    if not each.sum():
        return _without_vectors(node, x, labels, name)
    check_length(node, "vectors_per_class", each, len(labels))
    decisions = _decisions(node, x, each)
    label = picked(node, labels, _votes(node, decisions, len(labels)))
    if len(slopes) or len(shifts):
        found = _probabilities(node, decisions, slopes, shifts, len(labels))
        return [label, transformed(node, found, name)]
    if len(labels) > 2:
        return [label, transformed(node, decisions, name)]
    if name == "NONE":
        return [label, beside(node, [node.emit(graph.NegOp, decisions), decisions])]
    return [label, both_columns(node, decisions, name, is_part=True)]


def _probabilities(
    node: Node, decisions: SSAValue, slopes: Array, shifts: Array, classes: int
) -> SSAValue:
    """rows×classes; NaN in rows that do not come to an end, of which none is known."""
    for name, found in (("prob_a", slopes), ("prob_b", shifts)):
        check_length(node, name, found, len(_pairs(classes)))
    if classes > coupling.MOST_CLASSES:
        node.refuse("prob_a", f"probabilities of more than {coupling.MOST_CLASSES} classes")
    found, done = coupling.of_pairs(node.builder, decisions, slopes, shifts, classes)
    return node.emit(graph.WhereOp, done, found, scalar(node, np.nan, found))


def _without_vectors(node: Node, x: SSAValue, labels: Array, name: str) -> Sequence[Value]:
    """A linear model, to which ONNX Runtime adds the first number of `rho` alone."""
    node.ignore("kernel_type", "kernel_params", "support_vectors")
    shift = finite(node, "rho")
    if not len(shift):
        node.refuse("rho", "it is missing")
    scores = _scores(node, x, np.full(len(labels), shift[0], np.float32))
    best = first_largest(node, scores)
    if len(labels) == 2 and not node.has("prob_a"):
        # Of two classes the second one it is, too, where the larger score is above the limit.
        most = node.emit(graph.ReduceOp, scores, kind="max", axes=[1], keepdims=False)
        limit, predicate = (0.5, "ge") if (finite(node, "coefficients") >= 0).all() else (0, "gt")
        above = node.emit(graph.CompareOp, most, scalar(node, limit, most), predicate=predicate)
        best = node.emit(graph.WhereOp, above, node.tensor(np.ones(1, np.int64)), best)
    return [picked(node, labels, best), transformed(node, scores, name)]


def _pairs(classes: int) -> list[tuple[int, int]]:
    return list(itertools.combinations(range(classes), 2))


def _decisions(node: Node, x: SSAValue, each: Array) -> SSAValue:
    """rows×pairs of classes: above 0 where the first one wins."""
    count, pairs = int(each.sum()), _pairs(len(each))
    weights, rho = finite(node, "coefficients"), finite(node, "rho")
    check_length(node, "coefficients", weights, count * (len(each) - 1))
    check_length(node, "rho", rho, len(pairs))
    weights, ends = weights.reshape(len(each) - 1, count), np.cumsum(each)
    own = [slice(int(e - n), int(e)) for e, n in zip(ends, each, strict=True)]
    dual = np.zeros((count, len(pairs)), np.float32)
    for number, (i, j) in enumerate(pairs):
        dual[own[i], number] = weights[j - 1, own[i]]
        dual[own[j], number] = weights[i, own[j]]
    near = _kernels(node, x, _vectors(node, x, count))
    return _product(node, near, dual, rho)


def _votes(node: Node, decisions: SSAValue, classes: int) -> SSAValue:
    """The number of the class that wins most pairs; of several, the first."""
    pairs = _pairs(classes)
    gain, row = np.zeros((len(pairs), classes), np.float32), np.zeros(classes, np.float32)
    for number, (i, j) in enumerate(pairs):
        gain[number, i], gain[number, j] = 1, -1
        row[j] += 1
    won = node.emit(graph.CompareOp, decisions, scalar(node, 0, decisions), predicate="gt")
    one, none = scalar(node, 1, decisions), scalar(node, 0, decisions)
    total = _product(node, node.emit(graph.WhereOp, won, one, none), gain, row)
    return node.emit(graph.ArgmaxOp, total, axis=1, keepdims=False)


HANDLERS: dict[str, Handler] = {
    "LinearClassifier": _linear_classifier,
    "LinearRegressor": _linear_regressor,
    "SVMClassifier": _machine_classifier,
    "SVMRegressor": _machine_regressor,
}
