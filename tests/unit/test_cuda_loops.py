"""Loops on a GPU: the emitted kernels of all modes, run by an emulator of grids under the real executor."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from emulated_loops import Emulated, emitted, parsed, register_gpu4, same
from loop_programs import COLUMNS, ROWS, LoopProgram
from test_loops import jacobi, jacobi_numpy

import irkit
from irkit.dags.gpu_programs import _mode
from irkit.errors import DeviceError
from irkit.interp import run_module
from irkit.schedule.modes import Mode
from irkit.weights import WeightStore

MODES = ("per-op", "per-wave", "persistent")


@pytest.fixture(autouse=True)
def gpu4(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device that programs are for."""
    register_gpu4(monkeypatch)


@pytest.mark.parametrize("mode", MODES)
def test_jacobi_is_numpys_in_every_call(monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    source, weights = emitted(jacobi(300, 9))
    run = Emulated(monkeypatch, source, weights, mode, 1)
    rng = np.random.default_rng(1)
    for _ in range(2):
        a, b = rng.normal(size=300), rng.normal(size=300)
        found, wanted = run(a, b), jacobi_numpy(a, b, 9)
        assert all(np.allclose(f, w, rtol=1e-14) for f, w in zip(found, wanted, strict=True))


def program_inputs(seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=s) for s in ((ROWS, COLUMNS), (ROWS, COLUMNS), (COLUMNS,))]


@pytest.mark.parametrize("seed", range(12))
def test_random_loops(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    text = LoopProgram(seed, columns=seed >= 6).text
    source, weights = emitted(text)
    module = parsed(text)
    run = Emulated(monkeypatch, source, weights, MODES[seed % 3], seed)
    for call in range(2):
        given = program_inputs(seed + call)
        assert same(run(*given), run_module(module, WeightStore(), given, level="graph")), text


@cache
def jitted(case: str) -> tuple[str, Any]:
    """The emitted module of a function of arrays, and its constants."""
    function, *arguments = CASES[case][0], *arrays_of(case)
    made = irkit.jit(target="cuda", device="gpu4", cache=False)(function).compile(*arguments)
    artifact = made._last.runner._runner._variant.artifact
    return artifact.source, artifact.weights


def jacobi_2d(steps, a, b):
    for _ in irkit.range(steps):
        b[1:-1, 1:-1] = 0.2 * (
            a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1]
        )
        a[1:-1, 1:-1] = 0.2 * (
            b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1]
        )


def recurrence(x, w):
    for i in irkit.range(1, len(x)):
        x[i] = x[i - 1] * 0.5 + w[i] * i


def nested(x):
    for i in irkit.range(1, 5):
        x[i] = x[i] + x[i - 1]
        for j in irkit.range(1, 5):
            x[i, j] = x[i, j - 1] * 0.25 + x[i, j]


def contraction(x, w):
    for i in irkit.range(1, 7):
        x[:] = np.tanh(w @ x) + x / i


CASES = {
    "jacobi_2d": (jacobi_2d, 6, (12, 11), (12, 11)),
    "recurrence": (recurrence, (12,), (12,)),
    "nested": (nested, (5, 5)),
    "contraction": (contraction, (24,), (24, 24)),
}


def arrays_of(case: str) -> list[Any]:
    """Arguments of a function."""
    rng = np.random.default_rng(3)
    return [s if isinstance(s, int) else rng.normal(size=s) for s in CASES[case][1:]]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CASES)
def test_functions_of_arrays(monkeypatch: pytest.MonkeyPatch, case: str, mode: str) -> None:
    function, given = CASES[case][0], arrays_of(case)
    source, weights = jitted(case)
    assert "steps=(Ran(" in source
    assert "Repeated(" in source
    run = Emulated(monkeypatch, source, weights, mode, 5)
    buffers = [g for g in given if not isinstance(g, int)]
    found = run(*(b.copy() for b in buffers))
    monkeypatch.setattr(irkit, "range", range)
    function(*given)
    wanted = dict(zip((p.name for p in run.executor.program.inputs), buffers, strict=True))
    for port, array in zip(run.executor.program.outputs, found, strict=True):
        np.testing.assert_allclose(array, wanted[port.name], rtol=1e-12, atol=1e-12)
    if mode == "persistent":
        assert run.driver.launches == ["persistent"]


def test_loops_in_several_workspaces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program works in memory of its own for each task of a DAG: each begins anew, and may be run again."""
    source, weights = emitted(jacobi(200, 3))
    run = Emulated(monkeypatch, source, weights, "persistent", 7)
    plain = run.executor
    rng = np.random.default_rng(8)
    given = [rng.normal(size=200) for _ in range(2)]
    wanted = jacobi_numpy(*given, 3)
    assert same(run(*given), wanted)
    for turns in (1, 2):
        inputs = [plain.pool.take(1600) for _ in given]
        outputs = [plain.pool.take(1600) for _ in given]
        for buffer, array in zip(inputs, given, strict=True):
            buffer.upload(array, plain.stream)
        places = [buffer.address for buffer in (*inputs, *outputs)]
        home = plain.residence.beside(16, plain.stream).bound(places, plain.stream)
        assert home.own[0][0] <= home.meeting < sum(home.own[0])
        task = plain.within(home, Mode.PERSISTENT)
        for _ in range(turns):
            task.put(Mode.PERSISTENT, 1, plain.stream)
        found = [
            run.driver.space[b.address : b.address + 1600].copy().view(np.float64) for b in outputs
        ]
        assert same(found, wanted)
        assert same(run(*given), wanted)


def test_loops_in_a_stream_run_in_one_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    source, weights = emitted(jacobi(200, 3))
    assert _mode(Emulated(monkeypatch, source, weights, "auto", 1).executor) is Mode.PERSISTENT
    run = Emulated(monkeypatch, source, weights, "per-wave", 1)
    with pytest.raises(DeviceError, match="cannot run in a stream of a DAG"):
        _mode(run.executor)


KEPT = """func.func @main(%w: tensor<4xf64>, %x: tensor<9x4xf64>, %h: tensor<1x4xf64>)
    -> (tensor<1x4xf64>, tensor<4xf64>, tensor<1x4xf64>) attributes {irkit.state = array<i64: 2, 2, 0, 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %r = scf.for %i = %c0 to %c9 step %c1 iter_args(%s = %h) -> (tensor<1x4xf64>) {
    %row = tensor.extract_slice %x[%i, 0] [1, 4] [1, 1] : tensor<9x4xf64> to tensor<1x4xf64>
    %p = graph.mul %s, %w : (tensor<1x4xf64>, tensor<4xf64>) -> tensor<1x4xf64>
    %q = graph.sub %p, %row : (tensor<1x4xf64>, tensor<1x4xf64>) -> tensor<1x4xf64>
    scf.yield %q : tensor<1x4xf64>
  }
  %y = graph.mul %r, %w : (tensor<1x4xf64>, tensor<4xf64>) -> tensor<1x4xf64>
  %flat = graph.reshape %y {shape = array<i64: 4>} : (tensor<1x4xf64>) -> tensor<4xf64>
  %n = graph.sub %w, %flat : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  func.return %y, %n, %r : tensor<1x4xf64>, tensor<4xf64>, tensor<1x4xf64>
}"""
"""Two pairs of state: one that the loop hands on, and one that it reads and that is updated behind it."""


@pytest.mark.parametrize("mode", MODES)
def test_state_goes_through_loops(monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    source, weights = emitted(KEPT)
    run = Emulated(monkeypatch, source, weights, mode, 7)
    rng = np.random.default_rng(7)
    h, w = rng.normal(size=(1, 4)), rng.normal(size=4) / 4
    state = run.executor.state
    assert state is not None
    for number, array in enumerate((h, w)):
        state.write(number, array)
    for _ in range(3):
        x = rng.normal(size=(9, 4))
        for row in x:
            h = h * w - row
        (y,) = run(x)
        np.testing.assert_allclose(y, h * w, rtol=1e-14)
        w = w - y[0]
        np.testing.assert_allclose(state.read(0), h, rtol=1e-14)
        np.testing.assert_allclose(state.read(1), w, rtol=1e-14)
