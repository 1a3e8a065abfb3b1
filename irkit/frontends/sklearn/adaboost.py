"""AdaBoost: weighed votes, and the weighted median of regressors."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from irkit.dialects.graph import (
    AddOp,
    ArgmaxOp,
    CastOp,
    CompareOp,
    CumSumOp,
    GatherElementsOp,
    GatherOp,
    MulOp,
    NegOp,
    SoftmaxOp,
    TopKOp,
)
from irkit.frontends.sklearn.ensembles import are_trees, chosen, forest, members, total
from irkit.frontends.sklearn.importer import Importer, Outputs, Predictor
from irkit.frontends.sklearn.outputs import classifier, largest, regressor, sign_label
from irkit.frontends.sklearn.responses import as_columns, numbers_of, outputs_on, value
from irkit.weights import Array


def _decision(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    """rows×classes: each member gives its weight to its label, and takes a share from the others."""
    count = len(step.classes_)
    pairs = list(zip(step.estimators_, step.estimator_weights_, strict=False))
    if are_trees(step):
        leaves = [_leaves(e, float(w), step.classes_) for e, w in pairs]
        found = forest(importer, step, x, leaves)
    else:
        parts: list[SSAValue] = []
        for estimator, weight in pairs:
            number = value(outputs_on(importer, estimator, x), "predict")
            label = importer.column(number)
            own = numbers_of(step.classes_, estimator.classes_)
            own = np.where(np.isin(step.classes_, estimator.classes_), own, -1)
            parts.append(
                chosen(importer, label, own, float(weight), float(-1 / (count - 1) * weight))
            )
        found = total(importer, parts)
    return importer.div(found, [float(step.estimator_weights_.sum())], "weights")


def _leaves(estimator: Any, weight: float, classes: Any) -> Array:
    """Leaves of a tree as what its label adds to each class."""
    label = estimator.tree_.value[:, 0, :].argmax(axis=1)
    number = numbers_of(estimator.classes_, classes)[label]
    own = number[:, None] == np.arange(len(classes))
    return np.where(own, weight, -1 / (len(classes) - 1) * weight)


def _classifier(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    found, build = _decision(importer, step, x), importer.builder
    count = len(step.classes_)
    if count > 2:
        logits = importer.div(found, [count - 1.0], "classes")
        return classifier(step, largest(importer, found), build(SoftmaxOp, logits, axis=1), found)
    first, second = (importer.columns(found, [k]) for k in (0, 1))
    margin = build(AddOp, build(NegOp, first), second)
    both = importer.concat([build(NegOp, margin), margin])
    probabilities = build(SoftmaxOp, importer.div(both, [2.0], "two"), axis=1)
    label = sign_label(importer, margin, "gt")
    return classifier(step, label, probabilities, importer.flat(margin))


def _regressor(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    """The value at which half of the weights are met, values in order."""
    count, build = len(step.estimators_), importer.builder
    if are_trees(step):
        leaves = [e.tree_.value[:, 0, :] for e in step.estimators_]
        found = forest(importer, step, x, leaves, list(range(count)))
    else:
        each = [value(outputs_on(importer, e, x), "predict") for e in step.estimators_]
        found = importer.concat([as_columns(importer, y) for y in each])
    values, order = build.ops(TopKOp, found, k=count, axis=1, largest=False)
    weights = build.constant(np.asarray(step.estimator_weights_, np.float64), "weights")
    sums = build(
        CumSumOp, build(GatherOp, weights, order, axis=0), axis=1, exclusive=False, reverse=False
    )
    half = build(
        MulOp, importer.columns(sums, [count - 1]), build.constant(np.full((1, 1), 0.5), "half")
    )
    reached = build(CastOp, build(CompareOp, sums, half, predicate="ge"), to=i64)
    place = build(ArgmaxOp, reached, axis=1, keepdims=True)
    return regressor(importer, build(GatherElementsOp, values, place, axis=1))


def _why_no_classes(step: Any) -> list[str]:
    return ["one class"] if len(step.classes_) == 1 else []


PREDICTORS: dict[str, Predictor] = {
    "AdaBoostClassifier": Predictor(_classifier, why_not_fitted=_why_no_classes, members=members),
    "AdaBoostRegressor": Predictor(_regressor, members=members),
}
