"""What ONNX models were compiled to before, found by their bytes: such a model is not imported again.

A note, one small file in the folder of the programs, says which program came of a model's bytes, the
arguments of `irkit.compile`, and all that compiling hangs on. Models with data in other files have none.
"""

from __future__ import annotations

import json
import mmap
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from irkit.driver.compiler.cache import cached, compiler_facts, programs_folder, versions
from irkit.driver.compiler.fingerprint import fingerprint
from irkit.errors import ArtifactError
from irkit.plain_json import parsed
from irkit.runtime.artifact import Artifact
from irkit.runtime.digests import digest_of, file_digest
from irkit.runtime.program_files import write_atomically

_READERS = ("ml_dtypes", "onnx", "protobuf")
"""What reads a model beside irkit."""
# The protobuf field that says where a tensor's data are, if they are in another file, has a key of this name.
_ELSEWHERE = b"location"
# Bytes; protobuf writes no longer message.
_LONGEST = 1 << 31


@dataclass(frozen=True)
class Note:
    """What is known of a model and arguments. `digest` is that of the model's bytes."""

    path: Path
    model: Any
    digest: str

    def artifact(self) -> Artifact | None:
        """The program that they were compiled to; None if there is none, or it is damaged."""
        try:
            said: Any = parsed(self.path.read_bytes())
            return cached(self.path.with_name(str(said["program"])))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def keep(self, artifact: Artifact) -> None:
        """Note what they were compiled to; a cache that cannot be written is none."""
        if artifact.kept_as is None:
            return
        with suppress(OSError, ArtifactError):
            # What was read since must be what the note is for.
            if _is_whole(self.model) and _digest(self.model) == self.digest:
                said = json.dumps({"program": artifact.kept_as})
                write_atomically(self.path, said.encode())


def note_of(model: Any, settings: object) -> Note | None:
    """The note of a model for `settings`; None for what is no ONNX model, or without a disk cache."""
    folder = programs_folder()
    if folder is None:
        return None
    digest = _digest(model)
    if digest is None:
        return None
    key = fingerprint((digest, settings, versions(_READERS), compiler_facts()))[:32]
    return Note(folder / f"{key}.known", model, digest)


def _digest(model: Any) -> str | None:
    """Of the bytes of a model; None for what is no ONNX model, or cannot be read."""
    if _is_proto(model):
        return digest_of([model.SerializeToString()]) if model.ByteSize() < _LONGEST else None
    if not isinstance(model, str | Path) or Path(model).suffix != ".onnx":
        return None
    try:
        return file_digest(Path(model))
    except OSError:
        return None


def _is_proto(model: Any) -> bool:
    return type(model).__name__ == "ModelProto"


def _is_whole(model: Any) -> bool:
    """Whether all of a model is surely in these bytes."""
    if _is_proto(model):
        return _ELSEWHERE not in model.SerializeToString()
    with (
        Path(model).open("rb") as stream,
        mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data,
    ):
        return data.find(_ELSEWHERE) < 0
