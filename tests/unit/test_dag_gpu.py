"""The GPU as the device of a DAG, on a CUDA driver that keeps a log: no GPU is asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fake_cuda import FakeDriver
from test_dags import difference, square

from irkit.dags import gpu
from irkit.dags.dag import Dag
from irkit.dags.kernels import NumbaLaunch
from irkit.dags.leases import Lease
from irkit.dags.located import Located
from irkit.dags.works import Launch
from irkit.errors import DeviceError
from irkit.runtime.cuda import driver
from irkit.schedule.host import expected

CALLS = ("cuLaunch", "cuMemcpyAsync", "cuStreamWaitEvent", "cuEventSynchronize", "cuGraphLaunch")


class View:
    """A device array, as far as a DAG looks."""

    def __init__(self, located: Located) -> None:
        self.__cuda_array_interface__ = {
            "shape": located.shape,
            "typestr": located.dtype.str,
            "data": (located.address, False),
            "strides": located.strides,
            "version": 3,
        }


class LoggedGpu(gpu.GpuDevice):
    """Kernels are noted in the driver's log, in the place of Numba's launches."""

    def view(self, located: Located, lease: Lease | None = None) -> View:
        return View(located)

    def start(self, launch: Launch, stream: Any) -> None:
        assert isinstance(launch, NumbaLaunch)
        driver.api().cuLaunch(launch.name, stream.handle)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    made = FakeDriver()
    driver.device.cache_clear()
    monkeypatch.setattr(driver, "api", lambda: made)
    monkeypatch.setattr(gpu, "api", lambda: made)
    # What a kernel does to memory is not this test's affair.
    monkeypatch.setattr(LoggedGpu, "checks", False)
    yield made
    driver.device.cache_clear()


def recorded(d: Dag, n: int) -> tuple[Any, ...]:
    x, y, z = np.ones(n, np.float32), np.ones(n, np.float32), np.zeros(1, np.float32)
    x1, y1 = d.empty(n, np.float32), d.empty(n, np.float32)
    square[2, 32](x, x1)
    square[2, 32](y, y1)
    difference[2, 32](x1, y1, z)
    return x, y, z


pytestmark = pytest.mark.filterwarnings("ignore:Grid size:Warning")


def test_streams_first_and_a_graph_from_then_on(
    fake: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So short are these that one stream would do.
    monkeypatch.setattr(expected, "STREAM_NS", 0.0)
    with Dag(LoggedGpu()) as d:
        kept = recorded(d, 64)
    plan = d.plan()
    assert [len(p.waits) for p in plan.plan.places] == [0, 0, 0, 0, 0, 1, 0]
    fake.log.clear()
    plan.run()
    assert fake.names("cuLaunch", "cuMemcpyAsync") == [
        "cuMemcpyAsync", "cuLaunch", "cuMemcpyAsync", "cuLaunch", "cuMemcpyAsync", "cuLaunch",
        "cuMemcpyAsync",
    ]  # fmt: skip
    assert "cuGraphLaunch" not in fake.names(*CALLS)
    copies = [entry for entry in fake.log if entry[0] == "cuMemcpyAsync"]
    assert copies[0][2:4] == (kept[0].ctypes.data, 256)
    assert copies[-1][1] == kept[2].ctypes.data
    streams = [entry[-1] for entry in fake.log if entry[0] == "cuLaunch"]
    assert streams[0] != streams[2] == streams[1]
    fake.log.clear()
    plan.run()
    plan.run()
    names = [name for name, *_ in fake.log]
    assert names.count("cuStreamBeginCapture") == 1
    assert names.count("cuLaunch") == 3
    assert names.count("cuGraphLaunch") == 2
    # What is captured leaves the first stream and comes back to it.
    inside = names[names.index("cuStreamBeginCapture") : names.index("cuStreamEndCapture")]
    assert inside.count("cuStreamWaitEvent") == 1 + 1 + 2
    assert "cuEventSynchronize" not in inside


REPLAY = [
    "cuCtxSetCurrent", "cuEventRecord", "cuStreamWaitEvent", "cuGraphLaunch", "cuStreamSynchronize",
]  # fmt: skip


def calls_of(run: Callable[[], None]) -> int:
    """How many functions of Python's a call takes."""
    count = 0

    def profile(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


def test_a_replay_is_five_calls_of_the_driver(fake: FakeDriver) -> None:
    """However many tasks there are; of Python it takes a look at each allocation of the host."""
    counts: list[int] = []
    for tasks in (10, 200):
        x, z = np.ones(tasks, np.float32), np.zeros(tasks, np.float32)
        with Dag(LoggedGpu()) as d:
            for n in range(tasks):
                square[1, 32](x[n:], z[n:])
        plan = d.plan()
        for _ in range(3):
            fake.log.clear()
            plan.run()
        assert [name for name, *_ in fake.log] == REPLAY
        counts.append(calls_of(plan.run))
    assert counts[0] == counts[1] < 60


def test_all_of_a_plan_is_given_back(fake: FakeDriver) -> None:
    """Streams, events, graphs, memory and pages, by close and by letting go alike."""
    pairs = {
        "cuStreamCreate": "cuStreamDestroy", "cuEventCreate": "cuEventDestroy",
        "cuGraphInstantiate": "cuGraphExecDestroy", "cuMemAlloc": "cuMemFree",
        "cuMemHostRegister": "cuMemHostUnregister",
    }  # fmt: skip
    for close in (True, False):
        fake.log.clear()
        with Dag(LoggedGpu()) as d:
            kept = recorded(d, 1 << 15)
        plan = d.plan()
        for _ in range(3):
            plan.run()
        if close:
            plan.close()
        else:
            del plan, d
        for made, back in pairs.items():
            assert len(fake.names(made)) == len(fake.names(back)) > 0, made
        assert kept


def test_what_is_let_go_asks_for_no_other_driver() -> None:
    """A plan that outlives its driver is given back to it, and none is looked for."""
    made = FakeDriver()
    with pytest.MonkeyPatch.context() as patch:
        driver.device.cache_clear()
        for module in (driver, gpu):
            patch.setattr(module, "api", lambda: made)
        patch.setattr(LoggedGpu, "checks", False)
        with Dag(LoggedGpu()) as d:
            kept = recorded(d, 64)
        plan = d.plan()
        plan.run()
        plan.run()
        driver.device.cache_clear()

    def nothing() -> Any:
        raise AssertionError("a driver was asked for")

    with pytest.MonkeyPatch.context() as patch:
        for module in (driver, gpu):
            patch.setattr(module, "api", nothing)
        made.failing.add("cuMemFree")
        del plan, d
    assert len(made.names("cuMemFree")) == len(made.names("cuMemAlloc")) == 5
    assert kept


def test_large_host_arrays_are_pinned_and_let_go(fake: FakeDriver) -> None:
    device = LoggedGpu()
    with Dag(device, eager=True) as d:
        kept = recorded(d, 1 << 15)
        assert fake.names("cuMemHostRegister") == ["cuMemHostRegister"] * 2
        registered = [entry[1:] for entry in fake.log if entry[0] == "cuMemHostRegister"]
        assert (kept[0].ctypes.data, 1 << 17, 0) in registered
    assert fake.names("cuMemHostUnregister") == ["cuMemHostUnregister"] * 2
    assert len(fake.names("cuMemFree")) == len(fake.names("cuMemAlloc"))


def test_too_little_memory_to_pin(fake: FakeDriver) -> None:
    fake.failing.add("cuMemHostRegister")
    message = (
        r"^test_dag_gpu.py:\d+: 'square', x: 131072 bytes of host memory cannot be pinned \(CUDA_E"
    )
    with pytest.raises(DeviceError, match=message), Dag(LoggedGpu()) as d:
        recorded(d, 1 << 15)


def test_a_lost_device_names_what_it_did(fake: FakeDriver) -> None:
    with Dag(LoggedGpu()) as d:
        recorded(d, 64)
    fake.failing.add("cuMemcpyAsync")
    message = (
        r"'to device: x' \(test_dag_gpu.py:\d+\): cuMemcpyAsync failed.*; no array was written"
    )
    with pytest.raises(DeviceError, match=message):
        d.run()


def test_events_tell_whether_they_came(fake: FakeDriver) -> None:
    device = LoggedGpu()
    event = device.record(device.new_stream())
    assert device.done(event)
    fake.failing.add("cuEventQuery")
    assert device.done(event)
    fake.failing.add("cuEventSynchronize")
    with pytest.raises(DeviceError, match="cuEventSynchronize failed"):
        device.done(event)


def test_what_outlives_a_driver_is_given_back_to_it() -> None:
    made = FakeDriver()
    with pytest.MonkeyPatch.context() as patch:
        driver.device.cache_clear()
        patch.setattr(driver, "api", lambda: made)
        on = driver.device()
        kept: list[Any] = [driver.Stream(on), driver.Event()]
        kept.append(driver.Graph(lambda _: None, kept[0].handle))
        driver.device.cache_clear()
    del on
    kept.clear()
    assert set(made.names("cuStreamDestroy", "cuEventDestroy", "cuGraphExecDestroy")) == {
        "cuStreamDestroy", "cuEventDestroy", "cuGraphExecDestroy",
    }  # fmt: skip
