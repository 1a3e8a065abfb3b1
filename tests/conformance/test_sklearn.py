"""Models of scikit-learn against scikit-learn: labels equal, values equal or within 1e-6.

Sums over trees are float64 in tree order, as scikit-learn's are: those values must have the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from irkit.frontends.sklearn import import_sklearn
from tests.conformance.sklearn_models import (
    CLASSIFICATION,
    CLASSIFIERS,
    REGRESSORS,
    TAKES_NAN,
    Floats,
    data,
    fitted,
    with_gaps,
)

DTYPES = ("float32", "float64")
BATCHES = (1, 2, 7, None)
EXACT_PROBABILITIES = ("decision_tree", "random_forest", "extra_trees", "scaled_forest")
EXACT_MARGINS = ("gradient_boosting", "scaled_boosting")
Run = Callable[[Floats], dict[str, Any]]


def interpreted(execute: Any, model: Any, dtype: str) -> Run:
    """Outputs of the graph interpreter by method name, labels as classes."""
    imported = import_sklearn(model, dtype)

    def run(x: Floats) -> dict[str, Any]:
        outputs = execute(imported, [x])
        found = {method: outputs[name] for method, name in imported.info.methods.items()}
        if imported.info.classes is not None:
            found["predict"] = np.array(imported.info.classes)[found["predict"]]
        return found

    return run


def batches(x: Floats) -> Iterator[Floats]:
    """The first 1, 2, 7 and all rows."""
    return (x[:rows] for rows in BATCHES)


def check_classifier(run: Run, name: str, model: Any, x: Floats) -> None:
    for rows in batches(x):
        found = run(rows)
        want = model.predict_proba(rows)
        np.testing.assert_array_equal(found["predict"], model.predict(rows))
        assert found["predict_proba"].dtype == want.dtype
        if name in EXACT_PROBABILITIES:
            np.testing.assert_array_equal(found["predict_proba"], want)
        np.testing.assert_allclose(found["predict_proba"], want, rtol=0, atol=1e-6)
        assert ("decision_function" in found) == hasattr(model, "decision_function")
        if "decision_function" not in found:
            continue
        margins = model.decision_function(rows)
        assert found["decision_function"].shape == margins.shape
        if name in EXACT_MARGINS:
            np.testing.assert_array_equal(found["decision_function"], margins)
        np.testing.assert_allclose(found["decision_function"], margins, rtol=1e-6, atol=1e-6)


def check_regressor(run: Run, model: Any, x: Floats) -> None:
    for rows in batches(x):
        found, want = run(rows)["predict"], model.predict(rows)
        assert (found.dtype, found.shape) == (want.dtype, want.shape)
        np.testing.assert_array_equal(found, want)


# Graph interpreter


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dataset", CLASSIFICATION)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifier(execute: Any, name: str, dataset: str, dtype: str) -> None:
    model = fitted("classifier", name, dataset)
    x = data(dataset)[0].astype(dtype)
    check_classifier(interpreted(execute, model, dtype), name, model, x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dataset", CLASSIFICATION)
@pytest.mark.parametrize("name", TAKES_NAN)
def test_classifier_with_nan(execute: Any, name: str, dataset: str, dtype: str) -> None:
    x = with_gaps(data(dataset)[0]).astype(dtype)
    # NaN that training saw, and NaN that it did not.
    for gaps in (True, False):
        model = fitted("classifier", name, dataset, gaps)
        check_classifier(interpreted(execute, model, dtype), name, model, x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", REGRESSORS)
def test_regressor(execute: Any, name: str, dtype: str) -> None:
    model = fitted("regressor", name, "diabetes")
    x = data("diabetes")[0].astype(dtype)
    check_regressor(interpreted(execute, model, dtype), model, x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", TAKES_NAN)
def test_regressor_with_nan(execute: Any, name: str, dtype: str) -> None:
    x = with_gaps(data("diabetes")[0]).astype(dtype)
    for gaps in (True, False):
        model = fitted("regressor", name, "diabetes", gaps)
        check_regressor(interpreted(execute, model, dtype), model, x)


@pytest.mark.parametrize("name", [n for n in CLASSIFIERS if n not in TAKES_NAN])
def test_nan_is_refused_where_scikit_learn_refuses_it(name: str) -> None:
    model = fitted("classifier", name, "iris")
    with pytest.raises(ValueError, match="contains NaN"):
        model.predict(with_gaps(data("iris")[0]))
    assert not import_sklearn(model, "float64").info.allow_nan


@pytest.mark.parametrize("name", TAKES_NAN)
def test_nan_is_taken_where_scikit_learn_takes_it(name: str) -> None:
    assert import_sklearn(fitted("classifier", name, "iris"), "float64").info.allow_nan


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mean", [True, False])
@pytest.mark.parametrize("std", [True, False])
@pytest.mark.parametrize("dataset", [*CLASSIFICATION, "diabetes"])
def test_scaler_has_the_same_bits(
    execute: Any, dataset: str, dtype: str, mean: bool, std: bool
) -> None:
    x = data(dataset)[0]
    model = StandardScaler(with_mean=mean, with_std=std).fit(x)
    run = interpreted(execute, model, dtype)
    for rows in batches(with_gaps(x).astype(dtype)):
        want = model.transform(rows)
        found = run(rows)["transform"]
        assert found.dtype == want.dtype
        np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("trained", DTYPES)
@pytest.mark.parametrize("dataset", CLASSIFICATION)
def test_logistic_regression(execute: Any, dataset: str, trained: str, dtype: str) -> None:
    x, y = data(dataset)
    scaled: Any = StandardScaler().fit_transform(x)
    model = LogisticRegression(max_iter=500).fit(scaled.astype(trained), y)
    run = interpreted(execute, model, dtype)
    for rows in batches(scaled.astype(dtype)):
        found, want = run(rows), model.predict_proba(rows)
        np.testing.assert_array_equal(found["predict"], model.predict(rows))
        assert found["predict_proba"].dtype == want.dtype
        np.testing.assert_allclose(found["predict_proba"], want, rtol=0, atol=1e-6)


def test_thresholds_hit_exactly(execute: Any) -> None:
    """Cells at the float32 nearest to each threshold, where comparing with that float32 goes astray."""
    x, y = data("diabetes")
    steps, astray = 0, 0
    for feature in range(x.shape[1]):
        # One column at a time, so that each threshold's node is reached by the cell made for it.
        model = DecisionTreeRegressor(random_state=0).fit(x[:, feature : feature + 1], y)
        thresholds = model.tree_.threshold[model.tree_.children_left >= 0]
        nearest = thresholds.astype(np.float32)
        steps, astray = steps + len(nearest), astray + int((nearest > thresholds).sum())
        up, down = (np.nextafter(nearest, np.float32(to)) for to in (np.inf, -np.inf))
        cells = np.concatenate([nearest, up, down])[:, None]
        check_regressor(interpreted(execute, model, "float32"), model, cells)
    assert 0 < astray < steps


@pytest.mark.parametrize("trees", [2, 4, 10])
def test_ties_go_to_the_first_class(execute: Any, trees: int) -> None:
    x, y = data("digits")
    model = RandomForestClassifier(trees, random_state=0).fit(x[:300], y[:300])
    best = np.sort(model.predict_proba(x), axis=1)
    assert (best[:, -1] == best[:, -2]).any()
    check_classifier(interpreted(execute, model, "float64"), "random_forest", model, x)


# Compiled programs


def program_run(program: Any, model: Any) -> Run:
    """Outputs of a compiled program by method name."""
    known = import_sklearn(model, "float64").info.methods

    def run(x: Floats) -> dict[str, Any]:
        return {method: getattr(program, method)(x) for method in known}

    return run


@pytest.mark.parametrize(
    ("name", "dataset", "gaps"),
    [
        ("random_forest", "digits", True),
        ("gradient_boosting", "breast_cancer", False),
        ("gradient_boosting", "wine", False),
        ("scaled_logistic", "iris", False),
    ],
)
def test_compiled_classifier(compiled: Any, name: str, dataset: str, gaps: bool) -> None:
    model = fitted("classifier", name, dataset, gaps)
    run = program_run(compiled(model), model)
    x = data(dataset)[0]
    for dtype in DTYPES:
        check_classifier(run, name, model, (with_gaps(x) if gaps else x).astype(dtype))


@pytest.mark.parametrize(("name", "gaps"), [("decision_tree", True), ("gradient_boosting", False)])
def test_compiled_regressor(compiled: Any, name: str, gaps: bool) -> None:
    model = fitted("regressor", name, "diabetes", gaps)
    run = program_run(compiled(model), model)
    x = data("diabetes")[0]
    for dtype in DTYPES:
        check_regressor(run, model, (with_gaps(x) if gaps else x).astype(dtype))


def test_compiled_pipeline_casts_between_steps(compiled: Any) -> None:
    model = fitted("regressor", "scaled_forest", "diabetes", True)
    x = with_gaps(data("diabetes")[0])
    check_regressor(program_run(compiled(model, dtype="float64"), model), model, x)
