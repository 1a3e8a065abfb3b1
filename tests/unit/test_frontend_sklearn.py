"""The scikit-learn front end: what it refuses, and what it says about a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import MiniBatchNMF
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler as Scaler
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from irkit.dialects.graph import ArgmaxOp, CastOp, ForestOp
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.errors import InvalidModelError, UnsupportedError
from irkit.frontends import import_model
from irkit.frontends.module import ImportedModel
from irkit.frontends.sklearn import import_sklearn
from irkit.frontends.trees import floor32
from irkit.interp.graph import run_graph
from irkit.model_info import ModelInfo

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X[:, 0] + 0.1 * RNG.normal(size=60)
BINARY = (Y > 0).astype(int)
TERNARY = np.digitize(Y, [-0.5, 0.5])


class StandardScaler(Scaler):
    """Not scikit-learn's, although its name says so."""

    def transform(self, X: Any, copy: bool | None = None) -> Any:
        return super().transform(X, copy) + 1.0


def outputs(imported: ImportedModel, x: Any) -> dict[str, Any]:
    arrays = run_graph(imported.module, imported.weights, [x])
    return dict(zip(imported.info.outputs, arrays, strict=True))


def reasons(model: Any) -> tuple[str, ...]:
    with pytest.raises(UnsupportedError) as caught:
        import_sklearn(model, "float64")
    assert all(reason in str(caught.value) for reason in caught.value.missing)
    return caught.value.missing


def ops(imported: ImportedModel, kind: type[Any]) -> list[Any]:
    return [op for op in imported.module.walk() if isinstance(op, kind)]


# Refusals


@pytest.mark.parametrize(
    "make",
    [
        DecisionTreeClassifier,
        DecisionTreeRegressor,
        RandomForestClassifier,
        RandomForestRegressor,
        GradientBoostingClassifier,
        GradientBoostingRegressor,
        LogisticRegression,
        Scaler,
    ],
)
def test_unfitted(make: Callable[[], Any]) -> None:
    with pytest.raises(InvalidModelError, match=f"{make.__name__} is not fitted"):
        import_sklearn(make(), "float64")
    with pytest.raises(InvalidModelError, match=f"{make.__name__} is not fitted"):
        import_sklearn(Pipeline([("last", make())]), "float64")


HERE = f"{__name__.rpartition('.')[2]}."
"""How a class of this module is named."""


class Halved(TransformerMixin, BaseEstimator):
    """A transformer that no front end knows."""

    def fit(self, x: Any, y: Any = None) -> Halved:
        self.n_features_in_ = x.shape[1]
        return self

    def transform(self, x: Any) -> Any:
        return x / 2


class Doubled(Halved):
    """Another."""

    def transform(self, x: Any) -> Any:
        return x * 2


def products(a: Any, b: Any) -> Any:
    return a @ b.T


def test_every_reason_at_once() -> None:
    model = Pipeline(
        [
            ("map", Halved()),
            ("embed", Doubled()),
            ("machine", SVR(kernel=products)),
        ]
    ).fit(X, Y)
    known = "irkit.supported_operators()"
    first, second, machine = reasons(model)
    assert first.startswith(f"step 'map': estimator {HERE}Halved ({known}")
    assert second.startswith(f"step 'embed': estimator {HERE}Doubled ({known}")
    assert machine.startswith("step 'machine': parameter kernel=a function (supported: ")


def test_step_of_a_nested_pipeline_has_its_path() -> None:
    model = Pipeline([("outer", Pipeline([("inner", Halved())]))]).fit(X)
    (reason,) = reasons(model)
    assert reason.startswith(f"step 'outer: inner': estimator {HERE}Halved")


def test_estimator_of_another_kind() -> None:
    (reason,) = reasons(MiniBatchNMF(2, max_iter=500, tol=0.1).fit(np.abs(X)))
    assert "estimator MiniBatchNMF" in reason


def test_class_that_only_has_the_name() -> None:
    (reason,) = reasons(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, BINARY))
    assert f"{__name__}.StandardScaler" in reason
    with pytest.raises(UnsupportedError, match=r"StandardScaler"):
        import_model(StandardScaler().fit(X))


def test_sparse_coefficients() -> None:
    (reason,) = reasons(LogisticRegression().fit(X, BINARY).sparsify())
    assert "sparse coef_" in reason


def test_labels_that_no_program_can_keep() -> None:
    labels = np.array(["2020-01-01", "2021-01-01"], "datetime64[D]")[BINARY]
    (reason,) = reasons(DecisionTreeClassifier().fit(X, labels))
    assert "class labels of type date" in reason


def test_predictor_before_the_last_step() -> None:
    forest = RandomForestClassifier(2).fit(X, BINARY)
    model = Pipeline([("forest", forest), ("last", LogisticRegression().fit(X, BINARY))])
    (reason,) = reasons(model)
    assert "'forest'" in reason
    assert "before the last step" in reason


def test_dtype_that_scikit_learn_would_convert() -> None:
    with pytest.raises(UnsupportedError, match="float16"):
        import_sklearn(Scaler().fit(X), "float16")


def test_pipeline_that_does_nothing() -> None:
    with pytest.raises(UnsupportedError, match="without steps"):
        import_sklearn(Pipeline([("nothing", "passthrough")]), "float64")


# What a module says


def test_lone_tree_model_takes_float32_and_casts_float64() -> None:
    imported = import_sklearn(make_pipeline(RandomForestRegressor(3).fit(X, Y)), "float64")
    assert imported.info.casts == ("float64",)
    assert not ops(imported, CastOp)
    (forest,) = ops(imported, ForestOp)
    assert str(tensor_type(forest.x).element_type) == "f32"
    assert tensor_type(forest.x).get_shape() == (DYNAMIC, 3)
    assert str(tensor_type(forest.y).element_type) == "f64"


@pytest.mark.parametrize(("dtype", "casts"), [("float32", 0), ("float64", 1)])
def test_pipeline_casts_before_its_trees(dtype: str, casts: int) -> None:
    model = make_pipeline(Scaler(), "passthrough", DecisionTreeRegressor()).fit(X, Y)
    imported = import_sklearn(model, dtype)
    assert imported.info.casts == ()
    assert len(ops(imported, CastOp)) == casts


def test_facts_about_a_classifier() -> None:
    imported = import_model(RandomForestClassifier(3).fit(X, np.array(["no", "yes"])[BINARY]))
    info = imported.info
    assert info.kind == "classifier"
    assert info.classes == ("no", "yes")
    assert info.methods == {
        "predict": "label",
        "predict_proba": "probabilities",
        "predict_log_proba": "probabilities",
    }
    assert (info.inputs, info.outputs) == (("x",), ("label", "probabilities"))
    assert info.allow_nan
    assert not info.allow_infinity
    assert len(ops(imported, ArgmaxOp)) == 1
    assert ModelInfo.from_json(info.to_json()) == info


def test_facts_about_a_regressor_and_a_transformer() -> None:
    regressor = import_sklearn(GradientBoostingRegressor(n_estimators=2).fit(X, Y)).info
    assert (regressor.kind, regressor.methods) == ("regressor", {"predict": "prediction"})
    assert not regressor.allow_nan
    scaler = import_sklearn(Scaler().fit(X)).info
    assert (scaler.kind, scaler.methods) == ("transformer", {"transform": "transformed"})
    assert scaler.allow_nan


@pytest.mark.parametrize(
    "labels",
    [np.array([7, -3]), np.array([True, False]), np.array([5.0, 2.0]), np.array(["b", "a"])],
)
def test_labels_of_any_plain_type(labels: Any) -> None:
    model = LogisticRegression().fit(X, labels[BINARY])
    imported = import_sklearn(model, "float64")
    assert imported.info.classes == tuple(model.classes_.tolist())
    found = np.array(imported.info.classes)[outputs(imported, X)["label"]]
    np.testing.assert_array_equal(found, model.predict(X))


# Arithmetic off the beaten track


def test_binary_margin_of_zero() -> None:
    """LogisticRegression takes the first class at zero, GradientBoostingClassifier the second."""
    zeros = np.zeros((2, 3))
    logistic = LogisticRegression(fit_intercept=False).fit(X, BINARY)
    assert outputs(import_sklearn(logistic), zeros)["label"].tolist() == [0, 0]
    assert logistic.predict(zeros).tolist() == [0, 0]
    balanced = np.arange(60) % 2
    boosted = GradientBoostingClassifier(n_estimators=1, init="zero").fit(
        np.ones((60, 3)), balanced
    )
    found = outputs(import_sklearn(boosted), zeros.astype(np.float32))
    assert found["margin"].tolist() == boosted.decision_function(zeros).tolist() == [0.0, 0.0]
    assert found["label"].tolist() == boosted.predict(zeros).tolist() == [1, 1]


def test_exponential_loss() -> None:
    model = GradientBoostingClassifier(loss="exponential", n_estimators=5).fit(X, BINARY)
    found = outputs(import_sklearn(model), X.astype(np.float32))
    np.testing.assert_array_equal(found["margin"], model.decision_function(X))
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), atol=1e-15)


def test_intercept_wider_than_coefficients() -> None:
    model = LogisticRegression().fit(X.astype(np.float32), BINARY)
    assert model.coef_.dtype == np.float32
    model.intercept_ = np.array([1.0 / 3.0])
    x = X.astype(np.float32)
    found, want = outputs(import_sklearn(model, "float32"), x)["margin"], model.decision_function(x)
    assert found.dtype == want.dtype == np.float64
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-6)


@pytest.mark.parametrize("make", [DecisionTreeClassifier, RandomForestClassifier])
def test_single_class_and_single_leaf(make: Callable[[], Any]) -> None:
    model = make().fit(X, np.full(60, 4))
    found = outputs(import_sklearn(model), X.astype(np.float32))
    np.testing.assert_array_equal(found["probabilities"], model.predict_proba(X))
    assert set(found["label"].tolist()) == {0}


def test_split_on_missingness_alone() -> None:
    """Such a node has an infinite threshold: all numbers go left, only NaN goes right."""
    x = np.where(BINARY == 1, np.nan, 1.0)[:, None]
    model = DecisionTreeClassifier().fit(x, BINARY)
    assert np.isinf(model.tree_.threshold).any()
    given = np.array([[np.nan], [0.0], [3e38]], np.float32)
    found = outputs(import_sklearn(model), given)
    np.testing.assert_array_equal(found["label"], model.predict(given))


def test_nested_pipelines() -> None:
    inner = Pipeline([("one", Scaler()), ("two", Scaler(with_mean=False))])
    model = Pipeline([("inner", inner), ("last", LogisticRegression())]).fit(X, TERNARY)
    found = outputs(import_sklearn(model), X)
    np.testing.assert_array_equal(found["label"], model.predict(X))
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), rtol=0, atol=1e-12)


def test_floor32_decides_as_float64_does() -> None:
    thresholds = np.concatenate(
        [RNG.normal(size=500), [np.inf, -np.inf, 1e300, -1e300, 1e-46, -1e-46, 0.0, 3.5e38]]
    )
    floors = floor32(thresholds)
    assert (floors.astype(np.float64) <= thresholds).all()
    with np.errstate(all="ignore"):
        above = np.nextafter(floors, np.float32(np.inf)).astype(np.float64)
    assert ((above > thresholds) | (floors == np.inf)).all()
