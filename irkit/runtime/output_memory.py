"""The memory of large outputs on a CPU, which is lent again once nobody holds an array in it.

What is fresh from the system costs more than much of what is computed into it: a page fault for every 4 KiB,
on the thread that writes there first, and lines that are in no cache. Whether the C library keeps freed
memory hangs on what else the process has freed.
"""

from __future__ import annotations

import itertools
import math
import os
import sys
import threading
from collections import deque
from typing import Any, NamedTuple
from weakref import WeakSet

import numpy as np

from irkit.weights import Array

LARGE = 1 << 18
"""Bytes from which on the memory of an output is kept."""
_KEPT = 8
_LEAST_BYTES, _SHARE = 1 << 27, 32
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


def kept_by_all() -> int:
    """Bytes that the memories of all programs keep together: 1/32 of the machine's, 128 MiB at least."""
    try:
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        # Not every system says.
        return _LEAST_BYTES
    return max(_LEAST_BYTES, machine // _SHARE)


KEPT_BY_ALL = kept_by_all()
_SHARING: WeakSet[OutputMemory] = WeakSet()
_LOCK = threading.Lock()
_LENT = itertools.count()


class OutputMemory:
    """The last pieces of memory that outputs of `least` bytes or more lay in: 8, if not said otherwise, and
    up to `nbytes` together. Where no bytes are said, all such objects together keep up to `KEPT_BY_ALL`, and
    the one that has not lent for longest gives back first. Thread-safe.

    An array holds its piece as its `base`, as all views of it do, so a piece to which only this object refers
    is one that nobody can read any more.
    """

    def __init__(self, pieces: int = _KEPT, nbytes: int | None = None, least: int = LARGE) -> None:
        self._most, self._most_bytes, self._least = pieces, nbytes, least
        self._pieces: deque[_Piece] = deque()
        self._lent = -1
        self.kept_bytes = 0
        if nbytes is None:
            _SHARING.add(self)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """An array as `np.empty` makes it, in memory that an output lay in before, if there is some.

        Raises MemoryError.
        """
        size = math.prod(shape) * dtype.itemsize
        if size < self._least:
            return np.empty(shape, dtype)
        with _LOCK:
            self._lent = next(_LENT)
            # What was lent last is most likely in a cache.
            for piece in reversed(self._pieces):
                if piece.size == size and _holders(piece) == _NOBODY:
                    return np.ndarray(shape, dtype, piece.memory, piece.start)
            piece = self._new(size)
            return np.ndarray(shape, dtype, piece.memory, piece.start)

    def _new(self, size: int) -> _Piece:
        memory = np.empty(size + _LINE, np.uint8)
        piece = _Piece(memory, size, -memory.ctypes.data % _LINE)
        if size > (KEPT_BY_ALL if self._most_bytes is None else self._most_bytes):
            return piece
        self._pieces.append(piece)
        self.kept_bytes += size
        while len(self._pieces) > self._most:
            self._give_back()
        while (longest := self._over()) is not None:
            longest._give_back()
        return piece

    def _over(self) -> OutputMemory | None:
        """Which gives back its oldest piece, where more is kept than may be."""
        if self._most_bytes is not None:
            return self if self.kept_bytes > self._most_bytes else None
        sharing = [memory for memory in _SHARING if memory._pieces]
        if sum(memory.kept_bytes for memory in sharing) <= KEPT_BY_ALL:
            return None
        return min(sharing, key=lambda memory: memory._lent)

    def _give_back(self) -> None:
        self.kept_bytes -= self._pieces.popleft().size
