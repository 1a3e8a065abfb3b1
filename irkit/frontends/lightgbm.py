"""LightGBM models, read from their own text format, with LightGBM's own arithmetic.

Comparisons are made in float64. For float32 input, thresholds rounded down to float32 decide alike,
so such a program stays in float32. Sums are float64, in tree order.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import SSAValue

from irkit.dialects.graph import (
    AbsOp,
    AndOp,
    ArgmaxOp,
    CompareOp,
    ConcatOp,
    DivOp,
    ExpOp,
    IsNanOp,
    Log1pOp,
    MulOp,
    OrOp,
    ReshapeOp,
    SigmoidOp,
    SoftmaxOp,
    SubOp,
    WhereOp,
)
from irkit.dialects.types import DYNAMIC, element_type, numpy_dtype, tensor, tensor_type
from irkit.errors import InvalidModelError, UnsupportedError
from irkit.frontends.categories import CategorySets
from irkit.frontends.lightgbm_linear import is_linear, linear_sums
from irkit.frontends.lightgbm_text import (
    TextModel,
    cat_members,
    numbers,
    parse_text,
    read_file,
)
from irkit.frontends.module import (
    GraphBuilder,
    ImportedModel,
    Methods,
    Outputs,
    refused_labels,
)
from irkit.frontends.trees import Trees, check_splits, floor32, join
from irkit.model_info import BY_ORDER

# What is done to the summed trees, by objective.
_OBJECTIVES = {
    "binary": "sigmoid",
    "cross_entropy": "sigmoid",
    "cross_entropy_lambda": "log1pexp",
    # A user's own objective: the sums themselves.
    "custom": "",
    "fair": "",
    "gamma": "exp",
    "huber": "",
    "lambdarank": "",
    "mape": "",
    "multiclass": "softmax",
    "multiclassova": "sigmoid",
    "poisson": "exp",
    "quantile": "",
    "rank_xendcg": "",
    "regression": "",
    "regression_l1": "",
    "tweedie": "exp",
}
ESTIMATORS = ("LGBMClassifier", "LGBMRanker", "LGBMRegressor")
_CATEGORICAL = 1
_MISSING_NONE, _MISSING_ZERO, _MISSING_NAN = 0, 1, 2
# LightGBM's kZeroThreshold, a float32 constant: its predictor drops what is no larger, as zeros.
_ZERO = np.float32(1e-35)


def import_lightgbm(model: Any, dtype: str = "float64") -> ImportedModel:
    """The graph-level module of a Booster or a fitted LGBMClassifier, LGBMRegressor or LGBMRanker.

    `dtype` is that of the arrays that will come. Raises UnsupportedError listing all that is missing,
    InvalidModelError if the model is not fitted.
    """
    if dtype not in ("float32", "float64"):
        raise UnsupportedError(f"LightGBM input of dtype {dtype}; accepted: float32, float64")
    kind = type(model).__name__
    if kind not in ("Booster", *ESTIMATORS):
        known = ", ".join(ESTIMATORS)
        raise UnsupportedError(f"LightGBM model {kind}; supported: Booster, {known}")
    return _imported(text_of(model), model, kind, dtype)


def import_lightgbm_file(path: str | Path, dtype: str = "float64") -> ImportedModel:
    """The graph-level module of a text file, as that of the Booster that LightGBM would read from it.

    LightGBM need not be there. Raises UnsupportedError, and InvalidModelError for a file that is damaged.
    """
    return _imported(read_file(path), None, "text model", dtype)


def _imported(text: TextModel, model: Any, kind: str, dtype: str) -> ImportedModel:
    """`model`: whose the text is; None for a file."""
    missing = why_not(text, model)
    if missing:
        raise UnsupportedError(f"cannot import {kind} exactly:", missing)
    builder = GraphBuilder([("x", tensor(element_type(np.dtype(dtype)), (DYNAMIC, text.features)))])
    outputs = lightgbm_outputs(builder, builder.inputs[0], text, model)
    categories = tuple((BY_ORDER, values) for values in text.categories)
    facts: dict[str, Any] = {
        "categories": categories,
        "source": f"LightGBM {kind}",
        "absent": "zero",
        "integers": "float32",
    }
    return builder.finish(outputs.values, outputs.info(**facts))


def lightgbm_outputs(builder: GraphBuilder, x: SSAValue, text: TextModel, model: Any) -> Outputs:
    """The methods of a model on rows×features of float32 or float64."""
    dtype = numpy_dtype(tensor_type(x).element_type)
    features, columns = text.features, text.columns
    sets = CategorySets(features)
    parts = [_tree(t, i % columns, columns, dtype, sets) for i, t in enumerate(text.trees)]
    seen = sets.extend(builder, _missing_values(builder, x, text, features, dtype))
    if is_linear(text):
        margins = total = linear_sums(builder, x, seen, text, parts)
    else:
        margins = total = join(parts).build(builder, seen)
    if "average_output" in text.header:
        iterations = np.array([len(text.trees) // columns], np.float64)
        total = builder(DivOp, total, builder.constant(iterations, "iterations"))
    values = _transformed(builder, total, text.header.get("objective", "custom"))
    if type(model).__name__ == "LGBMClassifier":
        return _classifier(builder, model, margins, values)
    shape = [DYNAMIC] if columns == 1 else [DYNAMIC, columns]
    prediction = builder(ReshapeOp, values, shape=shape)
    return Outputs("regressor", [("prediction", prediction)], {"predict": "prediction"})


def text_of(model: Any) -> TextModel:
    """A Booster's or an estimator's model. Raises InvalidModelError if it is not fitted."""
    booster = model if type(model).__name__ == "Booster" else _fitted_booster(model)
    return parse_text(booster.model_to_string())


def _fitted_booster(model: Any) -> Any:
    from lightgbm.compat import LGBMNotFittedError

    try:
        return model.booster_
    except LGBMNotFittedError:
        raise InvalidModelError(f"{type(model).__name__} is not fitted: call fit first") from None


def why_not(text: TextModel, model: Any) -> list[str]:
    """Reasons why a model cannot be imported, alone or within another."""
    return [*_why_not_trees(text), *_why_not_this_wrapper(text, model)]


def _why_not_trees(text: TextModel) -> list[str]:
    reasons: list[str] = []
    objective = text.header.get("objective", "custom").split() or [""]
    if objective[0] not in _OBJECTIVES:
        reasons.append(f"objective '{objective[0]}' (supported: {', '.join(_OBJECTIVES)})")
    if not text.trees:
        reasons.append("a model without trees")
    kinds = _missing_kinds(text)
    others = {feature for feature, kind in kinds if kind != _MISSING_ZERO}
    if any(kind == _MISSING_ZERO and feature in others for feature, kind in kinds):
        reasons.append(
            "a feature whose splits treat zero as missing, and others of its splits do not"
        )
    return reasons


def _why_not_this_wrapper(text: TextModel, model: Any) -> list[str]:
    """Reasons that lie in the object around the trees."""
    reasons: list[str] = []
    if model is None:
        return reasons
    parameters = model.params if type(model).__name__ == "Booster" else model.get_params()
    if parameters.get("pred_early_stop"):
        reasons.append("parameter pred_early_stop=True")
    if type(model).__name__ == "LGBMClassifier":
        if "objective" not in text.header:
            reasons.append("a classifier with an objective of its own")
        columns = text.columns
        if model.n_classes_ != max(columns, 2):
            reasons.append(f"a classifier of {model.n_classes_} classes and {columns} outputs")
        reasons += refused_labels(np.asarray(model.classes_))
    return reasons


def _missing_kinds(text: TextModel) -> list[tuple[int, int]]:
    """Distinct (feature, missing type) of all numeric splits."""
    found: set[tuple[int, int]] = set()
    for tree in text.trees:
        if int(tree["num_leaves"]) > 1:
            decisions = numbers(tree, "decision_type", np.int64)
            numeric = (decisions & _CATEGORICAL) == 0
            kinds = (decisions[numeric] >> 2) & 3
            features = numbers(tree, "split_feature", np.int64)[numeric]
            found |= set(zip(features.tolist(), kinds.tolist(), strict=True))
    return sorted(found)


def _tree(
    tree: dict[str, str], column: int, columns: int, dtype: np.dtype[Any], sets: CategorySets
) -> Trees:
    leaves = int(tree["num_leaves"])
    inner = leaves - 1
    nodes = np.arange(inner + leaves)
    value = np.zeros((inner + leaves, 1))
    value[inner:, 0] = numbers(tree, "leaf_value", np.float64)
    feature = np.zeros(inner + leaves, np.int64)
    threshold = np.zeros(inner + leaves, np.float64)
    left, right = nodes.copy(), nodes.copy()
    nan_left = np.zeros(inner + leaves, np.bool_)
    if inner:
        feature[:inner] = numbers(tree, "split_feature", np.int64)
        threshold[:inner] = numbers(tree, "threshold", np.float64)
        decisions = numbers(tree, "decision_type", np.int64)
        # Where no value is missing, NaN goes where 0 does.
        never = ((decisions >> 2) & 3) == _MISSING_NONE
        nan_left[:inner] = np.where(never, threshold[:inner] >= 0, (decisions & 2) != 0)
        for side, key in ((left, "left_child"), (right, "right_child")):
            child = numbers(tree, key, np.int64)
            # A negative child is the complement of a leaf's number.
            side[:inner] = np.where(child < 0, inner + ~child, child)
    check_splits(left, right, nodes < inner)
    if inner:
        _use_sets(tree, feature, threshold, nan_left, sets)
    threshold = _among_dropped(threshold)
    cut = floor32(threshold) if dtype == np.float32 else threshold
    base = np.zeros(columns)
    root, output = np.zeros(1, np.int64), np.array([column])
    return Trees(feature, cut, left, right, nan_left, value, root, output, base)


def _use_sets(
    tree: dict[str, str],
    feature: NDArray[np.int64],
    threshold: NDArray[np.float64],
    nan_left: NDArray[np.bool_],
    sets: CategorySets,
) -> None:
    """Splits by category compare the column of their set; NaN is in no set."""
    for node in np.flatnonzero(numbers(tree, "decision_type", np.int64) & _CATEGORICAL):
        members = cat_members(tree, int(threshold[node]))
        feature[node] = sets.column(int(feature[node]), members, nan_left=False)
        threshold[node], nan_left[node] = 0.5, False


def _among_dropped(threshold: NDArray[np.float64]) -> NDArray[np.float64]:
    """Thresholds that decide for every x as LightGBM's do for x with tiny values dropped to 0.

    Of thresholds within the dropped range, those below 0 hold only for x below the range, the others
    for all of the range too.
    """
    tiny = np.float64(_ZERO)
    below = (threshold >= -tiny) & (threshold < 0)
    within = (threshold >= 0) & (threshold < tiny)
    return np.where(below, np.nextafter(-tiny, -np.inf), np.where(within, tiny, threshold))


def _missing_values(
    builder: GraphBuilder, x: SSAValue, text: TextModel, features: int, dtype: np.dtype[Any]
) -> SSAValue:
    """Where zero is missing, zero is NaN."""
    kinds = dict(_missing_kinds(text))
    zero = np.array([kinds.get(f) == _MISSING_ZERO for f in range(features)])
    if zero.any():
        small = builder(
            CompareOp,
            builder(AbsOp, x),
            builder.constant(np.array([_ZERO], dtype), "tiny"),
            predicate="le",
        )
        small = builder(OrOp, small, builder(IsNanOp, x))
        here = builder(AndOp, small, builder.constant(zero, "zero_missing"))
        x = builder(WhereOp, here, builder.constant(np.full(1, np.nan, dtype), "nan"), x)
    return x


def _transformed(builder: GraphBuilder, total: SSAValue, objective: str) -> SSAValue:
    """The objective's own transformation of the sums."""
    name, *parameters = objective.split()
    scale = _scale(parameters)
    if "sqrt" in parameters:
        # Trained on square roots: the square, with the sign.
        return builder(MulOp, total, builder(AbsOp, total))
    match _OBJECTIVES[name]:
        case "sigmoid":
            if scale != 1.0:
                total = builder(MulOp, total, builder.constant(np.array([scale]), "sigmoid"))
            return builder(SigmoidOp, total)
        case "softmax":
            return builder(SoftmaxOp, total, axis=1)
        case "log1pexp":
            return builder(Log1pOp, builder(ExpOp, total))
        case "exp":
            return builder(ExpOp, total)
        case _:
            return total


def _scale(parameters: list[str]) -> float:
    """What an objective multiplies margins by."""
    try:
        return next((float(p[8:]) for p in parameters if p.startswith("sigmoid:")), 1.0)
    except ValueError:
        raise InvalidModelError("the LightGBM model has no readable objective") from None


def _classifier(builder: GraphBuilder, model: Any, margins: SSAValue, values: SSAValue) -> Outputs:
    """`margins` are sums of trees, which LightGBM does not average."""
    classes = np.asarray(model.classes_)
    if tensor_type(values).get_shape()[1] == 1:
        first = builder(SubOp, builder.constant(np.ones(1), "one"), values)
        values = builder(ConcatOp, first, values, axis=1)
    label = builder(ArgmaxOp, values, axis=1, keepdims=False)
    named = [("label", label), ("probabilities", values)]
    methods: Methods = {"predict": "label", "predict_proba": "probabilities"}
    if hasattr(model, "decision_function"):
        one = tensor_type(margins).get_shape()[1] == 1
        margin = builder(ReshapeOp, margins, shape=[DYNAMIC]) if one else margins
        named, methods = [*named, ("margin", margin)], methods | {"decision_function": "margin"}
    return Outputs("classifier", named, methods, tuple(classes.tolist()), classes.dtype.str)
