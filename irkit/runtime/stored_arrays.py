"""safetensors files whose data lie as a program wants its constants: once read, they are in place.

An array with a place lies so many bytes behind the start of the data, the others behind all of these. As the
format knows no holes, what lies between arrays is an array too, called `PADDING` and a number, which readers
of safetensors see as such and `arrays_of` leaves out.
"""

from __future__ import annotations

import ast
import json
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, cast

import numpy as np

from irkit.bfloat16 import STORED, dtype_of
from irkit.errors import ArtifactError
from irkit.plain_json import parsed
from irkit.weights import Array

ALIGN = 256
"""Bytes: the data start at a multiple of it, from the start of the file, and so do arrays without a place."""
PADDING = "irkit.padding."
_LENGTH = struct.Struct("<Q")
_CODES = {name: code for code, name in STORED.items()}

# As emission prints it.
_PROGRAM = "\nPROGRAM = Program("
_PRINTED = re.compile(r"^    constants=(\(\n.*?^    \)),$", re.MULTILINE | re.DOTALL)


def constant_places(source: str) -> dict[str, int]:
    """Where an emitted module has its constants, in bytes behind the first; a weight with two places is
    named with the first."""
    found = _PRINTED.search(source, max(source.find(_PROGRAM), 0))
    printed: Sequence[tuple[str, int, int]] = (
        () if found is None else ast.literal_eval(found.group(1))
    )
    return {name: at for name, at, _ in reversed(printed)}


class _Placed(NamedTuple):
    """An array, or padding, and where its bytes begin."""

    at: int
    name: str
    array: Array

    @property
    def end(self) -> int:
        return self.at + self.array.nbytes


def pieces_of(arrays: Mapping[str, Array], places: Mapping[str, int]) -> list[Array]:
    """The bytes of a file of `arrays`, piece after piece; `places` are bytes from the start of its data.

    Where places overlap there are none. Raises ArtifactError for a name that padding has.
    """
    taken = next((name for name in arrays if name.startswith(PADDING)), None)
    if taken is not None:
        raise ArtifactError(f"an array cannot be kept under the name '{taken}', which padding has")
    placed = _without_holes(_placed(arrays, places))
    entries = {
        p.name: {
            "dtype": _CODES[p.array.dtype.name],
            "shape": list(p.array.shape),
            "data_offsets": [p.at, p.end],
        }
        for p in placed
    }
    text = json.dumps(entries).encode()
    text += b" " * (-(len(text) + _LENGTH.size) % ALIGN)
    head = np.frombuffer(_LENGTH.pack(len(text)) + text, np.uint8)
    return [head, *(_bytes(p.array) for p in placed)]


def _placed(arrays: Mapping[str, Array], places: Mapping[str, int]) -> list[_Placed]:
    found = sorted(_Placed(places[name], name, arrays[name]) for name in arrays if name in places)
    if any(one.end > other.at for one, other in pairwise(found)):
        found = []
    have = {p.name for p in found}
    at = max((p.end for p in found), default=0)
    for name in sorted(arrays.keys() - have):
        at += -at % ALIGN
        found.append(_Placed(at, name, arrays[name]))
        at += arrays[name].nbytes
    return found


def _without_holes(placed: list[_Placed]) -> list[_Placed]:
    found: list[_Placed] = []
    end = 0
    for number, piece in enumerate(placed):
        if piece.at > end:
            hole = np.zeros(piece.at - end, np.uint8)
            found.append(_Placed(end, f"{PADDING}{number}", hole))
        found.append(piece)
        end = piece.end
    return found


def _bytes(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def in_place(weights: Mapping[str, Array], constants: Sequence[tuple[str, int, int]]) -> int | None:
    """The address from which on `weights` lie as `constants` (name, place, bytes) say; None if they do not,
    or do not start on a cache line."""
    starts = {weights[name].ctypes.data - at for name, at, size in constants if size}
    whole = all(weights[n].flags.c_contiguous and weights[n].nbytes == s for n, _, s in constants)
    start = starts.pop() if len(starts) == 1 else 1
    return start if whole and start % ALIGN == 0 else None


def arrays_of(data: memoryview) -> dict[str, Array]:
    """The arrays of a file, read-only and without a copy: they hold `data`.

    Raises ValueError for bytes that are no such file, UnsupportedError for bfloat16 without ml_dtypes.
    """
    if len(data) < _LENGTH.size:
        raise ValueError("no safetensors file: too short")
    (length,) = _LENGTH.unpack(data[: _LENGTH.size])
    start = _LENGTH.size + length
    if start > len(data):
        raise ValueError("no safetensors file: its header is longer than the file")
    found: dict[str, Array] = {}
    end = 0
    for name, (kind, shape, low, high) in _entries(bytes(data[_LENGTH.size : start])):
        if low != end or high < low or start + high > len(data):
            raise ValueError(f"no safetensors file: '{name}' lies where it cannot")
        found[name] = np.frombuffer(data[start + low : start + high], kind).reshape(shape)
        end = high
    if start + end != len(data):
        raise ValueError("no safetensors file: its header describes other data")
    return {n: a for n, a in found.items() if not n.startswith(PADDING)}


_Entry = tuple[str, tuple[np.dtype[Any], tuple[int, ...], int, int]]


def _entries(header: bytes) -> Iterator[_Entry]:
    """Name, dtype, shape, and first and last place of each array, in the order of the places."""
    try:
        found: Any = parsed(header)
    except ValueError as error:
        raise ValueError(f"no safetensors file: its header is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise ValueError("no safetensors file: its header is no mapping")
    facts = cast("dict[str, Any]", found)
    facts.pop("__metadata__", None)
    try:
        entries: list[_Entry] = [(name, _entry(facts[name])) for name in facts]
    except (KeyError, TypeError):
        raise ValueError("no safetensors file: its header does not say where arrays lie") from None
    return iter(sorted(entries, key=lambda e: e[1][2:]))


def _entry(facts: Any) -> tuple[np.dtype[Any], tuple[int, ...], int, int]:
    low, high = facts["data_offsets"]
    shape = tuple(facts["shape"])
    if not all(type(n) is int and n >= 0 for n in (low, high, *shape)):
        raise ValueError("no safetensors file: a size that is no whole number")
    return dtype_of(STORED[facts["dtype"]]), shape, low, high
