"""Types of numbers that the host must not convert, since scikit-learn would compute in them."""

from __future__ import annotations

from typing import Any

import numpy as np

from irkit.frontends.sklearn import documents, encoders
from irkit.frontends.sklearn.columns import SELECTORS
from irkit.frontends.sklearn.composition import (
    COMPOSITIONS,
    PREDICTORS,
    does_nothing,
    estimators_within,
    members,
    pipeline_steps,
)
from irkit.frontends.sklearn.importer import kind_of

_WHOLE = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_ROUNDING = ("absolute", "ceil", "fabs", "floor", "positive", "rint", "sign", "trunc")
"""Functions whose result of an integer is the number that it is of the float."""
_IN_INTEGERS = ("AdditiveChi2Sampler", "BayesianGaussianMixture", "GaussianMixture")
_IN_HALVES = (
    "BayesianGaussianMixture", "CCA", "GaussianMixture", "IsotonicRegression", "PLSCanonical",
    "PLSRegression",
)  # fmt: skip
_AS_THEY_COME = (
    "CategoricalNB", "ColumnTransformer", "FeatureUnion", "FunctionTransformer",
    "HistGradientBoostingClassifier", "HistGradientBoostingRegressor", "MissingIndicator",
    "OneHotEncoder", "OrdinalEncoder", "SimpleImputer", "TargetEncoder",
)  # fmt: skip
"""Estimators that look at objects, or hand them on; others make numbers of them first."""


def own_types(steps: list[tuple[str, Any]]) -> tuple[str, ...]:
    """NumPy's names of the dtypes of rows which a model's steps would not convert before they compute.

    float16 where not a predictor alone reads the rows: scalers keep it, and of products with float32 it
    makes float32. Integers where some step computes in integers, or in the floats that NumPy makes of small
    ones. Objects where a step takes them as they come.
    """
    (_, first), *others = steps
    alone = not others and kind_of(first) in PREDICTORS and not estimators_within(first)
    keeps_halves = kind_of(first) in _IN_HALVES or _multiplies_float32(first)
    halves = () if alone and not keeps_halves else ("float16",)
    whole = {d for _, step in steps for each in _every(step) for d in _integers(each)}
    kinds = {kind_of(each) for _, step in steps for each in _every(step)}
    keeps = not kinds.isdisjoint((*_AS_THEY_COME, *SELECTORS))
    objects = ("object",) if keeps else ()
    return (*halves, *(d for d in _WHOLE if d in whole), *objects)


def _multiplies_float32(step: Any) -> bool:
    found: list[Any] = [getattr(step, name, None) for name in ("coef_", "theta_")]
    found += getattr(step, "coefs_", ())
    return any(str(getattr(part, "dtype", "")) == "float32" for part in found)


def why_no_codes(steps: list[tuple[str, Any]]) -> list[str]:
    """Reasons why integers of encoders and counts, which a program has as float64, would be seen to be none.

    They are not where an encoder is the last step, whose result is cast; nor before a predictor, if no step
    computes in integers.
    """
    if not steps:
        return []
    last, every = steps[-1][1], [each for _, step in steps for each in _every(step)]
    coded = [each for each in every if _gives_integers(each) and each is not last]
    computes = any(_integers(each) for each in every)
    if not coded or (kind_of(last) in PREDICTORS and not computes):
        return []
    return [
        f"step '{kind_of(each)}': parameter dtype={np.dtype(each.dtype)}, where not the last step or before "
        "a predictor, or before one that computes in integers"
        for each in coded
    ]


def _gives_integers(step: Any) -> bool:
    if kind_of(step) in documents.VECTORIZERS:
        return np.dtype(step.dtype).name in encoders.INTEGERS
    return encoders.gives_integers(step)


def counted_type(head: Any, steps: list[tuple[str, Any]]) -> np.dtype[Any] | None:
    """The type of integers that a vectorizer's counts still are behind steps; None where they are floats."""
    kind: np.dtype[Any] = np.dtype(head.dtype)
    for _, step in steps:
        kind = _type_after(step, kind)
    return kind if kind.name in encoders.INTEGERS else None


def _type_after(step: Any, kind: np.dtype[Any]) -> np.dtype[Any]:
    """What a step makes of a sparse matrix of such integers; float64 stands for all floats."""
    name = kind_of(step)
    if (
        does_nothing(step)
        or kind.name not in encoders.INTEGERS
        or name in (*SELECTORS, "Binarizer")
    ):
        return kind
    if name == "Pipeline":
        for _, part in pipeline_steps(step):
            kind = _type_after(part, kind)
        return kind
    if name in COMPOSITIONS:
        weights: Any = step.transformer_weights or {}
        parts = [_type_after(part, kind) for _, part in members(step, fitted=True)]
        return np.result_type(*(parts or [kind]), *weights.values())
    if name == "FunctionTransformer":
        return kind if step.func is None else np.dtype(_result(step.func, kind.name) or np.float64)
    return np.dtype(np.float64)


def _every(step: Any) -> list[Any]:
    """A step, and all estimators within it."""
    inside = [e for _, e in estimators_within(step)]
    if kind_of(step) in COMPOSITIONS:
        inside += [e for _, e in members(step, fitted=True)]
    return [step, *(e for part in inside for _, s in pipeline_steps(part) for e in _every(s))]


def _integers(step: Any) -> tuple[str, ...]:
    """Integers that a step does not convert to float64, or whose result would be another."""
    if kind_of(step) in _IN_INTEGERS:
        return _WHOLE
    if kind_of(step) != "FunctionTransformer" or not isinstance(step.func, np.ufunc):
        return ()
    function = step.func
    return tuple(d for d in _WHOLE if _result(function, d) not in ("float64", _same(function, d)))


def _same(function: np.ufunc, dtype: str) -> str:
    return dtype if function.__name__ in _ROUNDING else "float64"


def _result(function: np.ufunc, dtype: str) -> str:
    try:
        return str(function.resolve_dtypes((np.dtype(dtype), None))[-1])
    except TypeError:  # of which it has no meaning
        return ""
