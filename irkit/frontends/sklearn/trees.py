"""Decision trees and the ensembles of them that scikit-learn sums in float64, in tree order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from xdsl.ir import SSAValue

from irkit.dialects.graph import AddOp, ClipOp, CompareOp, LogOp, NegOp, PowOp, SubOp, WhereOp
from irkit.errors import UnsupportedError
from irkit.frontends.sklearn.importer import Importer, Outputs, Predictor, Transformer, kind_of
from irkit.frontends.sklearn.outputs import (
    classifier,
    from_margins,
    largest,
    regressor,
    several_classifiers,
)
from irkit.frontends.sklearn.responses import as_columns, outputs_on, value
from irkit.frontends.trees import Trees, floor32, join


def sklearn_trees(
    trees: list[Any], values: list[Any], base: Any, output: list[int] | None = None
) -> Trees:
    """Fitted `tree_` objects, in order, with leaf `values` (nodes×width); tree i adds to column
    `output[i]`, or to all columns if leaves are vectors."""
    columns = output if output is not None else [0] * len(trees)
    found = zip(trees, values, columns, strict=True)
    return join([_one_tree(tree, value, column, base) for tree, value, column in found])


def _one_tree(tree: Any, value: Any, column: int, base: Any) -> Trees:
    nodes = np.arange(int(tree.node_count))
    left, right = np.asarray(tree.children_left), np.asarray(tree.children_right)
    leaf = left < 0
    missing = getattr(tree, "missing_go_to_left", np.zeros(tree.node_count, np.uint8))
    return Trees(
        np.where(leaf, 0, np.asarray(tree.feature)),
        floor32(tree.threshold),
        np.where(leaf, nodes, left),
        np.where(leaf, nodes, right),
        missing.astype(np.bool_),
        np.ascontiguousarray(value, np.float64),
        np.array([0]),
        np.array([column]),
        base,
    )


def _trees_of(step: Any) -> list[Any]:
    """All trees; a lone one is its own ensemble."""
    return [e.tree_ for e in step.estimators_] if hasattr(step, "estimators_") else [step.tree_]


def _mean(importer: Importer, step: Any, x: SSAValue, values: list[Any]) -> SSAValue:
    """Sum over trees in order, from zero, divided by their number, in float64."""
    width = values[0].shape[1]
    trees = sklearn_trees(_trees_of(step), values, np.zeros(width))
    total = trees.build(importer.builder, importer.cast(x, np.float32))
    if not hasattr(step, "estimators_"):
        return total
    return importer.div(total, float(len(step.estimators_)), "trees")


def _regressor(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    values = [t.value[:, :, 0] for t in _trees_of(step)]
    return regressor(importer, _mean(importer, step, x, values), flat=values[0].shape[1] == 1)


def _classifier(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    sizes = [int(n) for n in np.atleast_1d(step.n_classes_)]
    parts = [(k, size) for k, size in enumerate(sizes)]
    values = [
        np.concatenate([tree.value[:, k, :size] for k, size in parts], axis=1)
        for tree in _trees_of(step)
    ]
    mean = _mean(importer, step, x, values)
    if len(sizes) == 1:
        return classifier(step, largest(importer, mean), mean, None)
    return _several_outputs(importer, step, mean, sizes)


def _several_outputs(importer: Importer, step: Any, mean: SSAValue, sizes: list[int]) -> Outputs:
    """One label and one array of probabilities per output."""
    ends = np.cumsum(sizes)
    parts = [
        importer.columns(mean, np.arange(int(end) - size, int(end)))
        for size, end in zip(sizes, ends, strict=True)
    ]
    return several_classifiers(step, [largest(importer, part) for part in parts], parts)


# Gradient boosting


def _boosted(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    """Raw predictions: init, then learning_rate * leaf of each stage in order, in float64."""
    stages, columns = step.estimators_.shape
    base = np.zeros(columns)
    if not _init_of(step):
        row = np.zeros((1, step.n_features_in_), np.float32)
        # The default init predicts the same for every row.
        base = np.asarray(step._raw_predict_init(row), np.float64).reshape(columns)
    trees = [step.estimators_[i, k].tree_ for i in range(stages) for k in range(columns)]
    values = [t.value[:, 0, :] * float(step.learning_rate) for t in trees]
    output = [k for _ in range(stages) for k in range(columns)]
    ensemble = sklearn_trees(trees, values, base, output)
    narrow = importer.cast(x, np.float32)
    total = ensemble.build(importer.builder, narrow)
    if not _init_of(step):
        return total
    return importer.builder(AddOp, _init_margins(importer, step, narrow), total)


def _init_of(step: Any) -> list[tuple[str, Any]]:
    """The estimator that boosting starts from, if the user gave one."""
    plain = step.init is None or isinstance(step.init, str)
    return [] if plain else [("init_", step.init_)]


def _init_margins(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    """What the estimator `init_` makes of the float32 copy, as margins, rows×columns of float64."""
    outputs = outputs_on(importer, step.init_, x)
    if not hasattr(step, "classes_"):
        return importer.cast(as_columns(importer, value(outputs, "predict")), np.float64)
    shares = value(outputs, "predict_proba")
    if importer.dtype(shares) != np.float64:
        # One unit of a share next to 1 is all of its log-odds.
        raise UnsupportedError(
            f"step '{kind_of(step)}': parameter init={step.init!r}, whose probabilities are float32: their "
            "logarithms hang on the last bit"
        )
    if step.estimators_.shape[1] == 1:
        shares = importer.columns(shares, [1])
    eps = float(np.finfo(np.float64).eps)
    shares = importer.builder(ClipOp, importer.cast(shares, np.float64), min=eps, max=1 - eps)
    logs = importer.builder(LogOp, shares)
    if step.estimators_.shape[1] > 1:
        return importer.builder(SubOp, logs, importer.reduce("mean", logs))
    one = importer.constant(shares, [1.0], "one")
    odds = importer.builder(
        SubOp, logs, importer.builder(LogOp, importer.builder(SubOp, one, shares))
    )
    return importer.mul(odds, [0.5], "half") if step.loss == "exponential" else odds


def _boosted_regressor(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    return regressor(importer, _boosted(importer, step, x))


def _boosted_classifier(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    # The exponential loss links margins to probabilities by a logit of half the slope.
    slope = 2.0 if step.loss == "exponential" else 1.0
    return from_margins(importer, step, _boosted(importer, step, x), at_zero=True, slope=slope)


# Isolation forest


def _isolation(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    """Depths summed in float64, then 2^-(depth / expected depth). The label is decided by the depth,
    so that a unit in the last place of the power cannot change it."""
    build = importer.builder
    values = [
        (path + average - 1.0)[:, None]
        for path, average in zip(
            step._decision_path_lengths, step._average_path_length_per_tree, strict=True
        )
    ]
    # In a sparse matrix scikit-learn compares NaN as it does numbers: it goes to the right.
    gaps = not importer.is_sparse(x)
    trees = [
        _one_tree(Renumbered(e.tree_, np.asarray(features), gaps), value, 0, np.zeros(1))
        for e, features, value in zip(
            step.estimators_, step.estimators_features_, values, strict=True
        )
    ]
    depth = join(trees).build(build, importer.cast(x, np.float32))
    scale = _expected_depth(step)
    ratio = importer.div(depth, [scale], "expected_depth")
    two = build.constant(np.full((1, 1), 2.0), "two")
    score = build(NegOp, build(PowOp, two, build(NegOp, ratio)))
    decision = importer.sub(score, [float(step.offset_)], "offset")
    limit = build.constant(np.array([[_last_outlier(step, scale)]]), "last_outlier")
    outlier = build(CompareOp, depth, limit, predicate="le")
    label = build(
        WhereOp,
        outlier,
        build.constant(np.full((1, 1), -1, np.int64), "outlier"),
        build.constant(np.full((1, 1), 1, np.int64), "inlier"),
    )
    values_out = [
        ("label", importer.flat(label)),
        ("margin", importer.flat(decision)),
        ("score", importer.flat(score)),
    ]
    methods: dict[str, str | tuple[str, ...]] = {
        "predict": "label",
        "decision_function": "margin",
        "score_samples": "score",
    }
    return Outputs("outlier", values_out, methods)


class Renumbered:
    """A tree over some of the columns, as one over all; whether it knows where NaN goes."""

    def __init__(self, tree: Any, features: Any, gaps: bool = True) -> None:
        self.node_count, self.threshold = tree.node_count, tree.threshold
        self.children_left, self.children_right = tree.children_left, tree.children_right
        self.feature = np.where(tree.children_left < 0, 0, features[np.maximum(tree.feature, 0)])
        nodes = np.zeros(tree.node_count, np.uint8)
        self.missing_go_to_left = getattr(tree, "missing_go_to_left", nodes) if gaps else nodes


def _expected_depth(step: Any) -> float:
    from sklearn.ensemble import _iforest

    average = cast(Any, _iforest)._average_path_length([step._max_samples])
    return float(len(step.estimators_) * average[0])


def _last_outlier(step: Any, scale: float) -> float:
    """The largest depth that is judged an outlier: bisection over all float64 numbers of 0 or more."""

    def is_outlier(bits: int) -> bool:
        depth = np.array([bits], np.int64).view(np.float64)
        return bool((-(2 ** (-np.divide(depth, scale))) - step.offset_ < 0)[0])

    low, high = 0, int(np.array([np.finfo(np.float64).max]).view(np.int64)[0])
    if not is_outlier(low):
        return -1.0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_outlier(middle) else (low, middle)
    return float(np.array([low], np.int64).view(np.float64)[0])


def _why_not_isolation(step: Any) -> list[str]:
    return ["trained on a single row"] if _expected_depth(step) == 0 else []


# Leaves


def _embedded(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    """1 for the leaf of each tree that a row is in, which each tree adds as a number to its own column."""
    takes_gaps = bool(step.__sklearn_tags__().input_tags.allow_nan)
    narrow = importer.tree_input(x, "RandomTreesEmbedding", takes_gaps)
    trees = _trees_of(step)
    values = [np.arange(tree.node_count, dtype=np.float64)[:, None] for tree in trees]
    found = sklearn_trees(trees, values, np.zeros(len(trees)), list(range(len(trees))))
    leaves = found.build(importer.builder, narrow)
    known = [np.asarray(c, np.float64) for c in step.one_hot_encoder_.categories_]
    spread = importer.columns(leaves, np.repeat(np.arange(len(known)), [len(c) for c in known]))
    here = importer.compare(spread, "eq", np.concatenate(known), "leaves")
    return importer.cast(here, np.float64)


def _tree(build: Callable[[Importer, Any, SSAValue], Outputs]) -> Predictor:
    return Predictor(build, trees=True)


PREDICTORS: dict[str, Predictor] = {
    "DecisionTreeClassifier": _tree(_classifier),
    "DecisionTreeRegressor": _tree(_regressor),
    "ExtraTreeClassifier": _tree(_classifier),
    "ExtraTreeRegressor": _tree(_regressor),
    "ExtraTreesClassifier": _tree(_classifier),
    "ExtraTreesRegressor": _tree(_regressor),
    "GradientBoostingClassifier": Predictor(_boosted_classifier, trees=True, members=_init_of),
    "GradientBoostingRegressor": Predictor(_boosted_regressor, trees=True, members=_init_of),
    "IsolationForest": Predictor(_isolation, why_not_fitted=_why_not_isolation, trees=True),
    "RandomForestClassifier": _tree(_classifier),
    "RandomForestRegressor": _tree(_regressor),
}
TRANSFORMERS: dict[str, Transformer] = {
    "RandomTreesEmbedding": Transformer(_embedded, nan="clears", bounded=True)
}
