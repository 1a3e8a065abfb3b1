"""The disk cache of compiled programs, and the key of an entry: everything that its content hangs on."""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import irkit
from irkit.driver.compiler.fingerprint import fingerprint
from irkit.driver.registry import ADDED
from irkit.errors import ArtifactError
from irkit.runtime.artifact import Artifact

if TYPE_CHECKING:
    from irkit.frontends.module import ImportedModel

PACKAGES = (
    "cuda-bindings",
    "llvmlite",
    "numba",
    "numba-cuda",
    "numpy",
    "nvidia-nvjitlink",
    "nvidia-nvvm",
    "xdsl",
)
"""What takes part in a compilation beside irkit: passes, machine code for a GPU, constants."""


def cached(path: Path | None) -> Artifact | None:
    """What the disk cache has; an entry that is damaged counts as none and is written anew."""
    if path is None or not path.exists():
        return None
    try:
        return Artifact.load(path)
    except ArtifactError:
        return None


def cache_key(imported: ImportedModel, settings: object) -> str:
    """Hex digest of a model (module, weights, facts), `settings` of the compilation, and the compiler."""
    weights = imported.weights
    parts = (
        str(imported.module),
        sorted((name, weights.digest(name)) for name in weights),
        imported.info.to_json(),
        settings,
        versions(),
        own_digest(),
        # In the order of their addition: of two that change the same, the later one holds.
        list(ADDED.items()),
    )
    return fingerprint(parts)[:32]


def versions() -> dict[str, str]:
    """Version of Python, and of each of `PACKAGES`, empty where it is not installed."""
    return {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}}


@cache
def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


@cache
def own_digest() -> bytes:
    """Digest of irkit's own sources: another irkit compiles anew."""
    h = hashlib.sha256()
    root = Path(irkit.__file__).parent
    for path in sorted(root.rglob("*.py")):
        h.update(path.relative_to(root).as_posix().encode())
        h.update(path.read_bytes())
    return h.digest()
