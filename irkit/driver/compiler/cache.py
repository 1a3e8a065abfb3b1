"""The disk cache of compiled programs: what an entry's key is made of."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import irkit
from irkit import extending
from irkit.errors import ArtifactError
from irkit.runtime.artifact import Artifact
from irkit.weights import WeightStore


def cached(path: Path | None) -> Artifact | None:
    """What the disk cache has; an entry that is damaged counts as none and is written anew."""
    if path is None or not path.exists():
        return None
    try:
        return Artifact.load(path)
    except ArtifactError:
        return None


def cache_key(text: str, weights: WeightStore, device: str) -> str:
    # Weight names are digests of their content, and the text names them all.
    h = hashlib.sha256(text.encode())
    for name in sorted(weights):
        h.update(name.encode())
    h.update(device.encode())
    h.update(own_digest())
    h.update(extending.digest())
    return h.hexdigest()[:32]


@cache
def own_digest() -> bytes:
    """Digest of irkit's own sources: another irkit compiles anew."""
    h = hashlib.sha256()
    root = Path(irkit.__file__).parent
    for path in sorted(root.rglob("*.py")):
        h.update(path.relative_to(root).as_posix().encode())
        h.update(path.read_bytes())
    return h.digest()
