"""Universal Binary JSON (draft 12), as XGBoost writes models; files that others may have written."""

from __future__ import annotations

from typing import Any

import numpy as np

DEEPEST = 64
_NUMBERS = {
    "i": ">i1",
    "U": ">u1",
    "I": ">i2",
    "l": ">i4",
    "L": ">i8",
    "d": ">f4",
    "D": ">f8",
}
_LENGTHS = "iUIlL"
_PLAIN: dict[str, Any] = {"Z": None, "T": True, "F": False}


def parsed(data: bytes) -> Any:
    """What the bytes say; lists of numbers of one type as arrays. Raises ValueError for no UBJSON."""
    reader = _Reader(data)
    value = reader.value(reader.marker(), 0)
    if reader.at != len(data):
        raise ValueError(f"{len(data) - reader.at} bytes behind its end")
    return value


class _Reader:
    """The bytes, and how far they are read. No length is believed that goes past their end."""

    def __init__(self, data: bytes) -> None:
        self._data, self.at = data, 0

    def marker(self) -> str:
        return chr(self._bytes(1)[0])

    def value(self, marker: str, depth: int) -> Any:
        """What stands behind a marker. Raises ValueError."""
        if depth > DEEPEST:
            raise ValueError(f"nested deeper than {DEEPEST}")
        if marker in _PLAIN:
            return _PLAIN[marker]
        if marker in _NUMBERS:
            return self._numbers(marker, 1)[0].item()
        if marker in "CS":
            return self._text(1 if marker == "C" else self._length())
        if marker == "[":
            return self._array(depth)
        if marker == "{":
            return self._object(depth)
        raise ValueError(f"byte {ord(marker)} where a value begins")

    def _bytes(self, count: int) -> bytes:
        if not 0 <= count <= len(self._data) - self.at:
            raise ValueError(f"truncated at byte {self.at}")
        self.at += count
        return self._data[self.at - count : self.at]

    def _numbers(self, marker: str, count: int) -> Any:
        kind = np.dtype(_NUMBERS[marker])
        return np.frombuffer(self._bytes(count * kind.itemsize), kind).astype(
            kind.newbyteorder("=")
        )

    def _length(self) -> int:
        marker = self.marker()
        if marker not in _LENGTHS:
            raise ValueError(f"byte {ord(marker)} where a length begins")
        return int(self._numbers(marker, 1)[0])

    def _text(self, count: int) -> str:
        # XGBoost writes names as they come, in whatever bytes they are.
        return self._bytes(count).decode("utf-8", "surrogateescape")

    def _head(self) -> tuple[str, int | None]:
        """The type that all elements have, and how many there are, where that stands first."""
        kind, count = "", None
        if self._next("$"):
            kind = self.marker()
        if self._next("#"):
            count = self._length()
        if kind and (count is None or kind not in _NUMBERS):
            raise ValueError(f"elements of type byte {ord(kind)} that are not counted")
        return kind, count

    def _next(self, marker: str) -> bool:
        found = self._data[self.at : self.at + 1] == marker.encode()
        self.at += found
        return found

    def _array(self, depth: int) -> Any:
        kind, count = self._head()
        if kind and count is not None:
            return self._numbers(kind, count)
        found: list[Any] = []
        while not self._ended("]", count, len(found)):
            found.append(self.value(self.marker(), depth + 1))
        return found

    def _object(self, depth: int) -> dict[str, Any]:
        kind, count = self._head()
        found: dict[str, Any] = {}
        read = 0
        while not self._ended("}", count, read):
            name = self._text(self._length())
            found[name] = self.value(kind or self.marker(), depth + 1)
            read += 1
        return found

    def _ended(self, end: str, count: int | None, read: int) -> bool:
        return self._next(end) if count is None else read >= count
