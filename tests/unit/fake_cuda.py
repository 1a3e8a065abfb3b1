"""A CUDA driver that keeps a log and has memory, but computes nothing beyond PTX that is given as text."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from itertools import count
from types import SimpleNamespace
from typing import Any

from ptx_emulator import Entry

_MEMORY = 1 << 24
_CREATED = {
    "cuDeviceGet",
    "cuDevicePrimaryCtxRetain",
    "cuEventCreate",
    "cuGraphInstantiate",
    "cuStreamCreate",
    "cuStreamEndCapture",
}


class _Names:
    """Enumerations: any member is its own name."""

    def __getattr__(self, name: str) -> str:
        return name


class _Failure(int):
    name = "CUDA_ERROR_FAKE"


class FakeDriver:
    """`log` has every call's name and arguments; a call named in `failing` does not succeed."""

    CUdevice_attribute = CUfunction_attribute = CUstreamCaptureMode = _Names()
    CUlaunchAttributeID = _Names()
    CUlaunchConfig = SimpleNamespace
    CUresult = SimpleNamespace(CUDA_ERROR_NOT_READY=600)

    @staticmethod
    def CUlaunchAttribute() -> SimpleNamespace:
        return SimpleNamespace(value=SimpleNamespace(clusterDim=SimpleNamespace()))

    def __init__(self, multiprocessors: int = 4) -> None:
        self.version = 13000
        self.memory = bytearray(_MEMORY)
        self.log: list[tuple[Any, ...]] = []
        self.failing: set[str] = set()
        self.modules: dict[int, bytes] = {}
        self.functions: dict[int, tuple[int, str]] = {}
        self.attributes = {
            "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR": 9,
            "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR": 0,
            "CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT": multiprocessors,
            "CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 227 * 1024,
            "CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE": 50 << 20,
            "CU_DEVICE_ATTRIBUTE_CLOCK_RATE": 1_980_000,
            "CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE": 2_619_000,
            "CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH": 5120,
        }
        self._handles, self._free = count(100), 4096

    def names(self, *wanted: str) -> list[str]:
        """Names of the calls so far, of `wanted` alone."""
        return [name for name, *_ in self.log if name in wanted]

    @staticmethod
    def CUstream(handle: int) -> int:
        return handle

    def __getattr__(self, name: str) -> Callable[..., tuple[Any, ...]]:
        def called(*arguments: Any) -> tuple[Any, ...]:
            self.log.append((name, *arguments))
            if name in self.failing:
                return (_Failure(1), None)
            found = getattr(self, f"_{name}", None)
            if found is not None:
                return (0, *found(*arguments))
            return (0, next(self._handles)) if name in _CREATED else (0,)

        if not name.startswith("cu"):
            raise AttributeError(name)
        return called

    def _cuGetErrorString(self, status: int) -> tuple[bytes]:
        return (b"it was told to",)

    def _cuDriverGetVersion(self) -> tuple[int]:
        return (self.version,)

    def _cuDeviceGetCount(self) -> tuple[int]:
        return (1,)

    def _cuDeviceTotalMem(self, device: int) -> tuple[int]:
        return (80 << 30,)

    def _cuDeviceGetName(self, size: int, device: int) -> tuple[bytes]:
        return (b"fake\0",)

    def _cuDeviceGetAttribute(self, name: str, device: int) -> tuple[int]:
        return (self.attributes[name],)

    def _cuOccupancyMaxActiveBlocksPerMultiprocessor(self, *_: Any) -> tuple[int]:
        return (1,)

    def _cuEventElapsedTime(self, *_: Any) -> tuple[float]:
        return (1.0,)

    def _cuModuleLoadData(self, code: bytes) -> tuple[int]:
        handle = next(self._handles)
        self.modules[handle] = code
        return (handle,)

    def _cuModuleGetFunction(self, module: int, name: bytes) -> tuple[int]:
        handle = next(self._handles)
        self.functions[handle] = module, name.decode()
        return (handle,)

    def _cuMemAlloc(self, size: int) -> tuple[int]:
        at, self._free = self._free, self._free + size
        assert self._free <= _MEMORY
        return (at,)

    def _cuMemHostAlloc(self, size: int, flags: int) -> tuple[int]:
        """Of the same memory, so that kernels write it."""
        assert flags == 3
        (at,) = self._cuMemAlloc(max(size, 256))
        return (ctypes.addressof(ctypes.c_char.from_buffer(self.memory)) + at,)

    def _cuMemHostGetDevicePointer(self, host: int, flags: int) -> tuple[int]:
        return (host - ctypes.addressof(ctypes.c_char.from_buffer(self.memory)),)

    def _cuMemsetD8Async(self, at: int, value: int, size: int, stream: int) -> tuple[()]:
        self.memory[at : at + size] = bytes([value]) * size
        return ()

    def _cuMemcpyHtoDAsync(self, at: int, source: int, size: int, stream: int) -> tuple[()]:
        self.memory[at : at + size] = ctypes.string_at(source, size)
        return ()

    def _cuMemcpyDtoHAsync(self, target: int, at: int, size: int, stream: int) -> tuple[()]:
        ctypes.memmove(target, bytes(self.memory[at : at + size]), size)
        return ()

    def _cuLaunchKernelEx(self, config: Any, function: int, packed: int, extra: int) -> tuple[()]:
        """What may begin early begins as late as it may."""
        names = {
            "CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION",
            "CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION",
        }
        assert names >= {attribute.id for attribute in config.attrs}
        assert (config.numAttrs, extra) == (len(config.attrs), 0)
        shape = config.gridDimX, 1, 1, config.blockDimX, 1, 1, config.sharedMemBytes
        return self._cuLaunchKernel(function, *shape, config.hStream, packed, 0)

    def _cuLaunchKernel(self, function: int, blocks: int, *rest: Any) -> tuple[()]:
        module, name = self.functions[function]
        text = self.modules[module]
        if text.startswith(b".version"):
            entry, threads, packed = Entry(text.decode(), name), rest[2], rest[7]
            pointers = (ctypes.POINTER(ctypes.c_int64) * len(entry.parameters)).from_address(packed)
            entry.run(blocks, threads, [p[0] for p in pointers], self.memory)
        return ()
