"""Steps that train recurrent cells, planned for a GPU: what they compute, and in how few launches.

Of steps that a trace writes out; a loop of a function stays one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from irkit import training_step
from irkit.context import IrkitContext
from irkit.dialects import graph
from irkit.dialects.task import LaunchOp
from irkit.dialects.types import tensor_type
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.frontends.module import ImportedModel
from irkit.interp import run_module
from irkit.training import losses, optimizers
from irkit.training.traced import TracedProgram

ROWS, INPUTS, HIDDEN, OUTPUTS = 16, 5, 64, 3


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def lstm(p: Any, x: Any, state: Any) -> Any:
    h, c = state
    gates = x @ p["w"] + h @ p["r"] + p["b"]
    i, f, o, g = (gates[:, n * HIDDEN : (n + 1) * HIDDEN] for n in range(4))
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru(p: Any, x: Any, state: Any) -> Any:
    (h,) = state
    given, own = x @ p["w"], h @ p["r"]
    z = sigmoid(given[:, :HIDDEN] + own[:, :HIDDEN])
    r = sigmoid(given[:, HIDDEN : 2 * HIDDEN] + own[:, HIDDEN : 2 * HIDDEN])
    n = np.tanh(given[:, 2 * HIDDEN :] + r * own[:, 2 * HIDDEN :])
    return ((1 - z) * n + z * h,)


def plain(p: Any, x: Any, state: Any) -> Any:
    (h,) = state
    return (np.tanh(x @ p["w"] + h @ p["r"] + p["b"]),)


CELLS: dict[str, tuple[Callable[..., Any], int, int]] = {
    "lstm": (lstm, 4, 2),
    "gru": (gru, 3, 1),
    "plain": (plain, 1, 1),
}
"""The cell, how many gates it has, and states."""


def traced(name: str, steps: int, dtype: Any = np.float64) -> tuple[ImportedModel, list[Any]]:
    """A step of training at the graph level, and arrays for it: the state and the inputs."""
    cell, gates, states = CELLS[name]
    rng = np.random.default_rng(0)
    parameters = {
        "w": rng.standard_normal((INPUTS, gates * HIDDEN)) / 3,
        "r": rng.standard_normal((HIDDEN, gates * HIDDEN)) / 8,
        "b": rng.standard_normal(gates * HIDDEN),
        "v": rng.standard_normal((HIDDEN, OUTPUTS)),
    }

    def model(p: Any, x: Any) -> Any:
        start = tuple(np.zeros((ROWS, HIDDEN), dtype) for _ in range(states))
        state = reduce(lambda held, t: cell(p, x[t], held), range(steps), start)
        return state[0] @ p["v"]

    if name == "gru":
        del parameters["b"]
    parameters = {key: array.astype(dtype) for key, array in parameters.items()}
    x = rng.standard_normal((steps, ROWS, INPUTS)).astype(dtype)
    y = rng.standard_normal((ROWS, OUTPUTS)).astype(dtype)
    made = training_step(
        model, losses.mean_squared_error, optimizers.SGD(0.1), parameters=parameters, target="cpu"
    )
    held = made._live.arrays()
    program = TracedProgram(made._update.function(), held, [x, y], ["x", "y"])
    return program.graph(), [*held.values(), x, y]


def planned(found: ImportedModel, level: str, device: str = "h200") -> ModuleOp:
    """The module brought to a level, in place."""
    ctx = IrkitContext(weights=found.weights)
    register_dialects(ctx)
    for each in ("graph", "tensor", "task"):
        run_level(ctx, found.module, each, device)
        if each == level:
            return found.module
    raise AssertionError(level)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("level", ["graph", "task"])
@pytest.mark.parametrize("name", CELLS)
def test_a_step_planned_for_a_gpu_computes_what_it_did(name: str, level: str, dtype: Any) -> None:
    exact, wide = traced(name, 5)
    want = run_module(exact.module, exact.weights, wide)
    found, given = traced(name, 5, dtype)
    got = run_module(planned(found, level), found.weights, given)
    rtol, atol = (1e-9, 1e-11) if dtype == np.float64 else (1e-4, 1e-5)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


@pytest.mark.parametrize("name", CELLS)
def test_weights_have_one_product_for_all_steps(name: str) -> None:
    """Of the inputs forward, and for the gradient of each weight; inputs are read as they lie."""
    _, gates, _ = CELLS[name]
    found, _ = traced(name, 6)
    module = planned(found, "graph")
    of_inputs = [
        op
        for op in module.walk()
        if isinstance(op, graph.MatmulOp | graph.GemmOp | graph.ExpressionOp)
        and INPUTS in {n for v in op.operands for n in tensor_type(v).get_shape()}
    ]
    shapes = [tensor_type(op.results[0]).get_shape() for op in of_inputs]
    assert sorted(shapes) == sorted([(6 * ROWS, gates * HIDDEN), (INPUTS, gates * HIDDEN)])
    concats = [op for op in module.walk() if isinstance(op, graph.ConcatOp)]
    rows = [tensor_type(op.results[0]).get_shape() for op in concats]
    # Gates' gradients, of a GRU those of both products; of a plain cell the states are of that shape too.
    assert rows.count((6 * ROWS, gates * HIDDEN)) == {"lstm": 1, "gru": 2, "plain": 2}[name]
    assert (6 * ROWS, INPUTS) not in rows


def launches(name: str, steps: int, dtype: Any) -> int:
    module = planned(traced(name, steps, dtype)[0], "task")
    return sum(isinstance(op, LaunchOp) for op in module.walk())


@pytest.mark.parametrize(
    ("name", "dtype", "most"),
    [("lstm", np.float64, 6), ("lstm", np.float32, 4), ("plain", np.float64, 2)],
)
def test_a_step_of_time_is_few_launches(name: str, dtype: Any, most: int) -> None:
    """Forward a product and what is done with it, back the same, which of float32 is one launch, and gates'
    gradients put side by side."""
    assert launches(name, 9, dtype) - launches(name, 8, dtype) <= most


def test_the_gates_of_an_lstm_are_one_launch() -> None:
    module = planned(traced("lstm", 6)[0], "task")
    results = [len(op.results) for op in module.walk() if isinstance(op, LaunchOp)]
    # Four gates, the state, its tangent and what the cell gives; the last state is read by nothing.
    assert sum(count >= 6 for count in results) == 6
