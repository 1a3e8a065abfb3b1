"""Linear models: all of scikit-learn's estimators that predict by `X @ coef_.T + intercept_`."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from irkit.dialects.graph import CastOp, ExpOp, LogOp, MaxOp, SigmoidOp
from irkit.frontends.module import Methods
from irkit.frontends.sklearn.importer import Importer, Outputs, Predictor
from irkit.frontends.sklearn.outputs import (
    classifier,
    from_margins,
    largest,
    normalised,
    regressor,
    sign_label,
    two_columns,
)


def linear(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    """`x @ coef_.T + intercept_`, rows×outputs, in the dtypes that NumPy takes for each."""
    coef = np.asarray(step.coef_)
    dtype = np.result_type(importer.dtype(x), coef.dtype)
    x, matrix = importer.weighed(x, np.atleast_2d(coef).T)
    product = importer.matmul(importer.cast(x, dtype), matrix, "coef")
    # NumPy widens once for the product and once more for the sum; a Python float widens nothing.
    intercept = step.intercept_
    if type(intercept) is not float:
        dtype = np.result_type(dtype, np.asarray(intercept).dtype)
    row = np.broadcast_to(intercept, (matrix.shape[1],))
    return importer.add(importer.cast(product, dtype), row, "intercept")


def _regressor(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    return regressor(importer, linear(importer, step, x), flat=np.ndim(step.coef_) == 1)


def _flat_regressor(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    return regressor(importer, linear(importer, step, x))


def _generalised(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    y = linear(importer, step, x)
    if _link(step) == "LogLink":
        y = importer.builder(ExpOp, y)
    return regressor(importer, y)


def _link(step: Any) -> str:
    return type(step._base_loss.link).__name__


def _why_no_link(step: Any) -> list[str]:
    link = _link(step)
    return [] if link in ("IdentityLink", "LogLink") else [f"link {link}"]


def _logistic(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    return from_margins(importer, step, linear(importer, step, x), at_zero=False)


def _ridge(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    if not step._label_binarizer.y_type_.startswith("multilabel"):
        return _margins_only(importer, step, x)
    # Several labels a row: each by its own sign.
    margins = linear(importer, step, x)
    marks = importer.builder(CastOp, importer.compare(margins, "gt", [0.0], "zero"), to=i64)
    methods: Methods = {"predict": "label", "decision_function": "margin"}
    return Outputs("classifier", [("label", marks), ("margin", margins)], methods)


def _margins_only(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    label, _, margin = _decided(importer, step, x)
    return classifier(step, label, None, margin)


def _decided(importer: Importer, step: Any, x: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Label, margins (rows×columns), and the margin as `decision_function` returns it."""
    margins = linear(importer, step, x)
    if importer.width(margins) > 1:
        return largest(importer, margins), margins, margins
    return sign_label(importer, margins, "gt"), margins, importer.flat(margins)


def _descent(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    if step.loss not in ("log_loss", "modified_huber"):
        return _margins_only(importer, step, x)
    label, margins, margin = _decided(importer, step, x)
    if step.loss == "log_loss":
        positive = importer.builder(SigmoidOp, margins)
    else:
        # scikit-learn's array for two classes is float64; for more it is that of the margins.
        wide = importer.cast(margins, np.float64) if importer.width(margins) == 1 else margins
        low = importer.builder(MaxOp, wide, importer.constant(wide, [-1.0], "low"))
        limited = importer.where(importer.compare(low, "gt", [1.0], "high"), low, [1.0], "high")
        positive = importer.div(importer.add(limited, [1.0], "one"), [2.0], "two")
    if importer.width(margins) == 1:
        probabilities = two_columns(importer, positive)
    else:
        probabilities = normalised(importer, positive)
    return classifier(step, label, probabilities, margin)


def _discriminant(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    outputs = from_margins(importer, step, linear(importer, step, x), at_zero=False, log=False)
    probabilities = dict(outputs.values)["probabilities"]
    # log(0) is avoided by the smallest normal number.
    tiny = np.finfo(importer.dtype(probabilities)).smallest_normal
    zero = importer.compare(probabilities, "eq", [0.0], "zero")
    logs = importer.builder(LogOp, importer.where(zero, probabilities, [tiny], "tiny"))
    outputs.values.append(("log_probabilities", logs))
    outputs.methods["predict_log_proba"] = "log_probabilities"
    return outputs


def _why_not_coefficients(step: Any) -> list[str]:
    sparse = hasattr(getattr(step, "coef_", None), "tocsr")
    return ["sparse coef_ (call densify() first)"] if sparse else []


def _why_no_logistic(step: Any) -> list[str]:
    return ["parameter multi_class='ovr'"] if getattr(step, "multi_class", "") == "ovr" else []


_REGRESSORS = (
    "ARDRegression",
    "BayesianRidge",
    "ElasticNet",
    "ElasticNetCV",
    "HuberRegressor",
    "Lars",
    "LarsCV",
    "Lasso",
    "LassoCV",
    "LassoLars",
    "LassoLarsCV",
    "LassoLarsIC",
    "LinearRegression",
    "LinearSVR",
    "MultiTaskElasticNet",
    "MultiTaskElasticNetCV",
    "MultiTaskLasso",
    "MultiTaskLassoCV",
    "OrthogonalMatchingPursuit",
    "OrthogonalMatchingPursuitCV",
    "QuantileRegressor",
    "Ridge",
    "RidgeCV",
    "TheilSenRegressor",
)
_FLAT = ("PassiveAggressiveRegressor", "SGDRegressor")
_GENERALISED = ("GammaRegressor", "PoissonRegressor", "TweedieRegressor")
_MARGINS = (
    "LinearSVC",
    "PassiveAggressiveClassifier",
    "Perceptron",
)
_RIDGES = ("RidgeClassifier", "RidgeClassifierCV")

PREDICTORS: dict[str, Predictor] = {
    **{n: Predictor(_regressor, why_not_fitted=_why_not_coefficients) for n in _REGRESSORS},
    **{n: Predictor(_flat_regressor, why_not_fitted=_why_not_coefficients) for n in _FLAT},
    **{n: Predictor(_generalised, why_not_fitted=_why_no_link) for n in _GENERALISED},
    **{n: Predictor(_margins_only, why_not_fitted=_why_not_coefficients) for n in _MARGINS},
    **{n: Predictor(_ridge, why_not_fitted=_why_not_coefficients) for n in _RIDGES},
    "LinearDiscriminantAnalysis": Predictor(_discriminant),
    "LogisticRegression": Predictor(_logistic, _why_no_logistic, _why_not_coefficients),
    "LogisticRegressionCV": Predictor(_logistic, _why_no_logistic, _why_not_coefficients),
    "SGDClassifier": Predictor(_descent, why_not_fitted=_why_not_coefficients),
}
