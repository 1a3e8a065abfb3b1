"""Python's garbage collector while IR is built and rewritten."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

_YOUNG = 100_000
_OLDER = (20, 50)


@contextmanager
def seldom_collected() -> Generator[None]:
    """Look for garbage seldom: IR is millions of objects that refer to one another and stay, and to look
    through them each time that some hundreds were made takes a fifth of a large network's compilation."""
    before = gc.get_threshold()
    if before[0] == 0 or before[0] >= _YOUNG:
        yield  # nobody collects, or as seldom
        return
    gc.set_threshold(_YOUNG, *_OLDER)
    try:
        yield
    finally:
        gc.set_threshold(*before)
