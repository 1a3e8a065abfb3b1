"""Machine code on disk, of rKernels and walkers, one file each, in the folder `rkernels` of irkit's cache.

An entry says whose it is and has a digest of its bytes: one that is damaged, or another's, is not there.
Files are put in their places whole, so that processes may share the folder. Those used longest ago go once
they are more than `LIMIT_BYTES` together; deleting the folder is always safe.
"""

from __future__ import annotations

import functools
import hashlib
from contextlib import suppress
from pathlib import Path

from irkit.errors import ArtifactError
from irkit.runtime import least_used
from irkit.runtime.artifact import cache_folder
from irkit.runtime.program_files import write_atomically

LIMIT_BYTES = 1 << 30
_RUNTIME = Path(__file__).parent
_PACKERS = (
    "code_store",
    "form_functions",
    "forms",
    "function_code",
    "machine_code",
    "units",
    "cuda/unit_code",
)


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
    except OSError:
        return None
    least_used.used(path)
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
    if place is not None:
        least_used.prune(place, limit)


@functools.cache
def _format() -> str:
    """A digest of the sources that say what is in an entry: other ones do not read it."""
    h = hashlib.sha256()
    for name in _PACKERS:
        h.update((_RUNTIME / f"{name}.py").read_bytes() + b"\0")
    return h.hexdigest()[:16]


def _head(key: str, payload: bytes) -> bytes:
    return f"irkit-rkernel {_format()} {key} {hashlib.sha256(payload).hexdigest()}".encode()
