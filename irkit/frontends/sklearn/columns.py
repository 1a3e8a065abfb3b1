"""Transformers that fill, mark, pick or project columns: imputers, selectors, PCA."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from irkit.dialects.graph import CastOp, CompareOp, IsNanOp
from irkit.frontends.sklearn.importer import Importer, Transformer
from irkit.frontends.sklearn.strings import filled, fills_words, why_not_filled
from irkit.model_info import is_pandas_na
from irkit.weights import Array

# Missing values


def is_nan(value: Any) -> bool:
    """Whether a parameter is NaN, or pandas' NA, which is the same of numbers."""
    if is_pandas_na(value):
        return True
    return isinstance(value, float | np.floating) and math.isnan(cast(float, value))


def _missing(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    """Which cells are `missing_values`, as i1."""
    if is_nan(step.missing_values):
        return importer.builder(IsNanOp, x)
    return importer.compare(x, "eq", [step.missing_values], "missing")


def _imputer(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    if fills_words(step):
        return filled(importer, step, x)
    statistics = _statistics(step).astype(np.float64)
    missing = _missing(importer, step, x)
    kept = np.arange(len(statistics)) if step.keep_empty_features else _observed(statistics)
    fill = statistics[kept].astype(step._fill_dtype)
    y = importer.where(
        importer.columns(missing, kept), importer.columns(x, kept), fill, "statistics"
    )
    if not step.add_indicator:
        return y
    marks = step.indicator_.features_
    return importer.concat([y, importer.columns(missing, marks)]) if len(marks) else y


def _statistics(step: Any) -> Array:
    """What fills each column; a constant is kept as an object."""
    return np.array(np.asarray(step.statistics_).tolist())


def _observed(statistics: Array) -> Array:
    return np.flatnonzero(~np.isnan(statistics))


def _why_no_imputer(step: Any) -> list[str]:
    if fills_words(step):
        return why_not_filled(step)
    reasons = _why_not_missing(step)
    if np.dtype(step._fit_dtype).kind not in "fiub" or _statistics(step).dtype.kind not in "fiub":
        reasons.append("strings among numbers, or objects")
    elif not step.keep_empty_features and not len(_observed(_statistics(step))):
        reasons.append("no output columns")
    elif step.keep_empty_features and np.isnan(_statistics(step).astype(np.float64)).any():
        reasons.append("parameter fill_value=nan")
    return reasons


def _why_not_missing(step: Any) -> list[str]:
    value = step.missing_values
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    number = number or is_nan(value)
    return [] if number else [f"parameter missing_values={value!r} (supported: numbers, nan)"]


def _indicator(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    missing = _missing(importer, step, x)
    if step.features == "missing-only":
        new = np.setdiff1d(np.arange(importer.width(x)), step.features_)
        if step.error_on_new and len(new):
            none = importer.builder(CastOp, importer.columns(missing, new), to=f32)
            message = "MissingIndicator found missing values in a feature that had none in fit"
            zero = importer.constant(none, [0.0], "zero")
            importer.require(importer.builder(CompareOp, none, zero, predicate="eq"), message)
        return importer.columns(missing, step.features_)
    return missing


def _why_no_indicator(step: Any) -> list[str]:
    reasons = _why_not_missing(step)
    if step.features == "missing-only" and not len(step.features_):
        reasons.append("no output columns")
    return reasons


# Selection


def _selector(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    return importer.columns(x, np.flatnonzero(step.get_support()))


def _why_no_selector(step: Any) -> list[str]:
    return [] if np.any(step.get_support()) else ["no output columns"]


# Projection


def _pca(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    components = np.asarray(step.components_)
    dtype = np.result_type(importer.dtype(x), components.dtype)
    y = importer.matmul(importer.cast(x, dtype), components.T, "components")
    shift = np.reshape(step.mean_, (1, -1)) @ components.T
    y = importer.sub(y, shift, "shift")
    if not step.whiten:
        return y
    scale = np.sqrt(step.explained_variance_)
    return importer.div(y, np.maximum(scale, np.finfo(scale.dtype).eps), "scale")


def _svd(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    components = np.asarray(step.components_)
    dtype = np.result_type(importer.dtype(x), components.dtype)
    return importer.matmul(importer.cast(x, dtype), components.T, "components")


SELECTORS = (
    "GenericUnivariateSelect",
    "RFE",
    "RFECV",
    "SelectFdr",
    "SelectFpr",
    "SelectFromModel",
    "SelectFwe",
    "SelectKBest",
    "SelectPercentile",
    "SequentialFeatureSelector",
    "VarianceThreshold",
)
TRANSFORMERS: dict[str, Transformer] = {
    **{n: Transformer(_selector, why_not_fitted=_why_no_selector, bounded=True) for n in SELECTORS},
    "IncrementalPCA": Transformer(_pca),
    "MissingIndicator": Transformer(
        _indicator, why_not_fitted=_why_no_indicator, nan="clears", bounded=True
    ),
    "PCA": Transformer(_pca),
    "SimpleImputer": Transformer(
        _imputer, why_not_fitted=_why_no_imputer, nan="clears", bounded=True
    ),
    "TruncatedSVD": Transformer(_svd),
}
