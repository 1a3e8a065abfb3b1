"""IterativeImputer against scikit-learn: chains of estimators, columns that were never there, limits."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.experimental import enable_iterative_imputer
from sklearn.impute import IterativeImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import irkit
from irkit.errors import InvalidInputError, UnsupportedError
from irkit.frontends import import_model
from tests.conformance.interpreted import compare, interpreted
from tests.conformance.sklearn_models import data

# Importing it is what allows the import of the imputer.
assert enable_iterative_imputer
pytestmark = pytest.mark.filterwarnings("ignore")


def gaps(name: str, share: float, seed: int = 0) -> Any:
    """Rows of which a share of cells is NaN, never all of one."""
    random = np.random.default_rng(seed)
    x = data(name)[0][:120].copy()
    x[random.random(x.shape) < share] = np.nan
    empty = np.isnan(x).all(axis=1)
    x[empty, 0] = 1.0
    return x


def check(model: Any, x: Any, tolerance: float = 1e-8) -> None:
    program = interpreted(model)
    compare(program, model, x, rtol=tolerance, atol=tolerance)
    compare(program, model, x.astype(np.float32), rtol=1e-3, atol=1e-4)


MODELS = {
    "as it is": {},
    "few neighbours": {"n_nearest_features": 2, "imputation_order": "random", "random_state": 0},
    "limits": {"min_value": 1.0, "max_value": [5.0, 3.0, 4.0, np.inf]},
    "median first": {"initial_strategy": "median", "imputation_order": "descending"},
    "no rounds": {"max_iter": 0},
    "only what had gaps": {"skip_complete": True, "max_iter": 3},
    "ridge": {"estimator": make_pipeline(StandardScaler(), Ridge()), "max_iter": 2},
    "trees": {"estimator": ExtraTreesRegressor(3, random_state=0), "max_iter": 2},
    "with indicators": {"add_indicator": True, "max_iter": 2},
}


@pytest.mark.parametrize("name", MODELS)
def test_answers(name: str) -> None:
    fitted = gaps("iris", 0.2)
    if name == "only what had gaps":
        fitted[:, 1] = 1.0
    model = IterativeImputer(**MODELS[name]).fit(fitted)
    check(model, gaps("iris", 0.4, seed=1))
    check(model, gaps("iris", 0.0))


@pytest.mark.parametrize("keep", [True, False])
def test_columns_that_were_never_there(keep: bool) -> None:
    x, given = gaps("iris", 0.2), gaps("iris", 0.3, seed=2)
    x[:, 2], x[:, 0], given[:, 0] = np.nan, 2.0, 3.0
    model = IterativeImputer(keep_empty_features=keep, add_indicator=True, max_iter=3).fit(x)
    check(model, x)
    check(model, given)


def test_another_missing_value() -> None:
    x = np.nan_to_num(gaps("iris", 0.2), nan=-1.0)
    model = IterativeImputer(missing_values=-1, max_iter=3).fit(x)
    check(model, np.nan_to_num(gaps("iris", 0.3, seed=3), nan=-1.0))
    with pytest.raises(InvalidInputError, match="NaN"):
        interpreted(model).transform(np.full((1, 4), np.nan))


def test_rows_of_which_nothing_is_there() -> None:
    """scikit-learn gives one answer where nothing else is in the batch, and another beside other rows."""
    model = IterativeImputer().fit(gaps("iris", 0.2))
    given = gaps("iris", 0.2)[:3]
    given[1] = np.nan
    assert not np.allclose(model.transform(given)[1], model.transform(given[1:2])[0])
    with pytest.raises(InvalidInputError, match="row 1: IterativeImputer found a row of which"):
        interpreted(model).transform(given)


def test_predictions_that_overflow() -> None:
    model = IterativeImputer(max_iter=2).fit(gaps("iris", 0.2))
    given = np.array([[1e308, np.nan, 1e308, -1e308], [1.0, 2.0, np.nan, 1.0]])
    with pytest.raises(InvalidInputError, match="not finite"):
        interpreted(model).transform(1.7 * given)


def test_compiled_before_a_classifier(compiled: Any) -> None:
    x, y = gaps("iris", 0.2), data("iris")[1][:120]
    model = make_pipeline(IterativeImputer(max_iter=2), LogisticRegression()).fit(x, y)
    compare(compiled(model, mode="serial"), model, gaps("iris", 0.4, seed=5))


def test_refused_by_name() -> None:
    x = gaps("iris", 0.2)
    for model, reason in (
        (IterativeImputer(sample_posterior=True), "sample_posterior=True"),
        (IterativeImputer(estimator=Own()), "imputation_sequence_: "),
    ):
        with pytest.raises(UnsupportedError) as caught:
            import_model(model.fit(x), "float64")
        assert reason in caught.value.missing[0]
    assert "sample_posterior" in irkit.supported_operators()["scikit-learn"]["IterativeImputer"]


class Own(Ridge):
    """An estimator of somebody's own."""
