"""Classifiers whose scores are calibrated or cut elsewhere, isotonic regression, and constant answers."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from irkit.dialects.graph import (
    AbsOp,
    AndOp,
    CastOp,
    GatherOp,
    LogOp,
    NegOp,
    OrOp,
    ReshapeOp,
    SigmoidOp,
    SoftmaxOp,
    SubOp,
)
from irkit.dialects.types import DYNAMIC
from irkit.frontends.sklearn.ensembles import total
from irkit.frontends.sklearn.importer import (
    Importer,
    Outputs,
    Predictor,
    Transformer,
    element,
    kind_of,
)
from irkit.frontends.sklearn.interpolation import interpolated
from irkit.frontends.sklearn.outputs import classifier, largest, normalised, regressor, two_columns
from irkit.frontends.sklearn.responses import as_columns, numbers_of, outputs_on, placed, value

# Calibration


def _calibrated(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    parts = [_one_calibrated(importer, c, x) for c in step.calibrated_classifiers_]
    mean = importer.div(total(importer, parts), [len(parts)], "members")
    return classifier(step, largest(importer, mean), mean, None, log=False)


def _one_calibrated(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    """Probabilities of one calibrated classifier, rows×classes in float64."""
    outputs = outputs_on(importer, step.estimator, x)
    margins = hasattr(step.estimator, "decision_function")
    scores = as_columns(
        importer, value(outputs, "decision_function" if margins else "predict_proba")
    )
    if not margins and len(step.estimator.classes_) == 2:
        scores = importer.columns(scores, [1])
    if step.method == "temperature":
        found = _tempered(importer, step, scores, margins)
    else:
        found = _each_class(importer, step, scores)
    # What rounding lifts above 1.
    above = importer.compare(found, "gt", [1.0], "one")
    near = importer.compare(found, "le", [1.0 + 1e-5], "near")
    return importer.where(importer.builder(AndOp, above, near), found, [1.0], "one")


def _each_class(importer: Importer, step: Any, scores: SSAValue) -> SSAValue:
    count = len(step.classes)
    parts = [
        importer.cast(_curve(importer, c, importer.columns(scores, [k])), np.float64)
        for k, c in enumerate(step.calibrators)
    ]
    if count == 2:
        return two_columns(importer, parts[0])
    places = numbers_of(step.estimator.classes_, step.classes)
    return normalised(importer, placed(importer, importer.concat(parts), places, count))


def _curve(importer: Importer, calibrator: Any, score: SSAValue) -> SSAValue:
    if kind_of(calibrator) == "IsotonicRegression":
        return _isotonic(importer, calibrator, score)
    wide = importer.cast(score, np.float64)
    line = importer.add(importer.mul(wide, [calibrator.a_], "a"), [calibrator.b_], "b")
    return importer.builder(SigmoidOp, importer.builder(NegOp, line))


def _tempered(importer: Importer, step: Any, scores: SSAValue, margins: bool) -> SSAValue:
    """softmax(beta * logits): margins as they are, or logarithms of probabilities."""
    if importer.width(scores) > 1:
        logits = scores
        if margins:
            _require_margins(importer, scores)
    elif margins:
        logits = importer.concat([importer.builder(NegOp, scores), scores])
    else:
        logits = two_columns(importer, scores)
    if not margins:
        _require_probabilities(importer, logits)
        logits = importer.builder(LogOp, importer.add(logits, [1e-12], "tiny"))
    scaled = importer.mul(logits, [float(step.calibrators[0].beta_)], "beta")
    return importer.cast(importer.builder(SoftmaxOp, scaled, axis=1), np.float64)


def _require_probabilities(importer: Importer, scores: SSAValue) -> None:
    """Refuse rows of scores that may be none: one has scikit-learn take all of a batch as they are."""
    if not importer.any_scores:
        return
    above = importer.compare(scores, "ge", [0.0], "zero")
    below = importer.compare(scores, "le", [1.0], "one")
    importer.require(
        importer.builder(AndOp, above, below),
        "a score that is no probability reaches CalibratedClassifierCV with method='temperature', which "
        "takes all rows' for margins then",
    )


def _require_margins(importer: Importer, scores: SSAValue) -> None:
    """Refuse rows of margins that look like probabilities: scikit-learn takes a batch of such for them."""
    build = importer.builder
    within = build(
        AndOp,
        importer.compare(scores, "ge", [0.0], "zero"),
        importer.compare(scores, "le", [1.0], "one"),
    )
    every = importer.reduce("min", build(CastOp, within, to=element(np.float64)))
    total_of = importer.reduce("sum", importer.cast(scores, np.float64))
    off = build(AbsOp, importer.sub(total_of, [1.0], "one"))
    # Twice what scikit-learn takes for rounding.
    importer.require(
        build(OrOp, importer.compare(every, "lt", [0.5]), importer.compare(off, "gt", [2e-5])),
        "margins between 0 and 1 whose sum is 1 reach CalibratedClassifierCV with method='temperature', "
        "which takes a batch of these alone for probabilities",
    )


def _calibrated_members(step: Any) -> list[tuple[str, Any]]:
    return [("estimator", c.estimator) for c in step.calibrated_classifiers_]


# Isotonic regression


def _isotonic(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    """Between thresholds a line, rows×1; beyond them the nearest, NaN, or an error."""
    dtype = step.X_thresholds_.dtype
    x = importer.cast(x, dtype)
    if step.out_of_bounds == "raise":
        low = importer.compare(x, "ge", [step.X_thresholds_[0]], "low")
        high = importer.compare(x, "le", [step.X_thresholds_[-1]], "high")
        importer.require(
            importer.builder(AndOp, low, high),
            "IsotonicRegression found a value outside what it was fitted on",
        )
    y = importer.cast(interpolated(importer, x, step.X_thresholds_, step.y_thresholds_), dtype)
    # A single threshold is all there is.
    if step.out_of_bounds == "nan" and len(step.X_thresholds_) > 1:
        for predicate, end in (("lt", 0), ("gt", -1)):
            beyond = importer.compare(x, predicate, [step.X_thresholds_[end]], "end")
            y = importer.where(beyond, y, [np.nan], "nan")
    return y


def _isotonic_regressor(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    return regressor(importer, _isotonic(importer, step, x))


def _isotonic_transform(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    return importer.flat(_isotonic(importer, step, x))


# Thresholds


def _why_no_cut(step: Any) -> list[str]:
    positive, classes = _positive(step), np.asarray(step.classes_).tolist()
    if positive is None or positive in classes:
        return []
    return [f"parameter pos_label={positive!r}, which is none of the classes {classes}"]


def _cut(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    """The estimator's own scores; another limit decides on labels."""
    inner = getattr(step, "estimator_", None) or step.estimator
    outputs = outputs_on(importer, inner, x)
    method, limit = _decides(step, inner)
    classes = np.asarray(step.classes_)
    positive = classes[-1] if _positive(step) is None else _positive(step)
    number = int(np.flatnonzero(classes == positive)[0])
    scores = as_columns(importer, value(outputs, method))
    if method == "predict_proba":
        scores = importer.columns(scores, [number])
    elif number == 0:
        scores = importer.builder(NegOp, scores)
    above = importer.compare(scores, "ge", [limit], "threshold")
    label = importer.flat(importer.builder(CastOp, above, to=i64))
    if number == 0:
        label = importer.builder(SubOp, importer.builder.constant(np.array([1]), "one"), label)
    values = [(n, v) for n, v in outputs.values if n != outputs.methods["predict"]]
    methods = dict(outputs.methods) | {"predict": "label"}
    kept = {m: n for m, n in methods.items() if hasattr(step, m)}
    labels = np.asarray(step.classes_)
    return Outputs(
        "classifier", [("label", label), *values], kept, tuple(labels.tolist()), labels.dtype.str
    )


def _positive(step: Any) -> Any:
    if kind_of(step) == "TunedThresholdClassifierCV":
        return step._curve_scorer._get_pos_label()
    return step.pos_label


def _decides(step: Any, inner: Any) -> tuple[str, float]:
    method = step.response_method
    if method == "auto":
        method = "predict_proba" if hasattr(inner, "predict_proba") else "decision_function"
    if kind_of(step) == "TunedThresholdClassifierCV":
        return method, float(step.best_threshold_)
    if step.threshold == "auto":
        return method, 0.5 if method == "predict_proba" else 0.0
    return method, float(step.threshold)


def _inner(step: Any) -> list[tuple[str, Any]]:
    return [("estimator_", getattr(step, "estimator_", None) or step.estimator)]


# Constants


def _constant_rows(importer: Importer, x: SSAValue, row: Any) -> SSAValue:
    """rows×columns of the same row."""
    row = np.asarray(row).reshape(1, -1)
    number = importer.builder(ReshapeOp, importer.full(x, 0, np.int64), shape=[DYNAMIC])
    return importer.builder(GatherOp, importer.builder.constant(row, "row"), number, axis=0)


def _dummy_regressor(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    y = _constant_rows(importer, x, step.constant_)
    return regressor(importer, y, flat=step.n_outputs_ == 1)


def _dummy_classifier(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    prior = np.asarray(step.class_prior_, np.float64)
    if step._strategy == "constant":
        number = int(np.flatnonzero(np.asarray(step.classes_) == step.constant)[0])
    else:
        number = int(prior.argmax())
    row = prior if step._strategy == "prior" else np.eye(len(prior))[number]
    label = importer.flat(importer.full(x, number, np.int64))
    outputs = classifier(step, label, _constant_rows(importer, x, row), None)
    # An array of its label alone: strings are no longer than that.
    outputs.labels = np.asarray([step.classes_[number]]).dtype.str
    return outputs


def _why_not_constant(step: Any) -> list[str]:
    if step._strategy not in ("constant", "most_frequent", "prior"):
        return [f"parameter strategy={step._strategy!r}, which draws at random"]
    return ["several outputs"] if step.n_outputs_ > 1 else []


PREDICTORS: dict[str, Predictor] = {
    "CalibratedClassifierCV": Predictor(_calibrated, members=_calibrated_members),
    "DummyClassifier": Predictor(_dummy_classifier, why_not_fitted=_why_not_constant),
    "DummyRegressor": Predictor(_dummy_regressor),
    "FixedThresholdClassifier": Predictor(_cut, why_not_fitted=_why_no_cut, members=_inner),
    "IsotonicRegression": Predictor(_isotonic_regressor),
    "TunedThresholdClassifierCV": Predictor(_cut, why_not_fitted=_why_no_cut, members=_inner),
}
TRANSFORMERS: dict[str, Transformer] = {
    "IsotonicRegression": Transformer(_isotonic_transform, nan="makes"),
}
