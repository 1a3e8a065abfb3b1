"""Naive Bayes, discriminants, clusters and mixtures against scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn import cluster, mixture, naive_bayes
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from irkit.errors import InvalidInputError, UnsupportedError
from irkit.frontends import import_model
from tests.conformance.interpreted import METHODS, compare, interpreted
from tests.conformance.sklearn_models import data

LABELS = np.array(["a", "long name", "ü"])


def check(model: Any, x: Any, narrow: bool = True, tolerance: float = 1e-9) -> None:
    program = interpreted(model)
    assert set(program._methods) == {m for m in METHODS if hasattr(model, m)}
    compare(program, model, x, rtol=tolerance, atol=tolerance)
    if narrow:
        compare(program, model, x.astype(np.float32), rtol=1e-5, atol=1e-5)


# Naive Bayes

BAYES: dict[str, Callable[[], Any]] = {
    "bernoulli": lambda: naive_bayes.BernoulliNB(binarize=2.0),
    "bernoulli_as_it_is": lambda: naive_bayes.BernoulliNB(binarize=None),
    "complement": naive_bayes.ComplementNB,
    "complement_norm": lambda: naive_bayes.ComplementNB(norm=True),
    "gaussian": naive_bayes.GaussianNB,
    "multinomial": lambda: naive_bayes.MultinomialNB(fit_prior=False),
    "quadratic": lambda: QuadraticDiscriminantAnalysis(reg_param=0.1),
}


@pytest.mark.parametrize("dataset", ["wine", "breast_cancer"])
@pytest.mark.parametrize("name", BAYES)
def test_bayes(name: str, dataset: str) -> None:
    x, y = data(dataset)
    x = np.concatenate([x, 1e3 * x[:3]])
    if name == "bernoulli_as_it_is":
        x = (x > 2).astype(np.float64)
    check(BAYES[name]().fit(x[: len(y)], LABELS[y]), x)


def test_bayes_of_float32_and_of_one_class() -> None:
    x, y = data("iris")
    check(naive_bayes.GaussianNB().fit(x.astype(np.float32), y), x)
    check(naive_bayes.ComplementNB().fit(x, np.ones(len(x))), x)


def test_categories() -> None:
    x = np.floor(data("iris")[0])
    model = naive_bayes.CategoricalNB(min_categories=9).fit(x, data("iris")[1])
    check(model, x + 0.7)
    program = interpreted(model)
    check(model, np.full((3, 4), -0.5))
    for wrong in (-1.0, 9.0, 1e300):
        given = x.copy()
        given[4, 2] = wrong
        with np.errstate(all="ignore"), pytest.raises((ValueError, IndexError)):
            model.predict(given)
        with pytest.raises(InvalidInputError, match="row 4: CategoricalNB found a category"):
            program.predict(given)


# Clusters

CLUSTERS: dict[str, Callable[[], Any]] = {
    "affinity": lambda: cluster.AffinityPropagation(random_state=0),
    "birch": lambda: cluster.Birch(threshold=1.0, n_clusters=4),
    "birch_all": lambda: cluster.Birch(threshold=1.0, n_clusters=None),
    "bisecting": lambda: cluster.BisectingKMeans(5, random_state=0),
    "kmeans": lambda: cluster.KMeans(5, n_init=1, random_state=0),
    "mean_shift": lambda: cluster.MeanShift(bandwidth=1.5),
    "mini_batch": lambda: cluster.MiniBatchKMeans(5, n_init=1, random_state=0),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CLUSTERS)
def test_clusters(name: str) -> None:
    x: Any = StandardScaler().fit_transform(data("wine")[0])
    model = CLUSTERS[name]().fit(x)
    # Rows that were fitted may be centres: their distances are rounding.
    check(model, np.concatenate([x + 0.01, 9 * x]), narrow="KMeans" not in str(model))
    if "KMeans" in str(model):
        small = x.astype(np.float32)
        model = CLUSTERS[name]().fit(small)
        compare(interpreted(model), model, small, rtol=1e-5, atol=1e-5)


def test_distances_to_clusters_before_a_model() -> None:
    x, y = data("iris")
    model: Any = make_pipeline(cluster.KMeans(4, n_init=1), LogisticRegression()).fit(x, y)
    check(model, x, narrow=False)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_mixtures(kind: Any) -> None:
    x: Any = StandardScaler().fit_transform(data("wine")[0])[:, :5]
    plain = mixture.GaussianMixture(3, covariance_type=kind, random_state=0).fit(x)
    x = np.concatenate([x, 9 * x[:9]])
    check(plain, x)
    for prior in ("dirichlet_process", "dirichlet_distribution"):
        bayes = mixture.BayesianGaussianMixture(
            n_components=4,
            covariance_type=kind,
            random_state=0,
            tol=0.1,
            weight_concentration_prior_type=prior,
        )
        check(bayes.fit(x), x)


def test_refused_by_name() -> None:
    x = data("iris")[0][:20]
    model = cluster.AffinityPropagation(affinity="precomputed", random_state=0).fit(-(x @ x.T))
    with pytest.raises(UnsupportedError, match="affinity='precomputed'"):
        import_model(model, "float64")


def test_compiled(compiled: Any) -> None:
    x: Any = StandardScaler().fit_transform(data("wine")[0])
    model = mixture.GaussianMixture(3, random_state=0).fit(x)
    compare(compiled(model, mode="serial", dtype="float64"), model, x, rtol=1e-9, atol=1e-9)
    bayes = naive_bayes.GaussianNB().fit(x, LABELS[data("wine")[1]])
    compare(compiled(bayes, mode="serial", dtype="float64"), bayes, x, rtol=1e-9, atol=1e-9)
