"""The state of a program on a CUDA device."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from irkit.runtime.cuda.driver import call
from irkit.runtime.cuda.memory import Pool
from irkit.runtime.state_memory import Advance, port_bytes
from irkit.schedule.tables import Port
from irkit.weights import Array


class DeviceState:
    """State that stays on the device; zeros at first.

    `lock` is that of the program's runs, and `stream` the one that the last of them was queued on.
    """

    def __init__(
        self, pool: Pool, ports: Sequence[Port], lock: threading.Lock, stream: Any
    ) -> None:
        self.ports, self.lock, self.stream, self._pool = tuple(ports), lock, stream, pool
        self.advance = Advance()
        self._buffers = [pool.take(port_bytes(port)) for port in self.ports]
        for buffer in self._buffers:
            buffer.clear(stream)

    @property
    def addresses(self) -> list[int]:
        """Where each lies, at a multiple of 256 bytes."""
        return [buffer.address for buffer in self._buffers]

    def read(self, number: int) -> Array:
        """A copy on the host; waits for the last run."""
        port = self.ports[number]
        host = np.empty(port.shape, port.dtype)
        self._pool.device.activate()
        address = self._buffers[number].address
        call("cuMemcpyDtoHAsync", host.ctypes.data, address, host.nbytes, self.stream)
        call("cuStreamSynchronize", self.stream)
        return host

    def write(self, number: int, array: Array) -> None:
        """Copy an array to the device, after the last run."""
        host = np.array(array, self.ports[number].dtype, order="C")
        self._pool.device.activate()
        self._buffers[number].upload(host, self.stream)
        call("cuStreamSynchronize", self.stream)
