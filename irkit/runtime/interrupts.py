"""Interrupts from the keyboard wait while Numba and LLVM are at work.

Neither survives one at any place: a registry of Numba's whose loading was interrupted stays without its
functions, and where LLVM calls Python, what is raised there is printed and forgotten.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interrupts_held() -> Generator[None]:
    """An interrupt that comes within is handled at the end, as the process handles interrupts. Nothing
    changes in threads other than the main one, which no interrupt reaches."""
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: held.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if held:
            handler(*held[0])
