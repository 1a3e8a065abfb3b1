"""CatBoost models, read from their JSON, with CatBoost's own arithmetic.

Numbers are float32, and go right where they are greater than a border; NaN is below all borders, or above
all. Of categories the host makes hashes, and the program statistics that are compared like numbers.
Leaves are summed in float64, in tree order, from 0; then comes the scale, and then the bias
(catboost/libs/model/cpu/evaluator_impl.cpp).
"""

from __future__ import annotations

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
    ExpOp,
    LogOp,
    MulOp,
    NegOp,
    ReduceOp,
    ReshapeOp,
    SigmoidOp,
    SoftmaxOp,
    SubOp,
    WhereOp,
)
from irkit.dialects.types import DYNAMIC, tensor, tensor_type
from irkit.errors import UnsupportedError
from irkit.frontends.catboost_categories import wide_rows
from irkit.frontends.catboost_features import Features
from irkit.frontends.catboost_json import Classes, JsonModel, Nodes, read, read_file
from irkit.frontends.module import GraphBuilder, ImportedModel, Outputs
from irkit.frontends.trees import Trees, join
from irkit.model_info import ModelInfo
from irkit.weights import Array

# What the probabilities of a classifier are made of.
_CLASSIFYING = {
    "CrossEntropy": "sigmoid",
    "Focal": "sigmoid",
    "Logloss": "sigmoid",
    "MultiClass": "softmax",
    "MultiClassOneVsAll": "one against all",
    "MultiCrossEntropy": "labels apart",
    "MultiLogloss": "labels apart",
}
_OF_MANY = ("one against all", "softmax")
# What a regressor makes of the raw values: of all others nothing.
_REGRESSING = {"Poisson": "exp", "RMSEWithUncertainty": "variance", "Tweedie": "exp"}
# Losses whose raw values are the predictions.
_RAW = (
    "Cox",
    "Expectile",
    "GroupQuantile",
    "Huber",
    "LambdaMart",
    "LogCosh",
    "LogLinQuantile",
    "Lq",
    "MAE",
    "MAPE",
    "MultiQuantile",
    "MultiRMSE",
    "MultiRMSEWithMissingValues",
    "PairLogit",
    "PairLogitPairwise",
    "PythonUserDefinedMultiTarget",
    "PythonUserDefinedPerObject",
    "Quantile",
    "QueryCrossEntropy",
    "QueryRMSE",
    "QuerySoftMax",
    "RMSE",
    "RMSPE",
    "StochasticFilter",
    "StochasticRank",
    "SurvivalAft",
    "YetiRank",
    "YetiRankPairwise",
)
LOSSES = (*_CLASSIFYING, *_REGRESSING, *_RAW)
ESTIMATORS = ("CatBoost", "CatBoostClassifier", "CatBoostRanker", "CatBoostRegressor")


def import_catboost(model: Any, dtype: str = "float32") -> ImportedModel:
    """The graph-level module of a fitted CatBoostClassifier, CatBoostRegressor, CatBoostRanker or CatBoost.

    `predict` and the others give what the object's own methods give without arguments, `decision_function`
    of a classifier its `predict` of prediction_type="RawFormulaVal". The program takes float32; CatBoost
    itself converts float64. Raises UnsupportedError listing all that is missing, InvalidModelError if the
    model is not fitted.
    """
    if dtype not in ("float32", "float64"):
        raise UnsupportedError(f"CatBoost input of dtype {dtype}; accepted: float32, float64")
    kind = type(model).__name__
    if kind not in ESTIMATORS:
        raise UnsupportedError(f"CatBoost model {kind}; supported: {', '.join(ESTIMATORS)}")
    return _imported(read(model), kind, kind)


def import_catboost_file(path: str | Path, dtype: str = "float32") -> ImportedModel:
    """The graph-level module of a `.json` file: by its loss that of a CatBoostClassifier, or of a
    CatBoostRegressor. CatBoost need not be there.

    Raises UnsupportedError, and InvalidModelError for a file that is damaged.
    """
    found = read_file(path)
    of_classes = found.loss in _CLASSIFYING and found.classes is not None
    read_as = "CatBoostClassifier" if of_classes else "CatBoostRegressor"
    return _imported(found, read_as, "model file")


def _imported(found: JsonModel, kind: str, source: str) -> ImportedModel:
    missing = _why_not(found, kind)
    if missing:
        raise UnsupportedError(f"cannot import {source} exactly:", missing)
    features = found.features
    # The host makes hashes of categories, which float32 does not hold.
    element = f64 if len(features.categories) else f32
    builder = GraphBuilder([("x", tensor(element, (DYNAMIC, features.count)))])
    outputs = _outputs(builder, found, kind)
    return builder.finish(outputs.values, _info(outputs, features, f"CatBoost {source}"))


def _info(outputs: Outputs, features: Features, source: str) -> ModelInfo:
    hashed = tuple(sorted(map(int, features.categories)))
    sparse: dict[str, Any] = {"absent": "zero"}
    if hashed:
        sparse = {"dense_only": "a CatBoost model with categorical features"}
    return outputs.info(
        casts=("float64",),
        allow_empty=True,
        source=source,
        columns=features.names or None,
        by_name=bool(features.names),
        names_as_text=True,
        # CatBoost takes no categories for numbers.
        categories=(),
        hashed=hashed,
        **sparse,
    )


def _why_not(found: JsonModel, kind: str) -> list[str]:
    """Reasons why a model cannot be imported."""
    if not found.trees:
        return ["a model without trees"]
    # What these give hangs on no loss.
    if kind in ("CatBoost", "CatBoostRanker"):
        return []
    # Sums of models, which CatBoost can make, say none: their raw values are what a regressor predicts.
    if found.loss not in ("", *LOSSES):
        return [f"loss '{found.loss}' (supported: {', '.join(LOSSES)})"]
    if kind == "CatBoostClassifier":
        return _why_no_classifier(found)
    if _REGRESSING.get(found.loss) == "variance" and found.columns != 2:
        return [f"loss '{found.loss}' of {found.columns} columns, expected 2"]
    return []


def _why_no_classifier(found: JsonModel) -> list[str]:
    """Reasons why labels cannot be given by the columns."""
    if found.loss not in _CLASSIFYING:
        return [f"a classifier with loss '{found.loss}' (supported: {', '.join(_CLASSIFYING)})"]
    if found.classes is None:
        return ["a classifier that does not say its classes"]
    classes = len(found.classes.labels)
    fits = {
        "sigmoid": found.columns == 1 and classes == 2,
        "labels apart": found.columns == classes,
        "softmax": found.columns > 1,
        "one against all": found.columns > 1,
    }
    if fits[_CLASSIFYING[found.loss]]:
        return []
    return [f"loss '{found.loss}' of {found.columns} columns and {classes} classes"]


def _outputs(builder: GraphBuilder, found: JsonModel, kind: str) -> Outputs:
    """The methods of a model."""
    raw = _raw_values(builder, found)
    if kind == "CatBoostClassifier" and found.classes is not None:
        return _classifier(builder, raw, found, found.classes)
    values = raw
    if kind == "CatBoostRegressor":
        values = _regression(builder, raw, _REGRESSING.get(found.loss, ""))
    values = _flat(builder, values) if found.columns == 1 else values
    return Outputs("regressor", [("prediction", values)], {"predict": "prediction"})


def _raw_values(builder: GraphBuilder, found: JsonModel) -> SSAValue:
    """rows×columns: sums of leaves, scaled and shifted; of several classes, -inf for those of which training
    saw no row."""
    places, width = [*range(found.columns)], found.columns
    if found.classes is not None and _CLASSIFYING.get(found.loss) in _OF_MANY:
        places, width = [*found.classes.places], len(found.classes.labels)
    scale, bias = np.ones(width), np.full(width, -np.inf)
    scale[places], bias[places] = found.scale, found.bias
    parts = [_trees(nodes, found, places, width) for nodes in found.trees]
    raw = join(parts).build(builder, _compared(builder, found.features))
    if found.scale != 1:
        raw = builder(MulOp, raw, builder.constant(scale[None], "scale"))
    if bias.any():
        raw = builder(AddOp, raw, builder.constant(bias[None], "bias"))
    return raw


def _compared(builder: GraphBuilder, features: Features) -> SSAValue:
    """The columns that splits compare."""
    return wide_rows(builder, features) if len(features.categories) else builder.inputs[0]


def _trees(nodes: Nodes, found: JsonModel, places: list[int], width: int) -> Trees:
    value = np.zeros((len(nodes.left), width))
    value[:, places] = nodes.value
    return Trees(
        nodes.feature,
        nodes.border,
        nodes.left,
        nodes.right,
        ~_nan_above(found.features)[nodes.feature],
        value,
        np.zeros(1, np.int64),
        np.zeros(1, np.int64),
        np.zeros(width),
        "le",
    )


def _nan_above(features: Features) -> Array:
    """By column of the wide row: a statistic that is no number is above no border."""
    more = len(features.statistics) + len(features.asked)
    return np.concatenate([features.nan_above, np.zeros(more, np.bool_)])


def _regression(builder: GraphBuilder, raw: SSAValue, made: str) -> SSAValue:
    match made:
        case "exp":
            return builder(ExpOp, raw)
        case "variance":
            # The second column is the logarithm of the standard deviation; CatBoost gives the variance.
            twice = builder(MulOp, raw, builder.constant(np.array([1.0, 2.0]), "powers"))
            second = builder.constant(np.array([False, True]), "second")
            return builder(WhereOp, second, builder(ExpOp, twice), raw)
        case _:
            return raw


def _flat(builder: GraphBuilder, y: SSAValue) -> SSAValue:
    return builder(ReshapeOp, y, shape=[DYNAMIC])


def _classifier(
    builder: GraphBuilder, raw: SSAValue, found: JsonModel, classes: Classes
) -> Outputs:
    made = _CLASSIFYING[found.loss]
    margin = _flat(builder, raw) if found.columns == 1 else raw
    if made in _OF_MANY:
        label = builder(
            ReshapeOp, builder(ArgmaxOp, raw, axis=1, keepdims=True), shape=[DYNAMIC, 1]
        )
        probabilities, logarithms = _of_many(builder, raw, made)
    else:
        label = _above(builder, margin, found.threshold)
        probabilities, logarithms = _of_columns(builder, raw)
    named = [
        ("label", label),
        ("probabilities", probabilities),
        ("log_probabilities", logarithms),
        ("raw", margin),
    ]
    methods: Any = {
        "predict": "label",
        "predict_proba": "probabilities",
        "predict_log_proba": "log_probabilities",
        "decision_function": "raw",
    }
    # Labels apart are told as 0 and 1, whatever the classes are called.
    if made == "labels apart":
        return Outputs("classifier", named, methods)
    return Outputs("classifier", named, methods, classes.labels, classes.dtype)


def _above(builder: GraphBuilder, raw: SSAValue, threshold: float) -> SSAValue:
    """1 where the probability is above a threshold, which CatBoost asks of the raw values."""
    with np.errstate(divide="ignore"):
        border = -np.log(1 / np.float64(threshold) - 1)
    bound = builder.constant(np.array([border]), "border")
    return builder(CastOp, builder(CompareOp, raw, bound, predicate="gt"), to=i64)


def _of_many(builder: GraphBuilder, raw: SSAValue, made: str) -> tuple[SSAValue, SSAValue]:
    """Probabilities of classes, and their logarithms."""
    if made == "one against all":
        return builder(SigmoidOp, raw), _log_sigmoid(builder, raw)
    largest = builder(ReduceOp, raw, kind="max", axes=[1], keepdims=True)
    below = builder(SubOp, raw, largest)
    total = builder(ReduceOp, builder(ExpOp, below), kind="sum", axes=[1], keepdims=True)
    return builder(SoftmaxOp, raw, axis=1), builder(SubOp, below, builder(LogOp, total))


def _of_columns(builder: GraphBuilder, raw: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Of one column the probabilities of two classes, of several that of each; and their logarithms."""
    probabilities, logarithms = builder(SigmoidOp, raw), _log_sigmoid(builder, raw)
    if tensor_type(raw).get_shape()[1] > 1:
        return probabilities, logarithms
    rest = builder(SubOp, builder.constant(np.ones(1), "one"), probabilities)
    against = _log_sigmoid(builder, builder(NegOp, raw))
    both = builder(ConcatOp, rest, probabilities, axis=1)
    return both, builder(ConcatOp, against, logarithms, axis=1)


def _log_sigmoid(builder: GraphBuilder, raw: SSAValue) -> SSAValue:
    """-log(1 + exp(-x)), as CatBoost has it: -inf where exp(-x) is beyond float64."""
    one = builder.constant(np.ones(1), "one")
    total = builder(AddOp, one, builder(ExpOp, builder(NegOp, raw)))
    return builder(NegOp, builder(LogOp, total))
