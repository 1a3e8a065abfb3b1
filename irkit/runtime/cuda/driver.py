"""The CUDA driver, as much of it as running a cubin takes. Every failure is a DeviceError.

Uses the device's primary context, which is also PyTorch's and CuPy's.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import import_module
from types import ModuleType
from typing import Any

from irkit.architectures import Architecture, architecture_for, why_no_code
from irkit.errors import DeviceError
from irkit.runtime.cuda.assembling import images_of, kernels_of


@cache
def api() -> Any:
    """cuda.bindings.driver, initialised. Raises DeviceError without a driver."""
    try:
        driver: Any = import_module("cuda.bindings.driver")
    except ImportError:
        raise DeviceError(
            "the CUDA bindings are not installed: pip install 'irkit[cuda]'"
        ) from None
    try:
        (status,) = driver.cuInit(0)
    except RuntimeError as error:
        raise DeviceError(f"no CUDA driver on this machine: {error}") from None
    if int(status) != 0:
        raise DeviceError(f"the CUDA driver found no usable device ({status.name})")
    return driver


def call(name: str, *arguments: Any) -> Any:
    """Call a driver function; returns its results without the status."""
    driver = api()
    status, *results = getattr(driver, name)(*arguments)
    if int(status) != 0:
        raise _failure(name, status)
    return results[0] if len(results) == 1 else tuple(results)


def _failure(name: str, status: Any) -> DeviceError:
    _, text = api().cuGetErrorString(status)
    reason = text.decode() if text else status.name
    return DeviceError(f"{name} failed: {reason} ({status.name})")


@cache
def _library() -> ctypes.CDLL | None:
    """The driver's library, by the name that it has on Linux."""
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None


def direct(name: str, arguments: int, kinds: Sequence[Any] = ()) -> Callable[..., None]:
    """Driver function `name` of so many handles, as integers, or of arguments of these `kinds`, for every
    call of a program: through ctypes it takes half as long as through the bindings, which are called where
    that library is not found."""
    library = _library() if isinstance(api(), ModuleType) else None
    if library is None:
        return partial(call, name)
    function = getattr(library, name)
    function.argtypes = [*kinds] or [ctypes.c_void_p] * arguments
    function.restype = ctypes.c_int

    def called(*handles: int) -> None:
        status = function(*handles)
        if status:
            raise _failure(name, api().CUresult(status))

    return called


_RECORDS_EARLY = 12030
_RESERVED = 1024
"""Bytes of a multiprocessor's shared memory that the driver has for itself, per block."""


class Device:
    """A GPU and its primary context."""

    def __init__(self, number: int = 0) -> None:
        count = call("cuDeviceGetCount")
        if number >= count:
            raise DeviceError(f"no CUDA device {number}: there are {count}")
        self.handle = call("cuDeviceGet", number)
        self.number = number
        self.name = call("cuDeviceGetName", 96, self.handle).split(b"\0")[0].decode()
        kind: Any = api().CUdevice_attribute
        version = "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_"
        self.capability = (
            self._attribute(getattr(kind, version + "MAJOR")),
            self._attribute(getattr(kind, version + "MINOR")),
        )
        self.architecture = _architecture(self.name, self.capability)
        self.multiprocessors = self._attribute(kind.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
        self.shared_bytes = self._attribute(
            kind.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
        )
        # What begins early can be recorded into a graph from CUDA 12.3 on.
        self.records_early = int(call("cuDriverGetVersion")) >= _RECORDS_EARLY
        self.context = call("cuDevicePrimaryCtxRetain", self.handle)
        # What a finalizer calls is what made the thing, whatever answers to `api` by then.
        self._driver = api()
        self._set_current, self._context = direct("cuCtxSetCurrent", 1), int(self.context)
        self.activate()

    @property
    def l2_bytes(self) -> int:
        """Bytes of the second-level cache."""
        return self._attribute(api().CUdevice_attribute.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)

    @property
    def clock_mhz(self) -> float:
        """The highest clock of its multiprocessors."""
        return self._attribute(api().CUdevice_attribute.CU_DEVICE_ATTRIBUTE_CLOCK_RATE) / 1000

    @property
    def bandwidth_gb_s(self) -> float:
        """10⁹ bytes a second that its memory moves: two transfers a clock, as wide as the bus."""
        kind: Any = api().CUdevice_attribute
        khz = self._attribute(kind.CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)
        bits = self._attribute(kind.CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)
        return 2 * khz * bits / 8 / 1e6

    @property
    def memory_bytes(self) -> int:
        """Bytes of its memory."""
        return int(call("cuDeviceTotalMem", self.handle))

    def _attribute(self, attribute: Any) -> int:
        return int(call("cuDeviceGetAttribute", attribute, self.handle))

    def activate(self) -> None:
        """Make the context current in this thread."""
        self._set_current(self._context)

    def synchronize(self) -> None:
        """Wait for all work on the device; for `__del__`, as `release`."""
        driver = self._driver
        driver.cuCtxPushCurrent(self.context)
        driver.cuCtxSynchronize()
        driver.cuCtxPopCurrent()

    def release(self, name: str, handle: Any) -> None:
        """Give something of this device back with driver function `name`; for `__del__`, where nobody can
        be told of a failure, and where another context may be current."""
        driver = self._driver
        driver.cuCtxPushCurrent(self.context)
        getattr(driver, name)(handle)
        driver.cuCtxPopCurrent()


def _architecture(name: str, capability: tuple[int, int]) -> Architecture:
    """What machine code to make for a device. Raises DeviceError where irkit makes none."""
    found = architecture_for(capability)
    if found is None:
        raise DeviceError(why_no_code(name, capability))
    return found


@cache
def device(number: int = 0) -> Device:
    """The device, opened once."""
    return Device(number)


def _config(
    blocks: int, threads: int, shared_bytes: int, stream: Any, cluster: int, early: bool
) -> Any:
    """Of a launch in clusters, or one that may begin before what is queued before it has ended."""
    driver, attributes = api(), list[Any]()
    if early:
        attributes.append(attribute := driver.CUlaunchAttribute())
        kinds: Any = driver.CUlaunchAttributeID
        attribute.id = kinds.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        attribute.value.programmaticStreamSerializationAllowed = 1
    if cluster > 1:
        attributes.append(attribute := driver.CUlaunchAttribute())
        attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        size = attribute.value.clusterDim
        size.x, size.y, size.z = cluster, 1, 1
    config = driver.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = blocks, 1, 1
    config.blockDimX, config.blockDimY, config.blockDimZ = threads, 1, 1
    config.sharedMemBytes, config.hStream = shared_bytes, stream
    config.attrs, config.numAttrs = attributes, len(attributes)
    return config


_HANDLE, _NUMBER = ctypes.c_void_p, ctypes.c_uint
_LAUNCH = (_HANDLE, *(_NUMBER,) * 7, *(_HANDLE,) * 3)
"""What `cuLaunchKernel` takes."""


class Kernel:
    """An entry of a loaded cubin, compiled for `threads` a block; parameters are 64-bit integers.

    Its blocks are launched in clusters of `cluster`.
    """

    def __init__(
        self,
        module: Any,
        name: str,
        parameters: int,
        threads: int,
        shared_bytes: int = 0,
        cluster: int = 1,
    ) -> None:
        self.name, self.threads, self.shared_bytes = name, threads, shared_bytes
        self.cluster = cluster
        self.function = call("cuModuleGetFunction", module, name.encode())
        limit: Any = api().CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        self._limit = limit
        self._allow(shared_bytes)
        self._values = (ctypes.c_int64 * parameters)()
        start = ctypes.addressof(self._values)
        self._pointers = (ctypes.c_void_p * parameters)(*(start + 8 * i for i in range(parameters)))
        self._packed = ctypes.addressof(self._pointers)
        self._launch, self._function = direct("cuLaunchKernel", 11, _LAUNCH), int(self.function)

    def _allow(self, shared_bytes: int) -> None:
        if shared_bytes > 48 * 1024:
            call("cuFuncSetAttribute", self.function, self._limit, shared_bytes)

    def shared_evenly(self, blocks: int, on: Device) -> int:
        """Bytes of shared memory with which no multiprocessor holds more than its share of so many blocks.

        Blocks that begin while others run would crowd where there is room, and take as many times as long.
        """
        each = -(-blocks // on.multiprocessors)
        if each >= self.blocks_per_multiprocessor:
            return self.shared_bytes
        most = (on.shared_bytes + _RESERVED) // each - _RESERVED
        return max(self.shared_bytes, min(on.shared_bytes, most))

    @property
    def blocks_per_multiprocessor(self) -> int:
        """How many blocks of this kernel one multiprocessor holds at once."""
        return int(
            call(
                "cuOccupancyMaxActiveBlocksPerMultiprocessor",
                self.function,
                self.threads,
                self.shared_bytes,
            )
        )

    def launch(
        self,
        blocks: int,
        arguments: Sequence[int],
        stream: Any,
        together: bool = False,
        early: Device | None = None,
    ) -> None:
        """Start `blocks` blocks; `together` lets the driver refuse unless all are co-resident. `early`: on
        this device they may start while the kernel queued before still runs, once its blocks allow it."""
        self._values[:] = arguments
        if early is not None or self.cluster > 1:
            shared = self.shared_bytes if early is None else self.shared_evenly(blocks, early)
            self._allow(shared)
            ahead = early is not None
            config = _config(blocks, self.threads, shared, stream, self.cluster, ahead)
            call("cuLaunchKernelEx", config, self.function, self._packed, 0)
            return
        shape = (blocks, 1, 1, self.threads, 1, 1, self.shared_bytes)
        if together:
            call("cuLaunchCooperativeKernel", self.function, *shape, stream, self._packed)
        else:
            self._launch(self._function, *shape, int(stream), self._packed, 0)


class Stream:
    """A stream, destroyed when nobody refers to it any more: what is queued on it still runs."""

    def __init__(self, on: Device) -> None:
        self._device = on
        on.activate()
        # It waits for no work on the default stream, nor that for it.
        self.handle = call("cuStreamCreate", 1)

    def __del__(self, exiting: Callable[[], bool] = sys.is_finalizing) -> None:
        if hasattr(self, "handle") and not exiting():
            self._device.release("cuStreamDestroy", self.handle)


class Module:
    """A loaded cubin, image by image, or PTX that ends with a zero byte, which the driver assembles.

    It is unloaded when nobody refers to it any more; what runs of it then, runs to its end.
    """

    def __init__(self, code: bytes, on: Device) -> None:
        self._device = on
        on.activate()
        images = images_of(code)
        self._images = kernels_of(images)
        self._handles: list[Any] = []
        for image in images:
            self._handles.append(call("cuModuleLoadData", image))

    def __del__(self, exiting: Callable[[], bool] = sys.is_finalizing) -> None:
        if not getattr(self, "_handles", None) or exiting():
            return
        self._device.synchronize()
        for handle in self._handles:
            self._device.release("cuModuleUnload", handle)

    def kernel(
        self, name: str, parameters: int, threads: int, shared_bytes: int = 0, cluster: int = 1
    ) -> Kernel:
        """The entry called `name`, launched in clusters of so many blocks."""
        handle = self._handles[self._images.get(name, 0)]
        return Kernel(handle, name, parameters, threads, shared_bytes, cluster)


class Graph:
    """Launches recorded once and replayed with one call."""

    def __init__(self, record: Any, stream: Any) -> None:
        self._driver = driver = api()
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
        call("cuStreamBeginCapture", stream, mode)
        try:
            record(stream)
        finally:
            graph = call("cuStreamEndCapture", stream)
        self._executable = call("cuGraphInstantiate", graph, 0)
        self._launch, self._handle = direct("cuGraphLaunch", 2), int(self._executable)
        call("cuGraphDestroy", graph)

    def launch(self, stream: Any) -> None:
        """Replay on `stream`."""
        self._launch(self._handle, int(stream))

    def __del__(self, exiting: Callable[[], bool] = sys.is_finalizing) -> None:
        # At exit the driver goes first, and takes this with it; this module's names may be gone.
        if hasattr(self, "_executable") and not exiting():
            self._driver.cuGraphExecDestroy(self._executable)


@cache
def _records(driver: Any) -> Callable[..., None]:
    """Of whatever answers to `api`."""
    return direct("cuEventRecord", 2)


class Event:
    """A point in a stream, with a time."""

    def __init__(self) -> None:
        self._driver = api()
        self.handle = call("cuEventCreate", 0)
        self._number = int(self.handle)

    def record(self, stream: Any) -> None:
        """Mark the place in `stream`."""
        _records(self._driver)(self._number, int(stream))

    def since(self, earlier: Event) -> float:
        """Milliseconds from `earlier` to this event, once both have happened."""
        call("cuEventSynchronize", self.handle)
        return float(call("cuEventElapsedTime", earlier.handle, self.handle))

    def __del__(self, exiting: Callable[[], bool] = sys.is_finalizing) -> None:
        if hasattr(self, "handle") and not exiting():
            self._driver.cuEventDestroy(self.handle)


def order(earlier: Any, later: Any) -> None:
    """Let what is queued on stream `later` from now on wait for what is queued on `earlier`."""
    event = Event()
    event.record(earlier)
    call("cuStreamWaitEvent", later, event.handle, 0)
