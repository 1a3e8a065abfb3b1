"""Runs the tasks of a host program on a device: memory, streams, events, copies, calls."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from irkit.dags.device import DagDevice
from irkit.dags.located import Located, steps_of
from irkit.dags.programs import DeviceProgram, ProgramLaunch, ProgramSource
from irkit.dialects.types import numpy_dtype
from irkit.errors import DeviceError, InvalidInputError, UnsupportedError
from irkit.passes.host.host_program import Call, HostProgram, Move, Place
from irkit.schedule.host.model import HOST, HostPlan, Region
from irkit.schedule.host.planning import assign_streams
from irkit.schedule.host.simulation import device_bytes
from irkit.schedule.host.verifier import verify

Array = np.ndarray[Any, Any]
HostFunction = Callable[..., object]


@dataclass(frozen=True)
class DeviceFunction:
    """A compiled function of the device, and which of its arguments the program takes and which it
    writes."""

    source: ProgramSource
    reads: tuple[int, ...]
    writes: tuple[int, ...]


@dataclass
class _Run:
    """What one run has: arrays of the host and addresses of the device, by buffer, and its streams."""

    arrays: dict[int, Array] = field(default_factory=dict[int, Array])
    addresses: dict[int, int] = field(default_factory=dict[int, int])
    streams: list[Any] = field(default_factory=list[Any])
    one_by_one: bool = False
    events: dict[int, Any] = field(default_factory=dict[int, Any])
    launches: dict[tuple[Any, ...], ProgramLaunch] = field(
        default_factory=dict[tuple[Any, ...], ProgramLaunch]
    )


class HostProgramRunner:
    """A host program that is planned and proved once, and run on arrays of the caller as often as is wanted.

    Pages of the caller's arrays are locked when they are first copied from or to, and let go when the array
    goes: a copy through a buffer of locked pages would take the host's memory once more for each byte, and
    locking takes that long only once.
    """

    def __init__(
        self,
        program: HostProgram,
        device: DagDevice,
        functions: Mapping[str, DeviceFunction | HostFunction],
        limit: int | None = None,
    ) -> None:
        """`functions` are those that tasks call. Raises UnsupportedError where memory of more than `limit`
        bytes is needed on the device."""
        self._program, self._device, self._functions = program, device, functions
        self.plan: HostPlan = assign_streams(program.buffers, program.tasks, choice="by-kind")
        verify(self.plan)
        self._loaded: dict[str, tuple[DeviceProgram, Any]] = {}
        self._pinned: set[tuple[int, int]] = set()
        self._last_wait: dict[int, int] = {}
        for number, place in enumerate(self.plan.places):
            self._last_wait.update(dict.fromkeys(place.waits, number))
        _check_moves(program)
        self._check_limit(limit)

    def _check_limit(self, limit: int | None) -> None:
        needed = device_bytes(self.plan)
        if limit is not None and needed > limit:
            raise UnsupportedError(
                f"the program's arrays take {needed} bytes on the device, and {limit} are allowed"
            )

    def run(self, arguments: Sequence[Array], one_by_one: bool = False) -> list[Array]:
        """What the program returns. `one_by_one` waits for each task before it starts the next: what a loop
        over chunks without a schedule does. Raises DeviceError where memory cannot be had or locked, or the
        device fails, naming the task: all memory is given back then, and arguments that the program does not
        write are as they were."""
        with ExitStack() as kept:
            run = self._begin(arguments, kept)
            run.one_by_one = one_by_one
            for number in range(len(self.plan.tasks)):
                self._start(number, run)
            self._finish(run)
            return [_returned(run.arrays[p.buffer], p) for p in self._program.results]

    # -- memory

    def _begin(self, arguments: Sequence[Array], kept: ExitStack) -> _Run:
        program, run = self._program, _Run()
        for number, given in zip(program.arguments, arguments, strict=True):
            run.arrays[number] = _fitting(program, number, given)
        kept.callback(self._drain, run)
        for number, buffer in enumerate(program.buffers):
            if buffer.space == "host" and number not in run.arrays:
                t = program.arrays[number]
                run.arrays[number] = np.empty(t.get_shape(), numpy_dtype(t.element_type))
            elif buffer.space == "device":
                run.addresses[number] = self._allocate(buffer.name, buffer.nbytes, kept)
        for number in self._copied():
            self._pin(program.buffers[number].name, run.arrays[number], kept)
        begin = self._device.begin()
        run.streams = [None, *(self._device.new_stream() for _ in range(self.plan.queues - 1))]
        for stream in run.streams[1:]:
            self._device.wait(stream, begin)
        return run

    def _allocate(self, name: str, nbytes: int, kept: ExitStack) -> int:
        try:
            address = self._device.allocate(nbytes)
        except DeviceError as error:
            raise DeviceError(f"memory of the device for '{name}': {error}") from error
        kept.callback(self._device.free, address)
        return address

    def _copied(self) -> list[int]:
        """Buffers of the host that are copied from or to."""
        moves = [a for a in self._program.actions if isinstance(a, Move)]
        used = dict.fromkeys(r.buffer for m in moves for r in (m.source, m.target))
        return [n for n in used if self._program.buffers[n].space == "host"]

    def _pin(self, name: str, array: Array, kept: ExitStack) -> None:
        first = array.ctypes.data
        span = first, first + array.nbytes
        if span in self._pinned or not array.nbytes:
            return
        try:
            self._device.pin(*span)
        except DeviceError as error:
            raise DeviceError(f"argument '{name}': {error}") from error
        owner = _owner(array)
        if owner is None:
            kept.callback(self._device.unpin, first)
            return
        self._pinned.add(span)
        weakref.finalize(owner, _let_go, self._device, self._pinned, span).atexit = False

    # -- tasks

    def _start(self, number: int, run: _Run) -> None:
        place, action = self.plan.places[number], self._program.actions[number]
        try:
            before = [run.events[wait] for wait in place.waits if wait in run.events]
            if place.queue == HOST:
                for event in before:
                    self._device.synchronize(event)
                self._here(action, run)
            else:
                stream = run.streams[place.queue]
                for event in before:
                    self._device.wait(stream, event)
                self._put(action, run, stream)
                if number in self._last_wait or run.one_by_one:
                    run.events[number] = self._device.record(stream)
                if run.one_by_one:
                    self._device.synchronize(run.events[number])
        except DeviceError as error:
            task = self.plan.tasks[number]
            line = f" ({task.origin})" if task.origin else ""
            raise DeviceError(f"'{task.name}'{line}: {error}") from error
        for wait in place.waits:
            if self._last_wait[wait] == number:
                run.events.pop(wait, None)

    def _here(self, action: Move | Call, run: _Run) -> None:
        if isinstance(action, Move):
            _bytes_of(run, action.target)[...] = _bytes_of(run, action.source)
            return
        function = self._functions.get(action.function)
        if not callable(function):
            raise UnsupportedError(f"'@{action.function}': no such function of the host was given")
        function(*(_view(run.arrays[p.buffer], p) for p in action.arrays))

    def _put(self, action: Move | Call, run: _Run, stream: Any) -> None:
        if isinstance(action, Move):
            nbytes = action.source.hull[1] - action.source.hull[0]
            target, source = _address(run, action.target), _address(run, action.source)
            self._device.copy(target, source, nbytes, stream)
        else:
            self._device.start(self._launch(action, run), stream)

    def _launch(self, action: Call, run: _Run) -> ProgramLaunch:
        # A function is called with the same arrays again and again, as slots take turns.
        key = action.function, *((p.buffer, p.offset) for p in action.arrays)
        if key not in run.launches:
            function = self._functions.get(action.function)
            if not isinstance(function, DeviceFunction):
                raise UnsupportedError(f"'@{action.function}': no such program was given")
            loaded, workspace = self._load(action.function, function.source)
            order = (*function.reads, *function.writes)
            views = tuple(self._view(run, action.arrays[n]) for n in order)
            made = ProgramLaunch(views, loaded, workspace, 1)
            made.prepare()
            run.launches[key] = made
        return run.launches[key]

    def _load(self, name: str, source: ProgramSource) -> tuple[DeviceProgram, Any]:
        if name not in self._loaded:
            program = self._device.program(source)
            self._loaded[name] = program, program.workspace(1)
        return self._loaded[name]

    def _view(self, run: _Run, place: Place) -> Any:
        dtype = numpy_dtype(place.array.element_type)
        address = run.addresses[place.buffer] + place.offset
        size = int(np.prod(place.sizes)) * dtype.itemsize
        root = address, address + size
        strides = steps_of(place.sizes, dtype.itemsize)
        return self._device.view(
            Located("device", address, place.sizes, strides, dtype, False, root)
        )

    def _finish(self, run: _Run) -> None:
        for stream in run.streams[1:]:
            try:
                self._device.synchronize(self._device.record(stream))
            except DeviceError as error:
                raise DeviceError(
                    f"a run of '{self.plan.tasks[0].name}' to its end: {error}"
                ) from error

    def _drain(self, run: _Run) -> None:
        """Nothing of a run that failed may go on in memory that is given back."""
        for stream in run.streams[1:]:
            try:
                self._device.synchronize(self._device.record(stream))
            except DeviceError:
                # A device that is lost does nothing more.
                return


def _let_go(device: DagDevice, pinned: set[tuple[int, int]], span: tuple[int, int]) -> None:
    pinned.discard(span)
    device.unpin(span[0])


def _owner(array: Array) -> Array | None:
    """The array that goes last of those that share memory; None where something else has it."""
    while isinstance(array.base, np.ndarray):
        array = cast(Array, array.base)
    return array if array.base is None else None


def _fitting(program: HostProgram, number: int, given: Array) -> Array:
    t = program.arrays[number]
    want = numpy_dtype(t.element_type), tuple(t.get_shape())
    if (given.dtype, given.shape) != want or not given.flags.c_contiguous:
        raise InvalidInputError(
            f"'{program.buffers[number].name}': expected a contiguous array of {want[0]}{list(want[1])}, "
            f"got {given.dtype}{list(given.shape)}"
        )
    return given


def _check_moves(program: HostProgram) -> None:
    for task, action in zip(program.tasks, program.actions, strict=True):
        if not isinstance(action, Move) or task.on_host:
            continue
        if not (action.source.dense and action.target.dense):
            raise UnsupportedError(
                f"'{task.name}' ({task.origin}): bytes that do not lie in one piece are copied"
            )


def _view(array: Array, place: Place) -> Array:
    """A view of a buffer of the host."""
    raw = array.reshape(-1).view(np.uint8)
    dtype = numpy_dtype(place.array.element_type)
    return np.ndarray(place.sizes, dtype, raw.data, place.offset, place.strides)


def _returned(array: Array, place: Place) -> Array:
    return array if place.sizes == array.shape else _view(array, place)


def _bytes_of(run: _Run, region: Region) -> Array:
    raw = run.arrays[region.buffer].reshape(-1).view(np.uint8)
    item = np.dtype(f"V{region.itemsize}")
    return np.ndarray(region.shape, item, raw.data, region.offset, region.strides)


def _address(run: _Run, region: Region) -> int:
    if region.buffer in run.addresses:
        return run.addresses[region.buffer] + region.offset
    return run.arrays[region.buffer].ctypes.data + region.offset
