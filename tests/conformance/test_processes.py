"""Gaussian processes against scikit-learn: every kernel, alone and composed."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false
# pyright: reportOptionalMemberAccess=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process import kernels as k
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from irkit.errors import UnsupportedError
from irkit.frontends import import_model
from tests.conformance.interpreted import METHODS, compare, interpreted
from tests.conformance.sklearn_models import data

pytestmark = pytest.mark.filterwarnings("ignore")
LABELS = np.array(["a", "long name", "ü"])
KERNELS: dict[str, Any] = {
    "dot": k.DotProduct(0.5) + k.WhiteKernel(0.1),
    "matern_1": k.Matern(1.5, nu=0.5),
    "matern_3": k.Matern([1.0, 2.0, 0.5, 3.0], nu=1.5),
    "matern_5": k.Matern(2.0, nu=2.5),
    "matern_inf": k.Matern(1.0, nu=np.inf),
    "pairwise": k.PairwiseKernel(gamma=0.3, metric="laplacian") + k.WhiteKernel(0.1),
    "periodic": k.ExpSineSquared(2.0, 3.0) * k.RBF(2.0) + k.WhiteKernel(0.1),
    "power": k.Exponentiation(k.DotProduct(1.0), 2) + k.WhiteKernel(0.1),
    "power_of_a_fraction": k.Exponentiation(k.RBF(1.0) + 0.5, 1.5) + k.WhiteKernel(0.1),
    "rational": k.RationalQuadratic(1.0, 0.7),
    "rbf": 2.0 * k.RBF([1.0, 2.0, 0.5, 3.0]) + k.WhiteKernel(0.1),
}


def check(model: Any, x: Any, tolerance: float = 1e-9) -> None:
    program = interpreted(model)
    assert set(program._methods) == {m for m in METHODS if hasattr(model, m)}
    compare(program, model, x, rtol=tolerance, atol=tolerance)
    compare(program, model, x.astype(np.float32), rtol=1e-5, atol=1e-5)


def rows() -> Any:
    """Rows that were fitted, near ones, and some far off."""
    x = data("iris")[0]
    return np.concatenate([x[::3], x[::5] + 0.01, 3 * x[:3], -x[:3]])


@pytest.mark.parametrize("name", KERNELS)
def test_regression(name: str) -> None:
    x = data("iris")[0][::3]
    y = x[:, 2] * x[:, 0]
    model = GaussianProcessRegressor(KERNELS[name], alpha=1e-3, optimizer=None, normalize_y=True)
    check(model.fit(x, y), rows(), 1e-7)


def test_other_regressions() -> None:
    x = data("iris")[0][::3]
    y = np.stack([x[:, 2] * x[:, 0], x[:, 1] ** 2], axis=1)
    check(GaussianProcessRegressor(alpha=1e-3, normalize_y=True).fit(x, y), rows(), 1e-7)
    # Its kernel is found by an optimizer.
    check(GaussianProcessRegressor(KERNELS["rbf"], random_state=0).fit(x, y[:, 0]), rows(), 1e-6)
    check(GaussianProcessRegressor(alpha=1e-3).fit(x.astype(np.float32), y[:, :1]), rows(), 1e-7)


@pytest.mark.parametrize("name", [n for n in KERNELS if n != "pairwise"])
def test_two_classes(name: str) -> None:
    x, y = data("iris")
    x, y = x[::3], LABELS[(y[::3] > 1).astype(int)]
    model = GaussianProcessClassifier(KERNELS[name], optimizer=None).fit(x, y)
    check(model, rows(), 1e-7)


@pytest.mark.parametrize("how", ["one_vs_rest", "one_vs_one"])
def test_several_classes(how: Any) -> None:
    x, y = data("wine")
    model = GaussianProcessClassifier(1.0 * k.RBF(2.0), multi_class=how, optimizer=None)
    fitted = make_pipeline(StandardScaler(), model).fit(x[::3], LABELS[y[::3]])
    program = interpreted(fitted)
    assert ("predict_proba" in program._methods) == (how == "one_vs_rest")
    compare(program, fitted, x[:60], rtol=1e-7, atol=1e-7)


def test_compiled(compiled: Any) -> None:
    x, y = data("iris")
    classifier = GaussianProcessClassifier(k.Matern(1.0)).fit(x[::5], LABELS[y[::5]])
    regressor = GaussianProcessRegressor(k.Matern(1.0), alpha=1e-3).fit(x[::5], x[::5, 0])
    for model in (classifier, regressor):
        compare(compiled(model, mode="serial"), model, x, rtol=1e-7, atol=1e-7)


def test_refused_by_name() -> None:
    x, y = data("iris")
    x, y = x[::10], (y[::10] > 1).astype(int)
    for model, reason in (
        (GaussianProcessRegressor(k.Matern(nu=0.7), optimizer=None), "Matern with nu=0.7"),
        (
            GaussianProcessClassifier(k.PairwiseKernel(metric="rbf"), optimizer=None),
            "PairwiseKernel, whose variance",
        ),
    ):
        with pytest.raises(UnsupportedError) as caught:
            import_model(model.fit(x, y), "float64")
        assert reason in caught.value.missing[0]
