"""Fitted estimators in compiled functions: part of the program where their front end knows them."""

# pyright: basic
from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from sklearn import set_config
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import irkit
from irkit.errors import InvalidInputError, UnsupportedError
from tests.unit import host_functions
from tests.unit.jitted import check

compiled: Any = functools.partial(irkit.jit, target="cpu", cache=False)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = X @ [1.0, -2.0, 3.0, 0.5] + 0.1 * RNG.normal(size=60)
LABELS = np.array([-3, 5, 7])[(Y > -1).astype(int) + (Y > 2)]
MODEL = LinearRegression().fit(X, Y)

ESTIMATORS = [
    (LinearRegression().fit(X, np.stack([Y, Y * 2], 1)), "predict"),
    (LogisticRegression().fit(X, LABELS), "predict predict_proba predict_log_proba"),
    (LogisticRegression().fit(X, Y > 0), "predict decision_function"),
    (SVC().fit(X, LABELS), "predict"),
    (GaussianNB().fit(X, LABELS.astype(np.int32)), "predict predict_log_proba"),
    (DecisionTreeClassifier().fit(X, np.stack([LABELS, LABELS > 0], 1)), "predict"),
    (RandomForestRegressor(5).fit(X, Y), "predict"),
    (RandomForestClassifier(5).fit(X, LABELS * 1.0), "predict predict_proba"),
    (HistGradientBoostingRegressor(max_iter=5).fit(X, Y), "predict"),
    (IsolationForest(n_estimators=5).fit(X), "predict score_samples decision_function"),
    (KNeighborsClassifier(3).fit(X, LABELS), "predict predict_proba"),
    (KMeans(3).fit(X), "predict transform"),
    (PCA(2).fit(X), "transform"),
    (PolynomialFeatures(2).fit(X), "transform"),
    (make_pipeline(StandardScaler(), MinMaxScaler(), SVC()).fit(X, LABELS), "predict"),
    (make_pipeline(SimpleImputer(), PCA(2)).fit(X), "transform"),
]


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16"])
@pytest.mark.parametrize(("model", "methods"), ESTIMATORS, ids=lambda v: type(v).__name__)
def test_methods_are_part_of_the_program(model, methods, dtype):
    x = (3 * RNG.normal(size=(13, 4))).astype(dtype)
    names = methods.split()
    if isinstance(model, KMeans) and dtype == "float32":
        pytest.skip("scikit-learn's own predict refuses it, fitted on float64")

    def f(x):
        return [getattr(model, name)(x) for name in names]

    told = check(f, x, tolerance=1e-9 if dtype != "float32" else 2e-4, jit=compiled).explain()
    assert "host task" not in told
    assert told.count("estimator compiled") == len(names)


def test_it_is_fused_with_what_stands_around_it():
    scaler: Any = StandardScaler().fit(X)

    def f(x):
        for _ in range(7):
            x = scaler.transform(np.tanh(x) * 2) + 1
        return MODEL.predict(x) * 2

    f = check(f, X, tolerance=1e-12, jit=compiled)
    assert "StandardScaler.transform at" in f.explain()
    assert "program.call" not in f.ir("program")
    assert "loop kept" in f.explain()


def test_an_estimator_as_an_argument():
    f = compiled(lambda model, x: model.predict(x) + 1)
    for model in (MODEL, LinearRegression().fit(X, -Y)):
        assert np.allclose(f(model, X), model.predict(X) + 1)
        assert "estimator compiled: LinearRegression.predict" in f.explain()


def test_an_estimator_that_is_fitted_again_or_changed_in_place():
    model = LinearRegression().fit(X, Y)
    f = compiled(lambda x: model.predict(x) * 2)
    for number in range(7):
        assert np.allclose(f(X), model.predict(X) * 2)
        assert ("estimator compiled" in f.explain()) == (number < 4)
        if number % 2:
            model.fit(X, Y * (number + 2))
        else:
            model.coef_[0] += 1
    assert "fitted anew 4 times" in f.explain()
    forest = RandomForestRegressor(2, random_state=0).fit(X, Y)
    g = compiled(lambda x: forest.predict(x))
    g(X)
    forest.estimators_[0].tree_.value[...] += 1
    assert np.allclose(g(X), forest.predict(X))


def test_one_that_is_fitted_by_the_function_itself():
    model = LinearRegression()

    def f(x, y):
        host_functions.fitted(model, x * 2, y)
        return model.predict(x) + 1

    g = compiled(f)
    for scale in (1.0, 3.0):
        assert np.allclose(g(X, Y * scale), f(X, Y * scale))
    assert "host task: LinearRegression.predict" in g.explain()
    assert "host_functions.fitted' at" in g.explain()
    assert "may fit it anew" in g.explain()


def test_its_attributes_are_read_and_not_assigned():
    model = LinearRegression().fit(X, Y)
    f = compiled(lambda x: x @ model.coef_ + model.intercept_)
    for scale in (1.0, 2.0):
        model.fit(X, Y * scale)
        assert np.allclose(f(X), model.predict(X))

    def g(x):
        model.coef_ = x[0]
        return x * 2

    with pytest.raises(
        UnsupportedError, match=r"test_jit_estimators.py:\d+: an attribute, 'coef_'"
    ):
        compiled(g)(X)


def test_values_that_it_refuses():
    f = compiled(lambda x, y: _into(y, MODEL.predict(x * 1)))
    y = np.zeros(60)
    for bad in (np.nan, np.inf):
        with pytest.raises(InvalidInputError, match=r"rows with NaN or infinity.*LinearRegression"):
            f(np.where(X[3, 2] == X, bad, X), y)
        assert not y.any()
    f(X, y)
    assert np.allclose(y, MODEL.predict(X))
    imputer = make_pipeline(SimpleImputer(), StandardScaler()).fit(X)
    check(
        lambda x: imputer.transform(x * 1),
        np.where(X > 1, np.nan, X),
        tolerance=1e-12,
        jit=compiled,
    )


def _into(y, values):
    y[...] = values


@pytest.mark.parametrize(
    ("model", "method", "reason"),
    [
        (LogisticRegression().fit(X, np.array(["a", "b"])[(Y > 0) * 1]), "predict_proba", ""),
        (StandardScaler(copy=False).fit(X), "transform", "copy=False: it may write"),
        (
            SVC().set_params(kernel=lambda a, b: a @ b.T).fit(X, LABELS),
            "predict",
            "cannot be compared",
        ),
        (Binarizer().fit(X), "transform", ""),
        (
            make_pipeline(OneHotEncoder(handle_unknown="ignore")).fit(X),
            "transform",
            "it returns a csr_matrix",
        ),
        (
            ColumnTransformer([("a", "passthrough", [1]), ("b", PCA(1), [0, 2])]).fit(X),
            "transform",
            "",
        ),
    ],
)
def test_what_its_front_end_refuses_is_a_task_of_the_host(model, method, reason):
    f = compiled(lambda x: getattr(model, method)(x * 1))
    if reason == "it returns a csr_matrix":
        with pytest.raises(UnsupportedError):
            f(X)
        return
    want = getattr(model, method)(X.copy())
    if "copy=False" in reason:
        with pytest.raises(UnsupportedError, match="wrote its argument"):
            f(X)
        return
    assert np.allclose(f(X), want)
    told = f.explain()
    assert ("estimator compiled" in told) == (not reason)
    assert reason in told


def test_labels_that_are_words_are_the_hosts():
    model = LogisticRegression().fit(X, np.array(["a", "b"])[(Y > 0) * 1])
    with pytest.raises(UnsupportedError, match="dtype <U1"):
        compiled(lambda x: model.predict(x))(X)


def test_settings_of_scikit_learn_are_part_of_the_state():
    pytest.importorskip("pandas")
    scaler: Any = StandardScaler().fit(X)
    f = compiled(lambda x: scaler.transform(x))
    f(X)
    set_config(transform_output="pandas")
    try:
        with pytest.raises(UnsupportedError, match="DataFrame"):
            f(X)
    finally:
        set_config(transform_output="default")


def test_its_derivative():
    gradient = irkit.grad(lambda x: MODEL.predict(x).sum())
    assert np.allclose(gradient(X), np.broadcast_to(MODEL.coef_, X.shape))
