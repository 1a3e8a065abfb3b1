"""A GPU as the device of a DAG, by the CUDA driver; Numba and CuPy launch their own kernels."""

from __future__ import annotations

import sys
from collections.abc import Callable
from ctypes import c_uint, c_void_p
from importlib import import_module
from typing import Any

from irkit.dags.gpu_programs import GpuProgram, gpu_program
from irkit.dags.kernels import NumbaLaunch
from irkit.dags.leases import Lease
from irkit.dags.located import Located
from irkit.dags.programs import ProgramSource
from irkit.dags.works import Launch
from irkit.errors import DeviceError
from irkit.runtime.cuda.driver import Event, Graph, Stream, api, call, device, direct

PINNED_FROM = 1 << 16
"""Fewer bytes than this are not worth pinning: the driver has room of its own for them."""
VIEWS = 4096
"""So many device arrays are kept for those who ask again."""
_NOT_READY, _ALREADY = 600, 712
_DRIVER_ERRORS = (
    ("numba.cuda.cudadrv.error", "CudaDriverError"),
    ("cupy_backends.cuda.api.driver", "CUDADriverError"),
    ("cupy_backends.cuda.api.runtime", "CUDARuntimeError"),
    ("torch", "AcceleratorError"),
)


class GpuDevice:
    """The GPU of a number, in its primary context."""

    checks = True

    def __init__(self, number: int = 0) -> None:
        self._device = device(number)
        self._pinned: set[int] = set()
        self._numba: dict[int, Any] = {}
        self._views: dict[Located, Any] = {}
        self._finish = direct("cuStreamSynchronize", 1)
        self._wait = direct("cuStreamWaitEvent", 3, (c_void_p, c_void_p, c_uint))

    def begin(self, again: Event | None = None) -> Event:
        """An event behind all that is on the default stream, which others' streams are in order with. Whether
        that has ended cannot be asked in its place: what is queued there waits for others' streams, and a
        question may not."""
        self._device.activate()
        return self._event(0, again)

    def _event(self, stream: Any, again: Event | None) -> Event:
        event = Event() if again is None else again
        event.record(stream)
        return event

    # -- memory

    def allocate(self, nbytes: int) -> int:
        """The address of new memory."""
        self._device.activate()
        return int(call("cuMemAlloc", max(nbytes, 1)))

    def free(self, address: int) -> None:
        """Give memory back."""
        self._device.release("cuMemFree", address)

    def pin(self, first: int, end: int) -> None:
        """Lock pages of the host, so that copies run beside kernels. Raises DeviceError where too few
        may be."""
        if end - first < PINNED_FROM:
            return
        self._device.activate()
        status, *_ = api().cuMemHostRegister(first, end - first, 0)
        if int(status) == 0:
            self._pinned.add(first)
        elif int(status) != _ALREADY:
            raise DeviceError(
                f"{end - first} bytes of host memory cannot be pinned ({status.name}): too little memory "
                "may be locked on this machine (ulimit -l)"
            )

    def unpin(self, first: int) -> None:
        """Let pages go that were locked here."""
        if first in self._pinned:
            self._pinned.discard(first)
            self._device.release("cuMemHostUnregister", first)

    def view(self, located: Located, lease: Lease | None = None) -> Any:
        """A device array of Numba's: it holds no memory, so one serves all that ask for the same without a
        lease."""
        known = self._views.get(located) if lease is None else None
        if known is not None:
            return known
        cuda: Any = import_module("numba.cuda")
        described = {
            "shape": located.shape,
            "strides": located.strides,
            "typestr": located.dtype,
            "data": (located.address, located.readonly),
            "version": 3,
        }
        if len(self._views) >= VIEWS:
            self._views.clear()
        found = cuda.from_cuda_array_interface(described, lease, sync=False)
        if lease is None:
            self._views[located] = found
        return found

    # -- streams

    def new_stream(self) -> Stream:
        """A stream."""
        return Stream(self._device)

    def program(self, source: ProgramSource) -> GpuProgram:
        """A program of irkit's, loaded. Raises DeviceError where it cannot be."""
        return gpu_program(source)

    def start(self, launch: Launch, stream: Stream) -> None:
        """Put a launch into a stream."""
        try:
            launch.start(
                self._numba_stream(stream)
                if isinstance(launch, NumbaLaunch)
                else int(stream.handle)
            )
        except _driver_errors() as error:
            raise DeviceError(f"the launch failed: {error}") from error

    def _numba_stream(self, stream: Stream) -> Any:
        handle = int(stream.handle)
        if handle not in self._numba:
            cuda: Any = import_module("numba.cuda")
            self._numba[handle] = cuda.external_stream(handle)
        return self._numba[handle]

    def copy(self, target: int, source: int, nbytes: int, stream: Stream) -> None:
        """Put a copy between host and device into a stream."""
        call("cuMemcpyAsync", target, source, nbytes, stream.handle)

    def record(self, stream: Stream, again: Event | None = None) -> Event:
        """An event behind all that is in a stream."""
        return self._event(stream.handle, again)

    def wait(self, stream: Stream, event: Event) -> None:
        """What is put into a stream from now on waits for an event."""
        self._wait(int(stream.handle), int(event.handle), 0)

    def finish(self, stream: Stream) -> None:
        """Wait for all that is in a stream. Raises DeviceError where the device failed."""
        self._finish(int(stream.handle))

    def elapsed(self, first: Event, second: Event) -> float:
        """Nanoseconds from one event to another; waits for both."""
        return 1e6 * second.since(first)

    def done(self, event: Event) -> bool:
        """Whether an event has come. Raises DeviceError where the device failed."""
        status, *_ = api().cuEventQuery(event.handle)
        if int(status) in (0, _NOT_READY):
            return int(status) == 0
        call("cuEventSynchronize", event.handle)
        return True

    def synchronize(self, event: Event) -> None:
        """Wait for an event. Raises DeviceError where the device failed."""
        call("cuEventSynchronize", event.handle)

    def graph(self, record: Callable[[], None], stream: Stream) -> Graph:
        """What `record` puts into a stream, and into others that it forks to and joins, as one graph."""
        self._device.activate()

        def recorded(handle: Any) -> None:
            record()

        return Graph(recorded, stream.handle)

    def replay(self, graph: Graph, stream: Stream) -> None:
        """Put a graph into a stream."""
        graph.launch(stream.handle)


def _driver_errors() -> tuple[type[BaseException], ...]:
    """What Numba, CuPy and PyTorch raise where the driver failed."""
    found = (getattr(sys.modules.get(module), name, None) for module, name in _DRIVER_ERRORS)
    return tuple(kind for kind in found if kind is not None)
