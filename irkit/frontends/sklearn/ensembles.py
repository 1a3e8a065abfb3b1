"""Ensembles of any estimators: Bagging, Voting, Stacking, with sums in scikit-learn's order.

Where all members are trees, they are one forest, whose leaves are what each of them would add.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from irkit.dialects.graph import (
    AbsOp,
    AddOp,
    CompareOp,
    ExpOp,
    Log1pOp,
    MaxOp,
    NegOp,
    SubOp,
    WhereOp,
)
from irkit.errors import UnsupportedError
from irkit.frontends.sklearn.column_types import side_by_side
from irkit.frontends.sklearn.importer import Importer, Outputs, Predictor, Transformer, kind_of
from irkit.frontends.sklearn.outputs import classifier, largest, regressor
from irkit.frontends.sklearn.responses import (
    as_columns,
    as_label,
    labels,
    outputs_on,
    placed,
    value,
)
from irkit.frontends.sklearn.trees import Renumbered, sklearn_trees
from irkit.weights import Array

_TREES = (
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreeClassifier",
    "ExtraTreeRegressor",
)


def are_trees(step: Any) -> bool:
    """Whether all members are lone trees of one output."""
    return all(kind_of(e) in _TREES and e.n_outputs_ == 1 for e in step.estimators_)


def forest(
    importer: Importer, step: Any, x: SSAValue, values: list[Array], output: list[int] | None = None
) -> SSAValue:
    """The sum of all members' leaves in order, from 0; tree i adds to column `output[i]`, or leaves are
    vectors."""
    every = [np.arange(importer.width(x))] * len(step.estimators_)
    features = getattr(step, "estimators_features_", every)
    trees = [
        Renumbered(e.tree_, np.asarray(f)) for e, f in zip(step.estimators_, features, strict=True)
    ]
    width = values[0].shape[1] if output is None else len(output)
    nan = all(e.__sklearn_tags__().input_tags.allow_nan for e in step.estimators_)
    narrow = importer.tree_input(x, kind_of(step.estimators_[0]), nan)
    return sklearn_trees(trees, values, np.zeros(width), output).build(importer.builder, narrow)


def total(importer: Importer, parts: list[SSAValue]) -> SSAValue:
    """The sum of all, one after another, in their common dtype."""
    dtype = np.result_type(*(importer.dtype(p) for p in parts))
    result, *others = [importer.cast(p, dtype) for p in parts]
    for part in others:
        result = importer.builder(AddOp, result, part)
    return result


def members(step: Any) -> list[tuple[str, Any]]:
    """The fitted estimators of an ensemble."""
    return [("estimators_", e) for e in step.estimators_ if not isinstance(e, str)]


# Bagging


def _bagged(importer: Importer, step: Any, x: SSAValue) -> list[Outputs]:
    pairs = zip(step.estimators_, step.estimators_features_, strict=True)
    return [outputs_on(importer, e, x, np.asarray(f)) for e, f in pairs]


def _bagging_regressor(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    number = [len(step.estimators_)]
    if are_trees(step):
        found = forest(importer, step, x, [e.tree_.value[:, 0, :] for e in step.estimators_])
        return regressor(importer, importer.div(found, number, "members"))
    each = [value(o, "predict") for o in _bagged(importer, step, x)]
    # Of several targets as of one: with as many dimensions as members have.
    return regressor(importer, importer.div(total(importer, each), number, "members"), flat=False)


def _bagging_classifier(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    width = len(step.classes_)
    if are_trees(step):
        leaves = [_spread(e.tree_.value[:, 0, :], e.classes_, width) for e in step.estimators_]
        found = forest(importer, step, x, leaves)
        mean = importer.div(found, [len(leaves)], "members")
        return classifier(step, largest(importer, mean), mean, None)
    each = _bagged(importer, step, x)
    number = [float(len(each))]
    pairs = list(zip(step.estimators_, each, strict=True))
    mean = importer.div(
        total(importer, [_votes(importer, e, o, width) for e, o in pairs]), number, "members"
    )
    margin = None
    if hasattr(step, "decision_function"):
        margin = importer.div(
            total(importer, [value(o, "decision_function") for o in each]), number, "members"
        )
    outputs = classifier(step, largest(importer, mean), mean, margin)
    logs = [_logs(importer, e, o, width) for e, o in pairs]
    if all(log is not None for log in logs):
        joint = _log_total(importer, [log for log in logs if log is not None])
        joint = importer.sub(joint, np.log(number), "members")
        outputs.values.append(("log_probabilities", joint))
        outputs.methods["predict_log_proba"] = "log_probabilities"
    return outputs


def _spread(values: Array, places: Any, width: int) -> Array:
    """Leaves' fractions of the classes that a member met, as those of all classes."""
    wide = np.zeros((len(values), width))
    wide[:, np.asarray(places, np.int64)] = values
    return wide


def _votes(importer: Importer, estimator: Any, outputs: Outputs, width: int) -> SSAValue:
    """Probabilities, or 1 for the label, rows×classes in float64."""
    if hasattr(estimator, "predict_proba"):
        found = value(outputs, "predict_proba")
        return importer.cast(placed(importer, found, estimator.classes_, width), np.float64)
    return chosen(importer, labels(importer, outputs), np.arange(width), 1.0, 0.0)


def chosen(
    importer: Importer, label: SSAValue, every: Array, weight: float, other: float
) -> SSAValue:
    """rows×labels: `weight` at the row's own label (rows×1), else `other`."""
    own = importer.compare(label, "eq", every, "labels")
    a, b = (importer.builder.constant(np.full((1, 1), w), "weight") for w in (weight, other))
    return importer.builder(WhereOp, own, a, b)


def _logs(importer: Importer, estimator: Any, outputs: Outputs, width: int) -> SSAValue | None:
    """What a member adds to the sum of probabilities as logarithms, if it computes them as such."""
    found = outputs.methods.get("predict_log_proba")
    if found in (None, outputs.methods.get("predict_proba")) or len(estimator.classes_) != width:
        return None
    return value(outputs, "predict_log_proba")


def _log_total(importer: Importer, parts: list[SSAValue]) -> SSAValue:
    """log of the sum of exp of all, by NumPy's logaddexp."""
    result, build = parts[0], importer.builder
    for part in parts[1:]:
        larger = build(MaxOp, result, part)
        apart = build(AbsOp, build(SubOp, result, part))
        more = build(Log1pOp, build(ExpOp, build(NegOp, apart)))
        # Both may be -infinity.
        same = build(CompareOp, result, part, predicate="eq")
        more = importer.where(same, more, [np.log(2.0)], "log_2")
        result = build(AddOp, larger, more)
    return result


# Voting


def _weights(step: Any) -> list[float] | None:
    found = step._weights_not_none
    return None if found is None else [float(w) for w in found]


def _average(importer: Importer, parts: list[SSAValue], weights: list[float] | None) -> SSAValue:
    """`np.average`: in float64 if there are weights."""
    if weights is None:
        return importer.div(total(importer, parts), [len(parts)], "members")
    weighed = [
        importer.mul(importer.cast(p, np.float64), [w], "weight")
        for p, w in zip(parts, weights, strict=True)
    ]
    return importer.div(total(importer, weighed), [sum(weights)], "weights")


def _voters(importer: Importer, step: Any, x: SSAValue) -> list[Outputs]:
    return [outputs_on(importer, e, x) for e in step.estimators_]


def _voting_regressor(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    each = [as_columns(importer, value(o, "predict")) for o in _voters(importer, step, x)]
    if any(importer.width(y) > 1 for y in each):
        raise UnsupportedError(
            "VotingRegressor of members with several outputs; one each is supported"
        )
    return regressor(importer, _average(importer, each, _weights(step)))


def _voting_classifier(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    each = _voters(importer, step, x)
    if step.voting == "soft":
        found = [value(o, "predict_proba") for o in each]
        mean = _average(importer, found, _weights(step))
        return classifier(step, largest(importer, mean), mean, None, log=False)
    weights = _weights(step) or [1.0] * len(each)
    every = np.arange(len(step.classes_))
    votes = [
        chosen(importer, labels(importer, o), every, w, 0.0)
        for o, w in zip(each, weights, strict=True)
    ]
    return classifier(step, largest(importer, total(importer, votes)), None, None)


def _voices(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    each = _voters(importer, step, x)
    if getattr(step, "voting", "") == "soft":
        return importer.concat([value(o, "predict_proba") for o in each])
    return importer.concat([labels(importer, o) for o in each])


def _why_no_voices(step: Any) -> list[str]:
    if step.voting == "soft" and not step.flatten_transform:
        return ["parameter flatten_transform=False"]
    return []


def _why_no_voting(step: Any) -> list[str]:
    weights = _weights(step) or [1.0]
    return ["parameter weights with negative numbers"] if min(weights) < 0 else []


# Stacking


def _stacked(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    fitted = [e for e in step.estimators_ if not isinstance(e, str)]
    binary = len(getattr(step, "classes_", ())) == 2
    parts: list[SSAValue] = []
    for estimator, method in zip(fitted, step.stack_method_, strict=True):
        outputs = outputs_on(importer, estimator, x)
        found = labels(importer, outputs) if method == "predict" else value(outputs, method)
        columns = as_columns(importer, found)
        if method == "predict_proba" and binary:
            columns = importer.columns(columns, [1])
        parts.append(columns)
    if step.passthrough:
        importer.words.read_as_numbers(x, "passthrough")
    return side_by_side(importer, [*parts, x] if step.passthrough else parts)


def _stacking_regressor(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    outputs = outputs_on(importer, step.final_estimator_, _stacked(importer, step, x))
    return Outputs("regressor", outputs.values, {"predict": outputs.methods["predict"]})


def _stacking_classifier(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    found = outputs_on(importer, step.final_estimator_, _stacked(importer, step, x))
    kept = ("predict", "predict_proba", "decision_function")
    methods = {m: n for m, n in found.methods.items() if m in kept}
    values = [(n, v) for n, v in found.values if n in methods.values()]
    outputs = Outputs("classifier", values, methods, found.classes)
    as_label(outputs, step.classes_)
    return outputs


def _stack_members(step: Any) -> list[tuple[str, Any]]:
    return [*members(step), ("final_estimator_", step.final_estimator_)]


def _why_no_stacking(step: Any) -> list[str]:
    several = isinstance(getattr(step, "_label_encoder", None), list)
    return ["several outputs"] if several else []


PREDICTORS: dict[str, Predictor] = {
    "BaggingClassifier": Predictor(_bagging_classifier, members=members),
    "BaggingRegressor": Predictor(_bagging_regressor, members=members),
    "StackingClassifier": Predictor(
        _stacking_classifier, why_not_fitted=_why_no_stacking, members=_stack_members
    ),
    "StackingRegressor": Predictor(_stacking_regressor, members=_stack_members),
    "VotingClassifier": Predictor(
        _voting_classifier, why_not_fitted=_why_no_voting, members=members
    ),
    "VotingRegressor": Predictor(_voting_regressor, members=members),
}
TRANSFORMERS: dict[str, Transformer] = {
    "StackingClassifier": Transformer(
        _stacked, why_not_fitted=_why_no_stacking, members=_stack_members
    ),
    "StackingRegressor": Transformer(_stacked, members=_stack_members),
    "VotingClassifier": Transformer(_voices, why_not_fitted=_why_no_voices, members=members),
    "VotingRegressor": Transformer(_voices, members=members),
}
