"""Models of LightGBM and XGBoost in compiled functions."""

# pyright: basic

from __future__ import annotations

import functools

import numpy as np
import pytest

import irkit

lightgbm = pytest.importorskip("lightgbm")
xgboost = pytest.importorskip("xgboost")
pytestmark = pytest.mark.filterwarnings("ignore")

compiled = functools.partial(irkit.jit, target="cpu", cache=False)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 5))
X[RNG.random(X.shape) < 0.1] = np.nan
Y = np.nan_to_num(X) @ [1.0, -2.0, 0.5, 0.0, 1.0]
QUIET = {"n_estimators": 8, "verbose": -1, "n_jobs": 1}


def models():
    yield lightgbm.LGBMRegressor(**QUIET).fit(X, Y)
    yield lightgbm.LGBMRegressor(**QUIET).fit(X, Y).booster_
    yield lightgbm.LGBMClassifier(**QUIET).fit(X, np.digitize(Y, [-1, 1]))
    yield xgboost.XGBRegressor(n_estimators=8, n_jobs=1).fit(X, Y)
    yield xgboost.XGBClassifier(n_estimators=8, n_jobs=1).fit(X, Y > 0)
    yield xgboost.XGBRFRegressor(n_estimators=8, n_jobs=1).fit(X, Y)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    "model", list(models()), ids=lambda m: f"{type(m).__module__}.{type(m).__name__}"
)
def test_methods_are_part_of_the_program(model, dtype):
    for method in ("predict", "predict_proba"):
        if not hasattr(model, method):
            continue
        f = compiled(lambda x, method=method: getattr(model, method)(x * 2) * 3)
        x = X.astype(dtype)
        want = f.__wrapped__(x)
        got = f(x)
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-5)
        assert "estimator compiled" in f.explain()
        assert "host task" not in f.explain()


def test_one_that_is_fitted_again_and_one_that_is_an_argument():
    model = xgboost.XGBRegressor(n_estimators=5, n_jobs=1).fit(X, Y)
    f = compiled(lambda x: model.predict(x))
    np.testing.assert_allclose(f(X), model.predict(X), rtol=1e-5)
    model.fit(X, -Y)
    np.testing.assert_allclose(f(X), model.predict(X), rtol=1e-5)
    g = compiled(lambda x, m: m.predict(x))
    booster = lightgbm.LGBMRegressor(**QUIET).fit(X, Y).booster_
    np.testing.assert_allclose(g(X, booster), booster.predict(X), rtol=1e-12)


def test_what_is_a_task_of_the_host():
    rounded = lightgbm.LGBMRegressor(**QUIET).fit(X, Y)
    booster = xgboost.XGBRegressor(n_estimators=5, n_jobs=1).fit(X, Y).get_booster()
    whole = np.nan_to_num(X * 3).astype(int)
    for function, x, told in [
        (lambda x: rounded.predict(x * 2), whole, "it rounds rows of int64 first"),
        (lambda x: rounded.predict(x * 2, raw_score=True), X, "it is called with more than rows"),
        (lambda x: booster.inplace_predict(x * 2), X, "may change it"),
    ]:
        f = compiled(function)
        np.testing.assert_allclose(f(x), function(x))
        assert told in f.explain()
