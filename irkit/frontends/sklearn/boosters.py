"""LightGBM's and XGBoost's estimators last in pipelines, and within scikit-learn's estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from irkit.frontends import lightgbm, xgboost
from irkit.frontends.sklearn.importer import Importer, Outputs, Predictor
from irkit.frontends.sklearn.sparsity import absent_as_missing


def _lightgbm(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    importer.approximate = False
    # LightGBM copies what is no float to float32.
    x = x if importer.dtype(x).kind == "f" else importer.cast(x, np.float32)
    return lightgbm.lightgbm_outputs(importer.builder, x, lightgbm.text_of(step), step)


def _why_no_lightgbm(step: Any) -> list[str]:
    return lightgbm.why_not(lightgbm.text_of(step), step)


def _xgboost(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    importer.approximate = False
    narrow = importer.cast(absent_as_missing(importer, x), np.float32)
    found = xgboost.json_of(step)
    importer.any_scores |= not xgboost.gives_probabilities(found)
    return xgboost.xgboost_outputs(importer.builder, narrow, found, step)


def _why_no_xgboost(step: Any) -> list[str]:
    return xgboost.why_not(xgboost.json_of(step), step)


def takes_infinity(step: Any) -> bool:
    """Whether a fitted estimator takes infinity: gblinear is given a DMatrix, which does not."""
    return not (type(step).__name__ in xgboost.ESTIMATORS and xgboost.is_linear(step))


LIGHTGBM = tuple(f"lightgbm.sklearn.{name}" for name in lightgbm.ESTIMATORS)
XGBOOST = tuple(f"xgboost.sklearn.{name}" for name in xgboost.ESTIMATORS)
PREDICTORS: dict[str, Predictor] = {
    **{name: Predictor(_lightgbm, why_not_fitted=_why_no_lightgbm) for name in LIGHTGBM},
    **{name: Predictor(_xgboost, why_not_fitted=_why_no_xgboost) for name in XGBOOST},
}
