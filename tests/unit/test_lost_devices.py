"""A device that fails at any of the things it is asked for, for once or for good: one error says where and
what may be written, nothing goes on, and nothing is kept."""

# pyright: basic, reportCallIssue=false, reportIndexIssue=false
from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np
import pytest
from numba import cuda

import irkit
from irkit.dags.dag import Dag
from irkit.dags.gpu import GpuDevice
from irkit.dags.mock import MockDevice
from irkit.errors import DeviceError
from irkit.passes.host.host_program import host_program
from irkit.passes.host.sharing import shared
from tests.unit.fake_cuda import FakeDriver
from tests.unit.on_both import Counting
from tests.unit.test_dag_gpu import LoggedGpu, fake
from tests.unit.test_planned_runs import (
    drawn_program,
    expected_of,
    main_of,
    outcome,
    runner_of,
    same,
)

__all__ = ["fake"]
ASKED = ["allocate", "pin", "copy", "start", "record", "wait", "synchronize"]
ASKED += ["new_stream", "begin", "graph", "replay"]


def losing(base: type[MockDevice]) -> type[Any]:
    """A device that fails when it is asked for the thing of a number, and where `dead`, from then on."""

    def asked(name: str) -> Any:
        def ask(self: Any, *args: Any) -> Any:
            if self.left is not None:
                self.left -= 1
                if self.left < 0:
                    self.lose()
                    raise DeviceError("the device is lost")
            return getattr(base, name)(self, *args)

        return ask

    def lose(self: Any) -> None:
        if not self.dead:
            self.left = None
            return
        for stream in self._streams:
            stream.work.clear()

    members = {name: asked(name) for name in ASKED}
    return type("Losing", (base,), {"left": None, "dead": False, "lose": lose, **members})


@cuda.jit
def add(x, y):
    n = cuda.grid(1)
    if n < x.size:
        y[n] += x[n]


@cuda.jit
def twice(x):
    n = cuda.grid(1)
    if n < x.size:
        x[n] *= 2


def grown(x: Any) -> None:
    x += 1


def _add(x: Any, y: Any) -> None:
    y += x


def _twice(x: Any) -> None:
    x *= 2


def recorded(d: Dag, a: Any, b: Any, c: Any, host: bool) -> None:
    t = d.empty(8)
    d.copy(t, a)
    twice[2, 4](b)
    add[2, 4](a, c)
    add[2, 4](t, b)
    if host:
        d.call(grown, c)
    twice[2, 4](c)


def wanted(a: Any, b: Any, c: Any, host: bool) -> list[Any]:
    return [a, b * 2 + a, (c + a + host) * 2]


def attempts(seed: int) -> Iterator[tuple[Any, int]]:
    for dead in (False, True):
        for left in range(60):
            device = losing(MockDevice)(seed, {"add": _add, "twice": _twice})
            device.dead = dead
            yield device, left


@pytest.mark.parametrize("mode", ["streams", "graph", "auto"])
def test_plans(mode: str) -> None:
    host = mode != "graph"
    failures = 0
    for device, left in attempts(3):
        arrays = [np.arange(8.0) + n for n in range(3)]
        before = [x.copy() for x in arrays]
        with irkit.dag(device) as d:
            recorded(d, *arrays, host)
        with d.plan() as plan:
            if mode == "graph":
                plan.run("streams")
                before = [x.copy() for x in arrays]
            device.left = left
            try:
                plan.run(mode)
            except DeviceError as error:
                failures += 1
                told = str(error)
                assert ": the device is lost; " in told
                assert "(test_lost_devices.py:" in told
                if told.endswith("; no array was written"):
                    assert all(map(np.array_equal, arrays, before))
                assert not any(stream.work for stream in device._streams)
                # What is there now is what the next run sees.
                before = [x.copy() for x in arrays]
                device.left = None
                plan.run(mode)
            assert all(map(np.array_equal, arrays, wanted(*before, host)))
        assert device.used == 0
    assert failures > 40


def test_launches_as_they_come() -> None:
    failures = 0
    for device, left in attempts(4):
        arrays = [np.arange(8.0) + n for n in range(3)]
        expected = wanted(*arrays, True)
        d = irkit.dag(device, eager=True)
        device.left = left
        try:
            with d:
                recorded(d, *arrays, True)
        except DeviceError as error:
            failures += 1
            told = str(error)
            assert "the device is lost" in told
            assert not any(stream.work for stream in device._streams)
        else:
            assert all(map(np.array_equal, arrays, expected))
        device.left = None
        d.close()
        assert device.used == 0
    assert failures > 40


def test_an_error_that_is_caught() -> None:
    """What failed may have been counted on, so nothing is launched after it."""
    device = losing(MockDevice)(4, {"twice": _twice})
    x, ended = np.ones(8), r"an error ended this DAG \(DeviceError\)"
    d = irkit.dag(device, eager=True)
    with pytest.raises(irkit.UnsupportedError, match=ended), d:
        _one_fails(device, x)
    assert device.used == 0


def _one_fails(device: Any, x: Any) -> None:
    twice[2, 4](x)
    device.left = 0
    with pytest.raises(DeviceError, match=r"'twice'.*: the device is lost"):
        twice[2, 4](x)
    with pytest.raises(irkit.UnsupportedError, match="an error ended this DAG"):
        twice[2, 4](x)


def test_a_launch_that_was_refused_counts_for_nothing() -> None:
    """Where one array has no place, the other is not taken to be on the device either."""
    device = MockDevice(0, {"twice": _twice, "add": _add}, memory=100)
    x, large = np.arange(8.0), np.zeros(99)
    with irkit.dag(device, eager=True):
        with pytest.raises(DeviceError, match=r"^test_lost_devices.py:\d+: 'add', y: the mock"):
            add[2, 4](x, large)
        twice[2, 4](x)
    assert x.tolist() == list(range(0, 16, 2))


def test_a_function_of_the_host_that_raises_says_what_was_written() -> None:
    def broken(x: Any) -> None:
        raise ValueError("no")

    device = MockDevice(5, {"twice": _twice})
    x, y = np.ones(8), np.ones(8)
    with irkit.dag(device) as d:
        twice[2, 4](x)
        d.call(broken, y)
    with pytest.raises(ValueError, match="no") as caught:
        d.run()
    (note,) = caught.value.__notes__
    assert note.startswith("'broken' (test_lost_devices.py:")
    assert "argument 0 of 'broken'" in note
    assert not any(stream.work for stream in device._streams)


@pytest.mark.parametrize("seed", [1, 4, 7])
def test_compiled_functions(seed: int) -> None:
    """Arguments are as they were whatever failed, and the next call is right."""
    program, built, module = drawn_program(seed)
    main, made = main_of(built), shared(host_program(module, keep_arguments=True))
    failures = 0
    for dead in (False, True):
        for left in range(40):
            device = losing(Counting)(seed)
            device.dead = dead
            runner = runner_of(built, module, made, device)
            given = [np.array(x, order="C") for x in program.inputs(seed)]
            before = [x.copy() for x in given]
            device.left = left
            try:
                runner.execute(given)
            except DeviceError as error:
                failures += 1
                told = str(error)
                assert told.startswith(("'", "a run of '"))
                assert told.endswith("the device is lost; no argument was written")
            device.left = None
            for array, old in zip(given, before, strict=True):
                assert array.tobytes() == old.tobytes()
            inputs = program.inputs(seed)
            assert same(outcome(runner, main, inputs), expected_of(program, inputs, main))
            runner.close()
            assert device.used == 0
    assert failures > 10


def test_what_numba_says_of_the_driver_is_a_device_error(fake: FakeDriver) -> None:
    from numba.cuda.cudadrv.error import CudaDriverError

    class Launch:
        arguments = ()

        def start(self, stream: Any) -> None:
            raise CudaDriverError("CUDA_ERROR_ILLEGAL_ADDRESS")

    device = LoggedGpu()
    with pytest.raises(DeviceError, match="the launch failed: CUDA_ERROR_ILLEGAL_ADDRESS"):
        GpuDevice.start(device, cast(Any, Launch()), device.new_stream())
