"""Support vector machines: libsvm's decision functions in float64, its votes, and scikit-learn's ties.

Probabilities, of models that have them, are of at most ten classes (`coupling.py`).
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from irkit.dialects.graph import AbsOp, AddOp, CastOp, DivOp, NegOp, WhereOp
from irkit.frontends import coupling
from irkit.frontends.sklearn import kernels
from irkit.frontends.sklearn.importer import Importer, Outputs, Predictor, element
from irkit.frontends.sklearn.outputs import classifier, largest, regressor, sign_label
from irkit.weights import Array

_KERNELS = ("linear", "poly", "precomputed", "rbf", "sigmoid")


def _decisions(importer: Importer, step: Any, x: SSAValue, weights: Array) -> SSAValue:
    """Kernels with support vectors times `weights` (vectors×columns), plus intercepts, in float64."""
    wide = importer.cast(x, np.float64)
    near = _near(importer, step, wide)
    if near is None:
        row = np.asarray(weights).sum(axis=0) + step._intercept_
        zero = importer.mul(importer.columns(wide, [0] * len(row)), [0.0], "zero")
        return importer.add(zero, row, "sums")
    return importer.add(importer.matmul(near, weights, "dual"), step._intercept_, "intercept")


def _near(importer: Importer, step: Any, wide: SSAValue) -> SSAValue | None:
    """rows×vectors: kernels; None if all are 1."""
    if step.kernel == "precomputed":
        return importer.columns(wide, step.support_)
    if step.kernel == "poly" and step.degree < 1:
        return None
    points = kernels.fitted_rows(step.support_vectors_, np.float64)
    if step.kernel == "rbf":
        # Distances stay what they are; products of what is centred round to less.
        centre = points.mean(axis=0)
        wide, points = importer.sub(wide, centre, "centre"), points - centre
    kernel = kernels.Kernel(step.kernel, float(step._gamma), step.degree, float(step.coef0))
    return kernels.apply(importer, kernel, wide, points)


def _pairs(step: Any) -> list[tuple[int, int]]:
    return list(itertools.combinations(range(len(step.classes_)), 2))


def _weights(step: Any) -> Array:
    """vectors×pairs: the coefficient of each vector in the decision of each pair of classes."""
    ends = np.cumsum(step._n_support)
    own = [slice(int(e) - int(n), int(e)) for e, n in zip(ends, step._n_support, strict=True)]
    dual = kernels.fitted_rows(step._dual_coef_)
    found = np.zeros((len(step.support_), len(_pairs(step))))
    for number, (i, j) in enumerate(_pairs(step)):
        found[own[i], number] = dual[j - 1, own[i]]
        found[own[j], number] = dual[i, own[j]]
    return found


def votes(importer: Importer, first: SSAValue, classes: int) -> SSAValue:
    """rows×classes: in how many pairs each class wins, from rows×pairs of whether the first does."""
    pairs = list(itertools.combinations(range(classes), 2))
    gain, row = np.zeros((len(pairs), classes)), np.zeros(classes)
    for number, (i, j) in enumerate(pairs):
        gain[number, i], gain[number, j] = 1.0, -1.0
        row[j] += 1.0
    wins = importer.builder(CastOp, first, to=element(np.float64))
    return importer.add(importer.matmul(wins, gain, "gain"), row, "second")


def one_versus_rest(
    importer: Importer, first: SSAValue, scores: SSAValue, classes: int
) -> SSAValue:
    """Votes, and what breaks their ties: `_ovr_decision_function`.

    `first`: rows×pairs, whether the first class wins; `scores`: rows×pairs, for the second.
    """
    pairs = list(itertools.combinations(range(classes), 2))
    signs = np.zeros((len(pairs), classes))
    for number, (i, j) in enumerate(pairs):
        signs[number, i], signs[number, j] = -1.0, 1.0
    total = importer.matmul(scores, signs, "signs")
    size = importer.mul(importer.add(importer.builder(AbsOp, total), [1.0], "one"), [3.0], "three")
    return importer.builder(
        AddOp, votes(importer, first, classes), importer.builder(DivOp, total, size)
    )


def _classifier(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    decision = _decisions(importer, step, x, _weights(step))
    outputs = _decided(importer, step, decision)
    if hasattr(step, "predict_proba") and len(step.classes_) <= coupling.MOST_CLASSES:
        found, done = coupling.of_pairs(
            importer.builder, decision, step._probA, step._probB, len(step.classes_)
        )
        sweeps = f"probabilities of pairs that do not meet in {coupling.SWEEPS} sweeps"
        importer.require(done, sweeps)
        outputs.values.append(("probabilities", found))
        outputs.methods |= dict.fromkeys(("predict_proba", "predict_log_proba"), "probabilities")
    return outputs


def _decided(importer: Importer, step: Any, decision: SSAValue) -> Outputs:
    """Labels and margins of the decisions between pairs."""
    classes = len(step.classes_)
    if classes == 2:
        # Of two classes, libsvm's decision is for the first.
        margins = importer.builder(NegOp, decision)
        return classifier(step, sign_label(importer, margins, "ge"), None, importer.flat(margins))
    margin = decision
    if step.decision_function_shape == "ovr":
        first = importer.compare(decision, "ge", [0.0], "zero")
        scores = importer.builder(NegOp, decision)
        margin = one_versus_rest(importer, first, scores, classes)
    if step.break_ties and step.decision_function_shape == "ovr":
        return classifier(step, largest(importer, margin), None, margin)
    won = votes(importer, importer.compare(decision, "gt", [0.0], "zero"), classes)
    return classifier(step, largest(importer, won), None, margin)


def _regressor(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    return regressor(
        importer, _decisions(importer, step, x, kernels.fitted_rows(step._dual_coef_).T)
    )


def outliers(
    importer: Importer, margins: SSAValue, predicate: str, offset: float, dtype: Any = np.int64
) -> Outputs:
    """1 where a margin (rows×1) `predicate` 0 holds, else -1; scores are margins and `offset`."""
    build = importer.builder
    inlier = importer.compare(margins, predicate, np.zeros(1), "zero")
    one, other = (build.constant(np.full((1, 1), n, dtype), "label") for n in (1, -1))
    label = build(WhereOp, inlier, one, other)
    score = importer.add(margins, [offset], "offset")
    values = [("label", label), ("margin", margins), ("score", score)]
    methods: dict[str, str | tuple[str, ...]] = {
        "predict": "label",
        "decision_function": "margin",
        "score_samples": "score",
    }
    return Outputs("outlier", [(name, importer.flat(v)) for name, v in values], methods)


def _one_class(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    margins = _decisions(importer, step, x, kernels.fitted_rows(step._dual_coef_).T)
    return outliers(importer, margins, "gt", float(np.asarray(step.offset_).reshape(-1)[0]))


def _why_no_kernel(step: Any) -> list[str]:
    return kernels.why_not(step, _KERNELS)


def _why_not_fitted(step: Any) -> list[str]:
    if getattr(step, "break_ties", False) and step.decision_function_shape == "ovo":
        return ["parameter break_ties=True with decision_function_shape='ovo'"]
    return [] if len(step.support_) else ["no support vectors"]


def _machine(build: Any) -> Predictor:
    return Predictor(build, _why_no_kernel, _why_not_fitted)


PREDICTORS: dict[str, Predictor] = {
    "NuSVC": _machine(_classifier),
    "NuSVR": _machine(_regressor),
    "OneClassSVM": _machine(_one_class),
    "SVC": _machine(_classifier),
    "SVR": _machine(_regressor),
}
