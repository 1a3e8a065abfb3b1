"""The link between the host and the GPU at hand, and the host's memory, measured once a machine and kept."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from irkit.processors import usable_cores
from irkit.runtime.cuda.driver import Device, Stream, call, device
from irkit.schedule.links import link_file, measured_link
from irkit.schedule.model import VDevice
from irkit.schedule.rates import Rates, machine_file, processor, write

LARGE, SMALL = 64 << 20, 4 << 10
"""Bytes of copies from whose times a byte's and a copy's own are told apart."""
_TIMES = 7
_LEAST = 1e-5
"""Nanoseconds that a byte takes at least: a clock may see none at all."""


def keep_link(gpu: VDevice) -> Rates:
    """The rates of the link to `gpu`, the GPU at hand: those that are kept, or measured now and kept where
    there is a place. Raises DeviceError where the GPU fails, UnsupportedError for a broken file."""
    known = measured_link(gpu.name)
    path = machine_file(link_file(gpu.name))
    if known or path is None:
        return known
    found = measure_link(device())
    try:
        write(path, gpu.name, f"{processor()}, {device().name}", found)
    except OSError:
        # Nobody may write there: measured again in the next process.
        return found
    return found


def measure_link(gpu: Device, large: int = LARGE, small: int = SMALL) -> Rates:
    """Nanoseconds by name, as `irkit.schedule.links` has them. Raises DeviceError."""
    gpu.activate()
    stream = Stream(gpu)
    address = int(call("cuMemAlloc", large))
    host = np.zeros(large, np.uint8)
    try:
        pageable = _ways(address, host, stream.handle, small)
        call("cuMemHostRegister", host.ctypes.data, large, 0)
        try:
            pinned = _ways(address, host, stream.handle, small)
        finally:
            call("cuMemHostUnregister", host.ctypes.data)
        launch = _median(lambda: _cleared(address, stream.handle))
    finally:
        call("cuMemFree", address)
    one, every = _streamed(host, 1), _streamed(host, usable_cores())
    return {
        "copy": pageable["copy"],
        "launch": max(launch, 1.0),
        "to_device": pageable["to_device"],
        "to_host": pageable["to_host"],
        "to_device_pinned": pinned["to_device"],
        "to_host_pinned": pinned["to_host"],
        "stream": one,
        "stream_all": min(one, every),
    }


def _ways(address: int, host: Any, stream: Any, small: int) -> Rates:
    """A byte either way, and what a copy takes beside its bytes."""
    large, found = host.nbytes, dict[str, float]()
    starts: list[float] = []
    for way, copied in (("to_device", _sent), ("to_host", _fetched)):
        short, long = (
            _median(lambda n=n, copied=copied: copied(address, host, n, stream))
            for n in (small, large)
        )
        found[way] = max((long - short) / (large - small), _LEAST)
        starts.append(short - small * found[way])
    found["copy"] = max(statistics.mean(starts), 1.0)
    return found


def _sent(address: int, host: Any, nbytes: int, stream: Any) -> None:
    call("cuMemcpyHtoDAsync", address, host.ctypes.data, nbytes, stream)
    call("cuStreamSynchronize", stream)


def _fetched(address: int, host: Any, nbytes: int, stream: Any) -> None:
    call("cuMemcpyDtoHAsync", host.ctypes.data, address, nbytes, stream)
    call("cuStreamSynchronize", stream)


def _cleared(address: int, stream: Any) -> None:
    """The least that is launched: a fill of a few bytes."""
    call("cuMemsetD8Async", address, 0, 256, stream)
    call("cuStreamSynchronize", stream)


def _streamed(host: Any, cores: int) -> float:
    """Nanoseconds of a byte that is read, and one that is written, by so many threads together."""
    target = np.empty_like(host)
    ends = [len(host) * n // cores for n in range(cores + 1)]

    def copied(part: int) -> None:
        target[ends[part] : ends[part + 1]] = host[ends[part] : ends[part + 1]]

    with ThreadPoolExecutor(cores) as threads:
        taken = _median(lambda: list(threads.map(copied, range(cores))))
    return max(taken / (2 * host.nbytes), _LEAST)


def _median(work: Callable[[], object]) -> float:
    """Nanoseconds of some work, the median of several times behind one that is not counted."""
    work()
    taken: list[float] = []
    for _ in range(_TIMES):
        begun = time.perf_counter_ns()
        work()
        taken.append(float(time.perf_counter_ns() - begun))
    return statistics.median(taken)
