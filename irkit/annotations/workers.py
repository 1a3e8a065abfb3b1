"""Threads for parts of calls, and how large a part is."""

from __future__ import annotations

import contextvars
import functools
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

from irkit.processors import usable_cores

CACHE = Path("/sys/devices/system/cpu/cpu0/cache/index2/size")
DEFAULT_CACHE = 1 << 20
LEAST = 1 << 17
"""Bytes below which a part is not worth a thread."""
_INSIDE = threading.local()

Part = Callable[[int, int], None]
"""Does units `start` to below `stop`."""


@functools.cache
def cache_bytes() -> int:
    """What the second-level cache of a core holds."""
    if not CACHE.exists():
        return DEFAULT_CACHE
    text = CACHE.read_text().strip()
    factor = {"K": 1 << 10, "M": 1 << 20}.get(text[-1:], 1)
    digits = text.rstrip("KM")
    return int(digits) * factor if digits.isdigit() else DEFAULT_CACHE


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(usable_cores(), "irkit host task")


def ranges(units: int, unit_bytes: int, steps: int) -> list[tuple[int, int]]:
    """How `units` of so many bytes each are cut: for one step, into a part for every core; for several, which
    pass arrays on, into parts that half of a core's cache holds. Parts are multiples of 8 units, so that
    vectors begin where they did."""
    workers = usable_cores()
    each = -(-units // workers)
    if steps > 1:
        each = min(each, max(1, cache_bytes() // 2 // max(1, unit_bytes)))
    each = max(each, -(-LEAST // max(1, unit_bytes)))
    each = -(-each // 8) * 8
    return [(start, min(start + each, units)) for start in range(0, units, each)]


def in_parts(part: Part, cuts: Sequence[tuple[int, int]]) -> None:
    """Do all parts, several at a time, where this is not a part itself. Raises what the first one in order
    raised; all that began have ended then."""
    if len(cuts) == 1 or getattr(_INSIDE, "busy", False):
        for start, stop in cuts:
            part(start, stop)
        return
    futures: list[Future[None]] = [
        _pool().submit(contextvars.copy_context().run, _marked, part, start, stop)
        for start, stop in cuts
    ]
    wait(futures)
    for future in futures:
        future.result()


def _marked(part: Part, start: int, stop: int) -> None:
    """Calls within take no threads: all might wait for one another."""
    _INSIDE.busy = True
    try:
        part(start, stop)
    finally:
        _INSIDE.busy = False
