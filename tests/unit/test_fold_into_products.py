"""Scalers and projections of random widths, folded into products: answers stay within a sum's rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irkit
from irkit.errors import InvalidInputError

SCALERS = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler")


@pytest.mark.parametrize("seed", range(12))
def test_linear_models_keep_their_answers(seed: int) -> None:
    """Of a scaler, perhaps a projection, and a linear model of one or several outputs."""
    rng = np.random.default_rng(seed)
    width, outputs = int(rng.integers(1, 40)), int(rng.integers(1, 5))
    x = rng.normal(size=(60, width)) * 10.0 ** rng.integers(-3, 4, width) + rng.normal(size=width)
    y = rng.normal(size=(60, outputs))
    steps = [made("preprocessing", str(rng.choice(SCALERS)))]
    if seed % 2:
        steps.append(made("decomposition", "PCA", n_components=int(rng.integers(1, width + 1))))
    model = made(
        "pipeline", "Pipeline", steps=[*named(steps), ("last", made("linear_model", "Ridge"))]
    )
    model.fit(x, y)
    program = irkit.compile(model, "cpu", dtype="float64", cache=False)
    text = program.ir("graph")
    assert text.count("graph.matmul") == 1
    assert not any(f"graph.{op}" in text for op in ("sub", "div", "mul"))
    want = model.predict(x)
    np.testing.assert_allclose(program.predict(x).reshape(want.shape), want, rtol=1e-9, atol=1e-11)


def test_what_would_overflow_is_refused_by_its_size() -> None:
    """A projection of numbers so large is infinite, which the classifier behind it does not take."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 6))
    steps = [
        made("preprocessing", "StandardScaler"),
        made("decomposition", "PCA", n_components=3),
        made("linear_model", "LogisticRegression"),
    ]
    model = made("pipeline", "Pipeline", steps=named(steps)).fit(x, rng.integers(0, 3, 50))
    program = irkit.compile(model, "cpu", dtype="float64", cache=False)
    assert "graph.reduce" not in program.ir("graph")
    x[7] = 1e308
    with pytest.raises(InvalidInputError, match="overflows inside the model: expected at most"):
        program.predict(x)
    x[7] = 1e290
    np.testing.assert_array_equal(program.predict(x), model.predict(x))


def made(module: str, name: str, **parameters: Any) -> Any:
    """An estimator of scikit-learn's."""
    return getattr(pytest.importorskip(f"sklearn.{module}"), name)(**parameters)


def named(steps: list[Any]) -> list[tuple[str, Any]]:
    return [(f"step {number}", step) for number, step in enumerate(steps)]
