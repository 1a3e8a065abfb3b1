"""Encoders whose numbers are integers: programs have them as float64, where nobody sees the difference."""

# pyright: basic

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier

from irkit.errors import UnsupportedError
from tests.conformance.interpreted import compare, interpreted

X = np.random.default_rng(0).integers(0, 5, (90, 3)).astype(np.float64)
Y = X[:, 0] + np.random.default_rng(1).normal(size=90)
LABELS = np.where(Y > 2, "few", "many")
ENCODERS: dict[str, Any] = {
    "codes": lambda dtype: OrdinalEncoder(dtype=dtype),
    "marks": lambda dtype: OneHotEncoder(dtype=dtype, sparse_output=False),
}


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("name", ENCODERS)
def test_alone(name: str, dtype: Any) -> None:
    model = ENCODERS[name](dtype).fit(X)
    program = interpreted(model)
    compare(program, model, X, exact=("transform",))
    assert program.transform(X).dtype == dtype


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize(
    "last",
    [LogisticRegression(), DecisionTreeClassifier(max_depth=3), RandomForestClassifier(3)],
    ids=lambda last: type(last).__name__,
)
def test_before_predictors(name: str, last: Any) -> None:
    model = make_pipeline(ENCODERS[name](np.int64), last).fit(X, LABELS)
    compare(interpreted(model), model, X, rtol=1e-9, atol=1e-9)
    steps = (ENCODERS[name](np.int32), StandardScaler(), Normalizer(), Ridge())
    model = make_pipeline(*steps).fit(X, Y)
    compare(interpreted(model), model, X, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(OrdinalEncoder(dtype=np.int64), FunctionTransformer(np.square), Ridge()),
        make_pipeline(OrdinalEncoder(dtype=np.int64), GaussianMixture()),
        FeatureUnion([("codes", OrdinalEncoder(dtype=np.int64)), ("same", "passthrough")]),
    ],
    ids=["square", "mixture", "union"],
)
def test_where_they_would_be_seen(model: Any) -> None:
    with pytest.raises(
        UnsupportedError, match="step 'OrdinalEncoder': parameter dtype=int64, where"
    ):
        interpreted(model.fit(X, Y))
