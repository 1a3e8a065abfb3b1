"""What the LightGBM and XGBoost front ends refuse, and models that did not come from one `fit`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb

from irkit.errors import InvalidInputError, InvalidModelError, UnsupportedError
from irkit.frontends.lightgbm import import_lightgbm
from irkit.frontends.module import ImportedModel
from irkit.frontends.xgboost import import_xgboost
from tests.conformance.interpreted import compare, interpreted
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


def lgb_classifier(labels: Any) -> Any:
    x, y = data("breast_cancer")
    model: Any = lgb.LGBMClassifier(**LGB)
    return model.fit(x, labels[y])


def xgb_regressor(**parameters: Any) -> Any:
    return xgb.XGBRegressor(**XGB | parameters).fit(*with_categories())


def xgb_classifier(**parameters: Any) -> Any:
    return xgb.XGBClassifier(**XGB | parameters).fit(*data("breast_cancer"))


def own_classifier() -> Any:
    model: Any = lgb.LGBMClassifier(**LGB, objective=squared_error)
    return model.fit(*data("breast_cancer"))


def lgb_of_two_trainings() -> Any:
    """Trees of the second training treat NaN in a way that those of the first do not."""
    x, y = data("diabetes")
    gaps = np.where(np.arange(x.size).reshape(x.shape) % 7 == 0, np.nan, x)
    first: Any = lgb.LGBMRegressor(**LGB)
    second: Any = lgb.LGBMRegressor(**LGB)
    return second.fit(gaps, y, init_model=first.fit(x, y))


def lgb_where_zero_was_missing_once() -> Any:
    """The same, but to the first training zero is missing."""
    x, y = data("diabetes")
    sparse = np.where(np.arange(x.size).reshape(x.shape) % 7 == 0, 0, x)
    first: Any = lgb.LGBMRegressor(zero_as_missing=True, **LGB)
    second: Any = lgb.LGBMRegressor(**LGB)
    return second.fit(x, y, init_model=first.fit(sparse, y))


REFUSED_LIGHTGBM: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "early stop": (lambda: lgb_regressor(pred_early_stop=True), ["parameter pred_early_stop=True"]),
    "own objective": (own_classifier, ["a classifier with an objective of its own"]),
    "two trainings": (
        lgb_where_zero_was_missing_once,
        ["a feature whose splits treat zero as missing"],
    ),
    "days": (lambda: lgb_classifier(DAYS.astype("M8[D]")), ["class labels of type datetime64[D]"]),
    "nanoseconds": (
        lambda: lgb_classifier(DAYS.astype("M8[ns]")),
        ["class labels of type datetime64[ns]"],
    ),
    "one class": (lambda: lgb_classifier(np.zeros(2)), ["a classifier of 1 classes"]),
    "all at once": (
        lambda: lgb_where_zero_was_missing_once().set_params(pred_early_stop=True),
        ["a feature whose splits treat zero as missing", "parameter pred_early_stop=True"],
    ),
}
REFUSED_XGBOOST: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "objective": (
        lambda: xgb_classifier(objective="reg:squarederror"),
        ["a classifier with objective 'reg:squarederror'"],
    ),
    "infinity is missing": (lambda: xgb_regressor(missing=np.inf), ["parameter missing=inf "]),
    "None is missing": (lambda: xgb_regressor(missing=None), ["parameter missing=None "]),
    "all at once": (
        lambda: xgb_classifier(objective="reg:squarederror", missing=None),
        ["parameter missing=None ", "a classifier with objective 'reg:squarederror'"],
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
    with pytest.raises(UnsupportedError, match="DaskXGBRegressor"):
        import_xgboost(type("DaskXGBRegressor", (), {})())
    with pytest.raises(UnsupportedError, match="DaskLGBMRegressor"):
        import_lightgbm(type("DaskLGBMRegressor", (), {})())


@pytest.mark.parametrize("dtype", ["int32", "float16"])
def test_other_dtypes(dtype: str) -> None:
    with pytest.raises(UnsupportedError, match=dtype):
        import_lightgbm(lgb_regressor(), dtype)
    with pytest.raises(UnsupportedError, match=dtype):
        import_xgboost(xgb_regressor(), dtype)


# Categories, dropped trees, averages, vectors, other objectives: the same bits

ODD = (-1, -0.5, 0, 0.5, 1, 3, 7.9, 11, 12, 13, 100, 1e9, 2.0**24, 3e9, np.nan)
SETS: dict[str, Any] = {"cat_smooth": 1, "min_child_samples": 2}
KINDS = ["q", "c"] + ["q"] * 8


def odd_categories() -> tuple[Any, ...]:
    """Rows with known, unknown, fractional, negative and missing categories; with NaN and infinity."""
    x, _ = with_categories()
    rng = np.random.default_rng(0)
    odd = x.copy()
    odd[:, 1] = rng.choice(ODD, len(x))
    gaps = np.where(rng.random(x.shape) < 0.05, np.nan, odd)
    infinite = x.copy()
    infinite[::3, 2], infinite[1::3, 8], infinite[::5, 1] = np.inf, -np.inf, np.inf
    return x, odd, gaps, infinite


def lgb_model(cls: Any = lgb.LGBMRegressor, y: Any = None, **parameters: Any) -> Any:
    x, target = with_categories()
    fit = {k: parameters.pop(k) for k in ("categorical_feature", "group") if k in parameters}
    return cls(**LGB | parameters).fit(x, target if y is None else y, **fit)


def above(*limits: float) -> Any:
    """Classes by size of the target."""
    return np.digitize(data("diabetes")[1], limits)


LIGHTGBM_EXACT: dict[str, Callable[[], Any]] = {
    "single categories": lambda: lgb_model(categorical_feature=[1], **SETS),
    "sets": lambda: lgb_model(categorical_feature=[1], max_cat_to_onehot=1, **SETS),
    "never missing": lambda: lgb_model(categorical_feature=[1], use_missing=False, **SETS),
    "zero missing": lambda: lgb_model(categorical_feature=[1], zero_as_missing=True, **SETS),
    "NaN is missing to some trees": lgb_of_two_trainings,
    "rf": lambda: lgb_model(**RF),
    "rf classifier": lambda: lgb_model(lgb.LGBMClassifier, above(140, 200), **RF),
    "dart": lambda: lgb_model(boosting_type="dart"),
    "goss": lambda: lgb_model(data_sample_strategy="goss"),
    "square root": lambda: lgb_model(reg_sqrt=True),
    "square root l1": lambda: lgb_model(reg_sqrt=True, objective="regression_l1"),
    "own objective": lambda: lgb_model(objective=squared_error),
    "ranker": lambda: lgb_model(lgb.LGBMRanker, above(140), group=[200, 242]),
    "labels": lambda: lgb_model(lgb.LGBMClassifier, np.array(["no", "maybe"])[above(140)]),
}


def xgb_model(cls: Any = xgb.XGBRegressor, y: Any = None, **parameters: Any) -> Any:
    x, target = with_categories()
    fit = {"group": parameters.pop("group")} if "group" in parameters else {}
    return cls(**XGB | parameters).fit(x, target if y is None else y, **fit)


def two_targets() -> Any:
    y = data("diabetes")[1]
    return np.stack([y, -y], axis=1)


CATEGORIES: dict[str, Any] = {"enable_categorical": True, "feature_types": KINDS}
XGBOOST_EXACT: dict[str, Callable[[], Any]] = {
    "sets": lambda: xgb_model(max_cat_to_onehot=1, **CATEGORIES),
    "single categories": lambda: xgb_model(max_cat_to_onehot=99, **CATEGORIES),
    "vector leaves": lambda: xgb_model(y=two_targets(), multi_strategy="multi_output_tree"),
    "zero missing": lambda: xgb_model(missing=0),
    "quantiles": lambda: xgb_model(objective="reg:quantileerror", quantile_alpha=[0.2, 0.5]),
    "ranker": lambda: xgb_model(xgb.XGBRanker, above(140), group=[200, 242]),
    "map": lambda: xgb_model(xgb.XGBRanker, above(140), group=[200, 242], objective="rank:map"),
    "rf": lambda: xgb_model(xgb.XGBRFRegressor),
    "rf classifier": lambda: xgb_model(xgb.XGBRFClassifier, above(140)),
    "several labels": lambda: xgb_model(
        xgb.XGBClassifier, np.stack([above(140), above(100), above(200)], axis=1)
    ),
    "softprob of two": lambda: xgb_model(
        xgb.XGBClassifier, above(140), objective="multi:softprob", num_class=2
    ),
    "softmax": lambda: xgb_model(xgb.XGBClassifier, above(140, 200), objective="multi:softmax"),
}
XGBOOST_CLOSE: dict[str, Callable[[], Any]] = {
    # XGBoost adds a base score to each dropped tree, and takes it off again.
    "dart": lambda: xgb_model(booster="dart", rate_drop=0.5),
    "cox": lambda: xgb_model(objective="survival:cox"),
}


def check_all(model: Any, **tolerances: float) -> None:
    program = interpreted(model)
    for x in odd_categories():
        for dtype in (np.float32, np.float64):
            compare(program, model, x.astype(dtype), exact=("predict",), **tolerances)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("case", LIGHTGBM_EXACT)
def test_lightgbm_has_the_same_bits(case: str) -> None:
    check_all(LIGHTGBM_EXACT[case]())


@pytest.mark.parametrize("case", XGBOOST_EXACT)
def test_xgboost_has_the_same_bits(case: str) -> None:
    check_all(XGBOOST_EXACT[case]())


@pytest.mark.parametrize("case", XGBOOST_CLOSE)
def test_xgboost_is_close(case: str) -> None:
    model = XGBOOST_CLOSE[case]()
    program = interpreted(model)
    for x in odd_categories():
        compare(program, model, x, rtol=1e-6, atol=0)


def test_dropped_trees_of_a_booster_have_the_same_bits() -> None:
    booster = xgb_model(booster="dart", rate_drop=0.5).get_booster()
    program = interpreted(booster)
    for x in odd_categories()[:3]:
        np.testing.assert_array_equal(program.predict(x), booster.predict(xgb.DMatrix(x)))
    with pytest.raises(InvalidInputError, match="infinity"):
        program.predict(odd_categories()[3])


def test_hinge_and_failure_times() -> None:
    x, y = data("diabetes")
    hinge = xgb.train({"objective": "binary:hinge"}, xgb.DMatrix(x, above(140)), 4)
    times = xgb.DMatrix(x)
    times.set_float_info("label_lower_bound", y)
    times.set_float_info("label_upper_bound", y)
    aft = xgb.train({"objective": "survival:aft"}, times, 4)
    for booster, rtol in ((hinge, 0.0), (aft, 1e-6)):
        found, want = interpreted(booster).predict(x), booster.predict(xgb.DMatrix(x))
        np.testing.assert_allclose(found, want, rtol=rtol, atol=0)


def test_compiled_categories(compiled: Any) -> None:
    for model in (LIGHTGBM_EXACT["sets"](), XGBOOST_EXACT["sets"]()):
        program = compiled(model, mode="serial", dtype="float64")
        for x in odd_categories():
            np.testing.assert_array_equal(program.predict(x), model.predict(x))


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
