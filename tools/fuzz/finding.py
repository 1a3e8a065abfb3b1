"""What fuzzers share: a finding, and a time limit."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass(frozen=True)
class Finding:
    """An input that irkit took wrongly: what happened, and the input's text or bytes."""

    what: str
    data: bytes
    suffix: str


class TookTooLong(BaseException):
    """Raised in the midst of whatever runs; not an Exception, so that nothing takes it for its own."""


@contextmanager
def limit(seconds: float) -> Iterator[None]:
    """Raise TookTooLong after `seconds` of this process's own time, which is the same on a busy machine. For
    the main thread of a POSIX process."""

    def stop(signal_number: int, frame: FrameType | None) -> None:
        raise TookTooLong

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
