"""The memory of large outputs on a CPU, which is lent again once nobody holds an array in it.

What is fresh from the system costs more than much of what is computed into it: a page fault for every 4 KiB,
on the thread that writes there first, and lines that are in no cache. Whether the C library keeps freed
memory hangs on what else the process has freed.
"""

from __future__ import annotations

import math
import sys
import threading
from collections import deque
from typing import Any, NamedTuple

import numpy as np

from irkit.weights import Array

LARGE = 1 << 18
"""Bytes from which on the memory of an output is kept."""
_KEPT, _KEPT_BYTES = 8, 1 << 27
# Vectors that start on a cache line are stored to one line each.
_LINE = 64


class _Piece(NamedTuple):
    """Memory, its bytes, and how many of them lie before the first cache line."""

    memory: Array
    size: int
    start: int


def _holders(piece: _Piece) -> int:
    """How many hold a piece's memory, the call that asks among them."""
    return sys.getrefcount(piece.memory)


# What is counted where a piece alone does.
_NOBODY = _holders(_Piece(np.empty(0), 0, 0))


class OutputMemory:
    """The last pieces of memory that outputs of `least` bytes or more lay in: 8, up to 128 MiB together, if
    not said otherwise. Thread-safe.

    An array holds its piece as its `base`, as all views of it do, so a piece to which only this object refers
    is one that nobody can read any more.
    """

    def __init__(self, pieces: int = _KEPT, nbytes: int = _KEPT_BYTES, least: int = LARGE) -> None:
        self._most, self._most_bytes, self._least = pieces, nbytes, least
        self._lock = threading.Lock()
        self._pieces: deque[_Piece] = deque()
        self.kept_bytes = 0

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """An array as `np.empty` makes it, in memory that an output lay in before, if there is some.

        Raises MemoryError.
        """
        size = math.prod(shape) * dtype.itemsize
        if size < self._least:
            return np.empty(shape, dtype)
        with self._lock:
            # What was lent last is most likely in a cache.
            for piece in reversed(self._pieces):
                if piece.size == size and _holders(piece) == _NOBODY:
                    return np.ndarray(shape, dtype, piece.memory, piece.start)
            piece = self._new(size)
            return np.ndarray(shape, dtype, piece.memory, piece.start)

    def _new(self, size: int) -> _Piece:
        memory = np.empty(size + _LINE, np.uint8)
        piece = _Piece(memory, size, -memory.ctypes.data % _LINE)
        if size <= self._most_bytes:
            self._pieces.append(piece)
            self.kept_bytes += size
        while len(self._pieces) > self._most or self.kept_bytes > self._most_bytes:
            self.kept_bytes -= self._pieces.popleft().size
        return piece
