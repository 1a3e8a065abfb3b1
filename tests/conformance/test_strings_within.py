"""Columns of strings that an estimator hands on to pipelines within it, against scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import calibration, ensemble, linear_model, multiclass, multioutput, tree
from sklearn import compose as composers
from sklearn import pipeline as pipelines
from sklearn import preprocessing as scalers

import irkit
from irkit.errors import UnsupportedError
from tests.conformance.interpreted import METHODS

pytestmark = pytest.mark.filterwarnings("ignore")
pipe: Any = vars(pipelines)["make_pipeline"]
compose: Any = composers
preprocessing: Any = scalers
ROWS = 90


def frame(seed: int, *more: str) -> Any:
    """Numbers, strings, and a column that nobody looks at."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, ROWS).astype(float),
            "town": rng.choice(["Rome", "Oslo", "Lima", *more], ROWS),
            "unused": rng.random(ROWS),
            "count": rng.integers(0, 9, ROWS).astype(float),
        }
    )


def encoded(last: Any) -> Any:
    columns = [
        ("n", preprocessing.StandardScaler(), ["count", "age"]),
        ("s", preprocessing.OneHotEncoder(handle_unknown="ignore"), ["town"]),
    ]
    return pipe(compose.ColumnTransformer(columns), last)


def members(first: Any, second: Any) -> list[tuple[str, Any]]:
    return [("a", encoded(first)), ("b", encoded(second))]


TREE, LOGISTIC = tree.DecisionTreeClassifier(max_depth=3), linear_model.LogisticRegression()
GROWN, RIDGE = tree.DecisionTreeRegressor(max_depth=3), linear_model.Ridge()
CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "votes": lambda: ensemble.VotingClassifier(members(TREE, LOGISTIC)),
    "mean votes": lambda: ensemble.VotingClassifier(members(TREE, LOGISTIC), voting="soft"),
    "stacked": lambda: ensemble.StackingClassifier(members(TREE, LOGISTIC), cv=2),
    "calibrated": lambda: calibration.CalibratedClassifierCV(encoded(LOGISTIC), cv=2),
    "one of the rest": lambda: multiclass.OneVsRestClassifier(encoded(LOGISTIC)),
}
REGRESSORS: dict[str, Callable[[], Any]] = {
    "votes": lambda: ensemble.VotingRegressor(members(GROWN, RIDGE)),
    "stacked": lambda: ensemble.StackingRegressor(members(GROWN, RIDGE), cv=2),
    "target": lambda: compose.TransformedTargetRegressor(
        encoded(RIDGE), func=np.log1p, inverse_func=np.expm1
    ),
}


def value(x: Any) -> Any:
    return (x["age"] + 7 * x["count"] + 20 * (x["town"] == "Rome")).to_numpy()


def check(model: Any) -> None:
    program = irkit.compile(model, "cpu", mode="serial")
    x = frame(7, "Kyiv")
    backwards = x[x.columns[::-1]]
    # It goes by names, so that others may come, and what nobody looks at need not.
    others = [x.assign(more=1.0), x.drop(columns="unused"), x[:1]]
    for given in (frame(0), x, backwards, *others):
        for method in set(METHODS) & set(program.methods):
            found, want = getattr(program, method)(given), getattr(model, method)(given)
            if want.dtype.kind == "f":
                np.testing.assert_allclose(found, want, rtol=1e-9, atol=1e-12)
            else:
                np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(name: str) -> None:
    x = frame(0)
    check(CLASSIFIERS[name]().fit(x, np.digitize(value(x), [70, 100])))


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors(name: str) -> None:
    x = frame(0)
    check(REGRESSORS[name]().fit(x, value(x)))


def test_several_targets() -> None:
    x = frame(0)
    model: Any = multioutput.MultiOutputRegressor(encoded(RIDGE))
    check(model.fit(x, np.column_stack([value(x), -(value(x) ** 2)])))


def test_members_that_take_strings_for_numbers_are_refused() -> None:
    """One member encodes the column, another would compare its words as numbers."""
    x = pd.DataFrame({"age": frame(0)["age"], "town": frame(0)["age"] > 50})
    parts = [("a", encoded_town()), ("b", tree.DecisionTreeRegressor(max_depth=2))]
    model: Any = ensemble.VotingRegressor(parts)
    model.fit(x, value(frame(0)))
    encoder: Any = model.estimators_[0][0].transformers_[0][1]
    encoder.categories_ = [np.array(["x", "y"], object)]
    with pytest.raises(UnsupportedError, match="column 1 by DecisionTreeRegressor"):
        irkit.compile(model, "cpu", cache=False)


def encoded_town() -> Any:
    columns = [("s", preprocessing.OneHotEncoder(), ["town"]), ("n", "passthrough", ["age"])]
    return pipe(compose.ColumnTransformer(columns), linear_model.Ridge())
