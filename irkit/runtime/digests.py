"""Digests of long data: SHA-256 of the digests of its pieces, which several threads take side by side."""

from __future__ import annotations

import hashlib
import mmap
import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from io import BufferedReader
from pathlib import Path

from irkit.processors import usable_cores

PIECE_BYTES = 1 << 24


def digest_of(data: Iterable[bytes | memoryview]) -> str:
    """Hex digest of data that comes in parts of any length; where they are cut makes no difference.

    Threads digest what has come while the next part is made. Parts must not be changed after they came.
    """
    # Python's lock is not held while a piece is digested.
    cores = usable_cores()
    whole = hashlib.sha256()
    waiting: deque[Future[bytes]] = deque()
    with ThreadPoolExecutor(cores) as pool:
        for piece in _pieces(data):
            # What waits is in memory.
            if len(waiting) > 2 * cores:
                whole.update(waiting.popleft().result())
            waiting.append(pool.submit(_digest, piece))
        for digest in waiting:
            whole.update(digest.result())
    return whole.hexdigest()


def file_digest(path: Path) -> str:
    """`digest_of` the bytes of a file, of which few are in memory at a time. Raises OSError."""
    with path.open("rb") as stream:
        mapped = mapped_file(stream)
        if mapped is not None:
            return digest_of([mapped])
        return digest_of(iter(partial(stream.read, PIECE_BYTES), b""))


def mapped_file(stream: BufferedReader) -> memoryview | None:
    """The bytes of an open file as the system has them, without a copy; None where they cannot be mapped.

    Who cuts such a file short takes them away: programs and models are replaced, not written over.
    """
    # On Windows nobody could replace or delete a mapped file.
    if os.name != "posix":
        return None
    try:
        found = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):
        return None
    if hasattr(mmap, "MADV_WILLNEED"):
        found.madvise(mmap.MADV_WILLNEED)
    return memoryview(found)


def _pieces(data: Iterable[bytes | memoryview]) -> Iterator[list[memoryview]]:
    """The same bytes, in pieces that all have `PIECE_BYTES` but the last one."""
    piece: list[memoryview] = []
    room = PIECE_BYTES
    for part in data:
        view = memoryview(part)
        while len(view):
            piece.append(view[:room])
            view = view[room:]
            room -= len(piece[-1])
            if not room:
                yield piece
                piece, room = [], PIECE_BYTES
    if piece:
        yield piece


def _digest(piece: list[memoryview]) -> bytes:
    digest = hashlib.sha256()
    for part in piece:
        digest.update(part)
    return digest.digest()
