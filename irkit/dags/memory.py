"""What a DAG has of its device, given back together: memory, locked pages, programs and their workspaces."""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

import numpy as np

from irkit.dags.device import DagDevice
from irkit.dags.programs import DeviceProgram, ProgramSource
from irkit.errors import InvalidInputError

WORKSPACES = 2
"""So many runs of a program may be under way at a time: one ends while the next one begins."""


class Memory:
    """Memory of a device, until `close`, or until nobody has it any more."""

    def __init__(self, device: DagDevice) -> None:
        self._device = device
        self._blocks: dict[int, int] = {}
        self._pinned: Counter[int] = Counter()
        self._staging: list[Any] = []
        self._programs: dict[int, Loaded] = {}
        self.closed = False

    def require(self) -> None:
        """Raises InvalidInputError where it was given back."""
        if self.closed:
            raise InvalidInputError("the DAG was closed: its memory on the device was given back")

    def allocate(self, nbytes: int) -> int:
        """The address of new memory. Raises DeviceError where there is none."""
        self.require()
        address = self._device.allocate(nbytes)
        self._blocks[address] = nbytes
        return address

    def free(self, address: int) -> None:
        """Give a block back, once all that uses it has ended."""
        if self._blocks.pop(address, None) is not None:
            self._device.free(address)

    def pin(self, first: int, end: int) -> None:
        """Bytes of the host will be copied from and to. Raises DeviceError where too few may be pinned."""
        self.require()
        if not self._pinned[first]:
            self._device.pin(first, end)
        self._pinned[first] += 1

    def staging(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
        """A new array of the host's whose pages stay, as long as this has its memory."""
        made = np.empty(shape, dtype)
        self.pin(made.ctypes.data, made.ctypes.data + made.nbytes)
        self._staging.append(made)
        return made

    def unpin(self, first: int) -> None:
        """They will be no more, by whoever said so."""
        self._pinned[first] -= 1
        if not self._pinned[first]:
            del self._pinned[first]
            self._device.unpin(first)

    def has(self, address: int) -> bool:
        """Whether an address lies in a block that is still here."""
        return any(start <= address < start + max(n, 1) for start, n in self._blocks.items())

    def program(self, source: ProgramSource) -> Loaded:
        """A program on the device, loaded once."""
        self.require()
        known = self._programs.get(id(source))
        if known is None:
            known = self._programs[id(source)] = Loaded(source, self._device.program(source))
        return known

    def close(self) -> None:
        """Give everything back; what uses it must have ended. What is closed stays closed."""
        self.closed = True
        self._programs.clear()
        while self._pinned:
            self._device.unpin(self._pinned.popitem()[0])
        self._staging.clear()
        for address in list(self._blocks):
            self.free(address)

    def __del__(self, exiting: Callable[[], bool] = sys.is_finalizing) -> None:
        # At exit the device goes first.
        if hasattr(self, "closed") and not self.closed and not exiting():
            self.close()


class Loaded:
    """A program on a device, with workspaces that its runs take in turn."""

    def __init__(self, source: ProgramSource, program: DeviceProgram) -> None:
        # Kept, so that its identity stays its own.
        self.source, self.program = source, program
        self._spaces: dict[int, deque[Any]] = {}

    def workspace(self, rows: int) -> Any:
        """The next one for so many rows."""
        spaces = self._spaces.setdefault(rows, deque())
        if len(spaces) < WORKSPACES:
            spaces.append(self.program.workspace(rows))
        else:
            spaces.rotate(-1)
        return spaces[-1]
