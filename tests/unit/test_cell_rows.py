"""Recurrent layers cut by rows on a GPU: no step waits, weights stay, and the kernels compute the layer."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from emulated_loops import Emulated
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

pytest.importorskip("numba_cuda")

import irkit
from irkit.runtime.cuda import compiling, ptx
from irkit.runtime.cuda.facts import read_facts
from irkit.schedule import devices
from irkit.schedule.devices import device

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
STEPS = 3


def layer(kind: str, units: int, rows: int, direction: str = "forward", **more: int) -> ModelProto:
    """One recurrent layer of 8 inputs with all its hidden states."""
    random, gates = np.random.default_rng(units), GATES[kind]
    both = 2 if direction == "bidirectional" else 1
    shapes = {"w": (both, gates * units, 8), "r": (both, gates * units, units)}
    shapes["b"] = (both, 2 * gates * units)
    weights = {n: random.standard_normal(s) / np.sqrt(s[-1]) for n, s in shapes.items()}
    node = helper.make_node(
        kind, ["x", "w", "r", "b"], ["y"], hidden_size=units, direction=direction, **more
    )
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, (STEPS, rows, 8))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, (STEPS, both, rows, units))
    stored = [numpy_helper.from_array(a.astype(np.float32), n) for n, a in weights.items()]
    graph = helper.make_graph([node], "layer", [x], [y], stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def register(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU of few multiprocessors."""
    made = replace(device("h200"), name="gpu4", veus=4, multiprocessors=4)
    monkeypatch.setitem(devices._REGISTRY, "gpu4", lambda: made)


def compiled(model: ModelProto, name: str = "h200") -> Any:
    return irkit.compile(model, target="cuda", device=name, cache=False)


def cells(program: Any) -> list[str]:
    """The lines that append a cell, in order."""
    lines = program.ir("schedule").splitlines()
    return [line for line in lines if "task.append @recurrent_cell" in line]


def used(program: Any) -> set[str]:
    names = re.findall(r'@recurrent_cell\w*\(.*rkernel = "([^"]*)"', program.ir("schedule"))
    return set(names)


@pytest.mark.parametrize(
    ("kind", "units", "rows"),
    [("LSTM", 64, 32), ("LSTM", 100, 5), ("GRU", 128, 8), ("GRU", 64, 300), ("RNN", 200, 7)],
)
def test_no_step_waits_for_another(kind: str, units: int, rows: int) -> None:
    more = {"linear_before_reset": 1} if kind == "GRU" else {}
    program = compiled(layer(kind, units, rows, **more))
    found = cells(program)
    assert len(found) == STEPS
    assert all(name.startswith("cell_rows.") for name in used(program))
    # One waits for the input's product, and brings it all along.
    assert sum("wait(" in line for line in found) <= 1
    assert not any("carried" in line for line in found)
    # Also of 128 units, whose weights lie where the product before them had its scratch.
    assert all("resident [1 at 0" in line for line in found)


def test_both_directions_have_vEUs_of_their_own() -> None:
    found = cells(compiled(layer("LSTM", 64, 8, "bidirectional")))
    assert {line.split(" to ")[1].split()[0] for line in found} == {"[0:7]", "[8:15]"}
    assert sum("wait(" in line for line in found) <= 2


def test_weights_that_have_no_room_are_shared_out() -> None:
    assert not any(n.startswith("cell_rows") for n in used(compiled(layer("LSTM", 128, 8))))
    # Neither 64 KiB where a block has 48.
    small = replace(device("h200"), name="small", shared_bytes=48 * 1024)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(devices._REGISTRY, "small", lambda: small)
        program = compiled(layer("LSTM", 64, 8), "small")
    assert not any(n.startswith("cell_rows") for n in used(program))


CASES = [
    ("LSTM", 12, 5, "forward", {}),
    ("LSTM", 5, 3, "bidirectional", {}),
    ("GRU", 16, 7, "forward", {"linear_before_reset": 1}),
    ("GRU", 9, 6, "reverse", {}),
    ("RNN", 4, 5, "forward", {}),
]


@pytest.mark.parametrize("mode", ["persistent", "per-op"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_kernels_compute_the_layer(
    monkeypatch: pytest.MonkeyPatch, case: tuple[Any, ...], mode: str
) -> None:
    kind, units, rows, direction, more = case
    register(monkeypatch)
    model = layer(kind, units, rows, direction, **more)
    program = compiled(model, "gpu4")
    assert any(name.startswith("cell_rows.") for name in used(program))
    weights = program._variants["float32"].artifact.weights
    run = Emulated(monkeypatch, program.source, weights, mode, units)
    for scale in (1, -2):
        x = np.random.default_rng(rows).standard_normal((STEPS, rows, 8)).astype(np.float32)
        x *= np.float32(scale)
        want = ReferenceEvaluator(model).run(None, {"x": x})[0]
        np.testing.assert_allclose(run(x)[0], want, rtol=2e-4, atol=2e-5)


CHANGES = {
    "when it is copied": (
        "if number == keeping:\n            # Noth",
        "if False:\n            # Noth",
    ),
    "that it has arrived": (
        "        if number == keeping:\n            cp_async_wait()\n",
        "",
    ),
    "whose it is": ("[2 * veu + 1]", "[1]"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_changed_walker_shows(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    register(monkeypatch)
    program = compiled(layer("LSTM", 12, 5), "gpu4")
    weights = program._variants["float32"].artifact.weights
    old, new = CHANGES[what]
    assert program.source.count(old) == 1
    x = np.random.default_rng(3).standard_normal((STEPS, 5, 8)).astype(np.float32)
    right = Emulated(monkeypatch, program.source, weights, "persistent", 0)(x)[0]
    changed = program.source.replace(old, new)
    try:
        wrong = Emulated(monkeypatch, changed, weights, "persistent", 0)(x)[0]
    except Exception:
        return
    assert not np.array_equal(right, wrong)


@pytest.mark.parametrize(("kind", "units", "rows"), [("LSTM", 64, 32), ("GRU", 128, 300)])
def test_the_compiled_cell_reads_shared_memory_in_fours(kind: str, units: int, rows: int) -> None:
    more = {"linear_before_reset": 1} if kind == "GRU" else {}
    source = compiled(layer(kind, units, rows, **more)).source
    entries = read_facts(source)[1].entries
    found = compiling.compile_module_with_ptx(source, entries, 256, "sm_90a")
    assert "ld.shared.v4.f32" in ptx.functions(found.ptx)["persistent"]
    assert ptx.forbidden_forms(found.ptx) == []
    assert all(r["spill_stores"] == r["stack"] == 0 for r in found.resources().values())
