"""State on a GPU: run after run, in every mode, against the meaning of the network.

Skipped where there is no CUDA device.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import irkit
from irkit.frontends.onnx import import_onnx
from irkit.interp.graph import run_graph
from irkit.runtime.cuda.availability import why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
MODES = ("per-op", "per-wave", "persistent", "auto")


def network(
    nodes: list[Any], inputs: dict[str, list[int]], outputs: dict[str, list[int]], weights: Any
) -> ModelProto:
    """A model of float32 arrays."""
    kind, value = TensorProto.FLOAT, helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "g",
        [value(n, kind, s) for n, s in inputs.items()],
        [value(n, kind, s) for n, s in outputs.items()],
        [numpy_helper.from_array(np.asarray(a, np.float32), n) for n, a in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def lstm(hidden: int = 64, features: int = 32) -> tuple[ModelProto, dict[str, str]]:
    """One step of an LSTM: the state is read whole by the launch that makes the next one."""
    rng = np.random.default_rng(0)
    weights = {
        "w": 0.2 * rng.standard_normal((1, 4 * hidden, features)),
        "r": 0.2 * rng.standard_normal((1, 4 * hidden, hidden)),
    }
    node = helper.make_node(
        "LSTM", ["x", "w", "r", "", "", "h", "c"], ["y", "yh", "yc"], hidden_size=hidden
    )
    state = [1, 1, hidden]
    inputs = {"x": [1, 1, features], "h": state, "c": state}
    outputs = {"y": [1, 1, 1, hidden], "yh": state, "yc": state}
    return network([node], inputs, outputs, weights), {"h": "yh", "c": "yc"}


def descent(rows: int = 96, features: int = 80, columns: int = 48) -> tuple[Any, dict[str, str]]:
    """A step of gradient descent with momentum: w and m are updated in place."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["y"]),
        helper.make_node("Sub", ["y", "t"], ["d"]),
        helper.make_node("Transpose", ["x"], ["xt"], perm=[1, 0]),
        helper.make_node("MatMul", ["xt", "d"], ["g"]),
        helper.make_node("Mul", ["m", "beta"], ["bm"]),
        helper.make_node("Add", ["bm", "g"], ["m_next"]),
        helper.make_node("Mul", ["m_next", "rate"], ["s"]),
        helper.make_node("Sub", ["w", "s"], ["w_next"]),
    ]
    w = [features, columns]
    inputs = {"x": [rows, features], "t": [rows, columns], "w": w, "m": w}
    outputs = {"y": [rows, columns], "w_next": w, "m_next": w}
    model = network(nodes, inputs, outputs, {"beta": 0.5, "rate": 0.001})
    return model, {"w": "w_next", "m": "m_next"}


def swapping() -> tuple[ModelProto, dict[str, str]]:
    """Two pieces of state change places; a third is shifted by a row, with the input in front."""
    nodes = [
        helper.make_node("Identity", ["b"], ["a_next"]),
        helper.make_node("Neg", ["a"], ["b_next"]),
        helper.make_node("Slice", ["window", "zero", "last", "axis"], ["kept"]),
        helper.make_node("Concat", ["x", "kept"], ["window_next"], axis=0),
        helper.make_node("ReduceSum", ["window_next", "axis"], ["y"]),
    ]
    shapes = {"x": [1, 40], "a": [8, 8], "b": [8, 8], "window": [16, 40]}
    outputs = {"y": [1, 40], "a_next": [8, 8], "b_next": [8, 8], "window_next": [16, 40]}
    model = network(nodes, shapes, outputs, {})
    for name, value in (("zero", 0), ("last", 15), ("axis", 0)):
        model.graph.initializer.append(numpy_helper.from_array(np.array([value], np.int64), name))
    return model, {n: f"{n}_next" for n in ("a", "b", "window")}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("build", [lstm, descent, swapping])
def test_state_is_what_the_network_makes_of_it(build: Any, mode: str) -> None:
    """Twelve runs: outputs, and the state after each."""
    model, pairs = build()
    imported = import_onnx(model)
    program = irkit.compile(model, target="cuda", mode=mode, state=pairs)
    names, results = imported.info.inputs, imported.info.outputs
    shapes = {
        i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in model.graph.input
    }
    rng = np.random.default_rng(1)
    state = {n: rng.standard_normal(shapes[n], dtype=np.float32) for n in pairs}
    program.state.update(state)
    for _ in range(12):
        arrays = {n: state.get(n, rng.standard_normal(shapes[n], dtype=np.float32)) for n in names}
        want = dict(
            zip(
                results,
                run_graph(imported.module, imported.weights, [arrays[n] for n in names]),
                strict=True,
            )
        )
        got = program.run([arrays[n] for n in names if n not in pairs])
        ordinary = [want[n] for n in results if n not in pairs.values()]
        for one, other in zip(got, ordinary, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)
        state = {n: want[output] for n, output in pairs.items()}
        for n, array in state.items():
            np.testing.assert_allclose(program.state[n], array, rtol=1e-3, atol=1e-3)


def test_state_is_saved_and_goes_on_bit_for_bit(tmp_path: Path) -> None:
    model, pairs = lstm()
    program = irkit.compile(model, target="cuda", mode="persistent", state=pairs)
    samples = np.random.default_rng(2).standard_normal((20, 1, 1, 32), dtype=np.float32)
    for x in samples[:10]:
        program(x)
    program.save(tmp_path / "p.irkit")
    again = irkit.load(tmp_path / "p.irkit", mode="persistent")
    for x in samples[10:]:
        assert program(x).tobytes() == again(x).tobytes()
    assert all(program.state[n].tobytes() == again.state[n].tobytes() for n in pairs)


def test_nothing_is_allocated_after_the_second_run() -> None:
    """With arrays of the device in and out, whose memory is the pool's."""
    cupy = pytest.importorskip("cupy")
    model, pairs = descent()
    program = irkit.compile(model, target="cuda", mode="persistent", state=pairs)
    x, t = (cupy.random.default_rng(0).standard_normal(s, dtype=cupy.float32)
            for s in ((96, 80), (96, 48)))  # fmt: skip
    for _ in range(2):
        program(x, t)
    pool = program._first.executor.pool
    before = pool.allocations
    for _ in range(5):
        program(x, t)
    assert pool.allocations == before
