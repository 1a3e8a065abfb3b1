"""Saved programs and the disk cache: one zip file, no pickle, loadable without xDSL.

    manifest.json         format, version, target, model facts, report, digests of the other members
    module.py             the emitted Numba module
    constants.safetensors the weights it names
    module.cubin          on CUDA: machine code
    graph.mlir …          the IR at each level, as text

A saved program is code: load only what you trust.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import os
import sys
import tempfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from irkit.errors import ArtifactError
from irkit.weights import Array

FORMAT = "irkit-program"
VERSION = 1
LEVELS = ("graph", "tensor", "task", "schedule")
_BINARY = ("module.cubin", "constants.safetensors")


@dataclass
class Artifact:
    """A compiled program as data."""

    target: str
    source: str
    weights: dict[str, Array]
    info: str
    ir: dict[str, str] = field(default_factory=dict[str, str])
    report: dict[str, Any] = field(default_factory=dict[str, Any])
    cubin: bytes = b""

    @property
    def key(self) -> str:
        """Digest of the module's text: names its folder in the cache."""
        return hashlib.sha256(self.source.encode()).hexdigest()[:24]

    def save(self, path: Path | str) -> None:
        """Write to a file, atomically: a reader sees all of it or nothing."""
        from safetensors.numpy import save

        members: dict[str, bytes] = {
            "module.py": self.source.encode(),
            "constants.safetensors": save(self.weights),
            **{f"{level}.mlir": text.encode() for level, text in self.ir.items()},
        }
        if self.cubin:
            members["module.cubin"] = self.cubin
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "target": self.target,
            "info": self.info,
            "report": self.report,
            "digests": {n: hashlib.sha256(b).hexdigest() for n, b in members.items()},
        }
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("manifest.json", json.dumps(manifest, indent=1))
            for name, data in members.items():
                kind = zipfile.ZIP_STORED if name in _BINARY else zipfile.ZIP_DEFLATED
                archive.writestr(name, data, kind)
        write_atomically(Path(path), buffer.getvalue())

    @staticmethod
    def load(path: Path | str) -> Artifact:
        """Read a file that `save` wrote. Raises ArtifactError if it is anything else."""
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise ArtifactError(f"cannot read '{path}': {error.strerror}") from None
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                members = {n: archive.read(n) for n in archive.namelist()}
        except (
            zipfile.BadZipFile,
            EOFError,
            OSError,
            ValueError,
            NotImplementedError,
            RuntimeError,
        ):
            raise ArtifactError(
                f"'{path}' is not a saved irkit program, or it is damaged"
            ) from None
        except Exception as error:
            # zlib.error is no subclass of the above and lives in an optional module.
            raise ArtifactError(f"'{path}' is damaged: {error}") from None
        return _from_members(str(path), members)


def _from_members(path: str, members: dict[str, bytes]) -> Artifact:
    from safetensors.numpy import load

    try:
        manifest = json.loads(members["manifest.json"])
        kind, version = manifest["format"], manifest["version"]
    except (KeyError, ValueError, TypeError):
        raise ArtifactError(f"'{path}' is not a saved irkit program: no manifest") from None
    if kind != FORMAT or version != VERSION:
        raise ArtifactError(
            f"'{path}' is of format {kind} {version}; this irkit reads {FORMAT} {VERSION}"
        )
    for name, digest in manifest["digests"].items():
        if hashlib.sha256(members.get(name, b"")).hexdigest() != digest:
            raise ArtifactError(f"'{path}' is damaged: {name} does not match its digest")
    return Artifact(
        manifest["target"],
        members["module.py"].decode(),
        load(members["constants.safetensors"]),
        manifest["info"],
        {n: members[f"{n}.mlir"].decode() for n in LEVELS if f"{n}.mlir" in members},
        manifest["report"],
        members.get("module.cubin", b""),
    )


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file beside its place and move it there. Raises ArtifactError if that fails."""
    try:
        handle, partial = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".partial")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
            os.replace(partial, path)
        except BaseException:
            os.unlink(partial)
            raise
    except OSError as error:
        raise ArtifactError(f"cannot write '{path}': {error.strerror}") from None


def cache_folder() -> Path | None:
    """Where compiled programs are kept (IRKIT_CACHE_DIR, else the platform's place); None if nothing
    can be written there, or IRKIT_CACHE_DIR is empty."""
    from platformdirs import user_cache_path

    configured = os.environ.get("IRKIT_CACHE_DIR")
    if configured == "":
        return None
    folder = Path(configured) if configured else user_cache_path("irkit")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


def import_source(artifact: Artifact) -> ModuleType:
    """Import the emitted module from the cache, where Numba keeps its machine code beside it."""
    name = f"irkit_program_{artifact.key}"
    if name in sys.modules:
        return sys.modules[name]
    folder = cache_folder()
    base = folder if folder is not None else Path(tempfile.mkdtemp(prefix="irkit-"))
    path = base / "modules" / artifact.key / "module.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    # Numba's cache goes by the file's time stamp: leave an equal file alone.
    if not path.exists() or path.read_text() != artifact.source:
        write_atomically(path, artifact.source.encode())
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Numba finds the functions of what it kept on disk by the name of their module.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
