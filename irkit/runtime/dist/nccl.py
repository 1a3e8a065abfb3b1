"""Groups of processes with a GPU each, by NCCL (the binding of CuPy)."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from irkit.errors import DeviceError
from irkit.runtime.cuda.state import DeviceState
from irkit.runtime.dist.engine import Queue, no_type
from irkit.runtime.program_files import write_atomically
from irkit.weights import Array

_TYPES = {
    "float16": "NCCL_FLOAT16",
    "float32": "NCCL_FLOAT32",
    "float64": "NCCL_FLOAT64",
    "int8": "NCCL_INT8",
    "uint8": "NCCL_UINT8",
    "int32": "NCCL_INT32",
    "uint32": "NCCL_UINT32",
    "int64": "NCCL_INT64",
    "uint64": "NCCL_UINT64",
}
_KINDS = {"sum": "NCCL_SUM", "max": "NCCL_MAX", "min": "NCCL_MIN"}


class StreamQueue:
    """A queue that is a stream of CuPy's, on which what is put is started."""

    def __init__(self, cupy: Any) -> None:
        self._cupy, self._stream = cupy, cupy.cuda.Stream(non_blocking=True)

    def put(self, action: Callable[[], None], after: Sequence[Any]) -> None:
        """As `Queue` has it."""
        for event in after:
            self._stream.wait_event(event)
        with self._stream:
            action()

    def record(self) -> Any:
        """As `Queue` has it."""
        return self._stream.record(self._cupy.cuda.Event(disable_timing=True))

    def finish(self) -> None:
        """As `Queue` has it."""
        self._stream.synchronize()


class NcclEngine:
    """A rank of a group of processes, each with the GPU that it sees as its first."""

    name, target = "NCCL", "cuda"

    def __init__(self, rank: int, size: int, meeting: Path | str, seconds: float = 120.0) -> None:
        """`meeting`: a path where there is nothing yet, which all ranks see; rank 0 leaves there by which name
        the others find it. Raises DeviceError where CuPy or NCCL is not there, for a rank that is none, and
        where the others do not come within so many seconds."""
        if not 0 <= rank < size:
            raise DeviceError(f"rank {rank} of a group of {size}: expected 0 to {size - 1}")
        try:
            self._cupy: Any = import_module("cupy")
            self._nccl: Any = import_module("cupy.cuda.nccl")
        except ImportError as error:
            raise DeviceError(f"a group by NCCL needs CuPy with NCCL: {error}") from None
        if not getattr(self._nccl, "available", True):
            raise DeviceError("a group by NCCL needs CuPy with NCCL: this CuPy has none")
        self.rank, self.size = rank, size
        self._cupy.cuda.Device(0).use()
        path = Path(meeting)
        name = self._named(path, seconds)
        self._comm: Any = self._called(self._nccl.NcclCommunicator, size, name, rank)
        # All have read it once the communicator is there.
        if rank == 0:
            path.unlink(missing_ok=True)

    def _named(self, path: Path, seconds: float) -> bytes | tuple[int, ...]:
        if self.rank == 0:
            if path.exists():
                raise DeviceError(f"'{path}': the ranks meet at a path where there is nothing yet")
            # Bytes, or in older versions of CuPy numbers.
            made: bytes | tuple[int, ...] = self._nccl.get_unique_id()
            said = {"size": self.size, "name": list(made), "bytes": isinstance(made, bytes)}
            write_atomically(path, json.dumps(said).encode())
            return made
        end = time.monotonic() + seconds
        while not path.exists():
            if time.monotonic() > end:
                raise DeviceError(f"rank {self.rank}: rank 0 did not come to '{path}' in {seconds} s")
            time.sleep(0.01)
        found = json.loads(path.read_bytes())
        if found["size"] != self.size:
            raise DeviceError(
                f"rank {self.rank} is of a group of {self.size}, rank 0 of one of {found['size']}"
            )
        return bytes(found["name"]) if found["bytes"] else tuple(found["name"])

    def queue(self) -> Queue:
        """A stream."""
        return StreamQueue(self._cupy)

    def begin(self) -> Sequence[Any]:
        """What is on CuPy's current stream, with which other libraries' are in order."""
        stream = self._cupy.cuda.get_current_stream()
        return [stream.record(self._cupy.cuda.Event(disable_timing=True))]

    def wait(self, event: Any) -> None:
        """As `Engine` has it."""
        event.synchronize()

    def check(self, dtype: np.dtype[Any]) -> None:
        """As `Engine` has it."""
        if dtype.name not in _TYPES:
            raise no_type(self.name, dtype)

    def all_reduce(self, array: Any, kind: str) -> Any:
        """As `Engine` has it."""
        # What is made of constants alone is the host's.
        array = self._cupy.asarray(array)
        at, size, dtype = self._described(array)
        how = getattr(self._nccl, _KINDS[kind])
        self._called(self._comm.allReduce, at, at, size, dtype, how, self._stream())
        return array

    def all_gather(self, array: Any) -> Any:
        """As `Engine` has it."""
        found = self._cupy.empty((self.size, *array.shape), array.dtype)
        at, size, dtype = self._described(array)
        self._called(self._comm.allGather, at, found.data.ptr, size, dtype, self._stream())
        return found

    def broadcast(self, array: Any, root: int) -> Any:
        """As `Engine` has it."""
        at, size, dtype = self._described(array)
        self._called(self._comm.broadcast, at, at, size, dtype, root, self._stream())
        return array

    def exchange(self, words: Array) -> Array:
        """As `Engine` has it."""
        found = self.all_gather(self._cupy.asarray(words, dtype=np.int64))
        return self.to_host(found)

    def of_state(self, memory: Any) -> list[Any]:
        """As `Engine` has it."""
        if not isinstance(memory, DeviceState):
            raise DeviceError("a group by NCCL has a program on a CPU")
        return [
            self._view(address, port.shape, np.dtype(port.dtype), memory)
            for address, port in zip(memory.addresses, memory.ports, strict=True)
        ]

    def placed(self, array: Any) -> Any:
        """As `Engine` has it."""
        return self._cupy.asarray(array)

    def to_host(self, array: Any) -> Array:
        """As `Engine` has it."""
        found: Array = self._cupy.asnumpy(array)
        return found

    def _view(self, address: int, shape: tuple[int, ...], dtype: np.dtype[Any], owner: Any) -> Any:
        nbytes = max(1, math.prod(shape) * dtype.itemsize)
        memory = self._cupy.cuda.UnownedMemory(address, nbytes, owner)
        return self._cupy.ndarray(shape, dtype, self._cupy.cuda.MemoryPointer(memory, 0))

    def _stream(self) -> int:
        return int(self._cupy.cuda.get_current_stream().ptr)

    def _described(self, array: Any) -> tuple[int, int, int]:
        dtype: int = getattr(self._nccl, _TYPES[array.dtype.name])
        return array.data.ptr, array.size, dtype

    def _called(self, call: Any, *arguments: Any) -> Any:
        try:
            return call(*arguments)
        except self._nccl.NcclError as error:
            raise DeviceError(f"rank {self.rank} of {self.size}, NCCL: {error}") from None
