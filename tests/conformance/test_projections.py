"""Projections against scikit-learn: independent, partial, through kernels, by samples; one-class models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn import cluster, cross_decomposition, decomposition, kernel_approximation
from sklearn.covariance import EllipticEnvelope
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, SGDOneClassSVM
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KernelCenterer, MaxAbsScaler, StandardScaler
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from irkit.errors import InvalidInputError, UnsupportedError
from irkit.frontends import import_model
from tests.conformance.interpreted import METHODS, compare, interpreted, same
from tests.conformance.sklearn_models import data

pytestmark = pytest.mark.filterwarnings("ignore")


def rows(name: str, dtype: str = "float64") -> tuple[Any, Any]:
    x, y = data(name)
    made: Any = StandardScaler().fit_transform(x)
    return made[:120].astype(dtype), y[:120]


def check(model: Any, x: Any, tolerance: float = 1e-9, left_out: set[str] | None = None) -> None:
    program = interpreted(model)
    assert set(program._methods) == {m for m in METHODS if hasattr(model, m)} - (left_out or set())
    compare(program, model, x, rtol=tolerance, atol=tolerance)
    compare(program, model, x.astype(np.float32), rtol=1e-4, atol=1e-4)


PROJECTIONS: dict[str, Callable[[], Any]] = {
    "agglomerated": lambda: cluster.FeatureAgglomeration(4),
    "agglomerated_max": lambda: cluster.FeatureAgglomeration(4, pooling_func=np.max),
    "factors": lambda: decomposition.FactorAnalysis(3),
    "gaussian": lambda: GaussianRandomProjection(4, random_state=0),
    "independent": lambda: decomposition.FastICA(3, random_state=0, max_iter=20),
    "independent_as_it_is": lambda: decomposition.FastICA(whiten=False, random_state=0, max_iter=5),
    "neighbourhood": lambda: NeighborhoodComponentsAnalysis(3, max_iter=3, random_state=0),
    "discriminants": LinearDiscriminantAnalysis,
    "discriminants_eigen": lambda: LinearDiscriminantAnalysis(solver="eigen", n_components=1),
    "sparse": lambda: SparseRandomProjection(4, random_state=0, density=0.5),
    "waves": lambda: kernel_approximation.RBFSampler(n_components=7, random_state=0),
}


@pytest.mark.parametrize("name", PROJECTIONS)
def test_projection(name: str) -> None:
    for dtype in ("float64", "float32"):
        x, y = rows("wine", dtype)
        model = PROJECTIONS[name]().fit(x, y)
        narrow = dtype == "float32"
        # Their likelihoods are no method of a transformer's program.
        check(model, x, 1e-4 if narrow else 1e-9, {"score_samples"})


def test_sparse_components() -> None:
    for dtype in ("float64", "float32"):
        x, _ = rows("wine", dtype)
        for make in (decomposition.SparsePCA, decomposition.MiniBatchSparsePCA):
            model = make(3, random_state=0, max_iter=3).fit(x)
            # Of one row, scikit-learn returns no rows but numbers.
            same(interpreted(model).transform(x), model.transform(x), 1e-4, 1e-4)


def test_discriminants_between_steps_and_without_a_transform() -> None:
    x, y = rows("wine")
    check(make_pipeline(LinearDiscriminantAnalysis(), LogisticRegression()).fit(x, y), x)
    check(LinearDiscriminantAnalysis(solver="lsqr").fit(x, y), x, left_out={"transform"})


@pytest.mark.parametrize("name", ["CCA", "PLSCanonical", "PLSRegression", "PLSSVD"])
def test_partial_least_squares(name: str) -> None:
    x, y = rows("diabetes")
    both = np.stack([y, x[:, 2] + 0.1 * y], axis=1)
    model = getattr(cross_decomposition, name)(n_components=2).fit(x, both)
    check(model, x)
    if name == "PLSRegression":
        check(cross_decomposition.PLSRegression(2).fit(x, y), x)


KERNELS = ("linear", "poly", "rbf", "sigmoid", "cosine")


@pytest.mark.parametrize("kernel", KERNELS)
def test_kernels(kernel: Any) -> None:
    x, y = rows("diabetes")
    x, y = x[:60], y[:60]
    check(decomposition.KernelPCA(3, kernel=kernel).fit(x), x, 1e-7)
    check(KernelRidge(kernel=kernel).fit(x, y), x, 1e-7)
    check(KernelRidge(kernel=kernel).fit(x, np.stack([y, y], axis=1)), x, 1e-7)
    sampler = kernel_approximation.Nystroem(kernel=kernel, n_components=9, random_state=0)
    check(sampler.fit(x), x, 1e-6)
    check(KernelRidge(kernel="laplacian").fit(x, y), x, 1e-7)


def test_kernels_of_numbers_above_zero() -> None:
    x, y = data("wine")
    x, y = x[:60] / 100, y[:60]
    for kernel in ("chi2", "additive_chi2"):
        check(KernelRidge(kernel=kernel, gamma=0.1).fit(x, y), x, 1e-7)
    additive = kernel_approximation.AdditiveChi2Sampler(sample_steps=3).fit(x)
    zeros = np.concatenate([x, np.zeros((1, 13))])
    check(additive, zeros)
    check(kernel_approximation.SkewedChi2Sampler(n_components=5, random_state=0).fit(x), x)
    for model in (additive, KernelRidge(kernel="chi2", gamma=0.1).fit(x, y)):
        with pytest.raises(InvalidInputError, match=r"row 0: .* a number below 0"):
            interpreted(model)(-x)


def test_given_kernels() -> None:
    x, _ = rows("iris")
    near = x @ x.T
    check(KernelCenterer().fit(near), near, 1e-8)
    check(decomposition.KernelPCA(2, kernel="precomputed").fit(near), near, 1e-7)


def test_one_class_models() -> None:
    x, _ = rows("wine")
    check(EllipticEnvelope(random_state=0).fit(x[:, :4]), x[:, :4])
    check(SGDOneClassSVM(random_state=0).fit(x), x)


def test_refused_by_name() -> None:
    x, _ = rows("iris")
    for model, reason in (
        (KernelRidge(kernel=np.dot), "parameter kernel=a function"),
        (cluster.FeatureAgglomeration(2, pooling_func=np.median).fit(x), "pooling_func=<function"),
        (
            make_pipeline(LinearDiscriminantAnalysis(solver="lsqr"), LogisticRegression()),
            "solver='lsqr', which does not transform",
        ),
        (decomposition.MiniBatchNMF(2).fit(np.abs(x)), "estimator MiniBatchNMF"),
    ):
        with pytest.raises(UnsupportedError) as caught:
            import_model(model, "float64")
        assert reason in caught.value.missing[0]


def test_compiled(compiled: Any) -> None:
    x, _ = rows("wine")
    model = decomposition.KernelPCA(3, kernel="rbf").fit(x)
    compare(compiled(model, mode="serial", dtype="float64"), model, x, rtol=1e-8, atol=1e-8)


def test_logarithms_of_stored_zeros_are_refused() -> None:
    """Of those scikit-learn makes NaN; where a step before may store one, no sparse rows are taken."""
    x = csr_array(np.abs(np.round(data("iris")[0] - 3.0)))
    model = kernel_approximation.AdditiveChi2Sampler().fit(x)
    np.testing.assert_allclose(
        interpreted(model).transform(x), model.transform(x).toarray(), rtol=1e-9
    )
    x.data[::5] = 0.0
    assert np.isnan(model.transform(x).data).any()
    with pytest.raises(InvalidInputError, match="stores a 0"):
        interpreted(model).transform(x)
    later = make_pipeline(MaxAbsScaler(), kernel_approximation.AdditiveChi2Sampler()).fit(x)
    with pytest.raises(UnsupportedError, match=r"AdditiveChi2Sampler. takes a stored 0 for no 0"):
        interpreted(later).transform(x)
