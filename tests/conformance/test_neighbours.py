"""Neighbours against scikit-learn, for batches of any size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn import neighbors
from sklearn.preprocessing import StandardScaler

from irkit.errors import InvalidInputError, UnsupportedError
from irkit.frontends import import_model
from tests.conformance.interpreted import METHODS, compare, interpreted
from tests.conformance.sklearn_models import data

pytestmark = pytest.mark.filterwarnings("ignore")
LABELS = np.array(["a", "long name", "ü"])


def rows(name: str) -> tuple[Any, Any, Any]:
    """Rows to fit, their labels or values, and others: no two rows are alike, some are fitted ones."""
    x, y = data(name)
    made: Any = StandardScaler().fit_transform(x)
    order = np.random.default_rng(0).permutation(len(x))
    made, y = made[order], y[order]
    return (
        made[:90],
        y[:90],
        np.concatenate([made[90:130], 1.01 * made[:40], made[:3], 5 * made[:3]]),
    )


def check(model: Any, x: Any) -> None:
    program = interpreted(model)
    assert set(program._methods) == {m for m in METHODS if hasattr(model, m)}
    compare(program, model, x, rtol=1e-7, atol=1e-7)
    if getattr(model, "effective_metric_", "") != "chebyshev":
        # Rounded to float32, two rows are as near as one another.
        compare(program, model, x.astype(np.float32), rtol=1e-4, atol=1e-4)


_NOISE = np.random.default_rng(1).normal(size=(13, 13))
SPREAD = np.eye(13) + _NOISE @ _NOISE.T / 13


METRICS: list[tuple[str, dict[str, Any]]] = [
    ("euclidean", {"metric": "euclidean"}),
    ("trees", {"algorithm": "ball_tree"}),
    ("manhattan", {"p": 1}),
    ("cubes", {"p": 3}),
    ("weighed", {"p": 1.5, "metric_params": {"w": np.linspace(0.1, 2, 13)}, "algorithm": "brute"}),
    ("chebyshev", {"metric": "chebyshev", "algorithm": "brute"}),
    ("scaled", {"metric": "seuclidean", "metric_params": {"V": np.linspace(0.1, 2, 13)}}),
    ("mahalanobis", {"metric": "mahalanobis", "metric_params": {"VI": SPREAD}}),
    ("covariance", {"metric": "mahalanobis", "metric_params": {"V": SPREAD}}),
    ("canberra", {"metric": "canberra", "algorithm": "brute"}),
    ("cosine", {"metric": "cosine", "algorithm": "brute"}),
    ("infinity", {"metric": "infinity"}),
    ("p", {"metric": "p"}),
    ("squares", {"metric": "sqeuclidean", "algorithm": "brute"}),
]


@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("name", [name for name, _ in METRICS])
def test_nearest(name: str, weights: Any) -> None:
    metric = dict(METRICS)[name]
    x, y, given = rows("wine")
    # A tree's sums are exact enough to tell that a fitted row is one.
    known = metric.get("metric", "") not in ("mahalanobis", "seuclidean")
    algorithm = {"algorithm": "kd_tree" if known else "ball_tree", **metric}
    check(neighbors.KNeighborsClassifier(4, weights=weights, **algorithm).fit(x, LABELS[y]), given)
    check(neighbors.KNeighborsRegressor(3, weights=weights, **algorithm).fit(x, y), given)
    both = np.stack([y, -y], axis=1)
    check(neighbors.KNeighborsRegressor(3, weights=weights, **algorithm).fit(x, both), given)
    label = (
        {} if (algorithm["algorithm"], weights) == ("brute", "uniform") else {"outlier_label": "ü"}
    )
    near = given if label else given[:40]
    size = 81.0 if name == "squares" else 9.0
    radius = neighbors.RadiusNeighborsClassifier(size, weights=weights, **label, **algorithm)
    check(radius.fit(x, LABELS[y]), near)
    check(neighbors.RadiusNeighborsRegressor(9.0, weights=weights, **algorithm).fit(x, y), given)


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_several_labels(weights: Any) -> None:
    x, y, given = rows("wine")
    several = np.stack([LABELS[y], np.where(y > 0, "few", "many")], axis=1)
    check(neighbors.KNeighborsClassifier(4, weights=weights).fit(x, several), given)


def test_rows_without_neighbours() -> None:
    x, y, given = rows("iris")
    for label in (7, "most_frequent"):
        model = neighbors.RadiusNeighborsClassifier(0.7, outlier_label=label, algorithm="kd_tree")
        check(model.fit(x, y), given)
    check(neighbors.RadiusNeighborsRegressor(0.7, algorithm="kd_tree").fit(x, y), given)
    model = neighbors.RadiusNeighborsClassifier(0.7).fit(x, y)
    with pytest.raises(ValueError, match="No neighbors found"):
        model.predict(9 * x)
    with pytest.raises(InvalidInputError, match="RadiusNeighborsClassifier found no neighbors"):
        interpreted(model).predict(9 * x)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_centroids(metric: Any) -> None:
    for name in ("wine", "breast_cancer"):
        x, y, given = rows(name)
        for priors in ("uniform", "empirical"):
            check(neighbors.NearestCentroid(metric=metric, priors=priors).fit(x, LABELS[y]), given)
        check(neighbors.NearestCentroid(metric=metric, shrink_threshold=0.2).fit(x, y), given)


def test_outliers() -> None:
    x, _, given = rows("wine")
    check(neighbors.LocalOutlierFactor(7, novelty=True).fit(x), given)
    check(neighbors.LocalOutlierFactor(7, novelty=True, metric="manhattan").fit(x), given)


def test_refused_by_name() -> None:
    x, y, _ = rows("iris")
    several = np.stack([y, y], axis=1)
    for model, reason in (
        (neighbors.KNeighborsClassifier(metric="hamming").fit(x, y), "metric='hamming'"),
        (neighbors.KNeighborsClassifier(weights=np.sqrt).fit(x, y), "weights=a function"),
        (neighbors.RadiusNeighborsClassifier().fit(x, several), "several outputs"),
        (
            neighbors.RadiusNeighborsClassifier(algorithm="brute", outlier_label=7).fit(x, y),
            "outlier_label with brute force",
        ),
        (neighbors.LocalOutlierFactor().fit(x), "parameter novelty=False"),
    ):
        with pytest.raises(UnsupportedError) as caught:
            import_model(model, "float64")
        assert reason in caught.value.missing[0]


def test_compiled_for_any_batch(compiled: Any) -> None:
    x, y, given = rows("wine")
    model = neighbors.KNeighborsClassifier(4, weights="distance").fit(x, LABELS[y])
    program = compiled(model, mode="serial", dtype="float64")
    compare(program, model, given, rtol=1e-7, atol=1e-7)
    assert program.report()["batch"] == "any"
