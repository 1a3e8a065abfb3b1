"""Folders of bounded size: the entries that were used longest ago go first.

When an entry was used stands in its time stamp. Processes may share a folder: what is deleted under a
process that has it open stays there for that one, and what is gone is made anew.
"""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress
from pathlib import Path

# Time stamps say when an entry was used last, to this many seconds.
_DAY = 86400.0


def used(path: Path) -> None:
    """Say that an entry was used now."""
    with suppress(OSError):
        if time.time() - path.stat().st_mtime > _DAY:
            os.utime(path)


def prune(folder: Path, limit: int) -> None:
    """Delete the entries that were used longest ago until the others are at most `limit` bytes; the one used
    last stays. An entry is a file, or a folder with all that is in it."""
    with suppress(OSError):
        found = sorted(_entries(folder))
        total = sum(size for _, size, _ in found)
        for _, size, path in found[:-1]:
            if total <= limit:
                return
            _delete(path)
            total -= size


def _entries(folder: Path) -> list[tuple[float, int, str]]:
    """When it was used, bytes and path of each entry; another process may delete some meanwhile."""
    found: list[tuple[float, int, str]] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                found.append((entry.stat().st_mtime, _size(entry), entry.path))
    return found


def _size(entry: os.DirEntry[str]) -> int:
    if not entry.is_dir(follow_symlinks=False):
        return entry.stat().st_size
    return sum(p.stat().st_size for p in Path(entry.path).rglob("*") if p.is_file())


def _delete(path: str) -> None:
    if not os.path.isdir(path):
        os.unlink(path)
        return
    # All of it goes at once: a part of a folder would be taken for an entry.
    gone = f"{path}.deleted-{os.getpid()}"
    os.rename(path, gone)
    shutil.rmtree(gone, ignore_errors=True)
