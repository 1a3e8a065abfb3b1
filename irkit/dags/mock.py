"""A device of streams and events on the host: it runs what it is given in any order that they allow.

What a GPU may do by chance is done here on purpose, from a seed, so a missing event gives wrong
answers on any machine. Kernels are emulated, or computed by a function of NumPy arrays that stands in
for them.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from irkit.dags.emulation import emulate
from irkit.dags.kernels import NumbaLaunch
from irkit.dags.leases import Lease
from irkit.dags.located import Located
from irkit.dags.mock_programs import MockProgram, mock_program
from irkit.dags.programs import ProgramLaunch, ProgramSource
from irkit.dags.twins import TwinLaunch
from irkit.dags.works import Launch
from irkit.errors import DeviceError, UnsupportedError


class MockArray(np.ndarray[Any, Any]):
    """An array of the mock device's memory. Slices of it are such arrays too."""

    irkit_lease: Lease | None = None

    def __array_finalize__(self, obj: Any) -> None:
        self.irkit_lease = getattr(obj, "irkit_lease", None)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.ctypes.data, not self.flags.writeable),
            "strides": self.strides,
            "version": 3,
        }


@dataclass(eq=False)
class MockEvent:
    """An event: whether it has come, and when, by the clock of the device."""

    done: bool = False
    time: int = 0


@dataclass(frozen=True, eq=False)
class Mark:
    """The place in a stream where an event comes."""

    event: MockEvent


Item = Callable[[], None] | MockEvent | Mark
"""A function is done, an event waited for, a mark lets one come."""


def _again(item: Item, events: dict[MockEvent, MockEvent]) -> Item:
    """The same of events that have not come: those of one replay are others than those of the next."""
    if isinstance(item, Mark):
        return Mark(events.setdefault(item.event, MockEvent()))
    if isinstance(item, MockEvent):
        return item if item.done else events.setdefault(item, MockEvent())
    return item


@dataclass(eq=False)
class MockStream:
    """What is to be done in order."""

    work: deque[Item]


class MockDevice:
    """A device that is none. `models` has functions that stand in for kernels, by kernel or by its
    name; `memory` is how many bytes it has.
    """

    def __init__(
        self,
        seed: int = 0,
        models: Mapping[Any, Callable[..., None]] | None = None,
        memory: int = 1 << 30,
        checks: bool = False,
    ) -> None:
        self.checks = checks
        self._rng = np.random.default_rng(seed)
        self._models = dict(models or {})
        self._left = memory
        self._memory: dict[int, np.ndarray[Any, Any]] = {}
        self._streams: list[MockStream] = []
        self._pinned: set[int] = set()
        self._order: list[int] = []
        self._clock = 0
        self.launches = 0

    def begin(self, again: MockEvent | None = None) -> MockEvent:
        """Nobody else is here."""
        return MockEvent(True, self._clock)

    # -- memory

    @property
    def used(self) -> int:
        """Bytes that are taken."""
        return sum(block.nbytes for block in self._memory.values())

    def array(self, value: Any) -> MockArray:
        """A copy of an array in the device's memory."""
        return np.array(value, order="K").view(MockArray)

    def allocate(self, nbytes: int) -> int:
        """The address of new memory, full of bytes that nobody should see."""
        if nbytes > self._left:
            raise DeviceError(
                f"the mock device has {self._left} bytes left, {nbytes} are asked for"
            )
        self._left -= nbytes
        block = np.full(max(nbytes, 1), 0xAB, np.uint8)
        self._memory[block.ctypes.data] = block
        return block.ctypes.data

    def free(self, address: int) -> None:
        """Give memory back."""
        self._left += self._memory.pop(address).nbytes

    def scramble(self) -> None:
        """Fill all memory that is taken with bytes that nobody should see."""
        for block in self._memory.values():
            block[:] = 0xAB

    def pin(self, first: int, end: int) -> None:
        """Pages stay where they are on this device."""
        self._pinned.add(first)

    def unpin(self, first: int) -> None:
        """They do all the same."""
        self._pinned.discard(first)

    def view(self, located: Located, lease: Lease | None = None) -> Any:
        """An array of its memory."""
        hull = located.region().hull
        raw = memoryview((ctypes.c_uint8 * max(hull[1] - hull[0], 1)).from_address(hull[0]))
        offset = located.address - hull[0]
        found = np.ndarray(located.shape, located.dtype, raw, offset, located.strides)
        made = found.view(MockArray)
        made.irkit_lease = lease
        return made

    # -- streams

    def new_stream(self) -> MockStream:
        """A stream."""
        self._streams.append(MockStream(deque()))
        return self._streams[-1]

    def program(self, source: ProgramSource) -> MockProgram:
        """A program of irkit's, which the interpreter runs."""
        return mock_program(source)

    def start(self, launch: Launch, stream: MockStream) -> None:
        """Put a launch into a stream."""
        if isinstance(launch, ProgramLaunch):
            launch.start(stream.work.append)
        elif isinstance(launch, TwinLaunch):
            stream.work.append(lambda: launch.at(tuple(map(_plain, launch.arguments))).start(None))
        else:
            stream.work.append(lambda: self._run(launch))

    def copy(self, target: int, source: int, nbytes: int, stream: MockStream) -> None:
        """Put a copy into a stream."""
        stream.work.append(lambda: self._moved(target, source, nbytes))

    def record(self, stream: MockStream, again: MockEvent | None = None) -> MockEvent:
        """An event behind all that is in a stream."""
        event = MockEvent()
        stream.work.append(Mark(event))
        return event

    def wait(self, stream: MockStream, event: MockEvent) -> None:
        """What is put into a stream from now on waits for an event."""
        stream.work.append(event)

    def finish(self, stream: MockStream) -> None:
        """Wait for all that is in a stream. Raises DeviceError if that can never be done."""
        self.synchronize(self.record(stream))

    def elapsed(self, first: MockEvent, second: MockEvent) -> float:
        """Things that were done between two events."""
        return float(second.time - first.time)

    def done(self, event: MockEvent) -> bool:
        """Whether an event has come; some work may have been done meanwhile."""
        for _ in range(int(self._rng.integers(3))):
            if not self._step():
                break
        return event.done

    def synchronize(self, event: MockEvent) -> None:
        """Wait for an event. Raises DeviceError if it can never come."""
        while not event.done:
            if not self._step():
                raise DeviceError("the mock device waits for an event that cannot come")

    def graph(self, record: Callable[[], None], stream: MockStream) -> list[list[Item]]:
        """What `record` adds to streams."""
        before = [len(one.work) for one in self._streams]
        record()
        before += [0] * (len(self._streams) - len(before))
        added = [list(one.work)[n:] for one, n in zip(self._streams, before, strict=True)]
        for one, work in zip(self._streams, added, strict=True):
            for _ in work:
                one.work.pop()
        return added

    def replay(self, graph: list[list[Item]], stream: MockStream) -> None:
        """Put what was recorded into the same streams again."""
        again: dict[MockEvent, MockEvent] = {}
        for one, work in zip(self._streams, graph, strict=False):
            for item in work:
                one.work.append(_again(item, again))

    def _step(self) -> bool:
        """Do the next thing of a stream that may go on; whether there was one."""
        if self._rng.random() < 0.15:
            # Streams are favoured for a while, one before the other, so that some run far ahead.
            self._order = self._rng.permutation(len(self._streams)).tolist()
        known = [n for n in self._order if n < len(self._streams)]
        for number in [*known, *range(len(known), len(self._streams))]:
            work = self._streams[number].work
            while work and isinstance(work[0], MockEvent) and work[0].done:
                work.popleft()
            if work and not isinstance(work[0], MockEvent):
                self._do(work.popleft())
                return True
        return False

    def _do(self, item: Item) -> None:
        self._clock += 1
        if isinstance(item, Mark):
            item.event.done, item.event.time = True, self._clock
        elif not isinstance(item, MockEvent):
            item()

    def _moved(self, target: int, source: int, nbytes: int) -> None:
        ctypes.memmove(target, source, nbytes)

    def _run(self, launch: Launch) -> None:
        self.launches += 1
        kernel = getattr(launch, "kernel", None)
        model = self._models.get(launch.name, self._models.get(kernel))
        plain = [_plain(a) for a in launch.arguments]
        if model is not None:
            model(*plain)
        elif isinstance(launch, NumbaLaunch):
            emulate(launch.kernel, launch.grid, launch.block, launch.shared_bytes, plain)
        else:
            raise UnsupportedError(f"the mock device has no model of kernel '{launch.name}'")


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        parts = [_plain(v) for v in cast("tuple[Any, ...]", value)]
        named: Any = getattr(cast(Any, value), "_make", None)
        return named(parts) if named is not None else tuple(parts)
    return value.view(np.ndarray) if isinstance(value, MockArray) else value
