"""Saved programs and the disk cache: one zip file, no pickle, loadable without xDSL.

    manifest.json         format, version, target, model facts, report, digests of the other members
    module.py             the emitted Numba module
    constants.safetensors the weights it names
    module.cubin          on CUDA: machine code
    state.safetensors     what the program keeps from run to run, if it does
    initial.safetensors   what that is set back to, where it is not zero
    graph.mlir …          the IR at each level, as text
    graph.safetensors     on CUDA: weights that the graph level names beside those, to compile it anew

A saved program is code: load only what you trust.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
import tempfile
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from irkit.bfloat16 import load_arrays
from irkit.errors import ArtifactError
from irkit.model_info import ModelInfo
from irkit.weights import Array

FORMAT = "irkit-program"
VERSION = 5
TARGETS = ("cpu", "cuda")
LEVELS = ("graph", "tensor", "task", "schedule")
_BINARY = ("module.cubin", "constants.safetensors", "graph.safetensors")
_ARRAYS = ("state.safetensors", "initial.safetensors", "graph.safetensors")
_FIELDS = {"target": str, "info": str, "report": dict, "variants": dict, "digests": dict}
# What reading a zip file of wrong bytes raises.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    KeyError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
    struct.error,
)


@dataclass
class Artifact:
    """A compiled program as data.

    `variants`: of a saved program with several input dtypes, the key of each one's artifact.
    """

    target: str
    source: str
    weights: dict[str, Array]
    info: str
    ir: dict[str, str] = field(default_factory=dict[str, str])
    report: dict[str, Any] = field(default_factory=dict[str, Any])
    cubin: bytes = b""
    variants: dict[str, str] = field(default_factory=dict[str, str])
    state: dict[str, Array] = field(default_factory=dict[str, Array])
    initial: dict[str, Array] = field(default_factory=dict[str, Array])
    graph_weights: dict[str, Array] = field(default_factory=dict[str, Array])

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
        for name, arrays in zip(
            _ARRAYS, (self.state, self.initial, self.graph_weights), strict=True
        ):
            if arrays:
                members[name] = save(arrays)
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "target": self.target,
            "info": self.info,
            "report": self.report,
            "variants": self.variants,
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
        return _from_members(str(path), _members(str(path), data))


def _members(path: str, data: bytes) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return {n: archive.read(n) for n in archive.namelist()}
    except _DAMAGE as error:
        raise ArtifactError(
            f"'{path}' is not a saved irkit program, or it is damaged: {error}"
        ) from None


def _from_members(path: str, members: dict[str, bytes]) -> Artifact:
    from safetensors import SafetensorError

    manifest = _manifest(path, members)
    for name in members.keys() | manifest["digests"].keys():
        digest = hashlib.sha256(members.get(name, b"")).hexdigest()
        if name != "manifest.json" and manifest["digests"].get(name) != digest:
            raise ArtifactError(f"'{path}' is damaged: {name} does not match its digest")
    try:
        return Artifact(
            manifest["target"],
            members["module.py"].decode(),
            load_arrays(members["constants.safetensors"]),
            manifest["info"],
            {n: members[f"{n}.mlir"].decode() for n in LEVELS if f"{n}.mlir" in members},
            manifest["report"],
            members.get("module.cubin", b""),
            manifest["variants"],
            *(load_arrays(members[name]) if name in members else {} for name in _ARRAYS),
        )
    except (KeyError, ValueError, SafetensorError) as error:
        raise ArtifactError(f"'{path}' is not a saved irkit program: {error}") from None


def _manifest(path: str, members: dict[str, bytes]) -> dict[str, Any]:
    """The manifest of this format and version, with every field of its type."""
    try:
        manifest = json.loads(members["manifest.json"])
        kind, version = manifest["format"], manifest["version"]
    except (KeyError, ValueError, TypeError):
        raise ArtifactError(f"'{path}' is not a saved irkit program: no manifest") from None
    if kind != FORMAT or version != VERSION:
        raise ArtifactError(
            f"'{path}' is of format {kind} {version}; this irkit reads {FORMAT} {VERSION}"
        )
    for name, expected in _FIELDS.items():
        if not isinstance(manifest.get(name), expected):
            raise ArtifactError(f"'{path}' is damaged: its manifest has no {name}")
    if manifest["target"] not in TARGETS:
        raise ArtifactError(f"'{path}' is for target '{manifest['target']}', which is unknown")
    try:
        ModelInfo.from_json(manifest["info"])
    except (KeyError, TypeError, ValueError) as error:
        raise ArtifactError(f"'{path}' is damaged: no facts about the model: {error}") from None
    return manifest


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file beside its place and move it there. Raises ArtifactError if that fails."""
    if path.exists() and not path.is_file():
        raise ArtifactError(f"cannot write '{path}': it is no regular file")
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
