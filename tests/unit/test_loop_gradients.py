"""Gradients of recurrences, which are loops forward and back: random cells, layers, what leaves the loops."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from jitted import interpreted
from test_gradients import derived, ran

import irkit
from irkit.context import IrkitContext
from irkit.dialects import graph
from irkit.dialects.loops import body_of, is_loop
from irkit.dialects.types import tensor_type
from irkit.driver.files.parsing import parse_module
from irkit.driver.registry import register_dialects
from irkit.frontends.module import ImportedModel
from irkit.model_info import ModelInfo
from irkit.passes.graph.differentiation import Differentiation, recurrences
from irkit.training import losses, optimizers

STEPS, ROWS, INPUTS, HIDDEN = 7, 3, 2, 4


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


class Cell:
    """A random recurrence of one to three states: products of rows of x and of states, in either direction of
    time, along either dimension; what is differentiated is of all states, of the last, or of both."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.rng, self.count = rng, int(rng.integers(1, 4))
        self.backwards, self.second = bool(rng.integers(2)), bool(rng.integers(2))
        self.all, self.last = [(True, False), (False, True), (True, True)][rng.integers(3)]
        self.lines = [self._line(n) for n in range(self.count)]
        self.as_columns = bool(rng.integers(3) == 0)
        self.held = {
            "w": rng.standard_normal((INPUTS, HIDDEN)),
            "r": rng.standard_normal((HIDDEN, 2 * HIDDEN)) / 2,
            "b": rng.standard_normal(HIDDEN),
            "p": rng.standard_normal(HIDDEN),
            **{f"s{n}": rng.standard_normal((ROWS, HIDDEN)) for n in range(self.count)},
        }
        shape = (ROWS, STEPS, INPUTS) if self.second else (STEPS, ROWS, INPUTS)
        self.x = rng.standard_normal(shape)

    def _line(self, number: int) -> Callable[..., Any]:
        """What a state becomes of the others."""
        kind, other = int(self.rng.integers(6)), int(self.rng.integers(self.count))

        def line(p: Any, given: Any, s: list[Any]) -> Any:
            a, b = s[number], s[other]
            product = b @ p["r"]
            gates = product[:, :HIDDEN], product[:, HIDDEN:]
            match kind:
                case 0:
                    return np.tanh(given + gates[0] + p["b"])
                case 1:
                    z = sigmoid(gates[1] + p["p"] * a)
                    return z * a + (1 - z) * np.tanh(given + gates[0])
                case 2:
                    return sigmoid(gates[0]) * a + sigmoid(gates[1]) * np.tanh(given)
                case 3:
                    return np.maximum(given, 0.1 * a) + np.sin(b) * p["p"]
                case 4:
                    return np.tanh((sigmoid(gates[0]) * b) @ p["r"][:, :HIDDEN] + given)
                case _:
                    return a - 0.1 * np.tanh(gates[1] - gates[0]) + p["b"] * given

        return line

    def function(self) -> Callable[..., Any]:
        """Of parameters and inputs."""
        cell = self

        def total(p: Any, x: Any) -> Any:
            s = [p[f"s{n}"] for n in range(cell.count)]
            y = np.zeros((STEPS, ROWS, HIDDEN))
            for n in range(STEPS):
                t = STEPS - 1 - n if cell.backwards else n
                row = x[:, t] if cell.second else x[t]
                given = (p["w"].T @ row.T).T if cell.as_columns else row @ p["w"]
                s = [line(p, given, s) for line in cell.lines]
                if cell.all:
                    y[t] = s[0]
            found = (y * y).sum() / 3
            for v in s if cell.last else []:
                found = found + np.sin(v).sum()
            return found

        return total


def along(function: Callable[..., Any], p: Any, x: Any, way: Any) -> float:
    """How much a number changes with parameters, by central differences."""
    ends = [function({k: v + h * way[k] for k, v in p.items()}, x) for h in (1e-6, -1e-6)]
    return float(ends[0] - ends[1]) / 2e-6


@pytest.mark.parametrize("seed", range(24))
def test_random_cells(seed: int) -> None:
    cell = Cell(seed)
    rng = np.random.default_rng(seed)
    way = {k: rng.standard_normal(v.shape) for k, v in cell.held.items()}
    function = cell.function()
    gradient = irkit.grad(function, allow_unused=True)
    found = interpreted(gradient.__wrapped__)(cell.held, cell.x)
    want = along(function, cell.held, cell.x, way)
    got = sum(float((found[k] * way[k]).sum()) for k in way)
    np.testing.assert_allclose(got, want, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("seed", [3, 11])
def test_random_cells_that_are_compiled(seed: int) -> None:
    """As the interpreter has them, in one proved program."""
    cell = Cell(seed)
    gradient = irkit.value_and_grad(cell.function(), allow_unused=True, target="cpu", cache=False)
    value, found = gradient(cell.held, cell.x)
    want, wanted = interpreted(gradient.__wrapped__)(cell.held, cell.x)
    np.testing.assert_allclose(value, want, rtol=1e-11)
    for name, array in wanted.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-9, atol=1e-11)
    assert gradient.report()["proved"]


# Layers of ONNX's, and what is made of them.

LAYERS = {"lstm": (4, 4, 2), "gru": (3, 4, 1), "rnn": (1, 1, 1)}
"""Gates, biases and states."""


def layer(name: str, steps: int, facts: str = "", peepholes: bool = False) -> ImportedModel:
    """A function of x, states, w, r and b, whose results are all states and the last ones."""
    gates, biases, states = LAYERS[name]
    state = f"tensor<{ROWS}x{HIDDEN}xf64>"
    shapes = [f"{steps}x{ROWS}x{INPUTS}", *[f"{ROWS}x{HIDDEN}"] * states]
    shapes += [f"{gates * HIDDEN}x{INPUTS}", f"{gates * HIDDEN}x{HIDDEN}", f"{biases * HIDDEN}"]
    shapes += [f"{3 * HIDDEN}"] if peepholes else []
    types = [f"tensor<{s}xf64>" for s in shapes]
    names = [f"%a{n}" for n in range(len(types))]
    given = ", ".join(f"{n}: {t}" for n, t in zip(names, types, strict=True))
    results = ", ".join([f"tensor<{steps}x{ROWS}x{HIDDEN}xf64>", *[state] * states])
    made = ", ".join(f"%y{n}" for n in range(1 + states))
    return parsed(
        f"func.func @main({given}) -> ({results}) {{\n"
        f"{made} = graph.{name} {', '.join(names)} {facts} : ({', '.join(types)}) -> ({results})\n"
        f"func.return {made} : {results}\n}}"
    )


def parsed(text: str) -> ImportedModel:
    ctx = IrkitContext()
    register_dialects(ctx)
    return ImportedModel(parse_module(ctx, text, "test"), ctx.weights, ModelInfo("network", (), ()))


def loops_in(model: ImportedModel) -> list[Any]:
    return [op for op in model.module.walk() if is_loop(op)]


KINDS = {
    "lstm": partial(layer, "lstm"),
    "lstm in reverse": partial(layer, "lstm", facts="{reverse = true}"),
    "lstm with peepholes": partial(layer, "lstm", peepholes=True),
    "gru": partial(layer, "gru", facts="{linear_before_reset = true}"),
    "gru, reset first": partial(
        layer, "gru", facts="{linear_before_reset = false, reverse = true}"
    ),
    "rnn": partial(layer, "rnn", facts='{activations = ["softsign"]}'),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("of", ["all", "last"])
def test_layers_as_loops_are_their_steps(
    kind: str, of: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results, gradients and tangents, to rounding."""
    model, rng = KINDS[kind](11), np.random.default_rng(3)
    main = next(op for op in model.module.ops)
    arrays = [rng.standard_normal(tensor_type(a).get_shape()) for a in main.body.block.args]
    wrt, seeded = tuple(range(len(arrays))), (0, 1) if of == "all" else (1,)
    results = ran(model, arrays)
    found: list[list[np.ndarray]] = []
    for most in (8, 11):
        monkeypatch.setattr(recurrences, "WRITTEN_OUT", most)
        back = derived(model, Differentiation("reverse", wrt, seeded))
        ahead = derived(model, Differentiation("forward", wrt, seeded))
        assert [len(loops_in(m)) for m in (back, ahead)] == ([2, 1] if most < 11 else [0, 0])
        rng = np.random.default_rng(4)
        ct = [rng.standard_normal(results[n].shape) for n in seeded]
        ways = [rng.standard_normal(a.shape) for a in arrays]
        found.append([*ran(back, [*arrays, *ct]), *ran(ahead, [*arrays, *ways])])
    for looped, written in zip(*found, strict=True):
        np.testing.assert_allclose(looped, written, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("steps", "loops"), [(1, 0), (32, 0), (33, 2), (500, 2)])
def test_few_steps_are_written_out(steps: int, loops: int) -> None:
    """And how many ops there are does not hang on the steps of a loop."""
    made = derived(layer("lstm", steps), Differentiation("reverse", (0, 3, 4), (0,)))
    assert len(loops_in(made)) == loops
    assert not loops or len(list(made.module.walk())) < 160


def test_a_layer_that_is_not_trained_stays() -> None:
    made = derived(layer("lstm", 40), Differentiation("reverse", (), (), allow_unused=True))
    assert any(isinstance(op, graph.LstmOp) for op in made.module.walk())


def test_products_of_all_steps_leave_the_loops() -> None:
    """Of the input before the one forward, and the gradients of weights behind the one back, which reads what
    was kept: what carries h and c computes no gates anew."""
    steps = 40
    made = derived(layer("lstm", steps), Differentiation("reverse", (0, 3, 4, 5), (1,)))
    forward, back = loops_in(made)
    of_loop = [
        [o for o in body_of(op).ops if isinstance(o, graph.GemmOp)] for op in (forward, back)
    ]
    assert [len(products) for products in of_loop] == [1, 1]
    inside = {id(o) for op in (forward, back) for o in op.walk()}
    outside = [
        tensor_type(op.results[0]).get_shape()
        for op in made.module.walk()
        if isinstance(op, graph.GemmOp) and id(op) not in inside
    ]
    assert sorted(outside) == sorted(
        [
            (steps * ROWS, 4 * HIDDEN),  # gates of the input
            (steps * ROWS, INPUTS),  # x
            (4 * HIDDEN, INPUTS),  # w
            (4 * HIDDEN, HIDDEN),  # r
        ]
    )
    # Nothing of a weight's shape goes round, and all states go nowhere: nobody reads them.
    carried = [tensor_type(v).get_shape() for v in back.results]
    assert (4 * HIDDEN, HIDDEN) not in carried
    assert (steps, ROWS, 2 * HIDDEN) not in carried


def test_what_is_read_at_its_place_is_added_there() -> None:
    """The cotangent of an array that a loop reads row by row is written row by row, none of it at once."""
    text = """func.func @main(%x: tensor<40x3xf64>, %s: tensor<1x3xf64>) -> tensor<1x3xf64> {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c39 = arith.constant 39 : index
      %r = scf.for %i = %c0 to %c39 step %c1 iter_args(%h = %s) -> (tensor<1x3xf64>) {
        %j = arith.addi %i, %c1 : index
        %0 = tensor.extract_slice %x[%i, 0] [1, 3] [1, 1] : tensor<40x3xf64> to tensor<1x3xf64>
        %1 = tensor.extract_slice %x[%j, 0] [1, 3] [1, 1] : tensor<40x3xf64> to tensor<1x3xf64>
        %2 = graph.mul %0, %h : (tensor<1x3xf64>, tensor<1x3xf64>) -> tensor<1x3xf64>
        %3 = graph.add %1, %2 : (tensor<1x3xf64>, tensor<1x3xf64>) -> tensor<1x3xf64>
        %4 = graph.tanh %3 : (tensor<1x3xf64>) -> tensor<1x3xf64>
        scf.yield %4 : tensor<1x3xf64>
      }
      func.return %r : tensor<1x3xf64>
    }"""
    made = derived(parsed(text), Differentiation("reverse", (0, 1), (0,)))
    _, back = loops_in(made)
    values = [
        tensor_type(v) for o in body_of(back).ops if o.name.startswith("graph.") for v in o.results
    ]
    assert max(int(np.prod(t.get_shape())) for t in values) == 3


# Steps of training, whose state is that of a program with loops.


def recurrent(p: Any, x: Any) -> Any:
    h = c = np.zeros((ROWS, HIDDEN))
    for t in range(STEPS):
        gates = x[t] @ p["w"] + h @ p["r"]
        i, f, g = (gates[:, n * HIDDEN : (n + 1) * HIDDEN] for n in range(3))
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = np.tanh(c)
    return h @ p["v"]


def start() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    return {
        "w": rng.standard_normal((INPUTS, 3 * HIDDEN)),
        "r": rng.standard_normal((HIDDEN, 3 * HIDDEN)) / 2,
        "v": rng.standard_normal((HIDDEN, 2)),
    }


def trained(p: dict[str, np.ndarray], x: Any, y: Any, rate: float) -> float:
    """A step of gradient descent, by differences along each element; the loss before it."""

    def loss(held: Any) -> float:
        return float(((recurrent(held, x) - y) ** 2).mean())

    before, moved = loss(p), {}
    for name, array in p.items():
        gradient = np.zeros_like(array)
        for place in np.ndindex(array.shape):
            ends = []
            for h in (1e-6, -1e-6):
                other = array.copy()
                other[place] += h
                ends.append(loss({**p, name: other}))
            gradient[place] = (ends[0] - ends[1]) / 2e-6
        moved[name] = array - rate * gradient
    p.update(moved)
    return before


def test_a_step_with_loops_keeps_its_state(tmp_path: Any) -> None:
    rng, held = np.random.default_rng(6), start()
    made = irkit.training_step(
        recurrent,
        losses.mean_squared_error,
        optimizers.SGD(0.2),
        parameters=start(),
        target="cpu",
        cache=False,
    )
    batches = [
        (rng.standard_normal((STEPS, ROWS, INPUTS)), rng.standard_normal((ROWS, 2)))
        for _ in range(4)
    ]
    for x, y in batches[:3]:
        np.testing.assert_allclose(made(x, y), trained(held, x, y, 0.2), rtol=1e-6)
    made.save(tmp_path / "state.safetensors")
    last = float(made(*batches[3]))
    made.load(tmp_path / "state.safetensors")
    assert float(made(*batches[3])) == last
    assert made.steps == 4
    assert made.report()["proved"]
    assert "task.repeat" in made.ir("schedule")


def scan(x: Any, a: Any) -> Any:
    y = np.zeros_like(x)
    y[0] = x[0]
    for t in range(1, 60):
        y[t] = np.tanh(y[t - 1] * a + x[t])
    return (y * y).sum()


def test_of_arrays_that_are_read_in_parts_these_are_kept() -> None:
    """What is kept of all rounds grows as the rounds do, not as their square."""
    x, a = np.random.default_rng(8).standard_normal((60, 5)), np.full(5, 0.7)
    made = interpreted(irkit.grad(scan, (0, 1)).__wrapped__)
    found = made(x, a)
    way = np.random.default_rng(9).standard_normal((60, 5))
    ends = [scan(x + h * way, a) for h in (1e-6, -1e-6)]
    np.testing.assert_allclose((found[0] * way).sum(), (ends[0] - ends[1]) / 2e-6, rtol=1e-6)
    ends = [scan(x, a + h) for h in (1e-6, -1e-6)]
    np.testing.assert_allclose(found[1].sum(), (ends[0] - ends[1]) / 2e-6, rtol=1e-6)
    shapes = re.findall(r"<((?:\d+x)*\d+)xf64", made.ir("program"))
    assert max(int(np.prod([int(n) for n in shape.split("x")])) for shape in shapes) == 60 * 5
