"""Ensembles of trees of the domain ai.onnx.ml as `graph.forest`.

Comparisons and sums are of the input's type: float32, or float64. Trees are added up in their order, and
the base values then, as ONNX Runtime does where one thread sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.types import tensor_type
from irkit.errors import InvalidModelError
from irkit.frontends.onnx.handlers.arithmetic import cast, scalar
from irkit.frontends.onnx.handlers.ml_nodes import LEAF, TreeNodes, lists, packed, values
from irkit.frontends.onnx.handlers.ml_scores import (
    TRANSFORMS,
    as_dtype,
    beside,
    both_columns,
    known_transform,
    labels_of,
    of_one,
    one_of_two,
    picked,
    rows,
    transform_of,
    transformed,
)
from irkit.frontends.onnx.node import Handler, Node, Value
from irkit.frontends.trees import Trees, check_splits, floor32
from irkit.weights import Array

_OF_SETS = ("EQ", "NEQ", "MEMBER")


@dataclass
class _Sets:
    """What nodes ask that is no order: whether a feature is one of some values. `column` of each node."""

    questions: dict[tuple[int, tuple[float, ...]], int]
    column: dict[int, int]

    @staticmethod
    def of(nodes: TreeNodes, features: int) -> _Sets:
        questions: dict[tuple[int, tuple[float, ...]], int] = {}
        column: dict[int, int] = {}
        for i, mode in enumerate(nodes.mode):
            if mode in _OF_SETS:
                members = nodes.members.get(i, [float(nodes.split[i])])
                key = (int(nodes.feature[i]), tuple(sorted(set(members))))
                column[i] = features + questions.setdefault(key, len(questions))
        return _Sets(questions, column)

    def extend(self, node: Node, x: SSAValue) -> SSAValue:
        """x with a column for each question: 1 or 0; NaN of NaN."""
        if not self.questions:
            return x
        dtype = as_dtype(x)
        asked = [(f, v, n) for (f, members), n in self.questions.items() for v in members]
        cells = _columns(node, x, [f for f, _, _ in asked])
        equal = node.emit(
            graph.CompareOp,
            cells,
            node.tensor(np.array([[v for _, v, _ in asked]], dtype)),
            predicate="eq",
        )
        one, none = scalar(node, 1, x), scalar(node, 0, x)
        hits = node.emit(graph.WhereOp, equal, one, none)
        if len(asked) != len(self.questions):
            belongs = np.zeros((len(asked), len(self.questions)), dtype)
            for row, (_, _, number) in enumerate(asked):
                belongs[row, number] = 1
            hits = node.emit(graph.MatmulOp, hits, node.tensor(belongs))
        sources = _columns(node, x, [f for f, _ in self.questions])
        nan = node.emit(graph.IsNanOp, sources)
        return beside(node, [x, node.emit(graph.WhereOp, nan, sources, hits)])


def _columns(node: Node, x: SSAValue, which: Sequence[int]) -> SSAValue:
    return node.emit(graph.GatherOp, x, node.tensor(np.array(which, np.int64)), axis=1)


def _comparisons(node: Node, nodes: TreeNodes, sets: _Sets, dtype: np.dtype) -> tuple[Array, ...]:
    """Feature, threshold, left, right and where NaN goes, of comparisons by `<=` alone."""
    mode = np.array(nodes.mode)
    feature, split = nodes.feature.copy(), nodes.split
    strict = np.isin(mode, ("LT", "GTE"))
    ordered = np.isin(mode, ("LEQ", "LT", "GTE", "GT"))
    if np.isnan(split[ordered]).any() or (split[strict] == -np.inf).any():
        node.refuse("nodes", "a threshold that nothing is compared with")
    threshold = floor32(split) if dtype == np.float32 else split.astype(dtype)
    # Below a number is at most the one before it.
    reached = strict & (threshold.astype(np.float64) == split)
    threshold = np.where(reached, np.nextafter(threshold, dtype.type(-np.inf)), threshold)
    # The other side of the comparison is true, and NaN is on the side of what is false.
    turned = np.isin(mode, ("GTE", "GT", "EQ", "MEMBER"))
    for i, column in sets.column.items():
        feature[i], threshold[i] = column, 0.5
    left = np.where(turned, nodes.false, nodes.true)
    right = np.where(turned, nodes.true, nodes.false)
    nan_left = np.where(turned, ~nodes.missing_true, nodes.missing_true | (mode == "NEQ"))
    return feature, threshold, left, right, nan_left


def _forest(node: Node, nodes: TreeNodes, x: SSAValue, targets: int) -> SSAValue:
    """rows×targets: sums of weights."""
    features, dtype = tensor_type(x).get_shape()[1], as_dtype(x)
    inner = np.array([m != LEAF for m in nodes.mode])
    asked = nodes.feature[inner]
    if len(asked) and not 0 <= asked.min() <= asked.max() < features:
        node.refuse("nodes_featureids", f"a feature that is none of {features}")
    if any(not 0 <= t < targets for each in nodes.weights.values() for t, _ in each):
        node.refuse("ids", f"a column that is none of {targets}")
    sets = _Sets.of(nodes, features)
    feature, threshold, left, right, nan_left = _comparisons(node, nodes, sets, dtype)
    value, output = _weights(nodes, targets, dtype)
    trees = Trees(
        feature,
        threshold,
        left,
        right,
        nan_left,
        value,
        np.array(nodes.roots, np.int64),
        output,
        np.zeros(targets, dtype),
    )
    try:
        check_splits(left, right, inner)
        return trees.build(node.builder, sets.extend(node, x))
    except InvalidModelError as error:
        node.refuse("nodes", str(error))


def _weights(nodes: TreeNodes, targets: int, dtype: np.dtype) -> tuple[Array, Array]:
    """nodes×width, and the first column that each tree adds to: width 1 where each adds to one alone."""
    first = [_column_of(nodes, root) for root in nodes.roots]
    if None not in first:
        value = np.zeros((len(nodes.mode), 1), dtype)
        for leaf, each in nodes.weights.items():
            value[leaf, 0] = _added(dtype, [w for _, w in each])
        return value, np.array(first, np.int64)
    value = np.zeros((len(nodes.mode), targets), dtype)
    for leaf, each in nodes.weights.items():
        for target in {t for t, _ in each}:
            value[leaf, target] = _added(dtype, [w for t, w in each if t == target])
    return value, np.zeros(len(nodes.roots), np.int64)


def _added(dtype: np.dtype, weights: Sequence[float]) -> np.floating:
    total = dtype.type(0)
    for weight in weights:
        total = total + dtype.type(weight)
    return total


def _leaves(nodes: TreeNodes, root: int) -> list[int]:
    found: list[int] = []
    waiting = [root]
    # Nodes of two parents are refused later: here they must only end.
    for _ in range(len(nodes.mode)):
        if not waiting:
            break
        i = waiting.pop()
        if nodes.mode[i] == LEAF:
            found.append(i)
        else:
            waiting += [int(nodes.true[i]), int(nodes.false[i])]
    return found


def _column_of(nodes: TreeNodes, root: int) -> int | None:
    """The one column that a tree adds to; None if there are several."""
    touched = {t for leaf in _leaves(nodes, root) for t, _ in nodes.weights.get(leaf, ())}
    return min(touched, default=0) if len(touched) < 2 else None


def _with_base(node: Node, scores: SSAValue, base: Array) -> SSAValue:
    if not len(base):
        return scores
    return node.emit(graph.AddOp, scores, node.tensor(base.astype(as_dtype(scores))[None]))


# Regressors


def _regressed(node: Node, nodes: TreeNodes, targets: int, how: str, name: str) -> SSAValue:
    if how not in ("SUM", "AVERAGE"):
        node.refuse(f"aggregate_function = {how!r}", "only SUM and AVERAGE are supported")
    scores = _forest(node, nodes, rows(node, doubles=True), targets)
    if how == "AVERAGE":
        scores = node.emit(graph.DivOp, scores, scalar(node, len(nodes.roots), scores))
    base = values(node, "base_values")
    if len(base) not in (0, targets):
        node.refuse("base_values", f"{len(base)} of {targets} targets")
    if len(base) > 1 and len(_added_to(nodes)[0]) < targets:
        reason = (
            "leaves that add nothing to a target, whose base value some runtimes leave out then"
        )
        node.refuse("target_ids", reason)
    return (of_one if targets == 1 else transformed)(node, _with_base(node, scores, base), name)


def _regressor(node: Node) -> Sequence[Value]:
    nodes = lists(node, "target")
    targets, how = int(node.attribute("n_targets", 1)), node.attribute("aggregate_function", "SUM")
    return [cast(node, _regressed(node, nodes, targets, how, transform_of(node)), f32)]


def _ensemble(node: Node) -> Sequence[Value]:
    if as_dtype(node.operand(0)).name not in ("float32", "float64"):
        node.refuse(node.name_of(0), f"of {node.operand(0).type}: expected float32 or float64")
    how = ("AVERAGE", "SUM", "MIN", "MAX")[int(node.attribute("aggregate_function", 1))]
    name = known_transform(node, TRANSFORMS[int(node.attribute("post_transform", 0))])
    return [_regressed(node, packed(node), int(node.attribute("n_targets", 1)), how, name)]


# Classifiers


def _classifier(node: Node) -> Sequence[Value]:
    labels = labels_of(node, "classlabels_int64s", "classlabels_strings")
    nodes, name, base = lists(node, "class"), transform_of(node), values(node, "base_values")
    if len(labels) < 2:
        node.refuse("classlabels_int64s", "one class")
    if len(labels) == 2:
        number, scores = _of_two(node, nodes, name, base)
    else:
        number, scores = _of_several(node, nodes, len(labels), name, base)
    return [picked(node, labels, number), cast(node, scores, f32)]


def _of_two(node: Node, nodes: TreeNodes, name: str, base: Array) -> tuple[SSAValue, SSAValue]:
    """The class's number and both columns, of one score that is the second class's."""
    touched = {t for each in nodes.weights.values() for t, _ in each}
    if len(touched) != 1 or len(base) > (touched == {0}):
        reason = (
            "two classes, and weights or base values of both, of which runtimes make several things"
        )
        node.refuse("class_ids", reason)
    only = next(iter(touched))
    scores = _forest(node, nodes, rows(node, doubles=True), 2)
    score = _with_base(node, _columns(node, scores, [only]), base)
    # Of probabilities the half decides, of margins the sign.
    is_part = all(w >= 0 for each in nodes.weights.values() for _, w in each)
    number = one_of_two(node, score, 0.5 if is_part else 0)
    if only == 0:
        return number, both_columns(node, score, name, is_part)
    return number, transformed(node, beside(node, [_columns(node, scores, [0]), score]), name)


def _of_several(
    node: Node, nodes: TreeNodes, classes: int, name: str, base: Array
) -> tuple[SSAValue, SSAValue]:
    """The class's number and all columns. A class to which a row's leaves add nothing is not chosen."""
    if len(base) not in (0, classes):
        node.refuse("base_values", f"{len(base)} of {classes} classes")
    scores = _with_base(node, _forest(node, nodes, rows(node, doubles=True), classes), base)
    never = np.zeros(classes, np.bool_) if len(base) else _never_added_to(node, nodes, classes)
    seen = scores
    if never.any():
        lowest = scalar(node, -np.inf, scores)
        seen = node.emit(graph.WhereOp, node.tensor(never[None]), lowest, scores)
    number = node.emit(graph.ArgmaxOp, seen, axis=1, keepdims=False)
    return number, transformed(node, scores, name)


def _never_added_to(node: Node, nodes: TreeNodes, classes: int) -> Array:
    """Classes to which no leaf adds. Refuses where it hangs on the row whether leaves add to others."""
    always, ever = _added_to(nodes)
    some = any(all(each) for each in _targets_of_leaves(nodes))
    positive = some and all(w > 0 for each in nodes.weights.values() for _, w in each)
    if ever - always and not positive:
        node.refuse("class_ids", "leaves of a tree that add to other classes than its others")
    return np.array([c not in ever for c in range(classes)])


def _added_to(nodes: TreeNodes) -> tuple[set[int], set[int]]:
    """Columns to which some leaf adds in every row, and those to which any adds at all."""
    always, ever = set[int](), set[int]()
    for each in _targets_of_leaves(nodes):
        always |= set[int].intersection(*each)
        ever |= set[int].union(*each)
    return always, ever


def _targets_of_leaves(nodes: TreeNodes) -> list[list[set[int]]]:
    """Of each tree, the columns of each of its leaves."""
    return [
        [{t for t, _ in nodes.weights.get(leaf, ())} for leaf in _leaves(nodes, root)]
        for root in nodes.roots
    ]


HANDLERS: dict[str, Handler] = {
    "TreeEnsemble": _ensemble,
    "TreeEnsembleClassifier": _classifier,
    "TreeEnsembleRegressor": _regressor,
}
