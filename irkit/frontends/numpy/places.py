"""Where the traced function is: the place in the user's file that messages name."""

from __future__ import annotations

import sys
import types
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import numpy as np

from irkit.errors import UnsupportedError

OWN = (str(Path(__file__).parents[2]), str(Path(np.__file__).parent))
"""Files of irkit and of NumPy are not the user's."""


def user_frame() -> types.FrameType | None:
    """The innermost frame that is neither irkit's nor NumPy's."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and frame.f_code.co_filename.startswith(OWN):
        frame = frame.f_back
    return frame


_REPLAYED: ContextVar[str | None] = ContextVar("replayed", default=None)


@contextmanager
def at_place(place: str | None) -> Generator[None]:
    """What is traced inside is of `place`, where that is known: of what is traced anew."""
    token = _REPLAYED.set(place or _REPLAYED.get())
    try:
        yield
    finally:
        _REPLAYED.reset(token)


_SEGMENT: ContextVar[str | None] = ContextVar("segment", default=None)


@contextmanager
def in_segment(name: str | None) -> Generator[None]:
    """What is traced inside is of a segment of this name, unless it is in one already."""
    token = _SEGMENT.set(_SEGMENT.get() or name)
    try:
        yield
    finally:
        _SEGMENT.reset(token)


def segment_now() -> str | None:
    """The segment that is being traced."""
    return _SEGMENT.get()


def user_place() -> str:
    """`file:line` of the user's code that is being traced."""
    if (replayed := _REPLAYED.get()) is not None:
        return replayed
    frame = user_frame()
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else "<unknown>"


REFUSALS: ContextVar[int] = ContextVar("refusals", default=0)
"""How many errors there were: a function may catch them."""


def refused(what: str) -> UnsupportedError:
    """An error of the line that is being traced."""
    REFUSALS.set(REFUSALS.get() + 1)
    inner, outer = user_place(), _traced_place()
    if outer is None or outer == inner:
        return UnsupportedError(f"{inner}: {what}")
    return UnsupportedError(f"{outer}: {what} (in {inner}, which it calls)")


def _traced_place() -> str | None:
    """`file:line` of the innermost function that is traced as the user's own: what that calls may be at a
    place that says the user nothing."""
    frame = user_frame()
    while frame is not None and not hasattr(frame.f_globals, "capture"):
        frame = frame.f_back
        while frame is not None and frame.f_code.co_filename.startswith(OWN):
            frame = frame.f_back
    return None if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
