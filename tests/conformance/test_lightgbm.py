"""Models of LightGBM against LightGBM: labels equal, sums of trees with the same bits."""

from __future__ import annotations

from functools import cache
from typing import Any

import lightgbm as lgb
import numpy as np
import pytest

from irkit.frontends.lightgbm import import_lightgbm
from tests.conformance.sklearn_models import CLASSIFICATION, data, with_gaps

DTYPES = ("float32", "float64")
BATCHES = (1, 2, 7, None)
# How LightGBM may treat missing values; each leaves another missing_type in the model.
MISSING: dict[str, dict[str, bool]] = {
    "nan": {},
    "zero": {"zero_as_missing": True},
    "none": {"use_missing": False},
}
OBJECTIVES = (
    "fair",
    "gamma",
    "huber",
    "mape",
    "poisson",
    "quantile",
    "regression",
    "regression_l1",
)
SAME_BITS = frozenset(OBJECTIVES) - {"gamma", "poisson"}


@cache
def classifier(dataset: str, missing: str, gaps: bool) -> Any:
    x, y = data(dataset)
    model = lgb.LGBMClassifier(n_estimators=10, verbose=-1, n_jobs=1, **MISSING[missing])
    return model.fit(with_gaps(x) if gaps else x, y)


def regressor(**parameters: Any) -> Any:
    x, y = data("diabetes")
    return lgb.LGBMRegressor(n_estimators=20, verbose=-1, n_jobs=1, **parameters).fit(x, y)


def check_classifier(execute: Any, model: Any, x: Any) -> None:
    imported = import_lightgbm(model, str(x.dtype))
    for rows in BATCHES:
        found, want = execute(imported, [x[:rows]]), model.predict_proba(x[:rows])
        classes = np.array(imported.info.classes)
        np.testing.assert_array_equal(classes[found["label"]], model.predict(x[:rows]))
        assert found["probabilities"].dtype == want.dtype
        np.testing.assert_allclose(found["probabilities"], want, rtol=0, atol=1e-14)


def check_prediction(execute: Any, model: Any, x: Any, rtol: float = 0.0) -> None:
    imported = import_lightgbm(model, str(x.dtype))
    for rows in BATCHES:
        found, want = execute(imported, [x[:rows]])["prediction"], model.predict(x[:rows])
        assert (found.dtype, found.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(found, want, rtol=rtol, atol=0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("missing", MISSING)
@pytest.mark.parametrize("dataset", CLASSIFICATION)
def test_classifier(execute: Any, dataset: str, missing: str, dtype: str) -> None:
    x = data(dataset)[0].astype(dtype)
    check_classifier(execute, classifier(dataset, missing, False), x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("missing", MISSING)
@pytest.mark.parametrize("dataset", CLASSIFICATION)
def test_classifier_with_nan(execute: Any, dataset: str, missing: str, dtype: str) -> None:
    x = with_gaps(data(dataset)[0]).astype(dtype)
    check_classifier(execute, classifier(dataset, missing, True), x)
    # NaN that training did not see.
    check_classifier(execute, classifier(dataset, missing, False), x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_regressor(execute: Any, objective: str, dtype: str) -> None:
    x = data("diabetes")[0].astype(dtype)
    rtol = 0.0 if objective in SAME_BITS else 1e-15
    check_prediction(execute, regressor(objective=objective), x, rtol)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("missing", MISSING)
def test_zeros_infinities_and_tiny_numbers(execute: Any, missing: str, dtype: str) -> None:
    """What LightGBM takes for zero, and all that lies about it, in training and after."""
    rng = np.random.default_rng(1)
    x, y = data("diabetes")
    odd = np.array([0.0, -0.0, 1e-35, -1e-35, 1.1e-35, 1e-36, np.inf, -np.inf, np.nan])
    odd = np.concatenate([odd, odd.astype(np.float32)])
    x = np.where(rng.random(x.shape) < 0.3, rng.choice(odd, x.shape), x)
    model = lgb.LGBMRegressor(n_estimators=20, verbose=-1, n_jobs=1, **MISSING[missing]).fit(x, y)
    check_prediction(execute, model, x.astype(dtype))


@pytest.mark.parametrize("boosting", ["dart", "goss"])
def test_boosting_types(execute: Any, boosting: str) -> None:
    check_prediction(execute, regressor(boosting_type=boosting), data("diabetes")[0])


@pytest.mark.parametrize(
    "parameters",
    [
        {"objective": "multiclassova"},
        {"objective": "multiclassova", "sigmoid": 0.5},
        {"objective": "multiclass", "num_class": 3},
    ],
)
def test_multiclass_objectives(execute: Any, parameters: dict[str, Any]) -> None:
    x, y = data("iris")
    model = lgb.LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1, **parameters).fit(x, y)
    check_classifier(execute, model, x)


@pytest.mark.parametrize(
    "parameters",
    [
        {"objective": "cross_entropy"},
        {"objective": "binary", "sigmoid": 2.5},
        {"objective": "multiclass", "num_class": 2},
        {"objective": "regression"},
    ],
)
def test_binary_objectives(execute: Any, parameters: dict[str, Any]) -> None:
    x, y = data("breast_cancer")
    model = lgb.LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1, **parameters).fit(x, y)
    check_classifier(execute, model, x)


def test_string_labels(execute: Any) -> None:
    x, y = data("wine")
    labels = np.array(["barolo", "grignolino", "barbera"])[y]
    model = lgb.LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1).fit(x, labels)
    check_classifier(execute, model, x)


@pytest.mark.parametrize("dataset", ["iris", "breast_cancer"])
def test_booster(execute: Any, dataset: str) -> None:
    check_prediction(
        execute, classifier(dataset, "nan", False).booster_, data(dataset)[0], rtol=1e-14
    )


def test_trees_up_to_the_best_iteration(execute: Any) -> None:
    x, y = data("diabetes")
    held = lgb.Dataset(x[200:], y[200:])
    model = lgb.train(
        {"objective": "regression", "verbose": -1, "num_threads": 1},
        lgb.Dataset(x[:200], y[:200]),
        num_boost_round=100,
        valid_sets=[held],
        callbacks=[lgb.early_stopping(3, verbose=False)],
        keep_training_booster=True,
    )
    assert 0 < model.best_iteration < model.num_trees()
    check_prediction(execute, model, x)


def test_trees_that_are_one_leaf(execute: Any) -> None:
    check_prediction(execute, regressor(min_child_samples=9999), data("diabetes")[0])


def test_ranker(execute: Any) -> None:
    x, y = data("diabetes")
    model = lgb.LGBMRanker(n_estimators=5, verbose=-1, n_jobs=1)
    model.fit(x, (y > 100).astype(int), group=[221, 221])
    check_prediction(execute, model, x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_inputs_at_every_threshold(execute: Any, dtype: str) -> None:
    """Inputs at, just below and just above thresholds, in the input's own precision."""
    model = regressor()
    booster = model.booster_.dump_model()["tree_info"]
    cells = [cell for tree in booster for cell in splits(tree["tree_structure"])]
    rows: list[Any] = []
    for towards in (-np.inf, None, np.inf):
        block = np.tile(data("diabetes")[0][:1].astype(dtype), (len(cells), 1))
        for row, (feature, threshold) in zip(block, cells, strict=True):
            near = row.dtype.type(threshold)
            row[feature] = near if towards is None else np.nextafter(near, row.dtype.type(towards))
        rows.append(block)
    check_prediction(execute, model, np.concatenate(rows))


def splits(node: dict[str, Any]) -> list[tuple[int, float]]:
    """Feature and threshold of each inner node."""
    if "split_feature" not in node:
        return []
    below = splits(node["left_child"]) + splits(node["right_child"])
    return [(node["split_feature"], node["threshold"]), *below]


# Compiled programs


@pytest.mark.parametrize(("dataset", "missing"), [("digits", "zero"), ("breast_cancer", "nan")])
def test_compiled_classifier(compiled: Any, dataset: str, missing: str) -> None:
    model = classifier(dataset, missing, True)
    program = compiled(model, dtype="float32", mode="serial")
    x = with_gaps(data(dataset)[0]).astype(np.float32)
    for rows in BATCHES:
        want = model.predict_proba(x[:rows])
        np.testing.assert_array_equal(program.predict(x[:rows]), model.predict(x[:rows]))
        np.testing.assert_allclose(program.predict_proba(x[:rows]), want, rtol=0, atol=1e-6)


def test_compiled_regressor_has_the_same_bits(compiled: Any) -> None:
    model, x = regressor(), with_gaps(data("diabetes")[0])
    program = compiled(model, dtype="float64", mode="serial")
    for rows in BATCHES:
        np.testing.assert_array_equal(program.predict(x[:rows]), model.predict(x[:rows]))
