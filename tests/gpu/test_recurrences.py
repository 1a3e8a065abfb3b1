"""Recurrent layers of several rows on a GPU, in every mode, against float64."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper

import irkit
from benchmarks.models import lstm_stack
from irkit.runtime.cuda.availability import why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

LIMIT = 2e-5


def shapes() -> list[tuple[int, ...]]:
    """Layers, hidden units, inputs, steps, rows: units that are no multiple of four, odd rows."""
    choose = random.Random(5)
    found = [(2, 256, 256, 5, rows) for rows in (2, 4, 16, 33)]
    for _ in range(8):
        units, inputs = choose.choice([(24, 40), (33, 64), (128, 20), (100, 100)])
        found.append(
            (choose.randint(1, 3), units, inputs, choose.randint(2, 6), choose.randint(2, 70))
        )
    return found


def reference(model: ModelProto, x: Any) -> Any:
    """All hidden states of the last layer, in float64."""
    weights = {i.name: numpy_helper.to_array(i).astype(np.float64) for i in model.graph.initializer}
    y = x.astype(np.float64)
    for node in (n for n in model.graph.node if n.op_type == "LSTM"):
        w, r, b = (weights[name][0] for name in node.input[1:4])
        first, second = np.split(b, 2)
        h, c, out = np.zeros((1, r.shape[1])), np.zeros((1, r.shape[1])), list[Any]()
        for step in y:
            i, o, f, g = np.split(step @ w.T + h @ r.T + first + second, 4, axis=1)
            c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
            h = np.tanh(c) / (1 + np.exp(-o))
            out.append(h)
        y = np.stack(out)
    return y


@pytest.mark.parametrize("mode", ["per-op", "per-wave", "persistent"])
@pytest.mark.parametrize("shape", shapes(), ids=str)
def test_a_stack_of_several_rows(shape: tuple[int, ...], mode: str) -> None:
    layers, hidden, inputs, steps, rows = shape
    model = lstm_stack(layers, hidden, inputs, steps, rows)
    x = np.random.default_rng(rows).standard_normal((steps, rows, inputs)).astype(np.float32)
    program = irkit.compile(model, target="cuda", mode=mode)
    got = program(x)[0]
    np.testing.assert_allclose(np.asarray(got), reference(model, x), rtol=LIMIT, atol=LIMIT)


def test_weights_are_read_once_for_all_rows() -> None:
    program = irkit.compile(lstm_stack(2, 256, 256, 5, 16), target="cuda")
    used = {op["rkernel"] for op in program.report()["roperators"].values()}
    assert "recurrent_cell.two_terms_rows16" in used
