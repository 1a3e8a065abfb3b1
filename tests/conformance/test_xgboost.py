"""Models of XGBoost against XGBoost: labels equal, float32 sums in XGBoost's own order."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pytest
import xgboost as xgb

from irkit.frontends.xgboost import import_xgboost
from tests.conformance.sklearn_models import CLASSIFICATION, data, with_gaps

DTYPES = ("float32", "float64")
BATCHES = (1, 2, 7, None)
OBJECTIVES = (
    "count:poisson",
    "reg:absoluteerror",
    "reg:gamma",
    "reg:pseudohubererror",
    "reg:squarederror",
    "reg:squaredlogerror",
    "reg:tweedie",
)
# The rest exponentiates: a unit in the last place of expf and logf.
SAME_BITS = frozenset(OBJECTIVES) - {"count:poisson", "reg:gamma", "reg:tweedie"}


@cache
def classifier(dataset: str, gaps: bool) -> Any:
    x, y = data(dataset)
    model = xgb.XGBClassifier(n_estimators=10, max_depth=5, n_jobs=1)
    return model.fit(with_gaps(x) if gaps else x, y)


def regressor(targets: int = 1, **parameters: Any) -> Any:
    x, y = data("diabetes")
    model = xgb.XGBRegressor(**{"n_estimators": 15, "max_depth": 5, "n_jobs": 1} | parameters)
    return model.fit(x, y if targets == 1 else np.stack([y, -y], axis=1))


def check_classifier(execute: Any, model: Any, x: Any) -> None:
    imported = import_xgboost(model, str(x.dtype))
    for rows in BATCHES:
        found, want = execute(imported, [x[:rows]]), model.predict_proba(x[:rows])
        classes = np.array(imported.info.classes)
        np.testing.assert_array_equal(classes[found["label"]], model.predict(x[:rows]))
        assert found["probabilities"].dtype == want.dtype
        np.testing.assert_allclose(found["probabilities"], want, rtol=0, atol=1e-6)


def check_prediction(execute: Any, model: Any, x: Any, rtol: float = 0.0) -> None:
    imported = import_xgboost(model, str(x.dtype))
    booster = isinstance(model, xgb.Booster)
    for rows in BATCHES:
        want = model.predict(xgb.DMatrix(x[:rows]) if booster else x[:rows])
        found = execute(imported, [x[:rows]])["prediction"]
        assert (found.dtype, found.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(found, want, rtol=rtol, atol=0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dataset", CLASSIFICATION)
def test_classifier(execute: Any, dataset: str, dtype: str) -> None:
    check_classifier(execute, classifier(dataset, False), data(dataset)[0].astype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dataset", CLASSIFICATION)
def test_classifier_with_nan(execute: Any, dataset: str, dtype: str) -> None:
    x = with_gaps(data(dataset)[0]).astype(dtype)
    check_classifier(execute, classifier(dataset, True), x)
    # NaN that training did not see.
    check_classifier(execute, classifier(dataset, False), x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_regressor(execute: Any, objective: str, dtype: str) -> None:
    x = with_gaps(data("diabetes")[0]).astype(dtype)
    rtol = 0.0 if objective in SAME_BITS else 1e-6
    check_prediction(execute, regressor(objective=objective), x, rtol)


@pytest.mark.parametrize(
    "parameters",
    [
        {"targets": 2},
        {"base_score": 7.25},
        {"num_parallel_tree": 3, "n_estimators": 4, "subsample": 0.5},
        {"grow_policy": "lossguide", "max_leaves": 9},
        {"gamma": 3000.0, "tree_method": "exact"},  # prunes: some nodes are in no tree
        {"gamma": 1e9},  # trees that are one leaf
    ],
    ids=str,
)
def test_shapes_of_ensembles(execute: Any, parameters: dict[str, Any]) -> None:
    check_prediction(execute, regressor(**parameters), data("diabetes")[0])


@pytest.mark.parametrize("score", [0.3, 0.5, 0.9])
def test_base_score_of_a_classifier(execute: Any, score: float) -> None:
    x, y = data("breast_cancer")
    model = xgb.XGBClassifier(n_estimators=5, base_score=score, n_jobs=1).fit(x, y)
    check_classifier(execute, model, x)


@pytest.mark.parametrize("classes", [3, 7])
def test_probabilities_of_compiled_programs_have_its_bits(compiled: Any, classes: int) -> None:
    """Exponentials are C's, and their sum is that of float64."""
    rng = np.random.default_rng(classes)
    x = rng.normal(size=(500, 4)).astype(np.float32)
    model = xgb.XGBClassifier(n_estimators=8, n_jobs=1).fit(x, rng.integers(0, classes, 500))
    program = compiled(model, mode="serial")
    np.testing.assert_array_equal(program.predict_proba(x), model.predict_proba(x))


@pytest.mark.parametrize("objective", ["multi:softmax", "multi:softprob"])
def test_multiclass_objectives(execute: Any, objective: str) -> None:
    x, y = data("iris")
    model = xgb.XGBClassifier(n_estimators=5, objective=objective, n_jobs=1).fit(x, y)
    check_classifier(execute, model, x)
    check_prediction(execute, model.get_booster(), x, rtol=1e-6)


def test_two_classes_by_softmax(execute: Any) -> None:
    x, y = data("breast_cancer")
    model = xgb.XGBClassifier(n_estimators=5, objective="multi:softmax", num_class=2, n_jobs=1)
    check_classifier(execute, model.fit(x, y), x)


def test_trees_up_to_the_best_iteration(execute: Any) -> None:
    x, y = data("diabetes")
    model = xgb.XGBRegressor(n_estimators=60, early_stopping_rounds=4, n_jobs=1)
    model.fit(x[:200], y[:200], eval_set=[(x[200:], y[200:])], verbose=False)
    assert model.best_iteration + 1 < model.get_booster().num_boosted_rounds()
    check_prediction(execute, model, x)
    # A Booster predicts with all of them.
    check_prediction(execute, model.get_booster(), x)


def test_inputs_at_every_threshold(execute: Any) -> None:
    """Inputs at, just below and just above thresholds: the comparison is `<`."""
    model = regressor()
    learner = json.loads(bytes(model.get_booster().save_raw("json")))["learner"]
    trees = learner["gradient_booster"]["model"]["trees"]
    left, features, at = (
        np.concatenate([np.array(tree[key]) for tree in trees])
        for key in ("left_children", "split_indices", "split_conditions")
    )
    features, at = features[left >= 0], at[left >= 0].astype(np.float32)
    rows: list[Any] = []
    for cells in (np.nextafter(at, np.float32(-np.inf)), at, np.nextafter(at, np.float32(np.inf))):
        block = np.tile(data("diabetes")[0][:1].astype(np.float32), (len(at), 1))
        block[np.arange(len(at)), features] = cells
        rows.append(block)
    check_prediction(execute, model, np.concatenate(rows))


# Compiled programs


@pytest.mark.parametrize("dataset", ["digits", "breast_cancer"])
def test_compiled_classifier(compiled: Any, dataset: str) -> None:
    model, x = classifier(dataset, True), with_gaps(data(dataset)[0])
    program = compiled(model, mode="serial")
    for dtype in DTYPES:
        for rows in BATCHES:
            given = x[:rows].astype(dtype)
            want = model.predict_proba(given)
            np.testing.assert_array_equal(program.predict(given), model.predict(given))
            np.testing.assert_allclose(program.predict_proba(given), want, rtol=0, atol=1e-6)


def test_compiled_regressor_has_the_same_bits(compiled: Any) -> None:
    model, x = regressor(), with_gaps(data("diabetes")[0])
    program = compiled(model, mode="serial")
    for rows in BATCHES:
        np.testing.assert_array_equal(program.predict(x[:rows]), model.predict(x[:rows]))
