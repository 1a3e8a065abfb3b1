"""TransformedTargetRegressor against scikit-learn: functions and transformers of targets, taken back."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false
# pyright: reportOptionalMemberAccess=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from irkit.errors import InvalidInputError, UnsupportedError
from irkit.frontends import import_model
from irkit.frontends.sklearn.functions import known_functions
from tests.conformance.interpreted import compare, interpreted
from tests.conformance.sklearn_models import data

pytestmark = pytest.mark.filterwarnings("ignore")
TRANSFORMERS: dict[str, Any] = {
    "box_cox": lambda: PowerTransformer(method="box-cox"),
    "function": lambda: FunctionTransformer(np.log1p, np.expm1),
    "identity": lambda: FunctionTransformer(),
    "max_abs": MaxAbsScaler,
    "min_max": MinMaxScaler,
    "piped": lambda: make_pipeline(FunctionTransformer(np.log, np.exp), StandardScaler()),
    "power": PowerTransformer,
    "power_alone": lambda: PowerTransformer(standardize=False),
    "quantile": lambda: QuantileTransformer(n_quantiles=30),
    "quantile_of_normal": lambda: QuantileTransformer(n_quantiles=30, output_distribution="normal"),
    "robust": RobustScaler,
    "standard": StandardScaler,
}


def check(model: Any, x: Any, tolerance: float = 1e-9) -> None:
    program = interpreted(model)
    compare(program, model, x, rtol=tolerance, atol=tolerance)
    compare(program, model, x.astype(np.float32), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_transformers(name: str) -> None:
    x, y = data("diabetes")
    for target in (y, np.stack([y, y[::-1] + 1], axis=1)):
        model = TransformedTargetRegressor(Ridge(), transformer=TRANSFORMERS[name]())
        check(model.fit(x, target), x)


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0, -0.5])
@pytest.mark.parametrize("method", ["box-cox", "yeo-johnson"])
def test_exponents(method: Any, exponent: float) -> None:
    x, y = data("diabetes")
    model = TransformedTargetRegressor(Ridge(), transformer=PowerTransformer(method=method))
    model.fit(x, y)
    model.transformer_.lambdas_[:] = exponent
    check(model, x)


def test_functions() -> None:
    x, y = data("diabetes")
    logs = TransformedTargetRegressor(func=np.log1p, inverse_func=np.expm1)
    check(logs.fit(x, y), x)
    forest = RandomForestRegressor(5, random_state=0)
    roots = TransformedTargetRegressor(forest, func=np.sqrt, inverse_func=np.square)
    check(roots.fit(x, y), x)
    check(make_pipeline(StandardScaler(), logs).fit(x, y), x)
    check(TransformedTargetRegressor().fit(x, y[:, None]), x)


@pytest.mark.parametrize("function", known_functions(), ids=lambda f: f.__name__)
def test_every_function_as_a_step(function: Any) -> None:
    x = np.concatenate([np.linspace(-3, 3, 61), [0.0, -0.0, np.inf, -np.inf, np.nan]])[:, None]
    model = FunctionTransformer(function).fit(x)
    with np.errstate(all="ignore"):
        compare(interpreted(model), model, x, rtol=1e-13, atol=1e-300)
        compare(interpreted(model), model, x.astype(np.float32), rtol=1e-6, atol=1e-30)


def test_what_the_inverse_does_not_take() -> None:
    x, y = data("diabetes")
    model = TransformedTargetRegressor(func=np.log1p, inverse_func=np.expm1).fit(x, y)
    model.regressor_.coef_[:] = 1e308
    with pytest.raises(ValueError, match="contains infinity"):
        model.predict(np.full((1, x.shape[1]), 10.0))
    with pytest.raises(InvalidInputError, match="reaches the inverse function"):
        interpreted(model).predict(np.full((1, x.shape[1]), 10.0))


def test_normal_quantiles_end_where_those_of_the_targets_do() -> None:
    """Shares within 1e-7 of 0 and 1, which are 5.2 deviations away, count as these."""
    x = np.linspace(-9, 9, 4001)[:, None]
    normal = QuantileTransformer(n_quantiles=30, output_distribution="normal")
    model = TransformedTargetRegressor(transformer=normal).fit(x, np.exp(x[:, 0]))
    model.regressor_.coef_[:], model.regressor_.intercept_ = 1.0, 0.0
    got, want = interpreted(model).predict(x), model.predict(x)
    assert (want == want.max()).sum() > 10
    assert (want == want.min()).sum() > 10
    np.testing.assert_allclose(got, want, rtol=1e-9)


def test_refused_by_name() -> None:
    x, y = data("diabetes")
    bins = KBinsDiscretizer(encode="ordinal")
    for model, reason in (
        (
            TransformedTargetRegressor(func=np.log, inverse_func=lambda y: y),
            "inverse_func=<function",
        ),
        (TransformedTargetRegressor(transformer=bins), "transformer=KBinsDiscretizer (supported"),
    ):
        with pytest.raises(UnsupportedError) as caught:
            import_model(model.set_params(check_inverse=False).fit(x, y), "float64")
        assert reason in caught.value.missing[0]
