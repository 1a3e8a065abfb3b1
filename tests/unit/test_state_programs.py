"""Compiled programs that keep state from run to run."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from onnx_nodes import floats, model, node
from stateful_graphs import StatefulGraph, runs_of

import irkit
from irkit.errors import (
    ArtifactError,
    DeviceError,
    InvalidInputError,
    InvalidModelError,
    UnsupportedError,
)
from irkit.runtime import cpu
from irkit.runtime.variant import Variant
from irkit.schedule.modes import Mode

COUNTER = """
func.func @main(%n: tensor<1xi64>) -> tensor<1xi64>
    attributes {irkit.inputs = ["n"], irkit.outputs = ["next"], irkit.state = array<i64: 0, 0>} {
  %one = arith.constant dense<1> : tensor<1xi64>
  %next = graph.add %n, %one : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
  func.return %next : tensor<1xi64>
}
"""
RUNNING_SUM = """
func.func @main(%x: tensor<?x3xf32>, %count: tensor<1xf32>) -> (tensor<?x3xf32>, tensor<1xf32>)
    attributes {irkit.inputs = ["x", "count"], irkit.outputs = ["y", "next"]} {
  %y = graph.add %x, %count : (tensor<?x3xf32>, tensor<1xf32>) -> tensor<?x3xf32>
  %one = arith.constant dense<1.0> : tensor<1xf32>
  %next = graph.add %count, %one : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  func.return %y, %next : tensor<?x3xf32>, tensor<1xf32>
}
"""


def counter(**options) -> irkit.CompiledProgram:
    return irkit.compile(irkit.parse(COUNTER), device="cpu2", **options)


def running_sum(**options) -> irkit.CompiledProgram:
    return irkit.compile(
        irkit.parse(RUNNING_SUM), device="cpu2", state={"count": "next"}, **options
    )


def sgd() -> irkit.CompiledProgram:
    """y = x w; w := w - 0.1 xᵀ (y - t)"""
    nodes = [
        node("MatMul", "x w", "y"),
        node("Sub", "y t", "d"),
        node("Transpose", "x", "xt", perm=[1, 0]),
        node("MatMul", "xt d", "g"),
        node("Mul", "g rate", "step"),
        node("Sub", "w step", "w_next"),
    ]
    inputs = {"x": floats(8, 5), "t": floats(8, 2), "w": floats(5, 2)}
    proto = model(nodes, inputs, {"rate": np.array(0.1, np.float32)}, ("y", "w_next"))
    return irkit.compile(proto, device="cpu2", state={"w": "w_next"})


def test_a_counter_counts_in_every_mode() -> None:
    program = counter()
    assert dict(program.state) == {"n": np.array([0])}
    for number, mode in enumerate(["auto", *Mode], start=1):
        program._first.executor.mode = mode
        assert program() == ()
        assert program.state["n"].tolist() == [number]
    # Modes are timed on calls that are made anyway.
    program._first.executor.mode = "auto"
    for _ in range(50):
        program()
    assert program.state["n"].tolist() == [55]


def test_what_is_read_is_a_copy_and_what_is_set_is_checked() -> None:
    program = counter()
    program.state["n"][0] = 7
    assert program.state["n"].tolist() == [0]
    program.state["n"] = [41]
    program()
    assert program.state["n"].tolist() == [42]
    assert list(program.state) == ["n"]
    assert "m" not in program.state
    with pytest.raises(KeyError, match="state 'm'; there is 'n'"):
        program.state["m"]
    with pytest.raises(KeyError, match="state 'm'"):
        program.state["m"] = [1]
    for wrong, text in (([1.5], "expected dtype int64"), ([1, 2], "expected shape 1, got 2")):
        with pytest.raises(InvalidInputError, match=f"input 'n': {text}"):
            program.state["n"] = wrong
    program.state.reset()
    assert program.state["n"].tolist() == [0]


def test_initial_state() -> None:
    first = np.array([10])
    program = counter(initial_state={"n": first})
    first[0] = 99
    program()
    assert program.state["n"].tolist() == [11]
    program.state.reset()
    assert program.state["n"].tolist() == [10]
    with pytest.raises(InvalidInputError, match="state 'm'; there is 'n'"):
        counter(initial_state={"m": [1]})
    with pytest.raises(InvalidInputError, match="expected shape 1, got 2"):
        counter(initial_state={"n": [1, 2]})


def test_programs_without_state_have_an_empty_one() -> None:
    plain = irkit.compile(irkit.parse(RUNNING_SUM), device="cpu2")
    assert dict(plain.state) == {}
    plain.state.reset()
    assert len(plain.run([np.zeros((2, 3), np.float32), np.zeros(1, np.float32)])) == 2
    assert "states" not in plain.source


def test_state_beside_a_batch() -> None:
    """Any number of rows, also none, is one step."""
    program = running_sum()
    for step, rows in enumerate((1, 5, 0, 1, 40)):
        y = program(np.ones((rows, 3), np.float32))
        np.testing.assert_array_equal(y, np.full((rows, 3), 1.0 + step, np.float32))
    assert program.state["count"].tolist() == [5.0]


def test_sgd_updates_its_parameters_in_place() -> None:
    program = sgd()
    assert program.report()["arena_bytes"] <= 512  # the gradient and the difference, no second w
    w, rng = floats(5, 2, seed=9), np.random.default_rng(1)
    program.state["w"] = w
    for _ in range(20):
        x, t = (rng.standard_normal(s).astype(np.float32) for s in ((8, 5), (8, 2)))
        np.testing.assert_allclose(program(x, t), x @ w, rtol=1e-4, atol=1e-4)
        w = w - np.float32(0.1) * (x.T @ (x @ w - t))
        np.testing.assert_allclose(program.state["w"], w, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
def test_a_recurrent_layer_streams(op: str) -> None:
    """One time step a call, against ONNX Runtime that is handed its own state."""
    hidden, gates = 6, {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    weights = {
        "w": floats(1, gates * hidden, 3, seed=1),
        "r": floats(1, gates * hidden, hidden, seed=2),
        "b": floats(1, 2 * gates * hidden, seed=4),
    }
    kept = ["h", "c"] if op == "LSTM" else ["h"]
    inputs = {"x": floats(1, 2, 3), **{n: floats(1, 2, hidden) for n in kept}}
    results = ["y", *(f"y{n}" for n in kept)]
    layer = node(op, f"x w r b _ {' '.join(kept)}", " ".join(results), hidden_size=hidden)
    proto = model([layer], inputs, weights, results)
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    program = irkit.compile(proto, device="cpu2", state={n: f"y{n}" for n in kept})
    state = {n: np.zeros((1, 2, hidden), np.float32) for n in kept}
    for step in range(12):
        x = floats(1, 2, 3, seed=step)
        want, *after = session.run(None, {"x": x, **state})
        np.testing.assert_allclose(program(x), want, rtol=1e-4, atol=1e-5)
        state = dict(zip(kept, after, strict=True))
        for name in kept:
            np.testing.assert_allclose(program.state[name], state[name], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("seed", range(6))
def test_random_programs_compiled(seed: int) -> None:
    program = StatefulGraph(1000 + seed, 2 + seed)
    imported = program.model()
    inputs = [program.arrays() for _ in range(4)]
    wanted = runs_of(imported, program.pairs, inputs)
    held = {pair.argument: pair.result for pair in program.pairs}
    compiled = irkit.compile(imported.module, device="cpu4", cache=False)
    names = program.b.names
    for mode in compiled._first.executor.choice.allowed:
        compiled._first.executor.mode = mode
        compiled.state.update({names[a]: inputs[0][a] for a in held})
        for arrays, want in zip(inputs, wanted, strict=True):
            got = compiled.run([x for n, x in enumerate(arrays) if n not in held])
            ordinary = [w for n, w in enumerate(want) if n not in held.values()]
            for g, w in zip(got, ordinary, strict=True):
                np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-5)
            for argument, result in held.items():
                found = compiled.state[names[argument]]
                np.testing.assert_allclose(found, want[result], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("element", ["f32", "f64", "i8", "i1", "ui16"])
@pytest.mark.parametrize("shape", ["", "3x"])
def test_state_of_any_type(element: str, shape: str, tmp_path: Path) -> None:
    """Two that change places, so that one is copied; of no dimension and of one; saved and loaded."""
    kind = f"tensor<{shape}{element}>"
    module = irkit.parse(f"""
func.func @main(%a: {kind}, %b: {kind}) -> ({kind}, {kind})
    attributes {{irkit.inputs = ["a", "b"], irkit.state = array<i64: 0, 0, 1, 1>}} {{
  func.return %b, %a : {kind}, {kind}
}}""")
    program = irkit.compile(module, device="cpu2", cache=False)
    a, b = program.state["a"], program.state["b"]
    assert a.shape == ((3,) if shape else ())
    program.state["a"] = one = np.ones_like(a)
    program()
    np.testing.assert_array_equal(program.state["b"], one)
    np.testing.assert_array_equal(program.state["a"], b)
    program.save(tmp_path / "p")
    again = irkit.load(tmp_path / "p")
    assert again.state["b"].dtype == a.dtype
    np.testing.assert_array_equal(again.state["b"], one)


# Kept, saved, lost


def test_state_is_saved_with_the_program(tmp_path: Path) -> None:
    program = running_sum(initial_state={"count": [2.5]})
    x = np.ones((2, 3), np.float32)
    for _ in range(3):
        program(x)
    program.save(tmp_path / "p.irkit")
    again = irkit.load(tmp_path / "p.irkit")
    assert again.state["count"].tobytes() == program.state["count"].tobytes()
    np.testing.assert_array_equal(again(x), program(x))
    again.state.reset()
    assert again.state["count"].tolist() == [2.5]


def test_state_in_a_file_of_its_own(tmp_path: Path) -> None:
    program, path = sgd(), tmp_path / "state.safetensors"
    program.state["w"] = floats(5, 2, seed=5)
    program.state.save(path)
    other = sgd()
    other.state.load(path)
    assert other.state["w"].tobytes() == program.state["w"].tobytes()
    with pytest.raises(InvalidInputError, match="another program: it lacks 'n' and has 'w'"):
        counter().state.load(path)
    with pytest.raises(ArtifactError, match="cannot read"):
        other.state.load(tmp_path / "none")
    (tmp_path / "odd").write_bytes(b"no tensors")
    with pytest.raises(ArtifactError, match="no safetensors file"):
        other.state.load(tmp_path / "odd")


def test_an_input_that_is_refused_changes_nothing() -> None:
    program = running_sum()
    program(np.ones((2, 3), np.float32))
    with pytest.raises(InvalidInputError):
        program(np.ones((2, 4), np.float32))
    assert program.state["count"].tolist() == [1.0]


def test_a_run_that_breaks_loses_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    program, x = running_sum(), np.ones((2, 3), np.float32)
    program(x)

    def broken(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(cpu.CpuExecutor, "_run_mode", broken)
        with pytest.raises(KeyboardInterrupt):
            program(x)
    for use in (lambda: program(x), lambda: program.state["count"], program.state.arrays):
        with pytest.raises(DeviceError, match="the state was lost"):
            use()
    program.state["count"] = [4.0]
    program(x)
    assert program.state["count"].tolist() == [5.0]


def test_calls_at_once_are_steps_one_after_another() -> None:
    program = running_sum()

    def calls() -> None:
        for _ in range(50):
            program(np.ones((3, 3), np.float32))

    threads = [threading.Thread(target=calls) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert program.state["count"].tolist() == [200.0]


def test_a_traced_run_is_no_step() -> None:
    program, x = running_sum(), np.ones((4, 3), np.float32)
    program(x)
    for mode in ("serial", "per-wave", "persistent"):
        program.timelines([x], mode)
    assert program.state["count"].tolist() == [1.0]


# What is refused


def test_a_table_that_says_nothing_of_its_state_is_none(tmp_path: Path) -> None:
    source = counter().source
    start, end = source.index("    states=("), source.index("    constants=(")
    artifact = counter()._first.artifact
    broken = replace(artifact, source=source[:start] + source[end:])
    with pytest.raises(ArtifactError, match="not the one that was proved"):
        Variant(broken)


def test_what_cannot_be_state_is_refused() -> None:
    module = irkit.parse(RUNNING_SUM)
    for state, kind, text in (
        ({"x": "y"}, UnsupportedError, r"argument 0 \('x'\) is .*, as large as the batch"),
        ({"count": "y"}, InvalidModelError, r"argument 1 \('count'\) is .*, result 0 \('y'\) is"),
        ({"cuont": "next"}, InvalidInputError, "no input 'cuont'; did you mean 'count'?"),
        ({"count": "z"}, InvalidInputError, "there is no output 'z'"),
        ({"x": "y", "count": "y"}, InvalidModelError, "result 0 is in two pairs"),
    ):
        with pytest.raises(kind, match=text):
            irkit.compile(module, device="cpu2", state=state)
    with pytest.raises(UnsupportedError, match="says itself what its state is"):
        irkit.compile(irkit.parse(COUNTER), device="cpu2", state={"n": "next"})


def test_state_of_a_model_whose_rows_mix_is_of_one_size() -> None:
    nodes = [node("MatMul", "xt x", "g"), node("Add", "w g", "w_next")]
    nodes.insert(0, node("Transpose", "x", "xt", perm=[1, 0]))
    proto = model(nodes, {"x": floats(4, 3), "w": floats(3, 3)}, outputs=("w_next",))
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "rows"
    with pytest.raises(UnsupportedError, match="has a program for each batch size"):
        irkit.compile(proto, device="cpu2", state={"w": "w_next"})
    program, x = irkit.compile(proto, device="cpu2", state={"w": "w_next"}, batch=4), floats(4, 3)
    for _ in range(3):
        program(x)
    np.testing.assert_allclose(program.state["w"], 3 * (x.T @ x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("array<i64: 0>", "expected pairs of an argument and a result"),
        ('"n"', "expected pairs of an argument and a result"),
        ("array<i64: 0, 1>", "there is no result 1"),
        ("array<i64: -1, 0>", "there is no argument -1"),
        ("array<i64: 0, 0, 0, 0>", "argument 0 is in two pairs"),
    ],
)
def test_a_module_that_says_nonsense_is_refused(given: str, text: str) -> None:
    with pytest.raises(InvalidModelError, match=f"irkit.state of @main: {text}"):
        irkit.parse(COUNTER.replace("array<i64: 0, 0>", given))


def test_state_is_for_networks() -> None:
    from sklearn.linear_model import LinearRegression

    fitted = LinearRegression().fit(np.eye(3), np.ones(3))
    with pytest.raises(UnsupportedError, match="state is for ONNX networks and modules"):
        irkit.compile(fitted, target="cpu", state={"x": "y"})
