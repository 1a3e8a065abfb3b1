"""Networks in float16 and bfloat16 on a GPU, in every mode, against the meaning of the graph."""

from __future__ import annotations

import numpy as np
import pytest

import irkit
from irkit.frontends.onnx import import_onnx
from irkit.interp.graph import run_graph
from irkit.runtime.cuda.availability import why_not
from tests.unit.half_networks import HALVES, NETWORKS, build, draw

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
MODES = ("per-op", "per-wave", "persistent")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_answers_as_its_meaning(name: str, half: str, mode: str) -> None:
    model = build(name, half)
    imported = import_onnx(model)
    program = irkit.compile(model, target="cuda", mode=mode)
    unit = 2.0**-10 if half == "float16" else 2.0**-7
    for rows in (1, 5):
        x = draw(model, half, rows)
        (want,) = run_graph(imported.module, imported.weights, [x])
        got = np.asarray(program(x))
        assert got.dtype == HALVES[half]
        error = np.abs(got.astype(np.float64) - want.astype(np.float64)).max()
        assert error <= 3 * unit * max(1.0, np.abs(want.astype(np.float64)).max())
