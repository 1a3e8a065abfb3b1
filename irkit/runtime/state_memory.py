"""Where the state of a program lies between its runs."""

from __future__ import annotations

import math
import threading
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

import numpy as np

from irkit.errors import DeviceError
from irkit.runtime.workspace import aligned
from irkit.schedule.tables import Port
from irkit.weights import Array


def port_bytes(port: Port) -> int:
    """Bytes of an array without a batch."""
    return math.prod(port.shape) * np.dtype(port.dtype).itemsize


class Advance:
    """Whether state is whole: not while a run changes it, nor after one that did not come to its end."""

    def __init__(self) -> None:
        self.whole = True

    def require(self) -> None:
        """Raises DeviceError if the state is lost."""
        if not self.whole:
            raise DeviceError(
                "the state was lost in a run that did not come to its end: give all of it new values "
                "(program.state.update) or the initial ones (program.state.reset)"
            )

    @contextmanager
    def step(self) -> Generator[None]:
        """Around a run: what fails in it loses the state."""
        self.require()
        self.whole = False
        yield
        self.whole = True


class StateMemory(Protocol):
    """The arrays of a program's state, by number. Who reads, writes or runs holds `lock`."""

    @property
    def ports(self) -> Sequence[Port]:
        """Name, dtype and shape of each."""
        ...

    @property
    def lock(self) -> AbstractContextManager[Any]:
        """Held by whoever uses the state."""
        ...

    @property
    def advance(self) -> Advance:
        """Whether the state is whole."""
        ...

    def read(self, number: int) -> Array:
        """A copy on the host."""
        ...

    def write(self, number: int, array: Array) -> None:
        """Make the state an array of its dtype and shape, C-contiguous."""
        ...


class HostState:
    """State in the memory of the process; zeros at first."""

    def __init__(self, ports: Sequence[Port]) -> None:
        self.ports = tuple(ports)
        self.lock = threading.Lock()
        self.advance = Advance()
        self._arrays: list[Array] = []
        for port in self.ports:
            data = aligned(port_bytes(port))
            data[:] = 0
            self._arrays.append(data.view(port.dtype).reshape(port.shape))

    @property
    def addresses(self) -> list[int]:
        """Where each lies, at a multiple of 256 bytes."""
        return [array.__array_interface__["data"][0] for array in self._arrays]

    def views(self) -> list[Array]:
        """The arrays themselves, for who reads them between two runs."""
        return list(self._arrays)

    def read(self, number: int) -> Array:
        return self._arrays[number].copy()

    def write(self, number: int, array: Array) -> None:
        self._arrays[number][...] = array

    def copy(self) -> HostState:
        """The same state for runs of their own."""
        other = HostState(self.ports)
        with self.lock:
            self.advance.require()
            for number, array in enumerate(self._arrays):
                other.write(number, array)
        return other


def host_state(ports: Sequence[Port]) -> HostState | None:
    """State on the host, if there is any."""
    return HostState(ports) if ports else None
