"""XGBoost models, read from their JSON, with XGBoost's own arithmetic.

Input is float32 and compared with `<`; NaN takes the default direction; trees are summed in float32,
one after another from the base margin. gblinear leaves out what is missing.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.dialects.builtin import f32, f64, i64
from xdsl.ir import SSAValue

from irkit.dialects.graph import (
    AddOp,
    ArgmaxOp,
    CastOp,
    CompareOp,
    ConcatOp,
    DivOp,
    ExpOp,
    IsNanOp,
    MatmulOp,
    MaxOp,
    ReduceOp,
    ReshapeOp,
    SigmoidOp,
    SubOp,
    WhereOp,
)
from irkit.dialects.types import DYNAMIC, tensor
from irkit.errors import InvalidModelError, UnsupportedError
from irkit.frontends.categories import CategorySets
from irkit.frontends.module import GraphBuilder, ImportedModel, Methods, Outputs
from irkit.frontends.trees import Trees, check_splits, join
from irkit.frontends.xgboost_json import JsonModel, base_margin, read, read_file, with_empty_tree
from irkit.weights import Array

# What is done to the margins.
_OBJECTIVES = {
    "binary:hinge": "hinge",
    "binary:logistic": "sigmoid",
    "binary:logitraw": "",
    "count:poisson": "exp",
    "multi:softmax": "softmax",
    "multi:softprob": "softmax",
    "rank:map": "",
    "rank:ndcg": "",
    "rank:pairwise": "",
    "reg:absoluteerror": "",
    "reg:gamma": "exp",
    "reg:logistic": "sigmoid",
    "reg:pseudohubererror": "",
    "reg:quantileerror": "",
    "reg:squarederror": "",
    "reg:squaredlogerror": "",
    "reg:tweedie": "exp",
    "survival:aft": "exp",
    "survival:cox": "exp",
}
_BOOSTERS = ("gbtree", "dart", "gblinear")
_CLASSIFIERS = ("XGBClassifier", "XGBRFClassifier")
ESTIMATORS = (*_CLASSIFIERS, "XGBRFRegressor", "XGBRanker", "XGBRegressor")
# XGBoost's Sigmoid keeps exp(-x) finite.
_LOWEST_LOGIT = np.float32(-88.7)


def import_xgboost(model: Any, dtype: str = "float32") -> ImportedModel:
    """The graph-level module of a Booster or of a fitted estimator of XGBoost's.

    The program takes float32; XGBoost itself converts float64. Raises UnsupportedError listing all
    that is missing, InvalidModelError if the model is not fitted.
    """
    if dtype not in ("float32", "float64"):
        raise UnsupportedError(f"XGBoost input of dtype {dtype}; accepted: float32, float64")
    kind = type(model).__name__
    if kind not in ("Booster", *ESTIMATORS):
        raise UnsupportedError(f"XGBoost model {kind}; supported: Booster, {', '.join(ESTIMATORS)}")
    return _imported(json_of(model), model, kind)


def import_xgboost_file(path: str | Path, dtype: str = "float32") -> ImportedModel:
    """The graph-level module of a `.json` or `.ubj` file, as that of the Booster that XGBoost would read.

    Raises UnsupportedError, and InvalidModelError for a file that is damaged.
    """
    found, booster = read_file(path)
    return _imported(found, booster, "model file")


def _imported(found: JsonModel, model: Any, kind: str) -> ImportedModel:
    missing = why_not(found, model)
    if missing:
        raise UnsupportedError(f"cannot import {kind} exactly:", missing)
    builder = GraphBuilder([("x", tensor(f32, (DYNAMIC, found.features)))])
    outputs = xgboost_outputs(builder, builder.inputs[0], found, model)
    names = _booster(model).feature_names
    info = outputs.info(
        casts=("float64",),
        # A Booster is given a DMatrix, which refuses infinity; the estimators of trees go past it.
        allow_infinity=kind in ESTIMATORS and found.booster != "gblinear",
        # Of several columns XGBoost gives a flat array then.
        allow_empty=found.columns == 1,
        source=f"XGBoost {kind}",
        columns=tuple(names) if names else None,
        absent="nan",
        categories=found.categories,
    )
    return builder.finish(outputs.values, info)


def json_of(model: Any) -> JsonModel:
    """A Booster's or an estimator's model. Raises InvalidModelError if it is not fitted."""
    booster = _booster(model)
    return read(booster, _last_iteration(booster) if _wrapper(model) is not None else None)


def xgboost_outputs(builder: GraphBuilder, x: SSAValue, found: JsonModel, model: Any) -> Outputs:
    """The methods of a model on rows×features of float32."""
    base, wrapper = base_margin(_booster(model), found), _wrapper(model)
    x = _without_missing(builder, x, wrapper)
    if found.linear is None:
        margins = _forest_margins(builder, x, found, base, wrapper)
    else:
        margins = _linear_margins(builder, x, found.linear, base)
    if type(model).__name__ in _CLASSIFIERS:
        return _classifier(builder, model, margins, found)
    return _predictor(builder, margins, found)


def gives_probabilities(found: JsonModel) -> bool:
    """Whether `predict_proba` of a classifier gives numbers from 0 to 1 alone, as of margins it does not."""
    return _OBJECTIVES[found.objective] in ("hinge", "sigmoid", "softmax")


def is_linear(model: Any) -> bool:
    """Whether a fitted estimator's booster is gblinear."""
    config: Any = json.loads(_booster(model).save_config())
    return config["learner"]["gradient_booster"]["name"] == "gblinear"


def _linear_margins(builder: GraphBuilder, x: SSAValue, weights: Array, base: Array) -> SSAValue:
    """rows×columns: what is there by its weights, and the bias."""
    zero = builder.constant(np.zeros(1, np.float32), "zero")
    there = builder(WhereOp, builder(IsNanOp, x), zero, x)
    terms = builder(MatmulOp, there, builder.constant(np.ascontiguousarray(weights[:-1])))
    return builder(AddOp, terms, builder.constant(base[None], "bias"))


def _forest_margins(
    builder: GraphBuilder, x: SSAValue, found: JsonModel, base: Array, wrapper: Any
) -> SSAValue:
    """rows×columns: sums of trees."""
    found = found if found.trees else with_empty_tree(found)
    sets = CategorySets(found.features, unknown_left=True, named_right=True)
    weights = found.weights or [1.0] * len(found.trees)
    # The estimators of dart predict by each tree with the base margin on top, and take it off again.
    lift = base if wrapper is not None and found.weights else None
    parts = [
        _tree(t, c, base, sets, np.float32(w), None if lift is None else lift[c])
        for t, c, w in zip(found.trees, found.output, weights, strict=True)
    ]
    return join(parts).build(builder, sets.extend(builder, x))


def _wrapper(model: Any) -> Any:
    """The estimator; None for a Booster."""
    return model if type(model).__name__ in ESTIMATORS else None


def _without_missing(builder: GraphBuilder, x: SSAValue, wrapper: Any) -> SSAValue:
    """x with NaN for the estimator's own missing value."""
    if wrapper is None or _is_nan(wrapper.missing):
        return x
    value = builder.constant(np.array([wrapper.missing], np.float32), "missing")
    nan = builder.constant(np.array([np.nan], np.float32), "nan")
    return builder(WhereOp, builder(CompareOp, x, value, predicate="eq"), nan, x)


def _booster(model: Any) -> Any:
    from sklearn.exceptions import NotFittedError

    if _wrapper(model) is None:
        return model
    try:
        return model.get_booster()
    except NotFittedError:
        raise InvalidModelError(f"{type(model).__name__} is not fitted: call fit first") from None


def _last_iteration(booster: Any) -> int | None:
    """The wrappers predict with the trees up to the best iteration, if training stopped early."""
    best = booster.attributes().get("best_iteration")
    return None if best is None else int(best) + 1


def why_not(found: JsonModel, model: Any) -> list[str]:
    """Reasons why a model cannot be imported, alone or within another."""
    reasons: list[str] = []
    wrapper = _wrapper(model)
    if found.booster not in _BOOSTERS:
        reasons.append(f"booster '{found.booster}' (supported: {', '.join(_BOOSTERS)})")
    if found.linear is not None and not np.isfinite(found.linear).all():
        reasons.append("weights that are not finite")
    if found.objective not in _OBJECTIVES:
        reasons.append(f"objective '{found.objective}' (supported: {', '.join(_OBJECTIVES)})")
    if wrapper is not None and not _is_missing(wrapper.missing):
        reasons.append(f"parameter missing={wrapper.missing} (supported: finite numbers, nan)")
    if type(wrapper).__name__ in _CLASSIFIERS:
        reasons += _why_no_classifier(found, wrapper)
    return reasons


def _is_nan(value: Any) -> bool:
    # None is no number: NumPy cannot say whether it is NaN.
    return value is not None and bool(np.isnan(value))


def _is_missing(value: Any) -> bool:
    return value is not None and not bool(np.isinf(value))


def _why_no_classifier(found: JsonModel, model: Any) -> list[str]:
    """Reasons why a classifier's labels or probabilities cannot be given."""
    if found.objective not in _OBJECTIVES:
        return []
    binary = found.objective.startswith("binary:") and found.columns == 1
    if _OBJECTIVES[found.objective] not in ("sigmoid", "softmax") and not binary:
        return [f"a classifier with objective '{found.objective}'"]
    wide = found.columns > 1 or found.objective.startswith("multi:")
    if wide and model.n_classes_ < 2:
        return [f"a classifier of {model.n_classes_} class and {found.columns} columns"]
    return []


def _tree(
    tree: dict[str, Any],
    column: int,
    base: Any,
    sets: CategorySets,
    weight: np.float32,
    lift: np.float32 | None,
) -> Trees:
    left, right = tree["left_children"], tree["right_children"]
    condition, nan_left = tree["split_conditions"].copy(), tree["default_left"].copy()
    leaf, nodes = left < 0, np.arange(len(left))
    check_splits(left, right, ~leaf)
    feature = np.where(leaf, 0, tree["split_indices"])
    # At a leaf the condition is its value; vectors are kept apart, a leaf's number in its right child.
    leaves = condition if lift is None else (condition + lift) - lift
    value = leaves[:, None] * weight
    if tree["vector"]:
        vectors = tree["leaf_weights"] * weight
        value = np.where(leaf[:, None], vectors[np.where(leaf, right, 0)], np.float32(0))
    # What a set names goes right.
    for node, members in tree["sets"]:
        feature[node] = sets.column(int(feature[node]), members, bool(nan_left[node]))
        condition[node], nan_left[node] = 0.5, False
    return Trees(
        feature,
        condition,
        np.where(leaf, nodes, left),
        np.where(leaf, nodes, right),
        nan_left,
        value,
        np.zeros(1, np.int64),
        np.array([column]),
        base,
        "lt",
    )


def _sigmoid(builder: GraphBuilder, margins: SSAValue) -> SSAValue:
    lowest = builder.constant(np.array([_LOWEST_LOGIT]), "lowest")
    return builder(SigmoidOp, builder(MaxOp, margins, lowest))


def _softmax(builder: GraphBuilder, margins: SSAValue) -> SSAValue:
    """XGBoost's own, rows×classes: exponentials in float32, their sum in float64, and rounded."""
    largest = builder(ReduceOp, margins, kind="max", axes=[1], keepdims=True)
    each = builder(ExpOp, builder(SubOp, margins, largest))
    total = builder(ReduceOp, builder(CastOp, each, to=f64), kind="sum", axes=[1], keepdims=True)
    return builder(DivOp, each, builder(CastOp, total, to=f32))


def _flat(builder: GraphBuilder, y: SSAValue) -> SSAValue:
    return builder(ReshapeOp, y, shape=[DYNAMIC])


def _classifier(
    builder: GraphBuilder,
    model: Any,
    margins: SSAValue,
    found: JsonModel,
) -> Outputs:
    if _marks_columns(found, model):
        return _marked(builder, margins, found)
    # One label that never changed in training still has two columns, and may be predicted as 1.
    classes = tuple(range(max(int(model.n_classes_), found.columns, 2)))
    labels = "int32" if found.objective == "multi:softmax" else "int64"
    if found.columns == 1:
        # Of hinge they are decisions, of logitraw margins: the labels compare these with a half, too.
        second = _values(builder, margins, _OBJECTIVES[found.objective])
        half = builder.constant(np.array([0.5], np.float32), "half")
        above = builder(CompareOp, second, half, predicate="gt")
        label = _flat(builder, builder(CastOp, above, to=i64))
        first = builder(SubOp, builder.constant(np.ones(1, np.float32), "one"), second)
        probabilities = builder(ConcatOp, first, second, axis=1)
    else:
        probabilities = _softmax(builder, margins)
        # softmax decides by margins, softprob by probabilities, where rounding can make ties.
        deciding = margins if found.objective == "multi:softmax" else probabilities
        label = builder(ArgmaxOp, deciding, axis=1, keepdims=False)
    methods: Methods = {"predict": "label", "predict_proba": "probabilities"}
    values = [("label", label), ("probabilities", probabilities)]
    return Outputs("classifier", values, methods, classes, labels)


def _marks_columns(found: JsonModel, model: Any) -> bool:
    """Whether `predict` says of each column whether its probability is above a half: of several labels a
    row, and, as XGBoost has it, of softprob that saw two classes."""
    return found.columns > 1 and found.objective != "multi:softmax" and model.n_classes_ == 2


def _marked(builder: GraphBuilder, margins: SSAValue, found: JsonModel) -> Outputs:
    if _OBJECTIVES[found.objective] == "softmax":
        values = _softmax(builder, margins)
    else:
        values = _sigmoid(builder, margins)
    half = builder.constant(np.array([0.5], np.float32), "half")
    label = builder(CastOp, builder(CompareOp, values, half, predicate="gt"), to=f64)
    methods: Methods = {"predict": "label", "predict_proba": "probabilities"}
    return Outputs("classifier", [("label", label), ("probabilities", values)], methods)


def _values(builder: GraphBuilder, margins: SSAValue, transformed: str) -> SSAValue:
    """What an objective makes of margins, element by element."""
    match transformed:
        case "sigmoid":
            return _sigmoid(builder, margins)
        case "exp":
            return builder(ExpOp, margins)
        case "hinge":
            zero = builder.constant(np.zeros(1, np.float32), "zero")
            return builder(CastOp, builder(CompareOp, margins, zero, predicate="gt"), to=f32)
        case _:
            return margins


def _predictor(builder: GraphBuilder, margins: SSAValue, found: JsonModel) -> Outputs:
    if _OBJECTIVES[found.objective] != "softmax":
        values = _values(builder, margins, _OBJECTIVES[found.objective])
    elif found.objective == "multi:softprob":
        values = _softmax(builder, margins)
    else:
        label = builder(ArgmaxOp, margins, axis=1, keepdims=False)
        values = builder(CastOp, label, to=f32)
    if found.columns == 1:
        values = _flat(builder, values)
    return Outputs("regressor", [("prediction", values)], {"predict": "prediction"})
