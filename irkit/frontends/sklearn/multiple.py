"""Several estimators for several classes or outputs: one against the rest, in pairs, by codes, side by side,
in chains."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from irkit.dialects.graph import CastOp, DivOp, SubOp
from irkit.frontends.module import Methods
from irkit.frontends.sklearn.ensembles import members
from irkit.frontends.sklearn.importer import Importer, Outputs, Predictor
from irkit.frontends.sklearn.kernels import nearest
from irkit.frontends.sklearn.outputs import classifier, largest, regressor
from irkit.frontends.sklearn.responses import (
    as_columns,
    labels,
    outputs_on,
    score,
    threshold,
    value,
)
from irkit.frontends.sklearn.svm import one_versus_rest
from irkit.weights import Array


def _each(importer: Importer, step: Any, x: SSAValue) -> list[tuple[Any, Outputs]]:
    return [(e, outputs_on(importer, e, x)) for e in step.estimators_]


def _above(importer: Importer, scores: SSAValue, limit: float) -> SSAValue:
    return importer.builder(CastOp, importer.compare(scores, "gt", [limit], "threshold"), to=i64)


# One against the rest


def _one_rest(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    each = _each(importer, step, x)
    scores = importer.concat([importer.cast(score(importer, e, o), np.float64) for e, o in each])
    if step.label_binarizer_.y_type_ == "multiclass":
        label = largest(importer, scores)
    else:
        label = _above(importer, scores, threshold(step.estimators_[0]))
        label = label if step.multilabel_ else importer.flat(label)
    margin = probabilities = None
    if hasattr(step, "decision_function"):
        margin = importer.concat(
            [as_columns(importer, value(o, "decision_function")) for _, o in each]
        )
        margin = importer.flat(margin) if len(each) == 1 else margin
    if hasattr(step, "predict_proba"):
        probabilities = _shares(importer, step, [value(o, "predict_proba") for _, o in each])
    outputs = classifier(step, label, probabilities, margin, log=False)
    if step.multilabel_:
        outputs.classes, outputs.labels = None, ""
    return outputs


def _shares(importer: Importer, step: Any, found: list[SSAValue]) -> SSAValue:
    """Probabilities of each class against the rest, divided by their sum."""
    each = importer.concat([importer.columns(p, [1]) for p in found])
    if len(found) == 1:
        one = importer.constant(each, [1.0], "one")
        each = importer.concat([importer.builder(SubOp, one, each), each])
    if step.multilabel_:
        return each
    sums = importer.reduce("sum", each)
    none = importer.compare(sums, "eq", [0.0], "zero")
    return importer.builder(DivOp, each, importer.where(none, sums, [1.0], "one"))


def _constant(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    """What scikit-learn puts where a class was always, or never, there."""
    y = float(np.asarray(step.y_).reshape(-1)[0])
    margin = importer.full(x, y, np.float64)
    both = importer.concat([importer.full(x, 1 - y, np.float64), margin])
    values = [("margin", importer.flat(margin)), ("probabilities", both)]
    methods: Methods = {
        "predict": "margin",
        "decision_function": "margin",
        "predict_proba": "probabilities",
    }
    return Outputs("classifier", values, methods)


# Pairs, and codes


def _one_one(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    each = _each(importer, step, x)
    first = importer.concat([importer.column(value(o, "predict")) for _, o in each])
    scores = importer.concat([importer.cast(score(importer, e, o), np.float64) for e, o in each])
    found = one_versus_rest(
        importer, importer.compare(first, "eq", [0], "first"), scores, len(step.classes_)
    )
    if len(step.classes_) > 2:
        return classifier(step, largest(importer, found), None, found)
    margin = importer.columns(found, [1])
    label = importer.flat(_above(importer, margin, threshold(step.estimators_[0])))
    return classifier(step, label, None, importer.flat(margin))


def _why_no_pairs(step: Any) -> list[str]:
    return ["estimators over pairs of rows"] if step.pairwise_indices_ is not None else []


def _codes(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    each = _each(importer, step, x)
    scores = importer.concat([importer.cast(score(importer, e, o), np.float64) for e, o in each])
    return classifier(step, nearest(importer, scores, step.code_book_), None, None)


# Several outputs


def _regressors(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    each = [as_columns(importer, value(o, "predict")) for _, o in _each(importer, step, x)]
    return regressor(importer, importer.concat(each), flat=False)


def _classifiers(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    each = [outputs for _, outputs in _each(importer, step, x)]
    values = [(f"label_{k}", value(o, "predict")) for k, o in enumerate(each)]
    numbers = range(len(each))
    methods: Methods = {"predict": tuple(f"label_{k}" for k in numbers)}
    if hasattr(step, "predict_proba"):
        values += [(f"probabilities_{k}", value(o, "predict_proba")) for k, o in enumerate(each)]
        methods["predict_proba"] = tuple(f"probabilities_{k}" for k in numbers)
    classes = [np.asarray(c) for c in step.classes_]
    dtype = np.result_type(*classes).str
    return Outputs("classifier", values, methods, tuple(tuple(c.tolist()) for c in classes), dtype)


def _why_no_outputs(step: Any) -> list[str]:
    several = any(isinstance(e.classes_, list) for e in step.estimators_)
    kinds = {np.asarray(c).dtype.kind for c in step.classes_}
    mixed = len(kinds) > 1 and not kinds <= set("iuf")
    return [
        *(["several outputs of one estimator"] if several else []),
        *(["class labels of several types"] if mixed else []),
    ]


# Chains


def _chain(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    """Each estimator sees what those before it answered; columns are float64."""
    x = importer.cast(x, np.float64)
    asked = ["predict", *(m for m in ("predict_proba", "decision_function") if hasattr(step, m))]
    found: dict[str, list[SSAValue]] = {method: [] for method in asked}
    known, seen = importer.known.get(x), x
    for estimator in step.estimators_:
        if known is not None:
            importer.known.setdefault(seen, known)
        outputs = outputs_on(importer, estimator, seen)
        for method, columns in found.items():
            columns.append(importer.cast(_answer(importer, outputs, method), np.float64))
        told = _answer(importer, outputs, getattr(step, "chain_method_", "predict"))
        seen = importer.concat([seen, importer.cast(told, np.float64)])
    order = np.argsort(np.asarray(step.order_))
    names = {
        "predict": "prediction",
        "predict_proba": "probabilities",
        "decision_function": "margin",
    }
    values = [(names[m], importer.columns(importer.concat(c), order)) for m, c in found.items()]
    methods: Methods = {m: names[m] for m in found}
    if "predict_proba" in found and hasattr(step, "predict_log_proba"):
        methods["predict_log_proba"] = names["predict_proba"]
    kind = "classifier" if "predict_proba" in found else "regressor"
    return Outputs(kind, values, methods)


def _answer(importer: Importer, outputs: Outputs, method: str) -> SSAValue:
    """rows×1: what stands for an estimator of the chain."""
    if method == "predict":
        return labels(importer, outputs)
    found = value(outputs, method)
    return importer.columns(found, [1]) if method == "predict_proba" else importer.column(found)


def _why_no_chain(step: Any) -> list[str]:
    classes: list[Array] = [np.asarray(getattr(e, "classes_", ())) for e in step.estimators_]
    reasons = ["more than two classes" for c in classes if len(c) > 2]
    reasons += ["class labels that are no numbers" for c in classes if c.dtype.kind not in "iufb"]
    return list(dict.fromkeys(reasons))


PREDICTORS: dict[str, Predictor] = {
    "ClassifierChain": Predictor(_chain, why_not_fitted=_why_no_chain, members=members),
    "MultiOutputClassifier": Predictor(
        _classifiers, why_not_fitted=_why_no_outputs, members=members
    ),
    "MultiOutputRegressor": Predictor(_regressors, members=members),
    "OneVsOneClassifier": Predictor(_one_one, why_not_fitted=_why_no_pairs, members=members),
    "OneVsRestClassifier": Predictor(_one_rest, members=members),
    "OutputCodeClassifier": Predictor(_codes, members=members),
    "RegressorChain": Predictor(_chain, members=members),
    "_ConstantPredictor": Predictor(_constant),
}
