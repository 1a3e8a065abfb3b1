"""Data sets and fitted scikit-learn models that the conformance tests share; each is made once."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import sklearn.datasets
from numpy.typing import NDArray
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

Floats = NDArray[np.floating[Any]]

CLASSIFICATION = ("iris", "wine", "breast_cancer", "digits")
CLASSIFIERS: dict[str, Any] = {
    "decision_tree": lambda: DecisionTreeClassifier(random_state=0),
    "random_forest": lambda: RandomForestClassifier(15, random_state=0),
    "extra_trees": lambda: ExtraTreesClassifier(15, random_state=0),
    "gradient_boosting": lambda: GradientBoostingClassifier(
        n_estimators=10, max_depth=2, learning_rate=0.3, max_features=8, random_state=0
    ),
    "scaled_forest": lambda: make_pipeline(
        StandardScaler(), RandomForestClassifier(10, random_state=0)
    ),
    "scaled_boosting": lambda: make_pipeline(
        StandardScaler(), GradientBoostingClassifier(n_estimators=3, max_features=4)
    ),
    "scaled_logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
}
REGRESSORS: dict[str, Any] = {
    "decision_tree": lambda: DecisionTreeRegressor(random_state=0),
    "random_forest": lambda: RandomForestRegressor(15, random_state=0),
    "extra_trees": lambda: ExtraTreesRegressor(15, random_state=0),
    "gradient_boosting": lambda: GradientBoostingRegressor(n_estimators=20, random_state=0),
    "gradient_boosting_huber": lambda: GradientBoostingRegressor(
        loss="huber", n_estimators=10, init="zero", random_state=0
    ),
    "scaled_forest": lambda: make_pipeline(
        StandardScaler(), ExtraTreesRegressor(10, random_state=0)
    ),
}
TAKES_NAN = ("decision_tree", "random_forest", "extra_trees", "scaled_forest")


@cache
def data(name: str) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Rows×features in float64, and targets."""
    bunch: Any = getattr(sklearn.datasets, f"load_{name}")()
    return np.ascontiguousarray(bunch.data, np.float64), bunch.target


def with_gaps(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """A tenth of the cells NaN."""
    gaps = np.random.default_rng(0).random(x.shape) < 0.1
    return np.where(gaps, np.nan, x)


@cache
def fitted(kind: str, model: str, dataset: str, gaps: bool = False) -> Any:
    """A fitted "classifier" or "regressor"; `gaps`: trained on data with NaN."""
    x, y = data(dataset)
    made = (CLASSIFIERS if kind == "classifier" else REGRESSORS)[model]()
    return made.fit(with_gaps(x) if gaps else x, y)
