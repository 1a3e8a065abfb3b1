"""Weights live beside the IR, not in it: named arrays, stored as safetensors.

The IR refers to an array by name (`dense_resource<name>`); names are derived from the content,
so equal arrays share one name and a cloned or re-read module needs no book-keeping.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irkit.bfloat16 import load_arrays
from irkit.errors import ArtifactError, InvalidModelError

Array = NDArray[Any]


def content_digest(array: Array) -> str:
    """Hex digest of dtype, shape and bytes."""
    # To NumPy, bfloat16 is no number: neither has it a code of its own, nor can its bytes be looked at.
    half = array.dtype.name == "bfloat16"
    h = hashlib.sha256(f"{'bf16' if half else array.dtype.str}{array.shape}".encode())
    array = np.ascontiguousarray(array)
    h.update((array.view(np.uint16) if half else array).data)
    return h.hexdigest()


def _never_changes(array: Array) -> bool:
    """Whether an array is what it will be, in C order: bytes of Python's that nobody can write to."""
    memory: Any = array
    while isinstance(memory, np.ndarray):
        memory = memory.base
    return isinstance(memory, bytes) and array.flags.c_contiguous


class MissingWeightError(InvalidModelError, KeyError):
    """A module names a weight that is not there; a KeyError, as of any mapping."""

    def __str__(self) -> str:
        return f"weight '{self.args[0]}' is not there"


class WeightStore(Mapping[str, Array]):
    """Named, read-only arrays. `add` de-duplicates by content."""

    def __init__(self) -> None:
        self._arrays: dict[str, Array] = {}
        self._digests: dict[str, str] = {}

    def add(self, array: Array, hint: str = "w") -> str:
        """Store `array` (any shape and dtype) and return its name, `<hint>_<digest>`."""
        if not _never_changes(array):
            array = np.array(array, order="C", copy=True)
        return self.adopt(array, content_digest(array), hint)

    def adopt(self, array: Array, digest: str, hint: str = "w") -> str:
        """As `add`, of an array in C order that nobody else holds, and whose `content_digest` is known."""
        name = f"{hint}_{digest[:12]}"
        array.setflags(write=False)
        if name not in self._arrays:
            self._arrays[name], self._digests[name] = array, digest
        return name

    def put(self, name: str, array: Array) -> None:
        """Store `array` under a given name, as read from a file."""
        array = np.ascontiguousarray(array)
        array.setflags(write=False)
        self._arrays[name] = array
        self._digests.pop(name, None)

    def digest(self, name: str) -> str:
        """`content_digest` of a weight: its name says what it is only where `add` has made it."""
        if name not in self._digests:
            self._digests[name] = content_digest(self[name])
        return self._digests[name]

    def __getitem__(self, name: str) -> Array:
        if name not in self._arrays:
            raise MissingWeightError(name)
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def restricted_to(self, names: set[str]) -> WeightStore:
        """A store of just these names (those present)."""
        kept = WeightStore()
        for name in sorted(names & self._arrays.keys()):
            kept._arrays[name] = self._arrays[name]
        return kept

    def save(self, path: Path | str) -> None:
        """Write all arrays to a `.safetensors` file, atomically."""
        from safetensors.numpy import save

        path = Path(path)
        partial = path.with_name(path.name + ".partial")
        # safetensors writes nothing for an empty mapping's data but still a valid header.
        partial.write_bytes(save(dict(self._arrays)))
        partial.replace(path)

    @staticmethod
    def load(path: Path | str) -> WeightStore:
        """Read a `.safetensors` file. Raises ArtifactError if it is missing or damaged."""
        from safetensors import SafetensorError

        store = WeightStore()
        try:
            arrays = load_arrays(Path(path).read_bytes())
        except OSError as error:
            raise ArtifactError(f"cannot read weights '{path}': {error.strerror}") from None
        except (KeyError, SafetensorError, ValueError) as error:
            raise ArtifactError(f"'{path}' is not a valid .safetensors file: {error}") from None
        for name, array in arrays.items():
            store.put(name, array)
        return store
