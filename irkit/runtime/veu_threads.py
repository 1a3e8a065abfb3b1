"""The threads of a process that are vEUs of CPU programs."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor


class VeuThreads:
    """The threads that are vEUs, one pool for all programs of the process.

    `together` is held while a program's vEUs wait for one another: they must all have a thread, so
    two such programs at once could starve each other. What runs without it waits for nothing.
    """

    def __init__(self) -> None:
        self.together = threading.Lock()
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._count = 0

    def pool(self, count: int) -> ThreadPoolExecutor:
        """A pool of at least `count` threads; they start as they are needed."""
        with self._lock:
            if self._pool is None or self._count < count:
                self._count = max(count, os.cpu_count() or 1)
                # A smaller pool before it ends when its last user lets go of it.
                self._pool = ThreadPoolExecutor(self._count, thread_name_prefix="irkit-veu")
            return self._pool


_threads = [VeuThreads()]


def veu_threads() -> VeuThreads:
    """The one of this process."""
    return _threads[0]


def _after_fork() -> None:
    """A forked child has none of the parent's threads, and whoever held its locks is gone."""
    _threads[0] = VeuThreads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
