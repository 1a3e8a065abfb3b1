"""Measured times on disk, one small file each, in the folder `times` of irkit's cache.

A file's name is a digest of all that the time hangs on (`time_key`), so nothing is ever stale; those used
longest ago go once they are more than `LIMIT`. Deleting the folder is always safe.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from irkit.errors import ArtifactError
from irkit.plain_json import parsed
from irkit.runtime.artifact import cache_folder
from irkit.runtime.program_files import write_atomically

LIMIT = 20_000
_FORMAT = "irkit-time 1"


def time_key(*facts: object) -> str:
    """A digest of facts whose `repr` says all of them."""
    return hashlib.sha256(repr((_FORMAT, facts)).encode()).hexdigest()[:40]


def _folder() -> Path | None:
    cache = cache_folder()
    return None if cache is None else cache / "times"


def kept(key: str) -> float | None:
    """The nanoseconds kept under a key; None if there are none, or the file is damaged."""
    place = _folder()
    if place is None:
        return None
    path = place / f"{key}.json"
    try:
        found: Any = parsed(path.read_bytes())
        os.utime(path)
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict):
        return None
    facts = cast("dict[str, Any]", found)
    ns = facts.get("ns")
    whole = facts.get("format") == _FORMAT and facts.get("key") == key
    good = isinstance(ns, float) and 0 < ns < math.inf
    return ns if whole and good else None


def keep(key: str, ns: float, said: str) -> None:
    """Keep a time, with words for who looks at the file; a cache that cannot be written is none."""
    place = _folder()
    if place is None:
        return
    facts = {"format": _FORMAT, "key": key, "ns": float(ns), "of": said}
    with suppress(OSError, ArtifactError):
        place.mkdir(parents=True, exist_ok=True)
        write_atomically(place / f"{key}.json", json.dumps(facts).encode())


def prune(limit: int = LIMIT) -> None:
    """Delete the times that were used longest ago until there are at most `limit`."""
    place = _folder()
    if place is None:
        return
    with suppress(OSError):
        found = sorted((e.stat().st_mtime, e.path) for e in os.scandir(place))
        for _, path in found[: max(0, len(found) - limit)]:
            os.unlink(path)
