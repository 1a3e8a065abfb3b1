"""Device memory from a free list: after the first call of a size, nothing is allocated."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from irkit.errors import InvalidInputError
from irkit.runtime.cuda.driver import Device, Stream, call
from irkit.weights import Array


class Pool:
    """Blocks of device memory, by size: powers of two up to 1 MiB, then multiples of 1 MiB.

    A block given back is handed out again at once: all users must work on one stream, or order
    themselves. That stream is the pool's, so that it lasts as long as any array from here. The blocks are
    freed when nobody refers to the pool any more.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self.stream = Stream(device)
        self.allocations = 0
        self._free: defaultdict[int, list[int]] = defaultdict(list)
        self._lock = threading.Lock()

    @staticmethod
    def rounded(nbytes: int) -> int:
        """The size of the block that serves `nbytes`."""
        mebi = 1 << 20
        return (
            max(256, 1 << (nbytes - 1).bit_length())
            if nbytes <= mebi
            else -(-nbytes // mebi) * mebi
        )

    def take(self, nbytes: int) -> DeviceBuffer:
        """A block of at least `nbytes`, with unspecified contents, aligned to 256 bytes."""
        size = self.rounded(max(nbytes, 1))
        with self._lock:
            free = self._free[size]
            if free:
                return DeviceBuffer(self, free.pop(), size)
            self.allocations += 1
        self.device.activate()
        return DeviceBuffer(self, int(call("cuMemAlloc", size)), size)

    def put(self, address: int, size: int) -> None:
        """Take a block back."""
        with self._lock:
            self._free[size].append(address)

    def close(self) -> None:
        """Free the blocks that nobody uses; waits for what is queued."""
        with self._lock:
            blocks = [a for free in self._free.values() for a in free]
            self._free.clear()
        for address in blocks:
            self.device.release("cuMemFree", address)

    def __del__(self, exiting: Callable[[], bool] = sys.is_finalizing) -> None:
        if hasattr(self, "_lock") and not exiting():
            self.close()


class DeviceBuffer:
    """A block of a pool, given back when nobody refers to it any more."""

    def __init__(self, pool: Pool, address: int, size: int) -> None:
        self.pool, self.address, self.size = pool, address, size

    def __del__(self) -> None:
        self.pool.put(self.address, self.size)

    def upload(self, array: Array, stream: Any) -> None:
        """Copy a C-contiguous host array here, in stream order."""
        call("cuMemcpyHtoDAsync", self.address, array.ctypes.data, array.nbytes, stream)

    def clear(self, stream: Any) -> None:
        """Set all bytes to zero, in stream order."""
        call("cuMemsetD8Async", self.address, 0, self.size, stream)


class HostWord:
    """A word of 64 bits on the host that kernels write, too; `address` is where they see it.

    It goes when nobody refers to it any more, behind all work on the device.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        device.activate()
        # Seen by every context, and by the device.
        self._at = int(call("cuMemHostAlloc", 8, 3))
        self.address = int(call("cuMemHostGetDevicePointer", self._at, 0))
        self._word = ctypes.c_uint64.from_address(self._at)

    @property
    def value(self) -> int:
        """What it is now."""
        return self._word.value

    @value.setter
    def value(self, value: int) -> None:
        self._word.value = value

    def __del__(self, exiting: Callable[[], bool] = sys.is_finalizing) -> None:
        if hasattr(self, "_at") and not exiting():
            self._device.synchronize()
            self._device.release("cuMemFreeHost", self._at)


class DeviceArray:
    """An array on the device, for whoever reads `__cuda_array_interface__`; `numpy()` copies it out."""

    def __init__(
        self, buffer: DeviceBuffer, shape: tuple[int, ...], dtype: np.dtype[Any], stream: Any
    ) -> None:
        self.buffer, self.shape, self.dtype, self._stream = buffer, shape, dtype, stream

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.buffer.address, False),
            "version": 3,
            "strides": None,
            # Stream 1 is the legacy default stream; 0 is not allowed by the protocol.
            "stream": int(self._stream) or 1,
        }

    def numpy(self) -> Array:
        """A copy on the host; waits for the stream."""
        result = np.empty(self.shape, self.dtype)
        if result.size:
            self.copy_to(result)
        return result

    def copy_to(self, target: Array) -> None:
        """Copy into a C-contiguous host array of the same bytes; waits for the stream."""
        self.buffer.pool.device.activate()
        call(
            "cuMemcpyDtoHAsync", target.ctypes.data, self.buffer.address, self.nbytes, self._stream
        )
        call("cuStreamSynchronize", self._stream)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise InvalidInputError("an array on the device cannot become a host array uncopied")
        result = self.numpy()
        return result if dtype is None else result.astype(dtype)

    def __repr__(self) -> str:
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype}, at={self.buffer.address:#x})"
