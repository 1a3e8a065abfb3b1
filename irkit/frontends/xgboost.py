"""XGBoost models, read from their JSON, with XGBoost's own arithmetic.

Input is float32 and compared with `<`; NaN takes the default direction; trees are summed in float32,
one after another from the base margin.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import f32, i64
from xdsl.ir import SSAValue

from irkit.dialects.graph import (
    ArgmaxOp,
    CastOp,
    CompareOp,
    ConcatOp,
    ExpOp,
    ReshapeOp,
    SigmoidOp,
    SoftmaxOp,
    SubOp,
)
from irkit.dialects.types import DYNAMIC, tensor
from irkit.errors import InvalidModelError, UnsupportedError
from irkit.frontends.module import GraphBuilder, ImportedModel
from irkit.frontends.trees import Trees, join
from irkit.model_info import ModelInfo

# What is done to the margins. Not binary:logitraw: releases differ in what its base_score means.
_OBJECTIVES = {
    "binary:logistic": "sigmoid",
    "count:poisson": "exp",
    "multi:softmax": "softmax",
    "multi:softprob": "softmax",
    "reg:absoluteerror": "",
    "reg:gamma": "exp",
    "reg:logistic": "sigmoid",
    "reg:pseudohubererror": "",
    "reg:squarederror": "",
    "reg:squaredlogerror": "",
    "reg:tweedie": "exp",
}
_WRAPPERS = ("XGBClassifier", "XGBRegressor")


@dataclass
class JsonModel:
    """The parts of a model's JSON that its meaning needs."""

    objective: str
    booster: str
    features: int
    columns: int
    base_score: Any
    trees: list[dict[str, Any]]
    output: list[int]


def import_xgboost(model: Any, dtype: str = "float32") -> ImportedModel:
    """The graph-level module of a Booster or a fitted XGBClassifier or XGBRegressor.

    The program takes float32; XGBoost itself converts float64. Raises UnsupportedError listing all
    that is missing, InvalidModelError if the model is not fitted.
    """
    if dtype not in ("float32", "float64"):
        raise UnsupportedError(f"XGBoost input of dtype {dtype}; accepted: float32, float64")
    kind = type(model).__name__
    if kind not in ("Booster", *_WRAPPERS):
        raise UnsupportedError(f"XGBoost model {kind}; supported: Booster, {', '.join(_WRAPPERS)}")
    booster = model if kind == "Booster" else _fitted_booster(model)
    found = _read(booster, _last_iteration(booster) if kind in _WRAPPERS else None)
    missing = _why_not(found, model if kind in _WRAPPERS else None)
    if missing:
        raise UnsupportedError(f"cannot import {kind} exactly:", missing)
    builder = GraphBuilder([("x", tensor(f32, (DYNAMIC, found.features)))])
    base = base_margin(found)
    parts = [_tree(t, c, base) for t, c in zip(found.trees, found.output, strict=True)]
    margins = join(parts).build(builder, builder.inputs[0])
    if kind == "XGBClassifier":
        return _classifier(builder, model, margins, found)
    return _predictor(builder, margins, found, kind)


def _fitted_booster(model: Any) -> Any:
    from sklearn.exceptions import NotFittedError

    try:
        return model.get_booster()
    except NotFittedError:
        raise InvalidModelError(f"{type(model).__name__} is not fitted: call fit first") from None


def _last_iteration(booster: Any) -> int | None:
    """The wrappers predict with the trees up to the best iteration, if training stopped early."""
    best = booster.attributes().get("best_iteration")
    return None if best is None else int(best) + 1


def _read(booster: Any, iterations: int | None) -> JsonModel:
    try:
        learner = json.loads(bytes(booster.save_raw("json")))["learner"]
        parameters, gradient = learner["learner_model_param"], learner["gradient_booster"]
        gradient_model = gradient.get("model", {})
    except (KeyError, ValueError) as error:
        raise InvalidModelError(f"the XGBoost model's JSON is not readable: {error}") from None
    columns = max(int(parameters.get("num_class", "0")), int(parameters.get("num_target", "1")), 1)
    trees, output = gradient_model.get("trees", []), gradient_model.get("tree_info", [])
    if iterations is not None and "iteration_indptr" in gradient_model:
        end = gradient_model["iteration_indptr"][iterations]
        trees, output = trees[:end], output[:end]
    return JsonModel(
        learner["objective"]["name"],
        gradient["name"],
        int(parameters["num_feature"]),
        columns,
        np.array(json.loads(f"[{parameters['base_score'].strip('[]')}]"), np.float32),
        trees,
        output,
    )


def _why_not(found: JsonModel, wrapper: Any) -> list[str]:
    """Reasons why a model cannot be imported."""
    reasons: list[str] = []
    if found.booster != "gbtree":
        reasons.append(f"booster '{found.booster}' (supported: 'gbtree')")
    if found.objective not in _OBJECTIVES:
        reasons.append(f"objective '{found.objective}' (supported: {', '.join(_OBJECTIVES)})")
    if any(any(t.get("split_type", ())) for t in found.trees):
        reasons.append("categorical splits")
    if any(int(t["tree_param"].get("size_leaf_vector", "1")) > 1 for t in found.trees):
        reasons.append("multi_strategy='multi_output_tree'")
    if found.booster == "gbtree" and not found.trees:
        reasons.append("a model without trees")
    if wrapper is not None and not _is_nan(wrapper.missing):
        reasons.append(f"parameter missing={wrapper.missing} (supported: nan)")
    if type(wrapper).__name__ == "XGBClassifier":
        reasons += _why_no_classifier(found, wrapper)
    return reasons


def _is_nan(value: Any) -> bool:
    # None is no number: NumPy cannot say whether it is NaN.
    return value is not None and bool(np.isnan(value))


def _why_no_classifier(found: JsonModel, model: Any) -> list[str]:
    """Reasons why a classifier's labels or probabilities cannot be given."""
    if found.objective not in _OBJECTIVES:
        return []
    transform = _OBJECTIVES[found.objective]
    if transform == "softmax":
        # With softprob and two classes XGBoost's own predict returns no labels.
        two = found.objective == "multi:softprob" and found.columns == 2
        return ["objective 'multi:softprob' with 2 classes"] if two else []
    if transform != "sigmoid":
        return [f"a classifier with objective '{found.objective}'"]
    if found.columns > 1:
        return ["a classifier of several labels per row"]
    if model.n_classes_ != 2:
        return [f"a classifier of {model.n_classes_} class"]
    return []


def base_margin(found: JsonModel) -> Any:
    """Where the sums start, one float32 a column. base_score is stored behind the inverse link."""
    score = found.base_score
    if _OBJECTIVES[found.objective] == "sigmoid":
        one = np.float32(1)
        score = -np.log(one / score - one)
    elif _OBJECTIVES[found.objective] == "exp":
        score = np.log(score)
    return np.ascontiguousarray(np.broadcast_to(score, (found.columns,)), np.float32)


def _tree(tree: dict[str, Any], column: int, base: Any) -> Trees:
    left, right = (np.array(tree[k], np.int64) for k in ("left_children", "right_children"))
    condition = np.array(tree["split_conditions"], np.float32)
    leaf, nodes = left < 0, np.arange(len(left))
    return Trees(
        np.where(leaf, 0, np.array(tree["split_indices"], np.int64)),
        condition,
        np.where(leaf, nodes, left),
        np.where(leaf, nodes, right),
        np.array(tree["default_left"], np.bool_),
        # At a leaf the condition is its value.
        condition[:, None],
        np.zeros(1, np.int64),
        np.array([column]),
        base,
        "lt",
    )


def _flat(builder: GraphBuilder, y: SSAValue) -> SSAValue:
    return builder(ReshapeOp, y, shape=[DYNAMIC])


def _classifier(
    builder: GraphBuilder, model: Any, margins: SSAValue, found: JsonModel
) -> ImportedModel:
    classes = tuple(np.asarray(model.classes_).tolist())
    if found.columns == 1:
        second = builder(SigmoidOp, margins)
        half = builder.constant(np.array([0.5], np.float32), "half")
        above = builder(CompareOp, second, half, predicate="gt")
        label = _flat(builder, builder(CastOp, above, to=i64))
        first = builder(SubOp, builder.constant(np.ones(1, np.float32), "one"), second)
        probabilities = builder(ConcatOp, first, second, axis=1)
    else:
        probabilities = builder(SoftmaxOp, margins, axis=1)
        # softmax decides by margins, softprob by probabilities, where rounding can make ties.
        deciding = margins if found.objective == "multi:softmax" else probabilities
        label = builder(ArgmaxOp, deciding, axis=1, keepdims=False)
    info = ModelInfo(
        "classifier",
        ("x",),
        ("label", "probabilities"),
        {"predict": "label", "predict_proba": "probabilities"},
        classes,
        ("float64",),
        allow_infinity=False,
        source="XGBoost XGBClassifier",
    )
    return builder.finish([("label", label), ("probabilities", probabilities)], info)


def _predictor(
    builder: GraphBuilder, margins: SSAValue, found: JsonModel, kind: str
) -> ImportedModel:
    values = margins
    match _OBJECTIVES[found.objective]:
        case "sigmoid":
            values = builder(SigmoidOp, margins)
        case "exp":
            values = builder(ExpOp, margins)
        case "softmax" if found.objective == "multi:softprob":
            values = builder(SoftmaxOp, margins, axis=1)
        case "softmax":
            label = builder(ArgmaxOp, margins, axis=1, keepdims=False)
            values = builder(CastOp, label, to=f32)
        case _:
            pass
    if found.columns == 1:
        values = _flat(builder, values)
    info = ModelInfo(
        "regressor",
        ("x",),
        ("prediction",),
        {"predict": "prediction"},
        None,
        ("float64",),
        allow_infinity=False,
        source=f"XGBoost {kind}",
    )
    return builder.finish([("prediction", values)], info)
