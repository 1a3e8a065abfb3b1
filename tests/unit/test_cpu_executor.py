"""The CPU executor where something goes wrong, and at its edges."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from irkit.driver.compiler.artifacts import build_artifact
from irkit.driver.compiler.models import read_model
from irkit.driver.compiler.targets import DEVICES
from irkit.errors import DeviceError
from irkit.runtime import cpu
from irkit.runtime.cpu import CpuExecutor
from irkit.runtime.loading import load_source
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
    assert any(a.waits for a in run.program.appends)
    check(run)
    (space,) = run._idle
    threads = cpu.veu_threads()
    pool = threads.pool(3)
    monkeypatch.setattr(threads, "pool", lambda count: NoThreads(pool, started))
    begin = time.perf_counter()
    with pytest.raises(DeviceError, match="no threads for 3 more vEUs: can't start new thread"):
        run.run([X, Y])
    assert time.perf_counter() - begin < 5
    # Its counters are wrong now.
    assert space not in run._idle
    monkeypatch.undo()
    for _ in range(20):
        check(run)


def test_an_interrupt_waits_for_the_threads(artifact, monkeypatch):
    """They write into the caller's arrays."""
    run = executor(artifact, mode="persistent")
    waited = []
    real = cpu.wait

    def wait(futures):
        waited.append(len(futures))
        if len(waited) == 1:
            raise KeyboardInterrupt
        return real(futures)

    monkeypatch.setattr(cpu, "wait", wait)
    with pytest.raises(KeyboardInterrupt):
        run.run([X, Y])
    assert len(waited) == 2
    monkeypatch.undo()
    check(run)


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
