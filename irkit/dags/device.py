"""What a DAG needs of a device: memory, streams, events. A GPU is one, and so is the mock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from irkit.dags.leases import Lease
from irkit.dags.located import Located
from irkit.dags.programs import DeviceProgram, ProgramSource
from irkit.dags.works import Copy, Launch, Work

Stream = Any
Event = Any


class DagDevice(Protocol):
    """A device. Streams do what they are given in order; streams among themselves, only what events
    ask for."""

    @property
    def checks(self) -> bool:
        """Whether what is inferred of kernels is held against their machine code."""
        ...

    def begin(self, again: Event | None = None) -> Event:
        """An event behind all that others have put on the device: the first thing that new streams
        wait for. `again`: one that was made here before, and serves again."""
        ...

    def allocate(self, nbytes: int) -> int:
        """The address of new memory. Raises DeviceError where there is none."""
        ...

    def free(self, address: int) -> None:
        """Give memory back, once all that uses it has ended."""
        ...

    def pin(self, first: int, end: int) -> None:
        """Bytes of the host will be copied from and to: asynchronous copies need pages that stay."""
        ...

    def unpin(self, first: int) -> None:
        """They will be no more."""
        ...

    def view(self, located: Located, lease: Lease | None = None) -> Any:
        """An array of device memory, as kernels take it. It keeps the lease, and so do views of it."""
        ...

    def program(self, source: ProgramSource) -> DeviceProgram:
        """A program of irkit's, loaded. Raises DeviceError where it cannot be."""
        ...

    def new_stream(self) -> Stream:
        """A stream."""
        ...

    def start(self, launch: Launch, stream: Stream) -> None:
        """Put a launch into a stream."""
        ...

    def copy(self, target: int, source: int, nbytes: int, stream: Stream) -> None:
        """Put a copy between host and device into a stream."""
        ...

    def record(self, stream: Stream, again: Event | None = None) -> Event:
        """An event behind all that is in a stream; `again`, one that was made here before, serves again."""
        ...

    def wait(self, stream: Stream, event: Event) -> None:
        """What is put into a stream from now on waits for an event."""
        ...

    def finish(self, stream: Stream) -> None:
        """Wait for all that is in a stream. Raises DeviceError where the device failed."""
        ...

    def elapsed(self, first: Event, second: Event) -> float:
        """Nanoseconds from one event to another, once both have come."""
        ...

    def done(self, event: Event) -> bool:
        """Whether an event has come."""
        ...

    def synchronize(self, event: Event) -> None:
        """Wait for an event. Raises DeviceError where the device failed."""
        ...

    def graph(self, record: Callable[[], None], stream: Stream) -> Any:
        """What `record` puts into a stream, and into others that it forks to and joins, to be replayed."""
        ...

    def replay(self, graph: Any, stream: Stream) -> None:
        """Put a graph into a stream."""
        ...


def do_here(work: Work) -> None:
    """Let the host do a launch, now."""
    if isinstance(work, Launch):
        work.start(None)


def put(device: DagDevice, work: Work, stream: Stream) -> None:
    """Put a launch or a copy into a stream."""
    if isinstance(work, Copy):
        device.copy(work.target, work.source, work.nbytes, stream)
    else:
        device.start(work, stream)
