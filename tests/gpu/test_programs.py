"""Compiled programs on a GPU against their sources: every mode, several batches, arrays of the device.

Skipped where there is no CUDA device.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irkit
from benchmarks.models import lstm_stack, mlp, small_cnn
from irkit.frontends.onnx import import_onnx
from irkit.interp.graph import run_graph
from irkit.runtime.cuda.availability import why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
MODES = ("per-op", "per-wave", "persistent")


def classifier(name: str) -> Any:
    """A fitted pipeline and its data."""
    from sklearn.datasets import load_digits
    from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x, y = load_digits(return_X_y=True)
    models = {
        "forest": RandomForestClassifier(20, random_state=0),
        "boosting": GradientBoostingClassifier(n_estimators=5, random_state=0),
        "linear": LogisticRegression(max_iter=200),
    }
    return make_pipeline(StandardScaler(), models[name]).fit(x, y), x


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["forest", "boosting", "linear"])
def test_a_pipeline_answers_as_its_source(name: str, mode: str) -> None:
    """One program, batches of 1, 2, 7 and all rows."""
    model, x = classifier(name)
    program = irkit.compile(model, target="cuda", dtype="float64", mode=mode)
    for rows in (1, 2, 7, len(x)):
        part = x[:rows]
        assert (program.predict(part) == model.predict(part)).all()
        np.testing.assert_allclose(
            program.predict_proba(part), model.predict_proba(part), atol=1e-6
        )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("build", [mlp, small_cnn, lambda: lstm_stack(3, 32, 32, 12)])
def test_a_network_answers_as_its_meaning(build: Any, mode: str) -> None:
    """Against the graph interpreter, twice with fresh inputs: counters and arenas are used again."""
    model = build()
    imported = import_onnx(model)
    program = irkit.compile(model, target="cuda", mode=mode)
    rng = np.random.default_rng(0)
    for _ in range(2):
        shapes = [
            [d.dim_value or 5 for d in i.type.tensor_type.shape.dim] for i in model.graph.input
        ]
        inputs = [rng.standard_normal(s, dtype=np.float32) for s in shapes]
        want = run_graph(imported.module, imported.weights, inputs)
        for got, expected in zip(program.run(inputs), want, strict=True):
            np.testing.assert_allclose(got, expected, atol=1e-5)


def test_device_arrays_stay_on_the_device() -> None:
    """CuPy in, CuPy out; a second call takes its outputs' memory from the pool."""
    cupy = pytest.importorskip("cupy")
    program = irkit.compile(mlp(), target="cuda", mode="per-op")
    x = cupy.random.default_rng(0).standard_normal((64, 64), dtype=cupy.float32)
    first = program(x)
    assert isinstance(first, cupy.ndarray)
    np.testing.assert_allclose(cupy.asnumpy(first), program(cupy.asnumpy(x)), atol=1e-6)


def test_a_device_array_of_another_dtype_is_refused() -> None:
    """Nothing is cast silently on the device."""
    cupy = pytest.importorskip("cupy")
    program = irkit.compile(mlp(), target="cuda", mode="per-op")
    with pytest.raises(irkit.InvalidInputError, match="expected dtype float32, got float64"):
        program(cupy.zeros((2, 64)))
