"""The threads of a process that are vEUs of CPU programs."""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any


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


def _cpu_of_caller() -> Callable[[], int] | None:
    """glibc's sched_getcpu, called with the interpreter's lock held, which costs less than letting it go."""
    try:
        return ctypes.PyDLL(None).sched_getcpu
    except (AttributeError, OSError):
        return None


_current_cpu = _cpu_of_caller() if hasattr(os, "sched_setaffinity") else None


class Places:
    """The CPUs on which the vEUs of one call run, at most one vEU each while there are CPUs left.

    A thread that is woken often starts on the CPU of the thread that woke it, and both of them spin or
    yield there in turns, at half the speed, until the kernel's balancer looks (tens of milliseconds). Who
    finds its CPU taken moves once; it is not bound, so the kernel may still move it for other load.
    """

    def __init__(self) -> None:
        self._taken = {_current_cpu()} if _current_cpu is not None else set[int]()

    def take(self) -> None:
        """Let the calling thread run on a CPU that no vEU of this call has taken."""
        if _current_cpu is None:
            return
        cpu = _current_cpu()
        if cpu in self._taken:
            cpu = self._moved_from(cpu)
        self._taken.add(cpu)

    def _moved_from(self, cpu: int) -> int:
        """The CPU that the calling thread moved to; `cpu` itself if none is left for it."""
        allowed = os.sched_getaffinity(0)
        free = allowed - self._taken
        if not free:
            return cpu
        found = min(free)
        with contextlib.suppress(OSError):  # a CPU may have gone since
            os.sched_setaffinity(0, {found})
            os.sched_setaffinity(0, allowed)
        return found


def walk_in_place(
    wanted: list[bool], places: Places, run: Callable[..., int], *arguments: Any
) -> int:
    """`run` on a CPU of its own, unless the call that it was for has been given up."""
    if not wanted:
        return 0
    places.take()
    return run(*arguments)


def join(futures: Sequence[Future[int]]) -> None:
    """Wait for all. They write into the caller's arrays, so an interrupt has to wait too."""
    interrupt: KeyboardInterrupt | None = None
    while True:
        try:
            wait(futures)
            break
        except KeyboardInterrupt as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt


_threads = [VeuThreads()]


def veu_threads() -> VeuThreads:
    """The one of this process."""
    return _threads[0]


def _after_fork() -> None:
    """A forked child has none of the parent's threads, and whoever held its locks is gone."""
    _threads[0] = VeuThreads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
