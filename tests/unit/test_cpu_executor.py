"""The CPU executor where something goes wrong, and at its edges."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import irkit
from irkit.driver.compiler.artifacts import build_artifact
from irkit.driver.compiler.models import read_model
from irkit.driver.compiler.targets import DEVICES
from irkit.errors import DeviceError, InvalidInputError
from irkit.runtime import cpu, veu_team, veu_threads
from irkit.runtime.cpu import CpuExecutor
from irkit.runtime.loading import load_source
from irkit.runtime.veu_team import VeuTeam
from irkit.schedule.modes import Mode

RNG = np.random.default_rng(3)
X = RNG.standard_normal((9, 32)).astype(np.float32)
Y = RNG.standard_normal((32, 32)).astype(np.float32)
NET = """\
func.func @main(%x: tensor<?x32xf32>, %y: tensor<32x32xf32>) -> (tensor<?x32xf32>, tensor<32x32xf32>) {
  %0 = graph.tanh %x : (tensor<?x32xf32>) -> tensor<?x32xf32>
  %1 = graph.matmul %y, %y : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %2 = graph.matmul %1, %y : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %3 = graph.matmul %2, %1 : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  func.return %0, %3 : tensor<?x32xf32>, tensor<32x32xf32>
}
"""


@pytest.fixture(scope="module")
def artifact(tmp_path_factory):
    """A chain of products on four vEUs, which wait for one another, beside rows of their own."""
    folder = tmp_path_factory.mktemp("net")
    (folder / "net.mlir").write_text(NET)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IRKIT_CACHE_DIR", str(folder / "cache"))
        patch.setitem(DEVICES, "cpu", "cpu4")
        made = build_artifact(read_model(folder / "net.mlir", "float32"), "cpu")
        load_source(made)
        yield made


def executor(artifact, proved=tuple(Mode), **options):
    module = load_source(artifact)
    module = replace(module, program=replace(module.program, modes=proved).sealed())
    return CpuExecutor(module, artifact.weights, **options)


def check(run, rows=5):
    tanh, product = run.run([X[:rows], Y])
    np.testing.assert_allclose(tanh, np.tanh(X[:rows]), rtol=1e-5)
    np.testing.assert_allclose(product, Y @ Y @ Y @ Y @ Y, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("mode", ["auto", *Mode])
def test_no_rows_still_compute_what_has_none(artifact, mode):
    run = executor(artifact, mode=mode)
    for rows in (0, 1, 0, 5):
        check(run, rows)


class NoThreads:
    """A pool that starts `count` walks and then has no thread for the next."""

    def __init__(self, real, count):
        self.real, self.count = real, count

    def submit(self, *arguments):
        if not self.count:
            # What a full process does: the work is queued before the thread is missing.
            self.real.submit(*arguments)
            raise RuntimeError("can't start new thread")
        self.count -= 1
        return self.real.submit(*arguments)


@pytest.mark.parametrize("started", [0, 1])
@pytest.mark.parametrize("mode", [Mode.PERSISTENT, Mode.PER_WAVE])
def test_vEUs_without_threads_are_an_error_and_no_hang(artifact, monkeypatch, mode, started):
    run = executor(artifact, mode=mode)
    # On the pool, where traced programs run.
    run._of_a_team = False
    assert any(a.waits for a in run.program.appends)
    check(run)
    (space,) = run._idle
    threads = cpu.veu_threads()
    pool = threads.pool(3)
    monkeypatch.setattr(threads, "pool", lambda count: NoThreads(pool, started))
    begin = time.perf_counter()
    with pytest.raises(DeviceError, match="no threads for 3 more vEUs: can't start new thread"):
        run.run([X, Y])
    assert time.perf_counter() - begin < 60
    # Its counters are wrong now.
    assert space not in run._idle
    monkeypatch.undo()
    for _ in range(20):
        check(run)


def test_an_interrupt_waits_for_the_threads(artifact, monkeypatch):
    """They write into the caller's arrays."""
    run = executor(artifact, mode="persistent")
    run._of_a_team = False
    waited = []
    real = veu_threads.wait

    def wait(futures):
        waited.append(len(futures))
        if len(waited) == 1:
            raise KeyboardInterrupt
        return real(futures)

    monkeypatch.setattr(veu_threads, "wait", wait)
    with pytest.raises(KeyboardInterrupt):
        run.run([X, Y])
    assert len(waited) == 2
    monkeypatch.undo()
    check(run)


@pytest.fixture
def team(monkeypatch):
    """A team of its own."""
    made = VeuTeam()
    monkeypatch.setattr(cpu, "veu_team", lambda: made)
    yield made
    made.end()


def test_a_team_without_threads_is_an_error(artifact, team, monkeypatch):
    run = executor(artifact, mode="persistent")
    started = []
    real = threading.Thread.start

    def start(thread):
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        real(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(DeviceError, match="no threads for 3 more vEUs: can't start new thread"):
        run.run([X, Y])
    monkeypatch.undo()
    monkeypatch.setattr(cpu, "veu_team", lambda: team)
    for _ in range(20):
        check(run)


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize("mode", [Mode.PERSISTENT, Mode.PER_WAVE])
def test_an_interrupt_waits_for_the_team(artifact, team, monkeypatch, mode, behind):
    """It comes before all jobs are posted or behind the last, and what it left is not used again."""
    run = executor(artifact, mode=mode)
    check(run)
    (space,) = run._idle
    real = veu_team._native()

    def interrupted(*arguments):
        if behind:
            real.run(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(veu_team, "_native", lambda: real._replace(run=interrupted))
        with pytest.raises(KeyboardInterrupt):
            run.run([X, Y])
    assert space not in run._idle
    for _ in range(20):
        check(run)


def test_a_team_sleeps_wakes_and_ends(artifact, team):
    run = executor(artifact, mode="persistent")
    for pause in (0, 0, 0.02, 0, 0.05):
        time.sleep(pause)
        check(run)
    before = [m._thread for m in team._members]
    assert len(before) == 3
    team.end()
    assert not any(t.is_alive() for t in before)
    check(run)
    assert not {m._thread for m in team._members} & set(before)


def test_a_team_serves_several_callers(artifact, team):
    """Programs of one team take turns; each call has a workspace of its own."""
    runs = [executor(artifact, mode=m) for m in (Mode.PERSISTENT, Mode.PER_WAVE, Mode.PER_OP)]

    def calls(run):
        for rows in (1, 2, 5, 9, 5):
            check(run, rows)

    with ThreadPoolExecutor(6) as pool:
        for done in [pool.submit(calls, run) for run in runs * 2]:
            done.result()


def test_a_process_ends_while_its_team_is_awake(artifact, tmp_path):
    artifact.save(tmp_path / "net.irkit")
    text = f"""
import irkit, numpy as np
program = irkit.load({str(tmp_path / "net.irkit")!r}, mode="persistent")
program(np.zeros((5, 32), "float32"), np.zeros((32, 32), "float32"))
"""
    run = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")


def test_only_proved_modes_run(artifact):
    run = executor(artifact, proved=("serial", "per-wave"))
    assert run.choice.allowed == ("serial", "per-wave")
    for _ in range(9):
        check(run)
    (sizes,) = run.choice.auto.times.values()
    assert set(sizes) == {"serial", "per-wave"}
    with pytest.raises(
        DeviceError, match=r"mode 'persistent': .*not proved.*auto, serial, per-wave"
    ):
        executor(artifact, mode="persistent", proved=("serial", "per-wave"))
    # One row takes no short cut through a mode that is not proved.
    check(executor(artifact, proved=("persistent",)), 1)


def test_what_one_veu_runs_alone_is_run_by_the_caller():
    large = FIXED.replace("8x6", "512x300")
    for text, modes in ((FIXED, {"serial"}), (large, {"serial", "per-wave", "persistent"})):
        run = irkit.compile(irkit.parse(text), device="cpu2")._first.executor
        assert set(run.choice.auto.modes) == modes
        # Another is run where it is asked for.
        assert "persistent" in run.choice.allowed


def test_fixed_shapes_are_taken_as_they_are_or_looked_at():
    program = irkit.compile(irkit.parse(FIXED), device="cpu2")
    x = RNG.standard_normal((8, 6)).astype(np.float32)
    executor = program._first.executor
    assert executor._as_they_are([x])
    read_only = x.copy()
    read_only.flags.writeable = False
    for given in (x, x.tolist(), read_only, np.asfortranarray(x), x.astype(np.float16)):
        assert executor._as_they_are([given]) == (given is x)
        np.testing.assert_allclose(
            program(given), np.tanh(np.asarray(given, np.float32)), rtol=1e-6
        )
    for wrong, message in ((x[:7], "expected shape 8x6"), (x.astype(int), "expected dtype")):
        with pytest.raises(InvalidInputError, match=message):
            program(wrong)
    with pytest.raises(InvalidInputError, match="expected 1 inputs"):
        program(x, x)


FIXED = """\
func.func @main(%x: tensor<8x6xf32>) -> tensor<8x6xf32> {
  %0 = graph.tanh %x : (tensor<8x6xf32>) -> tensor<8x6xf32>
  func.return %0 : tensor<8x6xf32>
}
"""
