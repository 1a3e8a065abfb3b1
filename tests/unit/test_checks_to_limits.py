"""checks-to-limits: what the host refuses is what scikit-learn does, up to the last number."""

from __future__ import annotations

import warnings
from typing import Any, cast

import numpy as np
import pytest
from sklearn import pipeline
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.feature_selection import SelectPercentile
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)
from xdsl.transforms.dead_code_elimination import DeadCodeElimination

import irkit
from irkit.context import IrkitContext
from irkit.errors import InvalidInputError
from irkit.frontends import import_model
from irkit.interp.graph import run_graph
from irkit.model_info import Limits, ModelInfo
from irkit.passes.graph.checks_to_limits import MODEL, ChecksToLimits
from irkit.passes.graph.float_ranges import holding_ranges
from irkit.passes.graph.select_first import SelectFirst
from irkit.runtime.column_limits import ColumnLimits

make_pipeline: Any = cast(Any, pipeline).make_pipeline
RANDOM = np.random.default_rng(0)
X = np.concatenate(
    [RANDOM.normal(size=(60, 5)) * [1e-3, 0.5, 2, 30, 1], RANDOM.integers(0, 3, (60, 1))], axis=1
)
Y = (X[:, 1] > 0).astype(np.int64)


def side_by_side(scaler: Any) -> ColumnTransformer:
    """A column transformer whose numbers may be missing."""
    return ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), scaler), [0, 1, 2, 3]),
            ("classes", OneHotEncoder(handle_unknown="ignore"), [5]),
        ],
        sparse_threshold=0,
    )


MODELS = {
    "standard": lambda: make_pipeline(side_by_side(StandardScaler()), LogisticRegression()),
    "min-max": lambda: make_pipeline(side_by_side(MinMaxScaler((-3, 5))), Ridge()),
    "max-abs": lambda: make_pipeline(MaxAbsScaler(), StandardScaler(), MinMaxScaler(), Ridge()),
    "robust": lambda: make_pipeline(
        RobustScaler(), SelectPercentile(percentile=30), LogisticRegression()
    ),
    "trees": lambda: make_pipeline(MinMaxScaler(), ExtraTreesRegressor(2, random_state=0)),
    "power": lambda: make_pipeline(MaxAbsScaler(), PowerTransformer(), Ridge()),
    "products": lambda: make_pipeline(RobustScaler(), PolynomialFeatures(2), Ridge()),
}


def moved(model: Any) -> ModelInfo:
    """The facts after the pass."""
    imported = import_model(model, "float64")
    ChecksToLimits().apply(IrkitContext(weights=imported.weights), imported.module)
    imported.module.verify()
    text: Any = imported.module.attributes[MODEL]
    return ModelInfo.from_json(text.data)


def takes(predict: Any, x: Any) -> bool:
    """Whether a model answers; a ValueError is what both refuse with."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            predict(x)
        except ValueError:
            return False
    return True


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")
@pytest.mark.parametrize("name", MODELS)
def test_refusals_are_those_of_scikit_learn(name: str) -> None:
    """At each limit and one number beyond, at NaN and infinity, in every column, also those left out."""
    model = MODELS[name]().fit(X, Y)
    program = irkit.compile(model, target="cpu", device="cpu1", dtype="float64", mode="serial")
    info = moved(model)
    assert info.limits or name == "power"
    tried = 0
    for column in range(6):
        ends = [end[column % len(end)] for f in info.limits for end in (f.low, f.high)]
        beyond = [np.nextafter(end, np.copysign(np.inf, end)) for end in ends]
        for value in {np.inf, -np.inf, 1.5e308, -1.5e308, *ends, *beyond} | {np.nan}:
            x = X[:3].copy()
            x[1, column] = value
            assert takes(program.predict, x) == takes(model.predict, x), (column, value)
            tried += 1
    assert tried >= 30


def test_products_are_bounded_by_their_columns() -> None:
    """That sums and products are finite follows from bounds of the columns: nothing is left to compute."""
    for name, limits in (("standard", 3), ("products", 2)):
        found = moved(MODELS[name]().fit(X, Y))
        assert not found.checks
        assert len(found.limits) == limits


def test_coefficients_of_zero_behind_a_scaler() -> None:
    """Once the host keeps scaled columns finite, those that are multiplied by zero alone are not computed."""
    model = MODELS["standard"]().fit(X, Y)
    model[-1].coef_[0, [0, 2, 3, 5]] = 0
    imported = import_model(model, "float64")
    ctx = IrkitContext(weights=imported.weights)
    (want, *_) = run_graph(imported.module, imported.weights, [X])[1:]
    SelectFirst().apply(ctx, imported.module)
    assert "(tensor<?x4xf64>, tensor<4xf64>)" in str(imported.module)
    ChecksToLimits().apply(ctx, imported.module)
    DeadCodeElimination().apply(ctx, imported.module)
    SelectFirst().apply(ctx, imported.module)
    assert "(tensor<?x4xf64>, tensor<4xf64>)" not in str(imported.module)
    (found, *_) = run_graph(imported.module, imported.weights, [X])[1:]
    np.testing.assert_allclose(found, want, rtol=1e-13)


def test_limits_name_the_row() -> None:
    program = irkit.compile(
        MODELS["standard"]().fit(X, Y), target="cpu", device="cpu1", dtype="float64", mode="serial"
    )
    x = X.copy()
    x[7, 0] = np.inf
    with pytest.raises(InvalidInputError, match="row 7: infinity reaches SimpleImputer"):
        program.predict(x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ranges_end_at_the_last_number(dtype: Any) -> None:
    """Random ends of every size, zeros and infinities among them."""
    random = np.random.default_rng(1)
    bound = random.normal(size=200) * 10.0 ** random.integers(-30, 30, 200)
    low, high = np.sort(np.stack([-np.abs(bound), np.abs(bound[::-1])]), axis=0).astype(dtype)
    low[:3], high[2:4] = (-np.inf, 0, -0.0), (np.inf, np.inf)
    found = holding_ranges(lambda x: (x >= low) & (x <= high), 200, np.dtype(dtype))
    assert found.found.all()
    assert not found.nan.any()
    np.testing.assert_array_equal(found.low, low)
    np.testing.assert_array_equal(found.high, high)


def test_limits_of_an_array() -> None:
    limits = ColumnLimits(
        [Limits((-1.0, -np.inf), (2.0, np.inf), (False, True), "no")], np.dtype(np.float64)
    )
    assert limits.largest == 1.0
    assert not limits.nan
    limits.check(np.array([[2.0, np.nan], [-1.0, np.inf]]))
    for wrong in ([2.1, 0.0], [np.nan, 0.0], [-1.5, 0.0]):
        with pytest.raises(InvalidInputError, match="row 1: no"):
            limits.check(np.array([[0.0, 0.0], wrong]))
