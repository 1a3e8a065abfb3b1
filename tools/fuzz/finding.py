"""What fuzzers share: a finding, a time limit, and making a finding smaller."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
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
    """Raise TookTooLong after `seconds`. For the main thread of a POSIX process."""

    def stop(signal_number: int, frame: FrameType | None) -> None:
        raise TookTooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def smaller(lines: Sequence[str], still_wrong: Callable[[list[str]], bool]) -> list[str]:
    """`lines` without all that is not needed for `still_wrong` (A. Zeller's delta debugging, IEEE
    TSE 28(2), 2002: ever smaller pieces are left out)."""
    kept, piece = list(lines), max(len(lines) // 2, 1)
    while True:
        at = 0
        while at < len(kept):
            fewer = kept[:at] + kept[at + piece :]
            if fewer and still_wrong(fewer):
                kept = fewer
            else:
                at += piece
        if piece == 1:
            return kept
        piece = max(piece // 2, 1)
