"""Python's syntax trees, where several threads make some."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_ATTEMPTS = 8
_lock = threading.RLock()


def in_one_thread(make: Callable[[], T]) -> T:
    """What `make` returns, which parses or compiles a tree: no other thread of irkit does meanwhile.

    CPython 3.11 keeps one count of a tree's depth for all threads, and raises SystemError where two of them
    count at once (python/cpython issue 106905): what others made of it is tried again.
    """
    with _lock:
        for _ in range(_ATTEMPTS - 1):
            try:
                return make()
            except SystemError:
                continue
        return make()
