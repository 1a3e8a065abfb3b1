# pyright: basic
"""CSR matrices of which scikit-learn makes nothing, or other columns: refused by name."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.ensemble import VotingRegressor
from sklearn.manifold import Isomap
from sklearn.neighbors import KNeighborsRegressor, LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, PolynomialFeatures

import irkit
from irkit.errors import InvalidInputError, UnsupportedError

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(60, 3)), RNG.normal(size=60)
MODELS = {
    "kd_tree": KNeighborsRegressor(algorithm="kd_tree"),
    "ball_tree": KNeighborsRegressor(algorithm="ball_tree"),
    "auto": make_pipeline(MaxAbsScaler(), KNeighborsRegressor()),
    "within": VotingRegressor([("k", KNeighborsRegressor())]),
    "outliers": LocalOutlierFactor(novelty=True),
    "Isomap": Isomap(),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_tree_of_points_takes_dense_rows_alone(name):
    model = MODELS[name].fit(X, Y)
    method = "transform" if name == "Isomap" else "predict"
    compiled = irkit.compile(model, target="cpu")
    with pytest.raises(ValueError, match="_tree does not work with sparse matrices"):
        getattr(model, method)(sp.csr_matrix(X))
    with pytest.raises(UnsupportedError, match=r"looks for neighbours in a (kd|ball)_tree"):
        getattr(compiled, method)(sp.csr_matrix(X))


def test_brute_force_takes_sparse_rows():
    model = KNeighborsRegressor(algorithm="brute").fit(X, Y)
    found = irkit.compile(model, target="cpu").predict(sp.csr_matrix(X))
    np.testing.assert_allclose(found, model.predict(sp.csr_matrix(X)))


@pytest.mark.parametrize("steps", [(), (MaxAbsScaler(),)], ids=["alone", "scaled"])
def test_polynomials_of_rows_out_of_order(steps):
    """scikit-learn's product of columns 2 and 0 has another place than that of 0 and 2."""
    arrays = np.array([2.0, 1.0, 4.0, 3.0]), np.array([2, 0, 2, 1]), np.array([0, 2, 4])
    rows = sp.csr_matrix(arrays, shape=(2, 3))
    model = make_pipeline(*steps, PolynomialFeatures(2)).fit(X)
    compiled = irkit.compile(model, target="cpu")
    assert not np.array_equal(model.transform(rows).toarray(), model.transform(rows.toarray()))
    with pytest.raises(InvalidInputError, match=r"out of order.*sort_indices\(\)"):
        compiled.transform(rows)
    rows.sort_indices()
    np.testing.assert_array_equal(compiled.transform(rows), model.transform(rows).toarray())
