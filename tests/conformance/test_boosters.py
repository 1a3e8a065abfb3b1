"""What the LightGBM and XGBoost front ends refuse, and models that did not come from one `fit`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb

from irkit.errors import InvalidModelError, UnsupportedError
from irkit.frontends.lightgbm import import_lightgbm
from irkit.frontends.module import ImportedModel
from irkit.frontends.xgboost import import_xgboost
from tests.conformance.sklearn_models import data

BATCHES = (1, 2, 7, None)
LGB: dict[str, Any] = {"n_estimators": 5, "verbose": -1, "n_jobs": 1}
XGB: dict[str, Any] = {"n_estimators": 5, "n_jobs": 1}
LONG_LGB: dict[str, Any] = LGB | {"n_estimators": 12}
LONG_XGB: dict[str, Any] = XGB | {"n_estimators": 12}
RF: dict[str, Any] = {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.5}
DAYS = np.array(["2020-01-01", "2021-01-01"])


def with_categories() -> tuple[Any, Any]:
    """The diabetes data, whose column 1 is a category that decides."""
    x, y = data("diabetes")
    x = x.copy()
    x[:, 1] = np.arange(len(x)) % 12
    return x, y + 200 * (x[:, 1] % 3)


def squared_error(y: Any, prediction: Any) -> Any:
    """Gradient and second derivative of a user's own objective."""
    return prediction - y, np.ones_like(y)


def lgb_regressor(**parameters: Any) -> Any:
    model: Any = lgb.LGBMRegressor(**LGB | parameters)
    return model.fit(*with_categories())


def lgb_categories(**parameters: Any) -> Any:
    model: Any = lgb.LGBMRegressor(**LGB | parameters, cat_smooth=1, min_child_samples=2)
    return model.fit(*with_categories(), categorical_feature=[1])


def lgb_classifier(labels: Any) -> Any:
    x, y = data("breast_cancer")
    model: Any = lgb.LGBMClassifier(**LGB)
    return model.fit(x, labels[y])


def xgb_regressor(**parameters: Any) -> Any:
    return xgb.XGBRegressor(**XGB | parameters).fit(*with_categories())


def xgb_categories(one_hot: int) -> Any:
    types = ["q", "c"] + ["q"] * 8
    return xgb_regressor(enable_categorical=True, feature_types=types, max_cat_to_onehot=one_hot)


def xgb_two_targets(**parameters: Any) -> Any:
    x, y = data("diabetes")
    return xgb.XGBRegressor(**XGB | parameters).fit(x, np.stack([y, -y], axis=1))


def lgb_of_two_trainings() -> Any:
    """Trees of the second training treat NaN in a way that those of the first do not."""
    x, y = data("diabetes")
    gaps = np.where(np.arange(x.size).reshape(x.shape) % 7 == 0, np.nan, x)
    first: Any = lgb.LGBMRegressor(**LGB)
    second: Any = lgb.LGBMRegressor(**LGB)
    return second.fit(gaps, y, init_model=first.fit(x, y))


REFUSED_LIGHTGBM: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "random forest": (lambda: lgb_regressor(**RF), ["boosting_type 'rf'"]),
    "linear trees": (lambda: lgb_regressor(linear_tree=True), ["parameter linear_tree=true"]),
    "categories": (lgb_categories, ["categorical splits"]),
    "square root": (lambda: lgb_regressor(reg_sqrt=True), ["parameter reg_sqrt=true"]),
    "early stop": (lambda: lgb_regressor(pred_early_stop=True), ["parameter pred_early_stop=True"]),
    "own objective": (
        lambda: lgb_regressor(objective=squared_error),
        ["objective 'custom'"],
    ),
    "two trainings": (lgb_of_two_trainings, ["a feature whose splits treat missing values"]),
    "days": (lambda: lgb_classifier(DAYS.astype("M8[D]")), ["class labels of type datetime64[D]"]),
    "nanoseconds": (
        lambda: lgb_classifier(DAYS.astype("M8[ns]")),
        ["class labels of type datetime64[ns]"],
    ),
    "one class": (lambda: lgb_classifier(np.zeros(2)), ["a classifier of 1 classes"]),
    "all at once": (
        lambda: lgb_categories(**RF),
        ["boosting_type 'rf'", "categorical splits"],
    ),
}
REFUSED_XGBOOST: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "dart": (lambda: xgb_regressor(booster="dart"), ["booster 'dart'"]),
    "linear": (lambda: xgb_regressor(booster="gblinear"), ["booster 'gblinear'"]),
    "sets of categories": (lambda: xgb_categories(1), ["categorical splits"]),
    "single categories": (lambda: xgb_categories(99), ["categorical splits"]),
    "vector leaves": (
        lambda: xgb_two_targets(multi_strategy="multi_output_tree"),
        ["multi_strategy='multi_output_tree'"],
    ),
    "objective": (
        lambda: xgb_regressor(objective="reg:quantileerror", quantile_alpha=0.5),
        ["objective 'reg:quantileerror'"],
    ),
    "zero is missing": (lambda: xgb_regressor(missing=0), ["parameter missing=0 "]),
    "None is missing": (lambda: xgb_regressor(missing=None), ["parameter missing=None "]),
    "no trees": (lambda: xgb_regressor(n_estimators=0), ["a model without trees"]),
    "all at once": (
        lambda: xgb_regressor(booster="dart", missing=0),
        ["booster 'dart'", "parameter missing=0 "],
    ),
}


def check_refusal(read: Callable[[Any], ImportedModel], model: Any, reasons: list[str]) -> None:
    with pytest.raises(UnsupportedError) as caught:
        read(model)
    for found, start in zip(caught.value.missing, reasons, strict=True):
        assert found.startswith(start)
        assert found in str(caught.value)


@pytest.mark.parametrize("case", REFUSED_LIGHTGBM)
def test_lightgbm_refuses_by_name(case: str) -> None:
    make, reasons = REFUSED_LIGHTGBM[case]
    check_refusal(import_lightgbm, make(), reasons)


@pytest.mark.parametrize("case", REFUSED_XGBOOST)
def test_xgboost_refuses_by_name(case: str) -> None:
    make, reasons = REFUSED_XGBOOST[case]
    check_refusal(import_xgboost, make(), reasons)


@pytest.mark.parametrize("model", [lgb.LGBMRegressor(), lgb.LGBMClassifier()], ids=repr)
def test_lightgbm_not_fitted(model: Any) -> None:
    with pytest.raises(InvalidModelError, match="not fitted"):
        import_lightgbm(model)


@pytest.mark.parametrize("kind", [xgb.XGBRegressor, xgb.XGBClassifier])
def test_xgboost_not_fitted(kind: Any) -> None:
    with pytest.raises(InvalidModelError, match="not fitted"):
        import_xgboost(kind())


def test_an_empty_xgboost_booster() -> None:
    with pytest.raises(InvalidModelError, match="not readable"):
        import_xgboost(xgb.Booster())


def test_other_classes() -> None:
    x, y = data("diabetes")
    with pytest.raises(UnsupportedError, match="XGBRFRegressor"):
        import_xgboost(xgb.XGBRFRegressor(**XGB).fit(x, y))
    with pytest.raises(UnsupportedError, match="DaskLGBMRegressor"):
        import_lightgbm(type("DaskLGBMRegressor", (), {})())


@pytest.mark.parametrize("dtype", ["int32", "float16"])
def test_other_dtypes(dtype: str) -> None:
    with pytest.raises(UnsupportedError, match=dtype):
        import_lightgbm(lgb_regressor(), dtype)
    with pytest.raises(UnsupportedError, match=dtype):
        import_xgboost(xgb_regressor(), dtype)


# Models that were changed, cut or loaded after training


def lgb_booster() -> Any:
    model: Any = lgb.LGBMRegressor(**LONG_LGB)
    return model.fit(*data("diabetes")).booster_


def lgb_rolled_back() -> Any:
    return lgb_booster().rollback_one_iter()


def lgb_cut() -> Any:
    booster = lgb_booster()
    booster.best_iteration = 7
    return booster


def lgb_other_leaf() -> Any:
    return lgb_booster().set_leaf_output(0, 0, 123.45678901234567)


LIGHTGBM_BOOSTERS: dict[str, Callable[[], Any]] = {
    "loaded": lambda: lgb.Booster(model_str=lgb_booster().model_to_string()),
    "rolled back": lgb_rolled_back,
    "cut": lgb_cut,
    "other leaf": lgb_other_leaf,
    "refitted": lambda: lgb_booster().refit(data("diabetes")[0], 2 * data("diabetes")[1]),
}


@pytest.mark.parametrize("case", LIGHTGBM_BOOSTERS)
def test_lightgbm_boosters_have_the_same_bits(execute: Any, case: str) -> None:
    booster, x = LIGHTGBM_BOOSTERS[case](), data("diabetes")[0]
    imported = import_lightgbm(booster, "float64")
    for rows in BATCHES:
        found = execute(imported, [x[:rows]])["prediction"]
        np.testing.assert_array_equal(found, booster.predict(x[:rows]))


def xgb_booster() -> Any:
    return xgb.XGBRegressor(**LONG_XGB).fit(*data("diabetes")).get_booster()


def xgb_loaded() -> Any:
    return xgb.Booster(model_file=xgb_booster().save_raw("ubj"))


def xgb_own_objective() -> Any:
    fitted = xgb.XGBRegressor(**XGB, objective=squared_error).fit(*data("diabetes"))
    return fitted.get_booster()


XGBOOST_BOOSTERS: dict[str, Callable[[], Any]] = {
    "loaded": xgb_loaded,
    "sliced": lambda: xgb_booster()[2:6],
    "own objective": xgb_own_objective,
}


@pytest.mark.parametrize("case", XGBOOST_BOOSTERS)
def test_xgboost_boosters_have_the_same_bits(execute: Any, case: str) -> None:
    booster, x = XGBOOST_BOOSTERS[case](), data("diabetes")[0]
    imported = import_xgboost(booster)
    for rows in BATCHES:
        found = execute(imported, [x[:rows]])["prediction"]
        np.testing.assert_array_equal(found, booster.predict(xgb.DMatrix(x[:rows])))
