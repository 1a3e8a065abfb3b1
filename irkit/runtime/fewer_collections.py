"""Python's collector of cycles while irkit compiles, which makes far more objects that stay than cycles:
looking for these takes a tenth of the time of Numba's front end."""

from __future__ import annotations

import gc
import threading
from collections.abc import Generator
from contextlib import contextmanager

OBJECTS = 100_000
"""More objects than were freed after which it looks at the youngest; by itself it does after 700."""
_lock = threading.Lock()
_inside = 0
_before: tuple[int, int, int] = gc.get_threshold()


@contextmanager
def fewer_collections() -> Generator[None]:
    """Collect seldom, in all threads; the last to leave puts back what was asked of the collector."""
    global _inside, _before
    with _lock:
        if not _inside:
            _before = gc.get_threshold()
            # Zero is a collector that is off.
            if _before[0]:
                gc.set_threshold(max(OBJECTS, _before[0]), *_before[1:])
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                gc.set_threshold(*_before)
