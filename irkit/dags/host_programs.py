"""Runs the tasks of a host program on a device: memory, streams, events, copies, calls."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from xdsl.ir import Operation, SSAValue

from irkit.dags.device import DagDevice
from irkit.dags.failures import named, names_of
from irkit.dags.host_runs import (
    Array,
    DeviceFunction,
    HostFunction,
    Loaded,
    Pages,
    Run,
    empty,
    host_view,
)
from irkit.dags.twins import Twin, TwinLaunch
from irkit.dialects.types import numpy_dtype
from irkit.errors import DeviceError, InvalidInputError, UnsupportedError
from irkit.passes.host.actions import Action, Call, Compute, HostProgram, Move, Place
from irkit.runtime.output_memory import LARGE, OutputMemory
from irkit.schedule.host.model import HOST, HostBuffer, HostPlan, Region, Use
from irkit.schedule.host.model import Place as Queue
from irkit.schedule.host.planning import Policy, assign_streams
from irkit.schedule.host.verifier import verify

Computing = Callable[[Sequence[Operation], Mapping[SSAValue, Any]], None]
"""Does ops of the host, with values that they take."""

__all__ = ["Computing", "DeviceFunction", "HostFunction", "HostProgramRunner", "Ran"]


@dataclass(frozen=True)
class Ran:
    """What a run returns, and the last contents of arguments that it leaves as they are, by their numbers."""

    results: list[Array]
    left: dict[int, Array]


class HostProgramRunner:
    """A host program that is planned and proved once, and run on arrays of the caller as often as is wanted.

    Pages of the caller's arrays are locked when they are first copied from or to, and let go when the array
    goes: a copy through a buffer of locked pages would take the host's memory once more for each byte, and
    locking takes that long only once. Any number of threads may run it, each on memory of its own.
    """

    def __init__(
        self,
        program: HostProgram,
        device: DagDevice,
        functions: Mapping[str, DeviceFunction | HostFunction],
        limit: int | None = None,
        *,
        policy: Policy = "by-kind",
        keep: bool = False,
        computing: Computing | None = None,
        twins: Mapping[str, Twin] | None = None,
    ) -> None:
        """`functions` are those that tasks call, `computing` does what the host computes itself; `twins`
        stand in on the device for functions of the host, by the same names. With `keep` the memory of a run
        serves the next one, until `close` or the end of the last reference. Raises UnsupportedError where
        memory of more than `limit` bytes is needed on the device, DeviceError where programs cannot be
        loaded."""
        self._program, self._device, self._functions = program, device, functions
        self._computing, self._twins = computing, dict(twins or {})
        self._keep, self._kept = keep, list[Run]()
        self.arrays_bytes = sum(b.nbytes for b in program.buffers if b.space == "device")
        _check_moves(program)
        if limit is not None and self.arrays_bytes > limit:
            raise UnsupportedError(
                f"the program's arrays take {self.arrays_bytes} bytes on the device, and {limit} are allowed"
            )
        called = dict.fromkeys(a.function for a in program.actions if isinstance(a, Call))
        there = {n: f for n in called if isinstance(f := functions.get(n), DeviceFunction)}
        once = {id(function): Loaded(function, device) for function in there.values()}
        self._loaded = {name: once[id(function)] for name, function in there.items()}
        self.plan: HostPlan = assign_streams(*self._with_workspaces(), choice=policy)
        verify(self.plan)
        self._awaited = {wait for place in self.plan.places for wait in place.waits}
        self._pages = Pages(device)
        # Locking the pages of results takes longer than copying them: they serve again when nobody holds
        # the results of an earlier call.
        self._in_part = _in_part(program)
        self._returns = [place.buffer for place in (*program.results, *program.left.values())]
        sizes = [program.buffers[n].nbytes for n in self._returns]
        self._outputs = OutputMemory(2 * len(sizes), 2 * sum(sizes), 0 if keep else LARGE)
        given = {*program.arguments, *self._returns}
        self._copies = self._copied()
        self._wants = [_wanted(program, number) for number in program.arguments]
        # What the host does in between is in no graph, nor what somebody's twin may ask of the driver.
        self._graphed = keep and all(map(self._in_graphs, program.actions, self.plan.places))
        self._own = {
            n for n, b in enumerate(program.buffers) if b.space == "host" and n not in given
        }

    def _with_workspaces(self) -> tuple[list[HostBuffer], list[Any]]:
        """Buffers and tasks, with what programs work in beside their arguments, which is one run's at a
        time."""
        buffers, tasks = list(self._program.buffers), list(self._program.tasks)
        spaces: dict[str, list[Use]] = {}
        for name, loaded in self._loaded.items():
            spaces[name] = []
            for _, nbytes in loaded.spans:
                whole = Region.of(len(buffers), 0, (nbytes,), (1,), 1)
                spaces[name].append(Use(whole, False, True, "workspace"))
                buffers.append(HostBuffer(f"{name}_workspace", "device", nbytes))
        for number, action in enumerate(self._program.actions):
            if isinstance(action, Call) and action.function in spaces:
                more = spaces[action.function]
                tasks[number] = replace(tasks[number], uses=(*tasks[number].uses, *more))
        return buffers, tasks

    def _in_graphs(self, action: Action, place: Queue) -> bool:
        called = isinstance(action, Call) and action.function not in self._loaded
        return place.queue != HOST and not called

    def run(self, arguments: Sequence[Array], one_by_one: bool = False) -> list[Array]:
        """What the program returns. Raises as `execute`."""
        return self.execute(arguments, one_by_one).results

    def execute(self, arguments: Sequence[Array], one_by_one: bool = False) -> Ran:
        """Run it. `one_by_one` waits for each task before it starts the next: what a loop over chunks
        without a schedule does. Raises DeviceError where memory cannot be had or locked, or the device fails,
        naming the task: all memory is given back then, and arguments that the program does not write are as
        they were."""
        program = self._program
        for number, want, array in zip(program.arguments, self._wants, arguments, strict=True):
            _check_fits(program.buffers[number].name, want, array)
        try:
            run = self._opened()
            self._do(run, arguments, one_by_one)
        except DeviceError as error:
            named = isinstance(error, _TaskError)
            where = "" if named else f"a run of {names_of(self.plan.tasks)}: "
            raise DeviceError(f"{where}{error}; {self._in_part}") from error
        results = [_returned(run.arrays[p.buffer], p) for p in program.results]
        left = {n: _returned(run.arrays[p.buffer], p) for n, p in program.left.items()}
        self._close(run)
        return Ran(results, left)

    def _do(self, run: Run, arguments: Sequence[Array], one_by_one: bool) -> None:
        """A run from its start to its end; nothing of one that failed goes on, and nothing of it is kept."""
        with ExitStack() as locked:
            try:
                pages = self._begin(run, arguments, locked)
                run.one_by_one = one_by_one
                if one_by_one or not self._as_graph(run, pages):
                    run.opens(run.streams[1:])
                    self._issue(run)
                    run.finishes(range(1, len(run.streams)))
            except BaseException:
                run.drain()
                run.close()
                raise

    def close(self) -> None:
        """Give back the memory that is kept."""
        self._outputs = OutputMemory(0)
        while self._kept:
            self._kept.pop().close()

    def __del__(self, exiting: Callable[[], bool] = sys.is_finalizing) -> None:
        # At exit the device goes first.
        if hasattr(self, "_kept") and not exiting():
            self.close()

    # -- memory

    def _opened(self) -> Run:
        """The memory of a run that has ended, or new memory."""
        try:
            return self._kept.pop()
        except IndexError:
            run = Run(self._device)
        try:
            run.open(self._program, self._own, self.plan.queues)
        except DeviceError:
            run.close()
            raise
        return run

    def _close(self, run: Run) -> None:
        if not self._keep:
            run.close()
            return
        # What was returned, and the caller's, is the caller's alone.
        for number in (*self._program.arguments, *self._returns):
            run.arrays.pop(number, None)
        self._kept.append(run)

    def _begin(self, run: Run, given: Sequence[Array], locked: ExitStack) -> tuple[int | None, ...]:
        """The arrays of a run, and which pages they have."""
        program = self._program
        run.arrays.update(zip(program.arguments, given, strict=True))
        for number in self._returns:
            if number not in run.arrays:
                run.arrays[number] = empty(program, number, self._outputs)
        return tuple(
            self._pages.lock(program.buffers[number].name, run.arrays[number], locked)
            for number in self._copies
        )

    def _as_graph(self, run: Run, pages: tuple[int | None, ...]) -> bool:
        """Whether the run went as a graph, which names the memory that it copies from and to."""
        if not self._graphed or None in pages or len(run.streams) < 2:
            return False
        return run.replayed(pages, lambda: self._issue(run))

    def _issue(self, run: Run) -> None:
        for number in range(len(self.plan.tasks)):
            self._start(number, run)

    def _copied(self) -> list[int]:
        """Buffers of the host that are copied from or to."""
        tasks = zip(self._program.tasks, self._program.actions, strict=True)
        moves = [a for t, a in tasks if isinstance(a, Move) and not t.on_host]
        used = dict.fromkeys(r.buffer for m in moves for r in (m.source, m.target))
        return [n for n in used if self._program.buffers[n].space == "host"]

    # -- tasks

    def _start(self, number: int, run: Run) -> None:
        place, action = self.plan.places[number], self._program.actions[number]
        try:
            before = [run.events[wait] for wait in place.waits if wait in run.events]
            if place.queue == HOST:
                for event in before:
                    self._device.synchronize(event)
                self._here(action, run)
                return
            stream = run.streams[place.queue]
            for event in before:
                self._device.wait(stream, event)
            self._put(action, run, stream)
            if number in self._awaited or run.one_by_one:
                run.events[number] = self._device.record(stream, run.events.get(number))
            if run.one_by_one:
                self._device.synchronize(run.events[number])
        except DeviceError as error:
            task = self.plan.tasks[number]
            raise _TaskError(f"{named(task)}: {error}") from error

    def _here(self, action: Action, run: Run) -> None:
        if isinstance(action, Move):
            _bytes_of(run, action.target)[...] = _bytes_of(run, action.source)
        elif isinstance(action, Compute):
            values = {v: host_view(run.arrays[p.buffer], p) for v, p in action.arrays.items()}
            numbers = {v: np.int64(n) for v, n in action.variables.items()}
            if self._computing is None:
                raise UnsupportedError(
                    f"'{action.ops[-1].name}': nothing was given that computes it"
                )
            self._computing(action.ops, {**values, **numbers})
        else:
            function = self._functions.get(action.function)
            if not callable(function):
                raise UnsupportedError(
                    f"'@{action.function}': no such function of the host was given"
                )
            function(*(host_view(run.arrays[p.buffer], p) for p in action.arrays))

    def _put(self, action: Action, run: Run, stream: Any) -> None:
        if isinstance(action, Move):
            nbytes = action.source.hull[1] - action.source.hull[0]
            target, source = _address(run, action.target), _address(run, action.source)
            self._device.copy(target, source, nbytes, stream)
        elif isinstance(action, Call) and action.function in self._loaded:
            self._device.start(run.launch(action, self._loaded), stream)
        elif isinstance(action, Call):
            self._device.start(self._twin(action, run), stream)

    def _twin(self, action: Call, run: Run) -> TwinLaunch:
        twin = self._twins.get(action.function)
        if twin is None:
            raise UnsupportedError(f"'@{action.function}': no twin of it on the device was given")
        return TwinLaunch(tuple(map(run.view, action.arrays)), twin, action.function)


class _TaskError(DeviceError):
    """It says already which task failed."""


Want = tuple[np.dtype[Any], tuple[int, ...]]


def _wanted(program: HostProgram, number: int) -> Want:
    t = program.arrays[number]
    return numpy_dtype(t.element_type), tuple(t.get_shape())


def _check_fits(name: str, want: Want, given: Array) -> None:
    if (given.dtype, given.shape) != want or not given.flags.c_contiguous:
        raise InvalidInputError(
            f"'{name}': expected a contiguous array of {want[0]}{list(want[1])}, "
            f"got {given.dtype}{list(given.shape)}"
        )


def _in_part(program: HostProgram) -> str:
    """What a run that failed may have done to its arguments."""
    written = {u.region.buffer for task in program.tasks for u in task.uses if u.writes}
    names = [f"'{program.buffers[n].name}'" for n in program.arguments if n in written]
    if not names:
        return "no argument was written"
    return f"these arguments may be written in part: {', '.join(names)}"


def _check_moves(program: HostProgram) -> None:
    for task, action in zip(program.tasks, program.actions, strict=True):
        if not isinstance(action, Move) or task.on_host:
            continue
        if not (action.source.dense and action.target.dense):
            raise UnsupportedError(
                f"'{task.name}' ({task.origin}): bytes that do not lie in one piece are copied"
            )


def _returned(array: Array, place: Place) -> Array:
    # A view of as many elements along each axis may be another one: a transposed square.
    same = (place.offset, place.sizes, place.strides) == (0, array.shape, array.strides)
    return array if same else host_view(array, place)


def _bytes_of(run: Run, region: Region) -> Array:
    raw = run.arrays[region.buffer].reshape(-1).view(np.uint8)
    item = np.dtype(f"V{region.itemsize}")
    return np.ndarray(region.shape, item, raw.data, region.offset, region.strides)


def _address(run: Run, region: Region) -> int:
    if region.buffer in run.addresses:
        return run.addresses[region.buffer] + region.offset
    return run.arrays[region.buffer].ctypes.data + region.offset
