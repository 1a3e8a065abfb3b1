"""Timelines measured on a GPU: the kernel with stamps, and what becomes of these, over a fake driver."""

from __future__ import annotations

import ctypes
import gc
import importlib.util
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import fake_cuda
import numpy as np
import pytest
from mlps import Mlp

from irkit.driver.compiler.artifacts import build_artifact
from irkit.driver.compiler.models import read_model
from irkit.errors import ArtifactError, UnsupportedError
from irkit.lower.task_to_numba.traced_walker import STAMPS, TICKS, traced
from irkit.runtime.artifact import Artifact
from irkit.runtime.cuda import compiling, driver, streams, trace
from irkit.runtime.cuda.executor import PERSISTENT_PARAMETERS
from irkit.runtime.cuda.extent import extent_probe
from irkit.runtime.cuda.facts import read_facts
from irkit.runtime.cuda.trace import TracedCudaExecutor, nanoseconds
from irkit.runtime.units import parts_of
from irkit.runtime.variant import Variant

NUMBA = pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None, reason="needs numba-cuda"
)
MODEL = Mlp((64, 128, 128, 10))
START, SPREAD = 1_800_000_000_000_000_000, 37


@pytest.fixture(scope="module")
def artifact() -> Artifact:
    """A program for a GPU, of several plans, without machine code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiling, "compile_module", lambda *_: b"cubin")
        return build_artifact(read_model(MODEL.model(), "float32"), "h200", False)


@NUMBA
def test_the_kernel_with_stamps_is_built_and_the_plain_one_has_none(artifact: Artifact) -> None:
    program, facts = read_facts(artifact.source)
    found = {
        what: compiling.compile_module_with_ptx(text, ["persistent"], facts.threads, facts.arch)
        for what, text in (("plain", artifact.source), ("traced", traced(artifact.source, program)))
    }
    clocks = ("%clock64", "%globaltimer")
    assert not any(clock in found["plain"].ptx for clock in clocks)
    assert all(clock in found["traced"].ptx for clock in clocks)
    resources = found["traced"].resources()["persistent"]
    assert resources["spill_stores"] == found["plain"].resources()["persistent"]["spill_stores"]
    assert found["traced"].cubin


def test_stamps_are_all_that_is_added(artifact: Artifact) -> None:
    program, _ = read_facts(artifact.source)
    plain, stamped = parts_of(artifact.source), parts_of(traced(artifact.source, program))
    assert plain.units == stamped.units, "machine code of rKernels is that of the plain program"
    assert read_facts(traced(artifact.source, program)) == read_facts(artifact.source)
    before, after = (text.rest.split("\n") for text in (plain, stamped))
    added = iter(after)
    kept = [line for line in before if "rows_padded" not in line]
    assert all(line in added for line in kept), "what was there is there, in its order"


def test_a_walker_of_another_irkit_gets_no_stamps(artifact: Artifact) -> None:
    program, _ = read_facts(artifact.source)
    with pytest.raises(ArtifactError, match="not the one of this irkit"):
        traced(artifact.source.replace("cuda.syncthreads()", "cuda.syncthreads( )"), program)


@pytest.mark.parametrize("seed", range(5))
def test_clocks_of_all_blocks_are_put_on_one_line_of_time(seed: int) -> None:
    rng = np.random.default_rng(seed)
    veus, count = 7, 40
    length = rng.uniform(0.5, 0.7, veus)  # ns a cycle
    offset = rng.integers(0, 1 << 50, veus)
    start, end = rng.integers(0, 900, veus), rng.integers(2_000_000, 2_000_900, veus)
    where = rng.integers(0, veus, count)
    wanted = np.sort(rng.uniform(1_000, 2_000_000, (count, STAMPS)), axis=1)

    def cycles(ns: Any, veu: Any) -> Any:
        return (offset[veu] + np.asarray(ns) / length[veu]).astype(np.int64)

    every = np.arange(veus)
    ticks = np.stack(
        [np.stack([START + n, cycles(n, every)], axis=1) for n in (start, end)], axis=1
    )
    stamps = cycles(wanted, where[:, None])
    found = nanoseconds(ticks, stamps, where)
    np.testing.assert_allclose(found, wanted - start.min(), atol=3.0)


class Stamping(fake_cuda.FakeDriver):
    """A driver whose persistent kernels leave a log: record n of a vEU arrives at 1000 n, starts 100 later
    and ends 700 later, in ns; a cycle is half of one, and each vEU's clock has an offset."""

    def __init__(self) -> None:
        super().__init__(132)
        self.begin = np.zeros(0, np.int64)

    def _cuLaunchCooperativeKernel(self, function: int, *shape: Any) -> tuple[()]:
        count = PERSISTENT_PARAMETERS + 1
        pointers = (ctypes.POINTER(ctypes.c_int64) * count).from_address(shape[-1])
        at, veus = pointers[count - 1][0], len(self.begin) - 1
        offsets = 1_000_003 * np.arange(veus)
        ticks = np.zeros((veus, TICKS), np.int64)
        ticks[:, 0] = START + SPREAD * np.arange(veus)
        ticks[:, 1] = offsets + 2 * SPREAD * np.arange(veus)
        ticks[:, 2], ticks[:, 3] = START + 1_000_000, offsets + 2_000_000
        stamps = [
            offsets[veu] + 2 * np.array([1000 * n, 1000 * n + 100, 1000 * n + 700])
            for veu in range(veus)
            for n in range(self.begin[veu + 1] - self.begin[veu])
        ]
        log = np.concatenate([ticks.reshape(-1), np.array(stamps, np.int64).reshape(-1)])
        self.memory[at : at + log.nbytes] = log.tobytes()
        return ()


@pytest.fixture
def fake(artifact: Artifact, monkeypatch: pytest.MonkeyPatch) -> Stamping:
    """A driver that stamps, for the artifact."""
    gc.collect()
    monkeypatch.setattr(fake_cuda, "_MEMORY", 1 << 26)
    fake = Stamping()
    for module in (driver, streams):
        monkeypatch.setattr(module, "api", lambda: fake)
    monkeypatch.setattr(trace, "compile_module", lambda *_: b"traced")
    for cached in (driver.device, extent_probe):
        cached.cache_clear()
    artifact.cubin = b"cubin"
    return fake


def test_measured_timelines_stand_beside_the_planned_ones(fake, artifact) -> None:
    variant = Variant(artifact, "persistent")
    for plan in variant.executor.plans:
        rows = max(plan.program.rows[0], 1)
        fake.begin = plan.tables.begin
        planned, measured = variant.timelines([MODEL.inputs(rows)], "persistent")
        assert planned.title.partition(", ")[2] == measured.title.partition("persistent, ")[2]
        assert planned.steps == measured.steps
        assert sorted(zip(measured.append, measured.task, strict=True)) == sorted(
            zip(planned.append, planned.task, strict=True)
        )
        np.testing.assert_allclose(measured.start - measured.arrived, 100.0, atol=1.0)
        np.testing.assert_allclose(measured.end - measured.start, 600.0, atol=1.0)
        for veu in range(3):
            of_veu = measured.arrived[measured.veu == veu]
            np.testing.assert_allclose(of_veu, 1000.0 * np.arange(len(of_veu)), atol=1.0)
    assert len(fake.names("cuLaunchCooperativeKernel")) == 3 * len(variant.executor.plans)


def test_ordinary_calls_run_the_plain_kernel(fake, artifact) -> None:
    variant = Variant(artifact, "persistent")
    fake.begin = variant.executor.tables.begin
    variant.timelines([MODEL.inputs(2)], "persistent")
    taken: list[int] = []
    fake._cuLaunchCooperativeKernel = lambda function, *_: taken.append(function) or ()
    variant.run([MODEL.inputs(2)])
    (function,) = taken
    module, name = fake.functions[function]
    assert (fake.modules[module], name) == (b"cubin", "persistent")


@pytest.mark.parametrize("mode", ["per-wave", "per-op", "serial"])
def test_other_modes_have_no_timeline_on_a_gpu(fake, artifact, mode: str) -> None:
    variant = Variant(artifact, "persistent")
    with pytest.raises(
        UnsupportedError, match=f"mode '{mode}': it is of runs in mode 'persistent'"
    ):
        variant.timelines([MODEL.inputs(2)], mode)


def test_a_traced_run_is_no_run_of_a_program_with_state(fake, artifact) -> None:
    """State is read before and written after."""
    variant = Variant(artifact, "persistent")

    class State:
        ports, addresses, stream = (0, 1), list[int](), 0
        advance = SimpleNamespace(step=nullcontext)
        done: list[Any] = []

        def read(self, number: int) -> Any:
            self.done.append(("read", number))
            return number

        def write(self, number: int, array: Any) -> None:
            self.done.append(("write", number, array))

    fake.begin = variant.executor.tables.begin
    traced_one = TracedCudaExecutor(variant.executor, artifact.source, "persistent")
    traced_one.state = State()
    traced_one.run([MODEL.inputs(2)])
    assert State.done == [("read", 0), ("read", 1), ("write", 0, 0), ("write", 1, 1)]
