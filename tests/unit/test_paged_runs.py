"""Programs in chunks on the mock device: any order that streams and events allow gives NumPy's answer, what
fails is one error, and a plan that lacks a wait or uses an array too early is refused."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

import irkit
from irkit.context import IrkitContext
from irkit.dags.host_programs import DeviceFunction, HostProgramRunner
from irkit.dags.mock import MockDevice
from irkit.dialects.functions import function_named
from irkit.dialects.program.builder import BuiltProgram
from irkit.dialects.program.check import written_arguments
from irkit.dialects.program.spaces import is_of_device
from irkit.dialects.program.views import array_type
from irkit.dialects.types import numpy_dtype
from irkit.driver.programs.jitted import JittedFunction
from irkit.driver.programs.paged import in_chunks
from irkit.driver.registry import register_dialects
from irkit.errors import DeviceError, ScheduleError, UnsupportedError
from irkit.interp.program import Execution
from irkit.passes.host.actions import Rates
from irkit.passes.host.host_program import host_program
from irkit.passes.program.paging.paged import page_module
from irkit.schedule.host.expected import expected
from irkit.schedule.host.model import HostPlan, Place
from irkit.schedule.host.planning import assign_streams
from irkit.schedule.host.verifier import verify
from tests.unit.jitted import check
from tests.unit.paged import Chunking
from tests.unit.test_page import CASES, LINE, NAMES, PLANE, neighbours, scaled, standardised
from tests.unit.test_page_random import made


class Source:
    """A function of the device, for the interpreter."""

    def __init__(self, function: Any, weights: Any) -> None:
        self.function, self.weights = function, weights
        self.inputs = self.outputs = ()

    def here(self, *arrays: Any) -> None:
        Execution(self.function, self.weights, {}).run(arrays)

    def workspace(self, rows: int) -> Any:
        return None

    def bind(self, workspace: Any, addresses: Sequence[int], rows: int) -> Callable[[Any], None]:
        arguments = self.function.body.block.args

        def compute() -> None:
            arrays = [_array(a, at) for a, at in zip(arguments, addresses, strict=True)]
            self.here(*arrays)

        return lambda append: append(compute)


def _array(argument: Any, address: int) -> Any:
    t = array_type(argument)
    dtype, shape = numpy_dtype(t.element_type), t.get_shape()
    size = max(int(np.prod(shape)) * dtype.itemsize, 1)
    return np.ndarray(shape, dtype, memoryview((ctypes.c_uint8 * size).from_address(address)))


class Device(MockDevice):
    """The mock, with programs that the interpreter runs; it may fail."""

    fails_after: int | None = None
    pinned_bytes = 1 << 30

    def program(self, source: Any) -> Any:
        return source

    def pin(self, first: int, end: int) -> None:
        if end - first > self.pinned_bytes:
            raise DeviceError("too little memory may be locked")
        super().pin(first, end)

    def copy(self, target: int, source: int, nbytes: int, stream: Any) -> None:
        if self.fails_after is not None:
            self.fails_after -= 1
            if self.fails_after < 0:
                raise DeviceError("the device is lost")
        super().copy(target, source, nbytes, stream)


class OnMock:
    """A program in chunks on a mock device."""

    source = ""

    def __init__(self, built: BuiltProgram, limit: int, buffers: int, device: Device) -> None:
        module = built.module.clone()
        assert page_module(module, built.weights, limit, buffers, values=True)
        functions: dict[str, Any] = {}
        for function in module.ops:
            name = function.properties["sym_name"].data  # pyright: ignore
            if name == "main":
                continue
            source = Source(function, built.weights)
            count = range(len(source.function.body.block.args))
            there = DeviceFunction(source, tuple(count), ())  # pyright: ignore
            functions[name] = there if is_of_device(source.function) else source.here
        self.runner = HostProgramRunner(host_program(module), device, functions, limit)
        main = function_named(built.module, "main")
        assert main is not None
        self._results = len(main.function_type.outputs)
        self._written = list(written_arguments(main))

    def run(self, buffers: Sequence[Any]) -> tuple[list[Any], Mapping[int, Any]]:
        found = self.runner.run(buffers)
        return found[: self._results], dict(zip(self._written, found[self._results :], strict=True))

    def ir(self, level: str) -> str:
        return ""

    def report(self) -> dict[str, Any]:
        return {}

    def timelines(self) -> list[Any]:
        return []


def on(device: Device, limit: int, buffers: int = 3) -> Callable[[Any], JittedFunction]:
    return lambda function: JittedFunction(
        function, lambda built: OnMock(built, limit, buffers, device)
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("function", "arguments", "limit"), CASES, ids=NAMES)
def test_any_order(function: Callable[..., Any], arguments: tuple[Any, ...], limit: int, seed: int):
    device = Device(seed, memory=limit)
    check(function, *arguments, tolerance=1e-12, jit=on(device, limit, 1 + seed))
    assert device.used == 0


def plan_of(function: Any, arguments: Sequence[Any], limit: int) -> HostPlan:
    chunking = Chunking(limit, values=True)
    chunking(function).compile(*arguments)
    assert chunking.last is not None
    made = host_program(chunking.last.module, Rates(link=1e9, memory=1e10, start_ns=1))
    return assign_streams(made.buffers, made.tasks, choice="by-kind")


@pytest.mark.parametrize(
    ("function", "arguments", "limit"),
    [(scaled, (LINE, LINE * 2), 1000), (neighbours, (LINE,), 700), (standardised, (LINE,), 1500)],
    ids=["scaled", "neighbours", "standardised"],
)
def test_no_wait_may_be_dropped(function: Any, arguments: tuple[Any, ...], limit: int):
    plan = plan_of(function, arguments, limit)
    verify(plan)
    assert plan.device_bytes <= limit
    for number, place in enumerate(plan.places):
        for wait in place.waits:
            places = list(plan.places)
            places[number] = Place(place.queue, tuple(w for w in place.waits if w != wait))
            with pytest.raises(ScheduleError, match="race"):
                verify(HostPlan(plan.buffers, plan.tasks, places))


def test_an_array_that_is_used_again_too_early():
    """The copy to the device of chunk 3 goes where chunk 1, not chunk 0, has its rows."""
    plan = plan_of(scaled, (LINE, LINE * 2), 1000)
    copies = [n for n, t in enumerate(plan.tasks) if t.kind == "to_device"]
    first, later = copies[2], copies[6]
    uses = plan.tasks[later].uses
    moved = replace(uses[1].region, buffer=plan.tasks[first].uses[1].region.buffer)
    tasks = list(plan.tasks)
    tasks[later] = replace(tasks[later], uses=(uses[0], replace(uses[1], region=moved)))
    with pytest.raises(ScheduleError, match="race"):
        verify(HostPlan(plan.buffers, tasks, plan.places))


def test_a_halo_too_small_is_no_program():
    chunking = Chunking(700)
    chunking(neighbours).compile(LINE)
    assert chunking.last is not None
    text = str(chunking.last.module)
    # A row less than the function takes.
    units = chunking.sweeps[0].size.units
    assert f"sizes: [{units + 2}]" in text
    wrong = text.replace(f"sizes: [{units + 2}]", f"sizes: [{units + 1}]")
    context = IrkitContext(weights=chunking.last.built.weights)
    register_dialects(context)
    with pytest.raises((ParseError, VerifyException), match=r"Expected result type|same shape"):
        Parser(context, wrong).parse_module().verify()


def test_three_streams_overlap():
    x = np.zeros(1 << 16)
    plan = plan_of(scaled, (x, x.copy()), x.nbytes // 2)
    times = expected(plan)
    assert plan.queues == 4
    assert times.overlap >= 0.9
    assert times.gain >= 1.5


def test_a_run_that_waits_for_each_task():
    device = Device(5, memory=2000)
    made: list[OnMock] = []

    def lower(built: BuiltProgram) -> OnMock:
        made.append(OnMock(built, 1000, 3, device))
        return made[-1]

    JittedFunction(scaled, lower).compile(LINE, LINE.copy())
    (found,) = made[0].runner.run([LINE, LINE.copy()], one_by_one=True)
    np.testing.assert_array_equal(found, scaled(LINE, LINE))


@pytest.mark.parametrize("after", [0, 1, 5, 20])
def test_a_lost_device(after: int):
    device, x = Device(1, memory=2000), LINE.copy()
    function = on(device, 700)(neighbours).compile(x)
    device.fails_after = after
    with pytest.raises(DeviceError, match=r"'to (device|host): a'.*the device is lost"):
        function(x)
    np.testing.assert_array_equal(x, LINE)
    assert device.used == 0
    device.fails_after = None
    function(x)
    assert not np.array_equal(x, LINE)


def test_too_little_memory_may_be_locked():
    device, x = Device(1, memory=2000), LINE.copy()
    device.pinned_bytes = 100
    with pytest.raises(DeviceError, match="argument 'a': too little memory may be locked"):
        on(device, 700)(neighbours)(x)
    np.testing.assert_array_equal(x, LINE)
    assert device.used == 0


def test_too_little_memory_on_the_device():
    device, x = Device(1, memory=100), LINE.copy()
    with pytest.raises(DeviceError, match=r"memory of the device for '.*': the mock device has"):
        on(device, 700)(neighbours)(x)
    assert device.used == 0


@pytest.mark.parametrize("seed", range(4))
def test_limits_of_a_few_bytes_and_more(seed: int):
    """Each is right, or refused with the line; the device never has more than that."""
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal((int(rng.integers(13, 30)), 3)) for _ in range(3)]
    refused = 0
    for limit in (1, 7, 24, 64, 120, *rng.integers(1, arrays[0].nbytes, 8).tolist()):
        device = Device(seed, memory=limit)
        try:
            check(made(seed), *arrays, tolerance=1e-9, jit=on(device, limit, 1 + seed))
        except UnsupportedError as error:
            refused += 1
            told = str(error)
            assert "region @" in told
            assert "test_page_random.py:" in told
        assert device.used == 0
    assert refused >= 5


def test_locked_pages_are_let_go():
    device = Device(1, memory=2000)
    function = on(device, 1000)(scaled)
    x, y = LINE.copy(), LINE.copy()
    function(x, y)
    function(x, y)
    assert len(device._pinned) == 2  # pyright: ignore
    del x, y
    assert not device._pinned  # pyright: ignore


class Locking(Device):
    """Counts how often pages are locked."""

    times = 0

    def pin(self, first: int, end: int) -> None:
        self.times += 1
        super().pin(first, end)


def test_pages_of_large_results_are_locked_once():
    """They serve again when nobody holds the result, and never while somebody does."""
    device = Locking(1, memory=1 << 22)
    function = on(device, 1 << 18)(doubled)
    x = np.arange(float(1 << 16))
    for _ in range(5):
        function(x)
    # The argument's, the result's, and those of the call from which the shapes of results are known.
    before = device.times
    assert before <= 3
    kept = [function(x + n) for n in range(4)]
    for n, result in enumerate(kept):
        np.testing.assert_array_equal(result, 2 * (x + n))
    assert device.times > before


def doubled(x: Any) -> Any:
    return 2 * x


def test_what_has_no_chunks():
    with pytest.raises(UnsupportedError, match="memory_limit=0: expected a number of bytes"):
        irkit.jit(memory_limit=0)(scaled)(LINE, LINE.copy())
    with pytest.raises(UnsupportedError, match="it is of a GPU's memory"):
        irkit.jit(memory_limit=99, target="cpu")(scaled)(LINE, LINE.copy())


def test_compiled_for_a_gpu():
    """The real programs of chunks, whose IR the mock device interprets."""
    options = {
        "target": "cuda",
        "device": "h200",
        "mode": "auto",
        "fastmath": ("afn",),
        "cache": True,
    }
    mock = MockDevice(3, memory=1 << 16)
    x = PLANE

    def jit(function: Any) -> JittedFunction:
        return JittedFunction(function, lambda b: in_chunks(b, options, 1100, lambda: mock))

    made = check(np_norm, x, tolerance=1e-12, jit=jit)
    told = made.explain()
    assert "in chunks, as its arrays are larger than 1100 bytes" in told
    assert "at a time" in told
    assert made.report()["device_bytes"] <= 1100
    assert "main_region0_chunk0" in made.ir("paged")
    assert made.timelines()[0].veus == 4
    assert mock.used == 0


def np_norm(x: Any) -> Any:
    return np.sqrt((x * x).sum())
