"""Neighbours, machines and labels that spread, fitted on a sparse matrix: of dense rows and sparse ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from sklearn import datasets, neighbors, semi_supervised, svm

from tests.conformance.interpreted import METHODS, interpreted, same

pytestmark = pytest.mark.filterwarnings("ignore")
sparse: Any = scipy.sparse
nearest: Any = neighbors
spreading: Any = semi_supervised
machines: Any = svm

MODELS: dict[str, Callable[[], Any]] = {
    "cosine": lambda: nearest.KNeighborsClassifier(metric="cosine", weights="distance"),
    "k": nearest.KNeighborsClassifier,
    "k_regressor": lambda: nearest.KNeighborsRegressor(n_neighbors=3),
    "linear": lambda: machines.SVC(kernel="linear"),
    "manhattan": lambda: nearest.KNeighborsClassifier(metric="manhattan"),
    "novelty": lambda: nearest.LocalOutlierFactor(novelty=True),
    "nu": lambda: machines.NuSVC(nu=0.05),
    "nu_regressor": machines.NuSVR,
    "one_class": machines.OneClassSVM,
    "poly": lambda: machines.SVC(kernel="poly"),
    "probable": lambda: machines.SVC(probability=True, random_state=0),
    "propagated": lambda: spreading.LabelPropagation(gamma=0.5),
    "radius": lambda: nearest.RadiusNeighborsClassifier(
        radius=2.5, outlier_label=0, weights="distance"
    ),
    "rbf": machines.SVC,
    "sigmoid": lambda: machines.SVC(kernel="sigmoid", break_ties=True),
    "spread": lambda: spreading.LabelSpreading(kernel="knn"),
    "regressor": machines.SVR,
    "transformer": lambda: nearest.KNeighborsTransformer(n_neighbors=3),
}


@pytest.mark.parametrize("name", MODELS)
def test_fitted_on_sparse_rows(name: str) -> None:
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(190, 12)) * (generator.random((190, 12)) < 0.4)
    known, new = rows[:150], rows[150:]
    y = (known[:, 0] + known[:, 1] > 0).astype(int) + (known[:, 2] > 0.3)
    fitted = sparse.csr_matrix(known)
    model = MODELS[name]()
    model = model.fit(fitted) if name == "one_class" else model.fit(fitted, y)
    program = interpreted(model)
    methods = [m for m in METHODS if m in program.methods]
    assert methods
    for given in (new, sparse.csr_matrix(new)):
        for method in methods:
            same(getattr(program, method)(given), getattr(model, method)(given), 1e-9, 1e-9)


def test_probabilities_of_ten_classes() -> None:
    data: Any = datasets
    x, y = data.load_digits(return_X_y=True)
    model = machines.SVC(probability=True, random_state=0, gamma=0.001).fit(x[:400], y[:400])
    same(interpreted(model).predict_proba(x), model.predict_proba(x), 1e-9, 1e-9)
