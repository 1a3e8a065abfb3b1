"""The streams of a tool's process, those too that whoever started it has closed."""

from __future__ import annotations

import errno
import io
import sys
from typing import IO


class _Closed(io.StringIO):
    """What stands for an output that is closed."""

    def write(self, s: str, /) -> int:
        raise OSError(errno.EBADF, "standard output is closed")


def standard_output(given: IO[str] | None) -> IO[str]:
    """The stream that is given, or the process's; writing to a closed one raises OSError."""
    return given or sys.stdout or _Closed()


def standard_error(given: IO[str] | None) -> IO[str]:
    """The stream that is given, or the process's; what a closed one is told nobody hears."""
    return given or sys.stderr or io.StringIO()
