"""The line of a user's file that something came from."""

from __future__ import annotations

import inspect
from pathlib import Path
from types import FrameType

_OWN = str(Path(__file__).parent)


def caller() -> str:
    """ "file.py:12": the innermost line outside this package that led here."""
    frame: FrameType | None = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(_OWN):
        frame = frame.f_back
    if frame is None:
        return ""
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
