"""The disk cache of compiled programs, and the key of an entry: everything that its content hangs on."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Collection
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import irkit
from irkit.driver.compiler.fingerprint import fingerprint
from irkit.driver.registry import ADDED
from irkit.errors import ArtifactError
from irkit.runtime.artifact import Artifact, cache_folder
from irkit.runtime.least_used import prune, used
from irkit.runtime.numba_settings import numba_settings

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
    "nvmath-python",
    "xdsl",
)
"""What takes part in a compilation beside irkit: passes, machine code for a GPU, constants."""
LIMIT_BYTES = 8 << 30
"""How large the programs of the disk cache may be together: those used longest ago go."""


def programs_folder() -> Path | None:
    """Where programs are kept; None without a disk cache."""
    folder = cache_folder()
    return None if folder is None else folder / "programs"


def cached(path: Path | None) -> Artifact | None:
    """What the disk cache has; an entry that is damaged counts as none and is written anew."""
    if path is None or not path.exists():
        return None
    try:
        found = Artifact.load(path)
    except ArtifactError:
        return None
    used(path)
    found.kept_as = path.name
    return found


def keep(path: Path, artifact: Artifact) -> None:
    """Keep a program; a cache that cannot be written is none: the program is there all the same."""
    with suppress(OSError, ArtifactError):
        path.parent.mkdir(parents=True, exist_ok=True)
        artifact.save(path)
        artifact.kept_as = path.name
        prune(path.parent, LIMIT_BYTES)


def cache_key(imported: ImportedModel, settings: object) -> str:
    """Hex digest of a model (module, weights, facts), `settings` of the compilation, and the compiler."""
    weights = imported.weights
    parts = (
        str(imported.module),
        sorted((name, weights.digest(name)) for name in weights),
        imported.info.to_json(),
        settings,
        *compiler_facts(),
    )
    return fingerprint(parts)[:32]


def compiler_facts() -> tuple[object, ...]:
    """What the result of a compilation hangs on beside the model and the settings."""
    # In the order of their addition: of two that change the same, the later one holds.
    return versions(), numba_settings(), own_digest(), list(ADDED.items())


def versions(packages: Collection[str] = PACKAGES) -> dict[str, str]:
    """Version of Python, and of each package, empty where it is not installed."""
    return {"python": platform.python_version(), **{name: _version(name) for name in packages}}


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
