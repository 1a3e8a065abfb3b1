"""KNNImputer against scikit-learn: rows with gaps, rows of nothing else, columns that were never there."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false
# pyright: reportOptionalMemberAccess=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import KNNImputer
from sklearn.pipeline import make_pipeline

from irkit.errors import InvalidInputError, UnsupportedError
from irkit.frontends import import_model
from tests.conformance.interpreted import compare, interpreted
from tests.conformance.sklearn_models import data

pytestmark = pytest.mark.filterwarnings("ignore")


def gaps(name: str, share: float, seed: int = 0) -> Any:
    """Rows of which a share of cells is NaN; one row has nothing else. No two are equally near a third."""
    random = np.random.default_rng(seed)
    x = data(name)[0][:120]
    x = x * (1 + random.random(x.shape) / 50)
    x[random.random(x.shape) < share] = np.nan
    x[7] = np.nan
    return x


def check(model: Any, x: Any, tolerance: float = 1e-9) -> None:
    program = interpreted(model)
    compare(program, model, x, rtol=tolerance, atol=tolerance)
    compare(program, model, x.astype(np.float32), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer"])
def test_datasets(name: str, weights: Any) -> None:
    fitted = gaps(name, 0.1)
    model = KNNImputer(n_neighbors=4, weights=weights).fit(fitted)
    check(model, gaps(name, 0.3, seed=1))
    # Rows that were fitted are at no distance from themselves.
    check(model, fitted, 1e-8)


def test_few_donors() -> None:
    """Fewer rows have a column than neighbours are asked for, or share a feature with what is given."""
    nan = np.nan
    fitted = np.array([[1.0, nan, 2.0], [nan, 3.0, nan], [4.0, nan, 5.5], [6.0, 7.0, nan]])
    given = np.array(
        [[nan, 3.5, nan], [nan, nan, 5.0], [2.0, nan, nan], [nan, nan, nan], [1.0, 2.0, 3.0]]
    )
    for weights in ("uniform", "distance"):
        check(KNNImputer(n_neighbors=3, weights=weights).fit(fitted), given)
        check(KNNImputer(n_neighbors=1, weights=weights).fit(fitted), given)


def test_indicators_and_empty_columns() -> None:
    x = gaps("iris", 0.2)
    x[:, 1] = np.nan
    given = gaps("iris", 0.4, seed=2)
    for keep in (True, False):
        for mark in (True, False):
            check(KNNImputer(keep_empty_features=keep, add_indicator=mark).fit(x), given)


def test_another_missing_value() -> None:
    x = np.nan_to_num(gaps("wine", 0.2), nan=-1.0)
    model = KNNImputer(missing_values=-1).fit(x)
    check(model, np.nan_to_num(gaps("wine", 0.3, seed=3), nan=-1.0))
    with pytest.raises(InvalidInputError, match="NaN"):
        interpreted(model).transform(np.full((1, x.shape[1]), np.nan))


def test_compiled_before_a_forest(compiled: Any) -> None:
    x, y = gaps("wine", 0.2), data("wine")[1][:120]
    model = make_pipeline(KNNImputer(), RandomForestClassifier(5, random_state=0)).fit(x, y)
    compare(compiled(model, mode="serial"), model, gaps("wine", 0.4, seed=5))


def test_refused_by_name() -> None:
    for model, reason in (
        (KNNImputer(weights=lambda far: 1 / (1 + far)), "weights=a function"),
        (KNNImputer(metric=lambda a, b, **more: 0.0), "metric=a function"),
    ):
        with pytest.raises(UnsupportedError) as caught:
            import_model(model.fit(gaps("iris", 0.1)), "float64")
        assert reason in caught.value.missing[0]
