"""Tracing that may fail, and leaves nothing then."""

from __future__ import annotations

from typing import Any

from irkit.errors import UnsupportedError
from irkit.frontends.numpy.places import REFUSALS
from irkit.frontends.numpy.recorder import Recorder


class Attempt:
    """Tracing that may fail: then the trace is as it was, and `why` says what was in the way; `error` is what
    was raised."""

    def __init__(self, r: Recorder) -> None:
        self._recorder = r
        self.why: str | None = None
        self.error: Exception | None = None

    def __enter__(self) -> None:
        r = self._recorder
        self._records, self._length = r.records, len(r.records)
        self._made, self._checks = len(r.made), dict(r.checks)
        self._known = [(b, b.known, b.written) for b in (*r.arguments, *r.made)]
        self._refusals = REFUSALS.get()

    def __exit__(self, kind: type[BaseException] | None, error: Any, trace: Any) -> bool:
        if kind is not None and not issubclass(kind, Exception):
            return False
        if error is None and REFUSALS.get() == self._refusals:
            return False
        self.error = told = None if error is None else _told(error)
        self.why = _reason(told)
        r = self._recorder
        r.records = self._records
        del r.records[self._length :]
        del r.made[self._made :]
        r.checks.clear()
        r.checks.update(self._checks)
        for buffer, known, written in self._known:
            buffer.known, buffer.written = known, written
        return True


def _told(error: Exception) -> Exception:
    """What irkit said is in the way, also where NumPy made an error of its own of that."""
    found: BaseException | None = error
    while found is not None and not isinstance(found, UnsupportedError):
        found = found.__cause__
    return found or error


def _reason(error: Exception | None) -> str:
    """Why something could not be traced, in short."""
    if error is None:
        # Refused and then caught by the function: what it went on to do is not what it does with values.
        return "it cannot be traced, and goes on otherwise"
    if not isinstance(error, UnsupportedError):
        return f"it cannot be traced: {type(error).__name__}"
    said = str(error).partition("\n")[0]
    place, _, text = said.partition(": ")
    text = (text or place).partition(", which is not known")[0]
    return f"it cannot be traced: {text}"
