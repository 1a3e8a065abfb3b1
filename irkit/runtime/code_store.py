"""Machine code of rKernels on disk, one file each, in the folder `rkernels` of irkit's cache.

An entry says whose it is and has a digest of its bytes: one that is damaged, or another's, is not there.
Files are put in their places whole, so that processes may share the folder. Those used longest ago go once
they are more than `LIMIT_BYTES` together; deleting the folder is always safe.
"""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path

from irkit.errors import ArtifactError
from irkit.runtime.artifact import cache_folder, write_atomically

LIMIT_BYTES = 1 << 30
_FORMAT = "irkit-rkernel 1"
# Time stamps say when an entry was used last, to this many seconds.
_DAY = 86400.0


def folder() -> Path | None:
    """Where entries are; None without a disk cache."""
    cache = cache_folder()
    return None if cache is None else cache / "rkernels"


def kept(key: str) -> bytes | None:
    """What was kept under a key; None if nothing was, or it is damaged."""
    place = folder()
    if place is None:
        return None
    path = place / key
    try:
        data = path.read_bytes()
        if time.time() - path.stat().st_mtime > _DAY:
            os.utime(path)
    except OSError:
        return None
    head, _, payload = data.partition(b"\n")
    return payload if head == _head(key, payload) else None


def keep(key: str, payload: bytes) -> None:
    """Keep what was compiled; a cache that cannot be written is none."""
    place = folder()
    if place is None:
        return
    with suppress(OSError, ArtifactError):
        place.mkdir(parents=True, exist_ok=True)
        write_atomically(place / key, _head(key, payload) + b"\n" + payload)


def prune(limit: int = LIMIT_BYTES) -> None:
    """Delete the entries that were used longest ago until the others are at most `limit` bytes."""
    place = folder()
    if place is None:
        return
    with suppress(OSError):
        found = sorted((e.stat().st_mtime, e.stat().st_size, e.path) for e in os.scandir(place))
        total = sum(size for _, size, _ in found)
        for _, size, path in found:
            if total <= limit:
                return
            os.unlink(path)
            total -= size


def _head(key: str, payload: bytes) -> bytes:
    return f"{_FORMAT} {key} {hashlib.sha256(payload).hexdigest()}".encode()
