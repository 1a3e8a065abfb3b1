"""Arrays of other libraries: what comes in on the device goes out on the device, of the same library."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from irkit.bfloat16 import dtype_of
from irkit.runtime.cuda.driver import call
from irkit.runtime.cuda.memory import DeviceArray, DeviceBuffer, Pool
from irkit.runtime.input_policy import DeviceFacts
from irkit.weights import Array


@dataclass(frozen=True)
class Bound:
    """An input's array on the device; `keep` holds its memory until the run is queued."""

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


def device_facts(value: Any) -> DeviceFacts:
    """What an array on a device says of itself."""
    described = value.detach() if hasattr(value, "detach") else value
    facts = described.__cuda_array_interface__
    strides, stream = facts.get("strides"), facts.get("stream")
    return DeviceFacts(
        int(facts["data"][0]),
        tuple(facts["shape"]),
        _dtype_of(described, facts["typestr"]),
        tuple(strides) if strides is not None else None,
        int(stream) if stream is not None else None,
    )


def host_copy(facts: DeviceFacts, stream: Any) -> Array:
    """An array on a device as one on the host; waits for the stream."""
    host = np.empty(facts.shape, facts.dtype)
    call("cuMemcpyDtoHAsync", host.ctypes.data, facts.address, host.nbytes, stream)
    call("cuStreamSynchronize", stream)
    return host


def _dtype_of(value: Any, typestr: str) -> np.dtype[Any]:
    """Of an array's elements: the protocol has no word for bfloat16, which it calls two bytes of anything."""
    said = str(getattr(value, "dtype", "")).removeprefix("torch.")
    return dtype_of("bfloat16") if said == "bfloat16" else np.dtype(typestr)


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
