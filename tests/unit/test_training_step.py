"""Steps of training: what they compute beside float64, what they keep and share, what they refuse."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.special

import irkit
from irkit.errors import (
    ArtifactError,
    InvalidInputError,
    InvalidModelError,
    NotFiniteError,
    UnsupportedError,
)
from irkit.training import losses, schedules
from irkit.training.optimizers import SGD, Adagrad, Adam, AdamW, Optimizer, RMSProp

OPTIONS: dict[str, Any] = {"target": "cpu", "cache": False}


def layers(sizes: tuple[int, ...], dtype: str, seed: int = 0) -> dict[str, np.ndarray]:
    rng, found = np.random.default_rng(seed), dict[str, np.ndarray]()
    for n, (a, b) in enumerate(itertools.pairwise(sizes)):
        found[f"w{n}"] = (rng.standard_normal((a, b)) / np.sqrt(a)).astype(dtype)
        found[f"b{n}"] = (rng.standard_normal(b) / 10).astype(dtype)
    return found


def mlp(p: Any, x: Any) -> Any:
    return np.tanh(x @ p["w0"] + p["b0"]) @ p["w1"] + p["b1"]


def batch(rows: int, dtype: str = "float32", seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((rows, 5)).astype(dtype), rng.integers(0, 3, rows)


def by_hand(p: dict[str, np.ndarray], x: np.ndarray, y: np.ndarray) -> tuple[float, Any]:
    """Loss and gradients, written out."""
    h = np.tanh(x @ p["w0"] + p["b0"])
    z = h @ p["w1"] + p["b1"]
    s = np.exp(z - z.max(1, keepdims=True))
    s /= s.sum(1, keepdims=True)
    rows = np.arange(len(y))
    loss = -np.log(s[rows, y]).mean()
    s[rows, y] -= 1
    d = s / len(y)
    back = (d @ p["w1"].T) * (1 - h * h)
    return loss, {"w0": x.T @ back, "b0": back.sum(0), "w1": h.T @ d, "b1": d.sum(0)}


def small(optimizer: Optimizer | None = None, dtype: str = "float32", **more: Any) -> Any:
    start = layers((5, 7, 3), dtype)
    return irkit.training_step(
        mlp, losses.softmax_cross_entropy, optimizer or SGD(0.3), parameters=start, **OPTIONS, **more
    )  # fmt: skip


@pytest.mark.parametrize(
    "optimizer",
    [
        SGD(schedules.exponential(0.3, 0.9), weight_decay=0.1, clip_value=0.02),
        SGD(0.3, momentum=0.9, nesterov=True, clip_norm=0.1),
        Adam(schedules.warmed_up(0.01, 3)),
        AdamW(0.01),
        Adagrad(0.1, rate_decay=0.1),
        RMSProp(0.01, momentum=0.5, centered=True),
    ],
    ids=lambda o: type(o).__name__,
)
def test_five_steps_are_those_of_float64(optimizer: Optimizer) -> None:
    step, wanted = small(optimizer, "float64"), layers((5, 7, 3), "float64")
    slots = [{s: np.zeros_like(w) for s in optimizer.slots} for w in wanted.values()]
    for n in range(5):
        x, y = batch(20, "float64", n)
        loss, gradients = by_hand(wanted, x, y)
        updated = optimizer.apply(
            list(wanted.values()), [gradients[k] for k in wanted], slots, np.int64(n)
        )
        wanted = dict(zip(wanted, (p for p, _ in updated), strict=True))
        slots = [s for _, s in updated]
        assert step(x, y) == pytest.approx(loss, rel=1e-11)
    assert step.steps == 5
    for name, array in step.parameters.items():
        np.testing.assert_allclose(array, wanted[name], rtol=1e-9, atol=1e-12)
    for slot in optimizer.slots:
        for name, kept in zip(wanted, slots, strict=True):
            np.testing.assert_allclose(
                step.state[f"{slot}.{name}"], kept[slot], rtol=1e-8, atol=1e-12
            )


def test_parameters_are_updated_in_place_and_nothing_is_allocated() -> None:
    step = small(SGD(0.1, momentum=0.9))
    x, y = batch(16)
    for _ in range(2):
        step(x, y)
    executor = step._last[1]._first.executor
    space, held = executor._idle[0], [a.ctypes.data for a in executor.state._arrays]
    for _ in range(20):
        step(x, y)
    assert executor._idle == [space]
    assert [a.ctypes.data for a in executor.state._arrays] == held
    # Each parameter and each momentum is written by the rOperator that makes it.
    text = step.ir("task")
    pairs = [
        line.split("array<i64:")[1].split(">")[0].count(",") // 2 + 1
        for line in text.splitlines()
        if "in_place = array" in line
    ]
    assert sum(pairs) == len(step.state)


def test_the_state_goes_on_bit_for_bit(tmp_path: Path) -> None:
    one, other = small(Adam()), small(Adam())
    x, y = batch(12)
    for _ in range(3):
        one(x, y)
    one.save(tmp_path / "state.safetensors")
    other.load(tmp_path / "state.safetensors")
    assert other.steps == 3
    for _ in range(2):
        assert one(x, y) == other(x, y)
    for name, array in one.state.items():
        np.testing.assert_array_equal(array, other.state[name])


def test_programs_of_other_batches_share_the_state() -> None:
    step, wanted = small(dtype="float64"), layers((5, 7, 3), "float64")
    for rows in (10, 4, 10, 4):
        x, y = batch(rows, "float64", rows)
        loss, gradients = by_hand(wanted, x, y)
        wanted = {k: w - 0.3 * gradients[k] for k, w in wanted.items()}
        assert step(x, y) == pytest.approx(loss, rel=1e-12)
    assert step.steps == 4
    for name, array in step.parameters.items():
        np.testing.assert_allclose(array, wanted[name], rtol=1e-11)
    x, _ = batch(6, "float64")
    np.testing.assert_allclose(step.evaluate(x), mlp(wanted, x), rtol=1e-11)


def test_parameters_in_structures() -> None:
    def model(p: Any, x: Any) -> Any:
        return (x * p["a"][0] + p["a"][1][0] + p["b"]).sum(axis=1)

    start = {"a": (np.ones(3), [np.zeros(3)]), "b": np.array(0.5)}
    step = irkit.training_step(
        model, losses.mean_squared_error, SGD(0.01), parameters=start, **OPTIONS
    )
    assert list(step.state) == ["parameters.a.0", "parameters.a.1.0", "parameters.b", "steps"]
    before = step(np.ones((4, 3)), np.zeros(4))
    assert step(np.ones((4, 3)), np.zeros(4)) < before
    found = step.parameters
    assert isinstance(found["a"], tuple)
    assert isinstance(found["a"][1], list)
    assert start["b"] == 0.5


def test_statistics_are_kept_and_not_differentiated() -> None:
    def model(p: Any, x: Any, training: bool, statistics: Any) -> Any:
        if training:
            statistics["mean"] *= 0.9
            statistics["mean"] += 0.1 * x.mean(axis=0)
        return (x - statistics["mean"]) * p

    step = irkit.training_step(
        model, losses.mean_squared_error, SGD(0.1),
        parameters=np.ones(2), statistics={"mean": np.zeros(2)}, **OPTIONS,
    )  # fmt: skip
    x, mean = np.array([[1.0, 2.0], [3.0, 4.0]]), np.zeros(2)
    for _ in range(3):
        step(x, np.zeros((2, 2)))
        mean = 0.9 * mean + 0.1 * np.array([2.0, 3.0])
    np.testing.assert_allclose(step.statistics["mean"], mean)
    np.testing.assert_allclose(step.evaluate(x), (x - mean) * step.parameters)
    np.testing.assert_allclose(step.statistics["mean"], mean)


def test_statistics_that_are_replaced_go_by_their_names() -> None:
    def model(p: Any, x: Any, training: bool, statistics: Any) -> Any:
        if training:
            statistics["a"] = statistics.pop("a") + 1
        return x * p

    step = irkit.training_step(
        model, losses.mean_squared_error, SGD(0.1),
        parameters=np.ones(2), statistics={"a": np.zeros(2), "b": np.full(2, 5.0)}, **OPTIONS,
    )  # fmt: skip
    step(np.ones((3, 2)), np.ones((3, 2)))
    assert {n: a.tolist() for n, a in step.statistics.items()} == {"a": [1, 1], "b": [5, 5]}


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            lambda s, x: {"b": x.mean(0)},
            r"leaves the statistics 'statistics.a', 'statistics.b': expected",
        ),
        (
            lambda s, x: {"a": x.mean()},
            r"leaves 'statistics.a' as float64\[\]: expected float64\[2\]",
        ),
        (
            lambda s, x: {"a": s["a"] + 1j},
            r"leaves 'statistics.a' as complex128\[2\]: expected float64",
        ),
        (lambda s, x: {"a": 0.5}, r"leaves 'statistics.a' as float: expected float64\[2\]"),
    ],
    ids=["more", "shape", "complex", "number"],
)
def test_statistics_of_another_kind_are_refused(change: Any, text: str) -> None:
    def model(p: Any, x: Any, training: bool, statistics: Any) -> Any:
        if training:
            statistics.update(change(statistics, x))
        return x * p

    step = irkit.training_step(
        model, losses.mean_squared_error, SGD(0.1),
        parameters=np.ones(2), statistics={"a": np.zeros(2)}, **OPTIONS,
    )  # fmt: skip
    with pytest.raises(UnsupportedError, match=text):
        step(np.ones((3, 2)), np.ones((3, 2)))
    assert step.steps == 0


def perceptron() -> tuple[Any, dict[str, np.ndarray]]:
    onnx = pytest.importorskip("onnx")
    helper, held = onnx.helper, layers((5, 7, 3), "float32")
    nodes = [
        helper.make_node("Gemm", ["x", "w0", "b0"], ["h"]),
        helper.make_node("Tanh", ["h"], ["t"]),
        helper.make_node("Gemm", ["t", "w1", "b1"], ["z"]),
    ]
    graph = helper.make_graph(
        nodes,
        "mlp",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["batch", 5])],
        [helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, ["batch", 3])],
        [onnx.numpy_helper.from_array(v, k) for k, v in held.items()],
    )
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9), held


def test_an_onnx_network_is_trained_as_its_function() -> None:
    model, held = perceptron()
    step = irkit.training_step(model, losses.softmax_cross_entropy, SGD(0.3), **OPTIONS)
    some = irkit.training_step(
        model, losses.softmax_cross_entropy, SGD(0.3), parameters=["w1", "b1"], **OPTIONS
    )
    assert [*step.parameters] == [*held]
    assert [*some.parameters] == ["w1", "b1"]
    x, y = batch(9)
    wide = {k: v.astype(np.float64) for k, v in held.items()}
    for n in range(2):
        loss, gradients = by_hand(wide, x.astype(np.float64), y)
        wide = {k: w - 0.3 * gradients[k] for k, w in wide.items()}
        found = some(x, y)
        assert step(x, y) == pytest.approx(loss, rel=1e-5)
        assert n or found == pytest.approx(loss, rel=1e-5)
    for name, array in step.parameters.items():
        np.testing.assert_allclose(array, wide[name], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(step.evaluate(x), mlp(wide, x), rtol=1e-4, atol=1e-5)


# Bad input


def states(step: Any) -> dict[str, np.ndarray]:
    return step.state.arrays()


def same(step: Any, before: dict[str, np.ndarray]) -> None:
    for name, array in step.state.items():
        np.testing.assert_array_equal(array, before[name])


def test_a_label_out_of_bounds_changes_nothing() -> None:
    step = small(Adam())
    x, y = batch(8)
    step(x, y)
    before = states(step)
    y[3] = 3
    with pytest.raises(IndexError, match="out of bounds for 3 classes; the state is as it was"):
        step(x, y)
    same(step, before)
    y[3] = 0
    step(x, y)
    assert step.steps == 2


def logarithm(p: Any, x: Any) -> Any:
    return np.log(x @ p["w"])


def test_a_loss_that_is_not_finite_names_the_op_that_made_it() -> None:
    start = {"w": np.ones((2, 1))}
    step = irkit.training_step(
        logarithm, losses.mean_squared_error, SGD(0.1, momentum=0.5), parameters=start,
        stop_on_nan=True, **OPTIONS,
    )  # fmt: skip
    good, bad, target = np.ones((2, 2)), np.array([[1.0, 1.0], [1.0, -3.0]]), np.zeros((2, 1))
    step(good, target)
    before = states(step)
    line = logarithm.__code__.co_firstlineno + 1
    text = (
        rf"step 2: the loss is nan: the first op that made NaN is graph.log \(.*_step.py:{line}\)"
    )
    with pytest.raises(NotFiniteError, match=text):
        step(bad, target)
    same(step, before)
    with pytest.raises(NotFiniteError, match="'x0' has NaN"):
        step(good * np.nan, target)
    with pytest.raises(
        NotFiniteError, match=r"is inf: the first op that made infinity is graph\.log"
    ):
        step(np.array([[1.0, 1.0], [0.0, 0.0]]), target)
    same(step, before)
    step(good, target)
    assert step.steps == 2


def root(p: Any, x: Any) -> Any:
    return np.sqrt(x @ p["w"])


def product(p: Any, x: Any) -> Any:
    return x @ p["w"]


def test_a_gradient_or_a_new_state_that_is_not_finite_changes_nothing() -> None:
    """Of a loss that is finite; also where clipping would hide the gradient, and where only what the
    optimiser keeps overflows."""
    line = root.__code__.co_firstlineno + 1
    here = rf" is graph\.\w+ \(.*_step\.py:{line}\)"
    apart, zeros, ones = np.array([[1.0, -1.0]]), np.zeros((1, 2)), np.ones((1, 2))
    cases = [
        (root, SGD(0.1, clip_value=1.0), apart, 1.0, f"infinity{here}"),
        (root, SGD(0.1), zeros, 1.0, f"NaN{here}"),
        (product, SGD(1e300), ones, -1e10, r"infinity is graph\.\w+ \("),
        (product, Adagrad(0.1), ones, -9e153, r"infinity is graph\.\w+ \("),
    ]
    for model, optimizer, x, y, text in cases:
        step = irkit.training_step(
            model, losses.mean_squared_error, optimizer, parameters={"w": np.ones((2, 1))},
            stop_on_nan=True, **OPTIONS,
        )  # fmt: skip
        before = states(step)
        with pytest.raises(NotFiniteError, match=f"and a gradient, or what it makes.*{text}"):
            step(x, np.full((1, 1), y))
        same(step, before)
        assert np.isfinite(step(ones, np.full((1, 1), 0.5)))


def test_without_stopping_nan_goes_on() -> None:
    step = irkit.training_step(
        logarithm, losses.mean_squared_error, SGD(0.1), parameters={"w": np.ones((2, 1))}, **OPTIONS
    )
    assert np.isnan(step(-np.ones((2, 2)), np.zeros((2, 1))))
    assert np.isnan(step.parameters["w"]).all()


def test_state_of_another_model(tmp_path: Path) -> None:
    step, path = small(), tmp_path / "state.safetensors"
    before = states(step)
    small(SGD(0.3, momentum=0.9)).save(path)
    with pytest.raises(
        InvalidInputError, match=r"another program: it has 'momentum.b0', .*'momentum.w1'$"
    ):
        step.load(path)
    wider = irkit.training_step(
        mlp,
        losses.softmax_cross_entropy,
        SGD(0.3),
        parameters=layers((5, 8, 3), "float32"),
        **OPTIONS,
    )
    wider.save(path)
    with pytest.raises(InvalidInputError, match=r"'parameters\.\w+' is float32\[.*8.*\], of the"):
        step.load(path)
    small(dtype="float64").save(path)
    with pytest.raises(InvalidInputError, match=r"is float64\[.*\], of the program float32"):
        step.load(path)
    path.write_bytes(b"nothing")
    with pytest.raises(ArtifactError, match="no safetensors file"):
        step.load(path)
    same(step, before)


def vector(p: Any, x: Any) -> Any:
    return x @ p["w0"]


def summed(z: Any, y: Any) -> Any:
    return z.sum()


def constant(z: Any, y: Any) -> Any:
    return 1.0


def several(z: Any, y: Any) -> Any:
    return z.sum(), z


def of_labels(z: Any, y: Any) -> Any:
    return y.sum()


def many(p: Any, *x: Any) -> Any:
    return p


def of_the_host(z: Any, y: Any) -> Any:
    return scipy.special.gamma(z).sum()


def misfit(z: Any, y: Any) -> Any:
    return losses.mean_squared_error(z, y)


ONE = np.ones(1)
START = layers((5, 7, 3), "float32")


def stepped(model: Any, loss: Any, start: Any) -> None:
    """The first step, that fails."""
    step = irkit.training_step(model, loss, SGD(0.1), parameters=start, **OPTIONS)
    x, y = batch(4)
    before = states(step)
    try:
        step(*([x] if loss is None else [x, y]))
    finally:
        same(step, before)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "vector": (
        lambda: stepped(vector, None, {"w0": START["w0"]}),
        r"of 'vector': the loss has shape \[4, 7\]: expected one number",
    ),
    "unused": (
        lambda: stepped(mlp, summed, {**START, "u": np.ones(2)}),
        r"the loss does not hang on parameters.*\n.*'parameters\['u'\]'",
    ),
    "constant": (lambda: stepped(mlp, constant, START), r"is a float that hangs on no parameter"),
    "tuple": (lambda: stepped(mlp, several, START), r"the loss is a tuple"),
    "integer": (lambda: stepped(mlp, of_labels, START), r"only floats have a gradient"),
    "host": (
        lambda: stepped(mlp, of_the_host, START),
        "a function that is differentiated calls one that is not traced: 'scipy.special.gamma'",
    ),
    "scheduled by the host": (
        lambda: stepped_by(SGD(lambda n: scipy.special.gamma(n.astype(np.float64)))),
        "a step of training calls 'scipy.special.gamma', which is not traced",
    ),
    "of the loss itself": (
        lambda: stepped(mlp, misfit, START),
        r"^mean_squared_error: targets \[4\] for outputs \[4, 3\]",
    ),
    "complex": (lambda: created({"w": np.ones(3) + 1j}), "'parameters.w' is of complex128"),
    "integers": (lambda: created({"w": np.arange(3)}), r"'parameters.w' is of int64: only floats"),
    "number": (lambda: created({"w": 1.0}), r"'parameters.w' is a float: expected an array"),
    "none": (lambda: created({}), r"there are no parameters"),
    "twice": (lambda: created({"a.b": ONE, "a": {"b": ONE}}), r"two arrays have the path"),
    "start": (lambda: created(None), r"parameters= has the first values"),
    "model": (lambda: created(ONE, 3), r"of int: expected a function or an ONNX model"),
    "optimizer": (lambda: created(ONE, mlp, "sgd"), r"optimizer of str"),
    "arguments": (lambda: created(ONE, many), r"\*arguments"),
}


def created(parameters: Any, model: Any = mlp, optimizer: Any = None) -> Any:
    optimizer = optimizer or SGD(0.1)
    return irkit.training_step(model, None, optimizer, parameters=parameters, **OPTIONS)


def stepped_by(optimizer: Any) -> None:
    irkit.training_step(lambda p, x: (x * p).sum(), None, optimizer, parameters=ONE, **OPTIONS)(ONE)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    make, text = REFUSED[name]
    with pytest.raises(UnsupportedError, match=text):
        make()


def test_calls_with_too_few_arrays() -> None:
    step = small()
    with pytest.raises(
        InvalidInputError, match=r"expected 1 inputs and what the loss takes, got 0"
    ):
        step()
    x, y = batch(4)
    with pytest.raises(InvalidInputError, match=r"the loss is called with 1 arrays.*missing a"):
        step(x)
    with pytest.raises(InvalidInputError, match=r"the loss is called with 3 arrays.*too many"):
        step(x, y, y)
    with pytest.raises(InvalidModelError, match="was not trained yet"):
        step.report()
