"""What a program means, apart from any schedule: calls of rOperators on values.

A value is bytes, described as pieces of what they come from: an input, a constant, or a result of a
call. Reshapes, slices and concatenations move no bytes, so they only cut and join pieces.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

Source = tuple[str, int | str, int]
"""("input", port, 0), ("constant", name, 0) or ("result", call, which)"""


class Piece(NamedTuple):
    """Bytes [start, stop) of a source; bytes per row of the batch where it has one."""

    source: Source
    start: int
    stop: int

    @property
    def nbytes(self) -> int:
        """Bytes, or bytes per row."""
        return self.stop - self.start


Value = tuple[Piece, ...]


class Port(NamedTuple):
    """Type of an input or output: shape with -1 for the batch, NumPy name of the elements' type."""

    shape: tuple[int, ...]
    element: str


class Call(NamedTuple):
    """One launch: the name of what its rOperator computes, and its operands."""

    symbol: str
    operands: tuple[Value, ...]


@dataclass
class Function:
    """A function of launches as values. Call numbers in sources count `calls`; `state` has pairs of an input
    and an output."""

    name: str
    inputs: list[Port] = field(default_factory=list[Port])
    outputs: list[Port] = field(default_factory=list[Port])
    calls: list[Call] = field(default_factory=list[Call])
    returned: list[Value] = field(default_factory=list[Value])
    state: Sequence[tuple[int, int]] = ()


def joined(pieces: Iterable[Piece]) -> Value:
    """A value in its one normal form: no empty piece, neighbours of one source merged."""
    found: list[Piece] = []
    for piece in pieces:
        if piece.nbytes <= 0:
            continue
        last = found[-1] if found else None
        if last is not None and last.source == piece.source and last.stop == piece.start:
            found[-1] = Piece(last.source, last.start, piece.stop)
        else:
            found.append(piece)
    return tuple(found)


def cut(value: Sequence[Piece], start: int, stop: int) -> Value:
    """Bytes [start, stop) of a value."""
    found: list[Piece] = []
    at = 0
    for piece in value:
        low, high = max(start, at), min(stop, at + piece.nbytes)
        if low < high:
            found.append(Piece(piece.source, piece.start + low - at, piece.start + high - at))
        at += piece.nbytes
    return joined(found)


def size_of(value: Value) -> int:
    """Bytes of a value."""
    return sum(piece.nbytes for piece in value)
