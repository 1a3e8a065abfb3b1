"""`hoist-input-terms` on LSTM, GRU and RNN layers: what leaves the time loop, against ONNX Runtime."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from onnx import ModelProto
from xdsl.dialects.builtin import ModuleOp

import irkit
from benchmarks.models import lstm_stack
from benchmarks.models.onnx_model import OnnxModel
from irkit.context import IrkitContext
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.frontends.onnx import import_onnx
from irkit.interp import run_module
from irkit.passes.tensor import hoist_input_terms
from irkit.remarks import Record, recording

onnxruntime = pytest.importorskip("onnxruntime")

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
LIMIT = 2e-5


@pytest.fixture(autouse=True)
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights of tests are few: they are not to stay in the steps for that."""
    monkeypatch.setattr(hoist_input_terms, "CACHED", 0)


def layers_of(
    kind: str, direction: str, layers: int, sizes: tuple[int, int, int], rows: int | None,
    *, before_reset: int = 0, lengths: bool = False, peepholes: bool = False,
) -> ModelProto:  # fmt: skip
    """x[steps, rows, inputs] → y, layers of (steps, inputs, hidden); rows None is an open batch."""
    steps, inputs, hidden = sizes
    m = OnnxModel("layers", 0)
    count, gates, x = 2 if direction == "bidirectional" else 1, GATES[kind], "x"
    more = {"linear_before_reset": before_reset} if kind == "GRU" else {}
    for n in range(layers):
        names = [
            m.weight(f"W{n}", count, gates * hidden, inputs, scale=0.5),
            m.weight(f"R{n}", count, gates * hidden, hidden, scale=0.5),
            m.weight(f"B{n}", count, 2 * gates * hidden, scale=0.5),
        ]
        if lengths:
            array = np.arange(rows or 1, dtype=np.int32) % steps + 1
            names += [m.array(f"l{n}", array)]
        if peepholes:
            names += [""] * (7 - 1 - len(names)) + [m.weight(f"P{n}", count, 3 * hidden, scale=0.5)]
        y = m.then(kind, x, *names, hidden_size=hidden, direction=direction, **more)
        y = m.then("Transpose", y, perm=[0, 2, 1, 3])
        x, inputs = m.then("Reshape", y, m.integers(0, 0, -1)), count * hidden
    m.node("Identity", [x], "y")
    batch = rows or "batch"
    return m.finish({"x": [steps, batch, sizes[1]]}, {"y": [steps, batch, count * hidden]})


def at_level(model: ModelProto, last: str, device: str) -> tuple[ModuleOp, IrkitContext, Record]:
    """The network after the standard passes to a level, and what they said."""
    imported, record = import_onnx(model), Record()
    context = IrkitContext(weights=imported.weights)
    register_dialects(context)
    for level in ("graph", "tensor", "task"):
        with recording(record):
            run_level(context, imported.module, level, device)
        if level == last:
            break
    return imported.module, context, record


def hoisted(model: ModelProto, device: str) -> tuple[int, set[str]]:
    """How many terms left the steps, and why others did not."""
    _, _, record = at_level(model, "tensor", device)
    mine = {r: n for r, n in record.remarks.items() if r.rule == hoist_input_terms.RULE}
    kinds: Counter[str] = Counter()
    for remark, count in mine.items():
        kinds[remark.kind] += count
    return kinds["applied"], {r.text for r in mine if r.kind == "missed"}


def wanted(model: ModelProto, x: np.ndarray) -> np.ndarray:
    """ONNX Runtime's answer."""
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(["y"], {"x": x})[0]


@settings(max_examples=16, deadline=None, derandomize=True, phases=[Phase.generate])
@given(
    st.sampled_from(sorted(GATES)),
    st.sampled_from(["forward", "reverse", "bidirectional"]),
    st.integers(1, 2),
    st.tuples(st.integers(1, 5), st.integers(1, 6), st.integers(1, 5)),
    st.sampled_from([None, 1, 2, 5]),
    st.sampled_from(["cpu1", "cpu2", "h200"]),
    st.integers(0, 7),
)
def test_every_level_computes_what_onnx_runtime_does(
    kind: str, direction: str, layers: int, sizes: tuple[int, int, int], rows: int | None,
    device: str, options: int,
) -> None:  # fmt: skip
    more = {
        "before_reset": options & 1,
        "lengths": bool(options & 2) and rows is not None,
        "peepholes": bool(options & 4) and kind == "LSTM",
    }
    if more["peepholes"]:
        more["lengths"] = False
    model = layers_of(kind, direction, layers, sizes, rows, **more)
    x = np.random.default_rng(1).standard_normal((sizes[0], rows or 3, sizes[1]))
    x = x.astype(np.float32)
    want = wanted(model, x)
    for level in ("tensor", "task"):
        module, context, _ = at_level(model, level, device)
        (got,) = run_module(module, context.weights, [x])
        np.testing.assert_allclose(got, want, rtol=LIMIT, atol=LIMIT)


@pytest.mark.parametrize("kind", sorted(GATES))
@pytest.mark.parametrize("device", ["cpu1", "cpu2", "h200"])
@pytest.mark.parametrize("rows", [None, 1, 3])
def test_both_directions_of_all_layers_are_hoisted(
    kind: str, device: str, rows: int | None
) -> None:
    model = layers_of(kind, "bidirectional", 2, (4, 5, 3), rows, before_reset=1)
    assert hoisted(model, device)[0] == 2 * 2 * 4


@pytest.mark.parametrize(
    ("device", "inputs", "steps"),
    [("cpu1", 3, 3 * 4), ("cpu2", 3, 4), ("h200", 3, 0), ("h200", 9, 4)],
)
def test_a_stack_stays_a_wavefront(device: str, inputs: int, steps: int) -> None:
    """One vEU has nothing to lose; of several, a first layer's terms leave, on a GPU those of a wider one."""
    count, reasons = hoisted(lstm_stack(3, 3, inputs, 4, 2), device)
    assert count == steps
    waits = "other cells of the wavefront take as long: no chain of cells would be shorter"
    assert (waits in reasons) == (device == "h200" and not steps)


def test_few_weights_stay_in_the_steps_of_a_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    model = layers_of("LSTM", "forward", 1, (4, 5, 3), 2)
    assert hoisted(model, "cpu1")[0] == 0
    assert hoisted(model, "h200")[0] == 4


@pytest.mark.parametrize("device", ["cpu1", "cpu2"])
@pytest.mark.parametrize("rows", [None, 2])
def test_a_program_computes_what_onnx_runtime_does(device: str, rows: int | None) -> None:
    model = layers_of("LSTM", "bidirectional", 2, (4, 5, 3), rows)
    x = np.random.default_rng(1).standard_normal((4, 2, 5)).astype(np.float32)
    got = irkit.compile(model, device=device)(x)
    np.testing.assert_allclose(got, wanted(model, x), rtol=LIMIT, atol=LIMIT)
