"""Arrays of other libraries: what comes in on the device goes out on the device, of the same library."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from irkit.bfloat16 import dtype_of
from irkit.errors import UnsupportedError
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
    if _is_tensor(value):
        return bool(value.is_cuda)
    return hasattr(value, "__cuda_array_interface__")


def library_of(value: Any) -> str:
    """ "torch", "cupy" or "irkit": whose arrays a device array's outputs should be."""
    for name, kind in (("torch", "Tensor"), ("cupy", "ndarray")):
        library = sys.modules.get(name)
        if library is not None and isinstance(value, getattr(library, kind)):
            return name
    return "irkit"


def stream_of(library: str, value: Any) -> int | None:
    """The handle of the stream on which, in this thread, the library works on the device of `value`, an array
    of its own; None for irkit's own arrays."""
    if library == "torch":
        torch, number = sys.modules["torch"], value.get_device()
        # The handle alone, as compiled PyTorch code asks for it, where there is that function: the public
        # way makes an object first, which takes as long as to launch a kernel.
        raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
        if raw is not None:
            return int(raw(number))
        return int(torch.cuda.current_stream(number).cuda_stream)
    if library == "cupy":
        return int(sys.modules["cupy"].cuda.get_current_stream().ptr)
    return None


def device_facts(value: Any) -> DeviceFacts:
    """What an array on a device says of itself."""
    plain = _plain_tensor(value)
    if plain is not None:
        return plain
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


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _plain_tensor(value: Any) -> DeviceFacts | None:
    """What the protocol would say of a contiguous tensor, without its dictionary; None of any other array."""
    if not _is_tensor(value) or str(value.layout) != "torch.strided" or not value.is_contiguous():
        return None
    dtype = _torch_dtype(value.dtype)
    return None if dtype is None else DeviceFacts(value.data_ptr(), tuple(value.shape), dtype, None)


@cache
def _torch_dtype(dtype: Any) -> np.dtype[Any] | None:
    """NumPy's of the same name, if there is one."""
    try:
        return dtype_of(str(dtype).removeprefix("torch."))
    except (TypeError, UnsupportedError):
        return None


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
