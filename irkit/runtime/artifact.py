"""Saved programs and the disk cache: one zip file, no pickle, loadable without xDSL.

    manifest.json         format, version, target, model facts, report, digests of the other members
    module.py             the emitted Numba module
    constants.safetensors the weights it names, as they lie in its memory (`stored_arrays.py`)
    module.cubin          on CUDA: machine code, an ELF image or several
    state.safetensors     what the program keeps from run to run, if it does
    initial.safetensors   what that is set back to, where it is not zero
    graph.mlir …          the IR at each level, as text
    graph.safetensors     on CUDA: weights that the graph level names beside those, to compile it anew

A saved program is code: load only what you trust.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from irkit.bfloat16 import load_arrays
from irkit.errors import ArtifactError, InvalidModelError
from irkit.model_info import ModelInfo
from irkit.plain_json import parsed
from irkit.runtime.digests import digest_of
from irkit.runtime.program_files import Member, read_members, replaced, write_members
from irkit.runtime.stored_arrays import arrays_of, constant_places, pieces_of
from irkit.weights import Array

FORMAT = "irkit-program"
VERSION = 10
TARGETS = ("cpu", "cuda")
LEVELS = ("graph", "tensor", "task", "schedule")
_CONSTANTS, _GRAPH = "constants.safetensors", "graph.safetensors"
_STATE = ("state.safetensors", "initial.safetensors")
_FIELDS = {"target": str, "info": str, "report": dict, "variants": dict, "digests": dict}
# What reading a zip file of wrong bytes raises.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    KeyError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    ValueError,
    struct.error,
)


@dataclass
class Artifact:
    """A compiled program as data.

    `variants`: of a saved program with several input dtypes, the key of each one's artifact.
    `kept_as`: the file that has it in the folder of cached programs, if one has.
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
    kept_as: str | None = field(default=None, compare=False)

    @property
    def key(self) -> str:
        """Digest of the module's text: names its folder in the cache."""
        return hashlib.sha256(self.source.encode()).hexdigest()[:24]

    def save(self, path: Path | str) -> None:
        """Write to a file, atomically: a reader sees all of it or nothing."""
        from safetensors.numpy import save

        members: dict[str, bytes] = {
            "module.py": self.source.encode(),
            **{f"{level}.mlir": text.encode() for level, text in self.ir.items()},
        }
        for name, arrays in zip(_STATE, (self.state, self.initial), strict=True):
            if arrays:
                members[name] = save(arrays)
        stored = {_CONSTANTS: pieces_of(self.weights, constant_places(self.source))}
        if self.cubin:
            stored["module.cubin"] = [np.frombuffer(self.cubin, np.uint8)]
        if self.graph_weights:
            stored[_GRAPH] = pieces_of(self.graph_weights, {})
        digests = {
            **{name: digest_of([data]) for name, data in members.items()},
            **{name: digest_of(part.data for part in parts) for name, parts in stored.items()},
        }
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "target": self.target,
            "info": self.info,
            "report": self.report,
            "variants": self.variants,
            "digests": digests,
        }
        members["manifest.json"] = json.dumps(manifest, indent=1).encode()
        with replaced(Path(path)) as stream:
            write_members(stream, members, stored)

    @staticmethod
    def load(path: Path | str) -> Artifact:
        """Read a file that `save` wrote. Raises ArtifactError if it is anything else."""
        return _from_members(str(path), _members(path))


def _members(path: Path | str) -> dict[str, Member]:
    try:
        return read_members(Path(path))
    except _DAMAGE as error:
        raise ArtifactError(
            f"'{path}' is not a saved irkit program, or it is damaged: {error}"
        ) from None
    except OSError as error:
        raise ArtifactError(f"cannot read '{path}': {error.strerror}") from None


def _from_members(path: str, members: dict[str, Member]) -> Artifact:
    from safetensors import SafetensorError

    manifest = _manifest(path, members)
    for name in members.keys() | manifest["digests"].keys():
        digest = members[name].digest if name in members else None
        if name != "manifest.json" and manifest["digests"].get(name) != digest:
            raise ArtifactError(f"'{path}' is damaged: {name} does not match its digest")
    texts = {n: f"{n}.mlir" for n in LEVELS if f"{n}.mlir" in members}
    try:
        return Artifact(
            manifest["target"],
            bytes(members["module.py"].data).decode(),
            arrays_of(members[_CONSTANTS].data),
            manifest["info"],
            {level: bytes(members[name].data).decode() for level, name in texts.items()},
            manifest["report"],
            bytes(members["module.cubin"].data) if "module.cubin" in members else b"",
            manifest["variants"],
            *(load_arrays(bytes(members[n].data)) if n in members else {} for n in _STATE),
            graph_weights=arrays_of(members[_GRAPH].data) if _GRAPH in members else {},
        )
    except (KeyError, ValueError, SafetensorError) as error:
        raise ArtifactError(f"'{path}' is not a saved irkit program: {error}") from None


def _manifest(path: str, members: dict[str, Member]) -> dict[str, Any]:
    """The manifest of this format and version, with every field of its type."""
    try:
        manifest = parsed(bytes(members["manifest.json"].data))
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
        raise ArtifactError(
            f"'{path}' is for target '{manifest['target']}'; there are {', '.join(TARGETS)}"
        )
    try:
        ModelInfo.from_json(manifest["info"])
    except InvalidModelError as error:
        raise ArtifactError(f"'{path}' is damaged: no facts about the model: {error}") from None
    return manifest


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
