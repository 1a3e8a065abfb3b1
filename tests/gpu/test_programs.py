"""Compiled programs on a GPU against their sources: every mode, several batches, arrays of the device.

Skipped where there is no CUDA device.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irkit
from benchmarks.models import lstm_stack, mlp, small_cnn
from benchmarks.models.onnx_model import OnnxModel
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


def twice_as_large() -> Any:
    """Height and width doubled by one table of rows, which stays in shared memory for both."""
    m = OnnxModel("larger", 0)
    m.weights["scales"] = np.array([1, 1, 2, 2], np.float32)
    m.node("Resize", ["x", "", "scales"], "y", mode="linear")
    return m.finish({"x": [4, 64, 64, 64]}, {"y": [4, 64, 128, 128]})


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
@pytest.mark.parametrize(
    "build", [mlp, small_cnn, lambda: lstm_stack(3, 32, 32, 12), twice_as_large]
)
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


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("terms", [256, 260, 300])
def test_an_infinite_weight_is_of_its_own_results_alone(terms: int, mode: str) -> None:
    m = OnnxModel("infinite", 0)
    w = m.weight("w", terms, 100)
    m.weights["w"][0, 7], m.weights["w"][terms - 1, 9] = np.inf, -np.inf
    m.node("MatMul", ["x", w], "y")
    model = m.finish({"x": [1, terms]}, {"y": [1, 100]})
    x = np.abs(np.random.default_rng(1).standard_normal((1, terms), dtype=np.float32)) + 1
    got = irkit.compile(model, target="cuda", mode=mode).run([x])[0]
    np.testing.assert_allclose(got, x @ m.weights["w"], rtol=1e-4, atol=1e-4)


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


@pytest.mark.parametrize(
    ("odd", "words"), [(np.nan, "has NaN"), (-np.inf, "has infinity"), (1e200, ""), (-0.0, "")]
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values_are_looked_at_on_the_device(dtype: str, odd: float, words: str) -> None:
    """One bad value anywhere in a batch is refused as it is on the host; the rest is computed."""
    cupy = pytest.importorskip("cupy")
    model, x = classifier("linear")
    program = irkit.compile(model, target="cuda", mode="per-op")
    x = x.astype(dtype)
    for place in ((0, 0), (len(x) - 1, x.shape[1] - 1), (700, 13)):
        given = x.copy()
        with np.errstate(over="ignore"):
            given[place] = odd
        refused = words or ("has infinity" if np.isinf(given[place]) else "")
        for value in (given, cupy.asarray(given)):
            if refused:
                with pytest.raises(irkit.InvalidInputError, match=refused):
                    program.predict_proba(value)
                continue
            assert program.predict_proba(value).shape == (len(x), 10)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_kernel_that_looks_finds_what_numpy_finds(dtype: str) -> None:
    """Sizes around a warp, a block and a grid; NaN and infinity at random places."""
    from irkit.runtime.cuda.driver import device
    from irkit.runtime.cuda.extent import RESULT_BYTES, extent_probe
    from irkit.runtime.cuda.memory import Pool
    from irkit.runtime.input_policy import extent_of

    pool = Pool(device())
    probe, result, stream = extent_probe(device()), pool.take(RESULT_BYTES), pool.stream.handle
    rng = np.random.default_rng(1)
    for size in (1, 31, 32, 33, 255, 256, 257, 1025, 100_003, 5_000_000):
        array = rng.standard_normal(size).astype(dtype)
        for values in ((), (np.nan,), (-np.inf,), (np.inf, -np.nan), (np.finfo(dtype).max,)):
            odd = array.copy()
            odd[rng.integers(0, size, len(values))] = values
            buffer = pool.take(odd.nbytes)
            buffer.upload(odd, stream)
            assert probe(buffer.address, size, dtype, result, stream) == extent_of(odd)


@pytest.mark.parametrize("mode", MODES)
def test_no_rows_are_no_error_for_a_network(mode: str) -> None:
    """Empty in, empty out; an estimator refuses them as scikit-learn does."""
    program = irkit.compile(mlp(), target="cuda", mode=mode)
    assert program(np.zeros((0, 64), np.float32)).shape[0] == 0
    assert program(np.zeros((3, 64), np.float32)).shape[0] == 3
    model, x = classifier("linear")
    with pytest.raises(irkit.InvalidInputError, match="1 or more rows"):
        irkit.compile(model, target="cuda", dtype="float64", mode=mode).predict(x[:0])


def test_one_program_reads_what_another_wrote() -> None:
    """Arrays of irkit's own: each program works on a stream of its own, and waits for the other's."""
    cupy = pytest.importorskip("cupy")
    program = irkit.compile(mlp(), target="cuda", mode="per-op")
    other = irkit.compile(mlp(), target="cuda", mode="persistent")
    x = np.random.default_rng(0).standard_normal((4096, 64)).astype(np.float32)
    want = other(x)
    executor = program._first.executor
    for _ in range(20):
        device_array = cupy.asarray(x)
        (found,) = executor.run([device_array])
        np.testing.assert_allclose(cupy.asnumpy(found), want, atol=1e-5)


def test_dropped_programs_give_the_device_its_memory_back() -> None:
    """30 programs that are compiled, called and dropped leave no more behind than a few."""
    import gc

    from irkit.runtime.cuda.driver import call, device

    def free() -> int:
        gc.collect()
        device().activate()
        return int(call("cuMemGetInfo")[0])

    x = np.zeros((20_000, 64), np.float32)
    for number in range(33):
        program = irkit.compile(mlp(), target="cuda", mode="per-op")
        program(x)
        del program
        if number == 2:
            before = free()
    assert before - free() < 64 << 20
