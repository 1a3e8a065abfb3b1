"""Graphs of neighbours, labels, embeddings, densities and leaves against scikit-learn."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false
# pyright: reportOptionalMemberAccess=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomTreesEmbedding
from sklearn.kernel_approximation import PolynomialCountSketch
from sklearn.linear_model import LogisticRegression
from sklearn.manifold import Isomap, LocallyLinearEmbedding
from sklearn.neighbors import (
    KernelDensity,
    KNeighborsRegressor,
    KNeighborsTransformer,
    RadiusNeighborsTransformer,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import LabelPropagation, LabelSpreading

from irkit.errors import UnsupportedError
from irkit.frontends import import_model
from irkit.frontends.sklearn.graphs import DENSITIES
from tests.conformance.interpreted import METHODS, compare, interpreted
from tests.conformance.sklearn_models import data

pytestmark = pytest.mark.filterwarnings("ignore")


def rows(name: str, count: int = 60) -> tuple[Any, Any]:
    """Rows of which no two are equally near a third, and targets."""
    x, y = data(name)
    random = np.random.default_rng(0)
    return x[: 2 * count : 2] * (1 + random.random((count, x.shape[1])) / 50), y[: 2 * count : 2]


def others(x: Any) -> Any:
    """Fitted rows, near ones, and some far off."""
    return np.concatenate([x, x[::3] * 1.01 + 0.003, 5 * x[:3], -x[:2]])


def check(model: Any, x: Any, tolerance: float = 1e-9, narrow: float = 1e-5) -> None:
    program = interpreted(model)
    assert set(program._methods) == {m for m in METHODS if hasattr(model, m)}
    compare(program, model, x, rtol=tolerance, atol=tolerance)
    compare(program, model, x.astype(np.float32), rtol=narrow, atol=narrow)


@pytest.mark.parametrize("mode", ["connectivity", "distance"])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev"])
def test_graphs_of_neighbours(metric: Any, mode: Any) -> None:
    x = rows("wine")[0]
    near = KNeighborsTransformer(mode=mode, metric=metric, n_neighbors=4).fit(x)
    check(near, others(x), 1e-7)
    around = RadiusNeighborsTransformer(mode=mode, metric=metric, radius=60.0).fit(x)
    check(around, others(x), 1e-7)


@pytest.mark.parametrize("kernel", ["rbf", "knn"])
@pytest.mark.parametrize("kind", [LabelPropagation, LabelSpreading])
def test_labels(kind: Any, kernel: Any) -> None:
    x, y = rows("iris", 75)
    known = np.where(np.arange(75) % 4 == 0, y, -1)
    model = kind(kernel=kernel, gamma=2.0, n_neighbors=5).fit(x, known)
    check(model, x * 1.01)
    # Where no label reaches, shares are NaN.
    check(model, others(x))


@pytest.mark.parametrize("name", ["iris", "wine"])
def test_embeddings(name: str) -> None:
    x = rows(name)[0]
    check(Isomap(n_neighbors=6, n_components=3).fit(x), others(x), 1e-7, narrow=1e-3)
    for count, reg in ((5, 1e-3), (12, 1e-2)):
        model = LocallyLinearEmbedding(n_neighbors=count, reg=reg, random_state=0).fit(x)
        check(model, others(x), 1e-7, narrow=1e-4)


@pytest.mark.parametrize("kernel", DENSITIES)
@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev"])
def test_densities(metric: Any, kernel: Any) -> None:
    x = rows("iris")[0]
    given = np.concatenate([others(x), np.full((1, 4), 1e3)])
    check(KernelDensity(bandwidth=0.7, kernel=kernel, metric=metric).fit(x), given, 1e-9)
    weights = np.random.default_rng(0).random(len(x))
    model = KernelDensity(bandwidth="scott", kernel=kernel, metric=metric)
    check(model.fit(x, sample_weight=weights), given, 1e-9)


@pytest.mark.parametrize(
    "parameters", [{}, {"max_depth": 1}, {"max_leaf_nodes": 9, "max_depth": None}]
)
def test_leaves(parameters: Any) -> None:
    x = data("breast_cancer")[0]
    model = RandomTreesEmbedding(7, random_state=0, **parameters).fit(x)
    program = interpreted(model)
    compare(program, model, x, exact=["transform"])
    compare(program, model, x.astype(np.float32), exact=["transform"])
    # At the thresholds themselves.
    tree = model.estimators_[0].tree_
    edge = np.repeat(x[:20], 2, axis=0)
    edge[::2, tree.feature[0]] = tree.threshold[0]
    compare(program, model, edge, exact=["transform"])
    edge[::3, tree.feature[0]] = np.nan
    compare(program, model, edge, exact=["transform"])


@pytest.mark.parametrize("size", [1, 2, 15, 64])
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_sketches(degree: int, size: int) -> None:
    x = rows("wine")[0] / 100
    for coef0 in (0, 1.5):
        model = PolynomialCountSketch(
            degree=degree, n_components=size, coef0=coef0, gamma=0.3, random_state=0
        )
        check(model.fit(x), x, 1e-9)


def test_compiled(compiled: Any) -> None:
    x, y = rows("iris", 75)
    spread = LabelSpreading(kernel="knn").fit(x, y)
    local = make_pipeline(
        StandardScaler(), LocallyLinearEmbedding(random_state=0), LogisticRegression()
    )
    leaves = make_pipeline(RandomTreesEmbedding(5, random_state=0), LogisticRegression())
    for model in (spread, local.fit(x, y), leaves.fit(x, y), KernelDensity().fit(x)):
        compare(compiled(model, mode="serial"), model, x, rtol=1e-7, atol=1e-7)


def test_refused_by_name() -> None:
    x, y = rows("iris")
    for model, reason in (
        (Isomap(n_neighbors=None, radius=9.0), "parameter radius"),
        (KernelDensity(rtol=0.1), "rtol=0.1"),
        (KernelDensity(metric="canberra", algorithm="ball_tree"), "metric='canberra'"),
        (KNeighborsTransformer(metric="hamming"), "metric='hamming'"),
        (LabelSpreading(kernel=lambda a, b: a @ b.T), "kernel=a function"),
        (LocallyLinearEmbedding(n_neighbors=40, eigen_solver="dense"), "n_neighbors=40"),
    ):
        with pytest.raises(UnsupportedError) as caught:
            import_model(model.fit(x, y), "float64")
        assert reason in caught.value.missing[0]


METHOD_OF = {KNeighborsRegressor: "predict", KNeighborsTransformer: "transform"}


def test_fewer_rows_than_neighbours_are_refused() -> None:
    x = np.arange(8.0).reshape(4, 2)
    for model in (KNeighborsRegressor(), KNeighborsTransformer(n_neighbors=4)):
        with pytest.raises(ValueError, match="n_samples_fit = 4"):
            getattr(model.fit(x, x[:, 0]), METHOD_OF[type(model)])(x)
        with pytest.raises(UnsupportedError, match="n_neighbors=5 and n_samples=4"):
            interpreted(model)
