"""LightGBM and XGBoost estimators last in pipelines and within scikit-learn's own estimators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lightgbm as lgb
import numpy as np
import pandas
import pytest
import xgboost as xgb
from numpy.testing import assert_array_equal
from sklearn import ensemble, multiclass, multioutput, pipeline
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from irkit.errors import InvalidInputError, InvalidModelError, UnsupportedError
from irkit.frontends import import_model
from tests.conformance.interpreted import METHODS, compare, interpreted
from tests.conformance.sklearn_models import data

pd: Any = pandas
steps: Any = pipeline
make_pipeline: Callable[..., Any] = steps.make_pipeline
pytestmark = pytest.mark.filterwarnings("ignore")
WORDS = np.array(["a", "long name", "ü"])


def lgb_c(**more: Any) -> Any:
    return lgb.LGBMClassifier(n_estimators=4, num_leaves=7, verbose=-1, n_jobs=1, **more)


def lgb_r(**more: Any) -> Any:
    return lgb.LGBMRegressor(n_estimators=4, num_leaves=7, verbose=-1, n_jobs=1, **more)


def xgb_c(**more: Any) -> Any:
    return xgb.XGBClassifier(n_estimators=4, max_depth=3, n_jobs=1, **more)


def xgb_r(**more: Any) -> Any:
    return xgb.XGBRegressor(n_estimators=4, max_depth=3, n_jobs=1, **more)


def logistic() -> Any:
    return LogisticRegression(max_iter=50)


def some() -> list[tuple[str, Any]]:
    return [("l", lgb_c()), ("s", piped(xgb_c())), ("r", logistic())]


def piped(last: Any) -> Any:
    return make_pipeline(StandardScaler(), last)


CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "lgb": lambda: piped(lgb_c()),
    "lgb_alone": lambda: make_pipeline(lgb_c()),
    "lgb_bagged": lambda: ensemble.BaggingClassifier(lgb_c(), n_estimators=2, max_features=0.7),
    "lgb_calibrated": lambda: CalibratedClassifierCV(lgb_c(), cv=2),
    "lgb_averaged": lambda: piped(lgb_c(boosting_type="rf", bagging_freq=1, bagging_fraction=0.5)),
    "lgb_dart": lambda: piped(lgb_c(boosting_type="dart")),
    "lgb_projected": lambda: make_pipeline(PCA(3), lgb_c()),
    "lgb_rest": lambda: multiclass.OneVsRestClassifier(lgb_c()),
    "lgb_searched": lambda: GridSearchCV(piped(lgb_c()), {"lgbmclassifier__num_leaves": [3, 5]}),
    "stacked": lambda: ensemble.StackingClassifier(some(), final_estimator=lgb_c(), cv=2),
    "voting_hard": lambda: ensemble.VotingClassifier(some()),
    "voting_soft": lambda: ensemble.VotingClassifier(some(), voting="soft", weights=[1, 2, 3]),
}
NUMBERED: dict[str, Callable[[], Any]] = {
    "xgb": lambda: piped(xgb_c()),
    "xgb_alone": lambda: make_pipeline(xgb_c()),
    "xgb_calibrated": lambda: CalibratedClassifierCV(xgb_c(), cv=2),
    "xgb_dart": lambda: piped(xgb_c(booster="dart", rate_drop=0.5)),
    "xgb_missing": lambda: piped(xgb_c(missing=0.25)),
    "xgb_forest": lambda: piped(xgb.XGBRFClassifier(n_estimators=4, n_jobs=1)),
    "xgb_projected": lambda: make_pipeline(PCA(3), xgb_c()),
    "xgb_stacked": lambda: ensemble.StackingClassifier(some(), final_estimator=xgb_c(), cv=2),
}
REGRESSORS: dict[str, Callable[[], Any]] = {
    "lgb": lambda: piped(lgb_r()),
    "lgb_poisson": lambda: piped(lgb_r(objective="poisson")),
    "multi": lambda: multioutput.MultiOutputRegressor(lgb_r()),
    "stacked": lambda: ensemble.StackingRegressor([("l", lgb_r()), ("x", xgb_r())], Ridge()),
    "voting": lambda: ensemble.VotingRegressor([("l", lgb_r()), ("x", piped(xgb_r()))]),
    "xgb": lambda: piped(xgb_r()),
    "xgb_chain": lambda: multioutput.RegressorChain(xgb_r()),
}


def rows(classes: int = 3) -> tuple[Any, Any]:
    """100 rows of wine."""
    x, y = data("wine")
    kept = np.flatnonzero(y < classes)
    kept = np.random.default_rng(0).permutation(kept)[:100]
    return x[kept][:, :6], y[kept]


def check(model: Any, x: Any) -> None:
    """Labels, and values within rounding of what multiplies matrices; in both dtypes."""
    program: Any = interpreted(model)
    assert set(program._methods) == {m for m in METHODS if hasattr(model, m)}
    given = np.concatenate([x, 3 * x[:9], -x[:5]])
    compare(program, model, given, rtol=1e-6, atol=1e-6)
    compare(program, model, given.astype(np.float32), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("classes", [2, 3])
def test_classifiers(name: str, classes: int) -> None:
    x, y = rows(classes)
    check(CLASSIFIERS[name]().fit(x, WORDS[y]), x)


@pytest.mark.parametrize("name", NUMBERED)
@pytest.mark.parametrize("classes", [2, 3])
def test_classifiers_of_numbers(name: str, classes: int) -> None:
    x, y = rows(classes)
    check(NUMBERED[name]().fit(x, y), x)


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors(name: str) -> None:
    x, _ = rows()
    several = name in ("multi", "xgb_chain")
    y = np.abs(x[:, 1:3] + x[:, 2:4] ** 2 if several else x[:, 1] + x[:, 2] ** 2)
    check(REGRESSORS[name]().fit(x, y), x)


@pytest.mark.parametrize("model", [lgb_c(), xgb_c()], ids=["lgb", "xgb"])
def test_bits_nan_and_infinity(model: Any) -> None:
    """After a scaler, NaN and all that overflows there are as the library itself has them."""
    x, y = rows()
    gaps = x.copy()
    gaps[::7, 2] = np.nan
    scaled = piped(model).fit(gaps, y)
    given = np.concatenate([gaps, x[:6]])
    given[-6:-3, 1] = 1e308, -1e308, 1.7e308
    compare(interpreted(scaled), scaled, given, ("predict",), rtol=1e-6, atol=0)
    lone: Any = make_pipeline(model).fit(gaps, y)
    given[-3:, 0] = np.inf, -np.inf, -0.0
    compare(interpreted(lone), lone, given, rtol=1e-6, atol=0)


@pytest.mark.parametrize("last", [lgb_c(), xgb_c()], ids=["lgb", "xgb"])
def test_frames_go_by_name(last: Any, compiled: Any) -> None:
    """A ColumnTransformer over numbers, gaps and strings, whose result is a frame too; compiled."""
    x, y = rows()
    frame = pd.DataFrame(x[:, :3], columns=["ash (g)", "hue", "flav"])
    frame.loc[::5, "hue"] = np.nan
    frame["kind"] = np.array(["red", "white", "rosé"])[(x[:, 4] * 7).astype(int) % 3]
    columns: Any = ColumnTransformer(
        [
            ("words", OneHotEncoder(sparse_output=False, handle_unknown="ignore"), ["kind"]),
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["hue", "ash (g)"]),
        ],
        remainder="passthrough",
        verbose_feature_names_out=False,
    )
    columns.set_output(transform="pandas")
    model: Any = make_pipeline(columns, last).fit(frame, y)
    program = compiled(model, mode="serial")
    other = frame[["kind", "flav", "ash (g)", "hue"]].copy()
    other.loc[3, "kind"] = "green"
    for given in (frame, other, other[:1]):
        assert_array_equal(program.predict(given), model.predict(given))
        found, want = program.predict_proba(given), model.predict_proba(given)
        np.testing.assert_allclose(found, want, rtol=1e-6, atol=1e-7)
    with pytest.raises(InvalidInputError, match="lacks columns 'flav'"):
        program.predict(frame.drop(columns="flav"))


def test_a_first_lightgbm_takes_columns_by_place() -> None:
    """As LightGBM itself; a first XGBoost wants its names."""
    x, y = rows()
    frame = pd.DataFrame(x, columns=[f"a b{i}" for i in range(x.shape[1])])
    other = frame.rename(columns={"a b0": "c"})
    first: Any = make_pipeline(lgb_c()).fit(frame, y)
    assert_array_equal(interpreted(first).predict(other), first.predict(other))
    second: Any = make_pipeline(xgb_c()).fit(frame, y)
    assert_array_equal(interpreted(second).predict(frame), second.predict(frame))
    with pytest.raises(InvalidInputError, match="lacks columns 'a b0'"):
        interpreted(second).predict(other)


HANDED_ON: dict[str, Callable[[], Any]] = {
    "calibrated": lambda: CalibratedClassifierCV(lgb_c(), cv=2),
    "rest": lambda: multiclass.OneVsRestClassifier(lgb_c()),
    "stacked": lambda: ensemble.StackingClassifier([("l", lgb_c())], logistic(), cv=2),
    "voting": lambda: ensemble.VotingClassifier([("v", make_pipeline(lgb_c())), ("l", lgb_c())]),
    "passed": lambda: ensemble.StackingClassifier(
        [("l", lgb_c())], logistic(), cv=2, passthrough=True
    ),
}


@pytest.mark.parametrize("name", HANDED_ON)
def test_lightgbm_within_what_hands_columns_on_takes_them_by_place(name: str) -> None:
    """The names that it keeps of "a b0" are others."""
    x, y = rows()
    frame = pd.DataFrame(x, columns=[f"a b{i}" for i in range(x.shape[1])])
    for fitted in (frame, x):
        model = HANDED_ON[name]().fit(fitted, y)
        for given in (frame, frame.rename(columns={"a b0": "c"}), x):
            assert_array_equal(interpreted(model).predict(given), model.predict(given))


def test_xgboost_within_what_hands_columns_on_wants_its_names() -> None:
    x, y = rows()
    frame = pd.DataFrame(x, columns=[f"a b{i}" for i in range(x.shape[1])])
    model: Any = ensemble.VotingClassifier([("l", lgb_c()), ("x", xgb_c())])
    model.fit(frame, y)
    assert_array_equal(interpreted(model).predict(frame), model.predict(frame))
    with pytest.raises(InvalidInputError, match="lacks columns 'a b0'"):
        interpreted(model).predict(frame.rename(columns={"a b0": "c"}))


def test_probabilities_that_are_none() -> None:
    """scikit-learn looks at all rows of a batch to say whether scores are probabilities."""
    x, y = rows(2)
    for objective, refused in (("binary:logitraw", True), ("binary:logistic", False)):
        inner = xgb_c(objective=objective)
        model: Any = CalibratedClassifierCV(inner, method="temperature", cv=2)
        model.fit(x, y)
        if not refused:
            check(model, x)
            continue
        with pytest.raises(InvalidInputError, match="a score that is no probability"):
            interpreted(model).predict_proba(x)


def test_several_outputs_do_not_vote() -> None:
    x, _ = rows()
    quantiles = xgb_r(objective="reg:quantileerror", quantile_alpha=[0.2, 0.8])
    model: Any = ensemble.VotingRegressor([("q", quantiles)])
    model.fit(x, x[:, 0])
    with pytest.raises(UnsupportedError, match="members with several outputs"):
        import_model(model)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "pred_early_stop": (
        lambda: piped(lgb_r(pred_early_stop=True)),
        "step 'lgbmregressor': .*LGBMRegressor with parameter pred_early_stop=True",
    ),
    "missing": (
        lambda: piped(xgb_r(missing=None)),
        "step 'xgbregressor': .*XGBRegressor with parameter missing=None",
    ),
    "within": (
        lambda: ensemble.VotingRegressor([("x", xgb_r(missing=None))]),
        "estimators_: .*XGBRegressor with parameter missing=None",
    ),
    "before_the_last": (
        lambda: steps.Pipeline(
            [("m", ensemble.VotingRegressor([("l", lgb_r(pred_early_stop=True))])), ("r", Ridge())]
        ),
        "pred_early_stop=True",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    x, _ = rows()
    model, reason = REFUSED[name]
    with pytest.raises(UnsupportedError, match=reason):
        import_model(model().fit(x, x[:, 0]))


def test_refused_before_they_are_fitted() -> None:
    with pytest.raises(InvalidModelError, match="LGBMClassifier is not fitted"):
        import_model(make_pipeline(lgb_c()))
    with pytest.raises(InvalidModelError, match="XGBClassifier is not fitted"):
        import_model(make_pipeline(xgb_c()))


def test_a_class_of_a_user_is_refused() -> None:
    class Own(lgb.LGBMRegressor):
        """May predict anything."""

    x, _ = rows()
    with pytest.raises(UnsupportedError, match=r"estimator .*Own"):
        import_model(
            make_pipeline(StandardScaler(), Own(n_estimators=2, verbose=-1)).fit(x, x[:, 0])
        )
