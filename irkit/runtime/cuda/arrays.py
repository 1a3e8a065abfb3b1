"""Arrays of other libraries: what comes in on the device goes out on the device, of the same library."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from irkit.errors import InvalidInputError
from irkit.runtime.cuda.memory import DeviceArray, DeviceBuffer, Pool
from irkit.schedule.tables import Port


@dataclass(frozen=True)
class Bound:
    """A port's array on the device; `keep` holds its memory until the run is queued."""

    address: int
    shape: tuple[int, ...]
    keep: Any


def on_device(value: Any) -> bool:
    """Whether `value` is an array that lies on a CUDA device."""
    if isinstance(value, np.ndarray):
        return False
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return bool(value.is_cuda)
    return hasattr(value, "__cuda_array_interface__")


def library_of(value: Any) -> str:
    """ "torch", "cupy" or "irkit": whose arrays a device array's outputs should be."""
    for name, kind in (("torch", "Tensor"), ("cupy", "ndarray")):
        library = sys.modules.get(name)
        if library is not None and isinstance(value, getattr(library, kind)):
            return name
    return "irkit"


def stream_of(library: str) -> int | None:
    """The handle of the stream that the library works on in this thread; None for irkit's own."""
    if library == "torch":
        return int(sys.modules["torch"].cuda.current_stream().cuda_stream)
    if library == "cupy":
        return int(sys.modules["cupy"].cuda.get_current_stream().ptr)
    return None


def bind_input(port: Port, value: Any) -> Bound:
    """A device array as an input. Raises InvalidInputError: nothing is cast or copied silently."""
    described = value.detach() if hasattr(value, "detach") else value
    facts = described.__cuda_array_interface__
    dtype = np.dtype(facts["typestr"])
    if dtype != np.dtype(port.dtype):
        raise InvalidInputError(f"input '{port.name}': expected dtype {port.dtype}, got {dtype}")
    shape = tuple(facts["shape"])
    if len(shape) != len(port.shape) or any(
        want not in (-1, have) for want, have in zip(port.shape, shape, strict=True)
    ):
        wanted = "x".join("rows" if s == -1 else str(s) for s in port.shape) or "scalar"
        have = "x".join(map(str, shape)) or "scalar"
        raise InvalidInputError(f"input '{port.name}': expected shape {wanted}, got {have}")
    strides = facts.get("strides")
    if strides is not None and not _contiguous(shape, strides, dtype.itemsize):
        raise InvalidInputError(f"input '{port.name}': expected a C-contiguous array")
    address = int(facts["data"][0])
    if address % 16:
        raise InvalidInputError(
            f"input '{port.name}': expected an address that is a multiple of 16, as a view has not"
        )
    return Bound(address, shape, value)


def _contiguous(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    expected = itemsize
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def new_output(library: str, pool: Pool, shape: tuple[int, ...], dtype: str, stream: Any) -> Any:
    """(address, array) for an output, from the library's own allocator."""
    if library == "torch":
        torch: Any = sys.modules["torch"]
        tensor = torch.empty(shape, dtype=getattr(torch, dtype), device="cuda")
        return tensor.data_ptr(), tensor
    if library == "cupy":
        array = sys.modules["cupy"].empty(shape, dtype=dtype)
        return array.data.ptr, array
    kind = np.dtype(dtype)
    buffer: DeviceBuffer = pool.take(int(np.prod(shape, dtype=np.int64)) * kind.itemsize)
    return buffer.address, DeviceArray(buffer, shape, kind, stream)
