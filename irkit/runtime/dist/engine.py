"""What does collective ops between the ranks of a group: one interface, an engine for each library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np

from irkit.errors import DeviceError, UnsupportedError
from irkit.runtime.state_memory import HostState
from irkit.weights import Array


class Queue(Protocol):
    """Does what is put into it in order, beside the host and other queues: a stream, or a thread."""

    def put(self, action: Callable[[], None], after: Sequence[Any]) -> None:
        """One more thing to do, behind these events of other queues."""
        ...

    def record(self) -> Any:
        """An event behind all that is in the queue."""
        ...

    def finish(self) -> None:
        """Wait for all that is in the queue. Raises what it raised."""
        ...


class Engine(Protocol):
    """A rank's way to the others. Every rank calls the same methods in the same order.

    `target` is where its arrays lie, "cpu" or "cuda"; on a GPU collective ops go to the stream of the queue
    that does them.
    """

    @property
    def name(self) -> str:
        """What it is called in messages."""
        ...

    @property
    def target(self) -> str:
        """ "cpu" or "cuda"."""
        ...

    @property
    def rank(self) -> int:
        """From 0."""
        ...

    @property
    def size(self) -> int:
        """How many ranks there are."""
        ...

    def queue(self) -> Queue:
        """A new queue."""
        ...

    def begin(self) -> Sequence[Any]:
        """Events behind what the caller's arrays hang on."""
        ...

    def wait(self, event: Any) -> None:
        """Make the host wait for an event. Raises what was raised before it."""
        ...

    def check(self, dtype: np.dtype[Any]) -> None:
        """Raises UnsupportedError for elements that the library knows no type for."""
        ...

    def all_reduce(self, array: Any, kind: str) -> Any:
        """Sum, max or min over all ranks; `array` may be where it goes."""
        ...

    def all_gather(self, array: Any) -> Any:
        """The arrays of all ranks, along a new first dimension."""
        ...

    def broadcast(self, array: Any, root: int) -> Any:
        """The array of one rank; `array` may be where it goes."""
        ...

    def exchange(self, words: Array) -> Array:
        """What each rank brings, a row each: int64 words of the host, equally many of every rank."""
        ...

    def of_state(self, memory: Any) -> list[Any]:
        """The arrays of a program's state where they lie."""
        ...

    def placed(self, array: Any) -> Any:
        """An argument of the caller where the group has its arrays; results of programs are then there too."""
        ...

    def to_host(self, array: Any) -> Array:
        """A result for the caller."""
        ...


class ThreadQueue:
    """A queue that is a thread of the process."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="irkit-group")
        self._last: Future[None] | None = None

    def put(self, action: Callable[[], None], after: Sequence[Any]) -> None:
        """As `Queue` has it."""
        before = [*after] if self._last is None else [self._last, *after]

        def run() -> None:
            for event in before:
                event.result()
            action()

        self._last = self._pool.submit(run)

    def record(self) -> Any:
        """As `Queue` has it."""
        return self._last

    def finish(self) -> None:
        """As `Queue` has it."""
        last, self._last = self._last, None
        if last is not None:
            last.result()


class HostEngine:
    """What engines of arrays on the host share."""

    target = "cpu"

    def queue(self) -> Queue:
        """A thread."""
        return ThreadQueue()

    def begin(self) -> Sequence[Any]:
        """Arrays of the host are what they are."""
        return ()

    def wait(self, event: Any) -> None:
        """As `Engine` has it."""
        event.result()

    def of_state(self, memory: Any) -> list[Any]:
        """As `Engine` has it."""
        if not isinstance(memory, HostState):
            raise DeviceError("a group on the CPU has a program on a GPU")
        return memory.views()

    def placed(self, array: Any) -> Any:
        """As `Engine` has it."""
        return array

    def to_host(self, array: Any) -> Array:
        """As `Engine` has it."""
        return array


def no_type(engine: str, dtype: np.dtype[Any]) -> UnsupportedError:
    """The error of elements that a library knows no type for."""
    return UnsupportedError(f"collective ops of {dtype} by {engine}: it has no type for them")
