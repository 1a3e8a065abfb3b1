"""Multi-layer perceptrons against scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.neural_network import BernoulliRBM, MLPClassifier, MLPRegressor
from sklearn.preprocessing import MinMaxScaler

from tests.conformance.interpreted import METHODS, compare, interpreted
from tests.conformance.sklearn_models import data

pytestmark = pytest.mark.filterwarnings("ignore")
LABELS = np.array(["a", "long name", "ü"])


def scaled(name: str, dtype: str = "float64") -> tuple[Any, Any]:
    x, y = data(name)
    made: Any = MinMaxScaler().fit_transform(x)
    return made.astype(dtype), y


def check(model: Any, x: Any) -> None:
    program = interpreted(model)
    assert set(program._methods) == {m for m in METHODS if hasattr(model, m)} - LEFT_OUT
    compare(program, model, x, rtol=1e-6, atol=1e-6)
    compare(program, model, x.astype(np.float32), rtol=1e-5, atol=1e-5)


# The likelihood of a Boltzmann machine is sampled.
LEFT_OUT = {"score_samples"}


@pytest.mark.parametrize("activation", ["identity", "logistic", "tanh", "relu"])
def test_classifiers(activation: Any) -> None:
    for dataset, dtype in (("iris", "float64"), ("breast_cancer", "float32")):
        x, y = scaled(dataset, dtype)
        net = MLPClassifier((7, 5), activation=activation, max_iter=30, random_state=0)
        check(net.fit(x, LABELS[y]), x)


def test_several_labels_a_row() -> None:
    x, y = scaled("iris")
    several = np.stack([y == 0, y > 0, y == 2], axis=1).astype(int)
    check(MLPClassifier((5,), max_iter=30, random_state=0).fit(x, several), x)


@pytest.mark.parametrize("loss", ["squared_error", "poisson"])
def test_regressors(loss: Any) -> None:
    x, y = scaled("diabetes")
    net = MLPRegressor(loss, (6,), max_iter=20, random_state=0)
    check(net.fit(x, y / 100), x)
    check(net.fit(x, np.stack([y, y], axis=1) / 100), x)


def test_hidden_units() -> None:
    x, _ = scaled("iris")
    check(BernoulliRBM(4, n_iter=2, random_state=0).fit(x), x)


def test_compiled(compiled: Any) -> None:
    x, y = scaled("iris")
    model = MLPClassifier((7, 5), max_iter=30, random_state=0).fit(x, LABELS[y])
    compare(compiled(model, mode="serial", dtype="float64"), model, x, rtol=1e-9, atol=1e-9)
