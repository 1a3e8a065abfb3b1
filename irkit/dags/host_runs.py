"""What a run of a host program has: arrays of the host, memory of the device, streams, events, launches."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Final, cast

import numpy as np

from irkit.dags.device import DagDevice
from irkit.dags.failures import drain
from irkit.dags.located import Located, address_of
from irkit.dags.programs import DeviceProgram, ProgramLaunch, ProgramSource
from irkit.dialects.types import numpy_dtype
from irkit.errors import DeviceError, UnsupportedError
from irkit.passes.host.actions import Call, HostProgram, Place
from irkit.runtime.output_memory import OutputMemory

Array = np.ndarray[Any, Any]
HostFunction = Callable[..., object]


@dataclass(frozen=True)
class DeviceFunction:
    """A compiled function of the device, and which of its arguments the program takes and which it
    writes."""

    source: ProgramSource
    reads: tuple[int, ...]
    writes: tuple[int, ...]


class Loaded:
    """A program on the device, and workspaces that no run has now."""

    def __init__(self, function: DeviceFunction, device: DagDevice) -> None:
        self.function = function
        self.program: DeviceProgram = device.program(function.source)
        self._free: list[Any] = [self.program.workspace(1)]
        self.spans: list[tuple[int, int]] = getattr(self._free[0], "spans", [])

    def take(self) -> Any:
        """A workspace for one run."""
        try:
            return self._free.pop()
        except IndexError:
            return self.program.workspace(1)

    def give(self, workspace: Any) -> None:
        """It is free again."""
        self._free.append(workspace)


class Pages:
    """Pages of the host that were locked, until the array that has them goes."""

    def __init__(self, device: DagDevice) -> None:
        self._device = device
        self._pinned: dict[tuple[int, int], int] = {}
        self._locked = 0

    def lock(self, name: str, array: Array, kept: ExitStack) -> int | None:
        """Lock the pages of an array; where nobody can tell when it goes, until `kept` is closed.

        Returns a number that pages have as long as they are locked, and no others ever; None for those that
        are let go with `kept`. Raises DeviceError where they cannot be locked.
        """
        first = address_of(array)
        span = first, first + array.nbytes
        known = self._pinned.get(span)
        if known is not None or not array.nbytes:
            return known
        try:
            self._device.pin(*span)
        except DeviceError as error:
            raise DeviceError(f"argument '{name}': {error}") from error
        owner = _owner(array)
        if owner is None:
            kept.callback(self._device.unpin, first)
            return None
        self._locked += 1
        self._pinned[span] = self._locked
        weakref.finalize(owner, _let_go, self._device, self._pinned, span).atexit = False
        return self._locked


RECORD: Final = "record"
"""In the place of a graph: this run is the one to record."""
GRAPHS = 4
"""So many graphs are kept of one run's memory: results take turns."""


class Graphs:
    """Graphs by what they were recorded on, those of the last `GRAPHS` that came again."""

    def __init__(self) -> None:
        self._graphs: dict[Hashable, Any] = {}
        self._seen: deque[Hashable] = deque(maxlen=2 * GRAPHS)

    def __len__(self) -> int:
        return len(self._graphs)

    def find(self, key: Hashable) -> Any:
        """The graph of a key; `RECORD` where it comes for the second time, None for the first."""
        graph = self._graphs.get(key)
        if graph is None and key in self._seen:
            return RECORD
        if graph is None:
            self._seen.append(key)
        return graph

    def keep(self, key: Hashable, graph: Any) -> None:
        """Take note of the graph of a key; the oldest one makes place."""
        while len(self._graphs) >= GRAPHS:
            del self._graphs[next(iter(self._graphs))]
        self._graphs[key] = graph

    def clear(self) -> None:
        """Let all go."""
        self._graphs.clear()
        self._seen.clear()


@dataclass
class Run:
    """What one run has, and, where it is kept, the next one: by buffer, arrays of the host and addresses of
    the device; by stream, queue 0 being the host's; by task, events."""

    device: DagDevice
    arrays: dict[int, Array] = field(default_factory=dict[int, Array])
    addresses: dict[int, int] = field(default_factory=dict[int, int])
    streams: list[Any] = field(default_factory=list[Any])
    events: dict[int, Any] = field(default_factory=dict[int, Any])
    one_by_one: bool = False
    begin: Any = None
    ends: list[Any] = field(default_factory=list[Any])
    graphs: Graphs = field(default_factory=lambda: Graphs())
    memory: ExitStack = field(default_factory=ExitStack)
    _launches: dict[tuple[Any, ...], ProgramLaunch] = field(
        default_factory=dict[tuple[Any, ...], ProgramLaunch]
    )
    _spaces: dict[str, Any] = field(default_factory=dict[str, Any])

    def open(self, program: HostProgram, own: set[int], queues: int) -> None:
        """Memory of the device, arrays of the host that no caller has, and streams. Raises DeviceError; what
        there is then is given back by `close`."""
        for number, buffer in enumerate(program.buffers):
            if buffer.space == "device":
                self.addresses[number] = self._allocate(buffer.name, buffer.nbytes)
            elif number in own:
                self.arrays[number] = empty(program, number)
        self.streams = [None, *(self.device.new_stream() for _ in range(queues - 1))]
        self.ends = [None] * queues

    def _allocate(self, name: str, nbytes: int) -> int:
        try:
            address = self.device.allocate(nbytes)
        except DeviceError as error:
            raise DeviceError(f"memory of the device for '{name}': {error}") from error
        self.memory.callback(self.device.free, address)
        return address

    def launch(self, action: Call, functions: Mapping[str, Loaded]) -> ProgramLaunch:
        """A program on its arrays: made once, as arrays take turns."""
        places = (*action.arrays, *action.outputs.values())
        key = action.function, *((p.buffer, p.offset) for p in places)
        if key not in self._launches:
            loaded = functions.get(action.function)
            if loaded is None:
                raise UnsupportedError(f"'@{action.function}': no such program was given")
            if action.function not in self._spaces:
                space = self._spaces[action.function] = loaded.take()
                self.memory.callback(loaded.give, space)
            ends = [action.arrays[n] for n in loaded.function.reads]
            ends += [action.written(n) for n in loaded.function.writes]
            views = tuple(map(self.view, ends))
            made = ProgramLaunch(views, loaded.program, self._spaces[action.function], 1)
            made.prepare()
            self._launches[key] = made
        return self._launches[key]

    def view(self, place: Place) -> Any:
        """An array of the device."""
        dtype = numpy_dtype(place.array.element_type)
        address = self.addresses[place.buffer] + place.offset
        low, high = place.region.hull
        root = address - place.offset + low, address - place.offset + high
        return self.device.view(
            Located("device", address, place.sizes, place.strides, dtype, False, root)
        )

    def opens(self, streams: Sequence[Any]) -> None:
        """What is put into streams from now on comes after all that others have put on the device."""
        self.begin = self.device.begin(self.begin)
        for stream in streams:
            self.device.wait(stream, self.begin)

    def finishes(self, queues: Sequence[int]) -> None:
        """Wait for the streams of queues. Raises DeviceError where the device failed."""
        for queue in queues:
            self.ends[queue] = self.device.record(self.streams[queue], self.ends[queue])
            self.device.synchronize(self.ends[queue])

    def replayed(self, key: Hashable, issue: Callable[[], None]) -> bool:
        """Whether a run on the pages of `key` went as a graph: the second on them is recorded, by `issue`,
        which puts its tasks into streams, and from then on that is replayed."""
        graph = self.graphs.find(key)
        if graph is None:
            return False
        first = self.streams[1]
        if graph is RECORD:
            graph = self.device.graph(lambda: self._forked(issue), first)
            self.graphs.keep(key, graph)
        self.opens([first])
        self.device.replay(graph, first)
        self.finishes([1])
        return True

    def _forked(self, issue: Callable[[], None]) -> None:
        """All tasks, in streams that leave the first one and come back to it."""
        first, *others = self.streams[1:]
        fork = self.device.record(first)
        for stream in others:
            self.device.wait(stream, fork)
        issue()
        for stream in others:
            self.device.wait(first, self.device.record(stream))

    def drain(self) -> None:
        """Nothing of a run that failed may go on in memory that is given back."""
        drain(self.device, self.streams[1:])

    def close(self) -> None:
        """Give everything back."""
        # Graphs name streams, events and what launches have.
        self.graphs.clear()
        self._launches.clear()
        self.streams.clear()
        self.events.clear()
        self.begin, self.ends = None, []
        self.memory.close()


def empty(program: HostProgram, number: int, memory: OutputMemory | None = None) -> Array:
    """An array of the host for a buffer: new, or in `memory` of an earlier one."""
    t = program.arrays[number]
    made = np.empty if memory is None else memory.empty
    return made(t.get_shape(), numpy_dtype(t.element_type))


def host_view(array: Array, place: Place) -> Array:
    """A view of a buffer of the host."""
    raw = array.reshape(-1).view(np.uint8)
    dtype = numpy_dtype(place.array.element_type)
    return np.ndarray(place.sizes, dtype, raw.data, place.offset, place.strides)


def _let_go(device: DagDevice, pinned: dict[tuple[int, int], int], span: tuple[int, int]) -> None:
    pinned.pop(span, None)
    device.unpin(span[0])


def _owner(array: Array) -> Array | None:
    """The array that goes last of those that share memory; None where something else has it."""
    while isinstance(array.base, np.ndarray):
        array = cast(Array, array.base)
    return array if array.base is None else None
