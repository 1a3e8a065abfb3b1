"""Frames and series of pandas in calls: what stands for them in a program of arrays, and how they are made
of arrays again.

Columns of numbers are arrays. Labels of rows, and columns of anything else, are objects that the call holds
(`held.py`). Each node here says what an object of pandas is made of: where it has a number `at`, that is of
an array in the list that it is built from. Nodes of arguments say which frame of the caller's they are.
"""

from __future__ import annotations

import importlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from irkit.annotations.held import Held
from irkit.annotations.structures import key_of, mapped, of_kind
from irkit.errors import UnsupportedError
from irkit.weights import Array

SMALL = 1000
"""Elements of arrays that are told apart by their values."""
LEAST_PANDAS = 3
"""The major version from which on pandas copies on write, so that what it is given stays as it is."""


def pandas() -> Any:
    """The library. Raises UnsupportedError for one that is too old."""
    found: Any = importlib.import_module("pandas")
    if int(found.__version__.partition(".")[0]) < LEAST_PANDAS:
        raise UnsupportedError(
            f"pandas {found.__version__}: frames in compiled functions need pandas {LEAST_PANDAS} or newer, "
            "which copies what is written"
        )
    return found


def kind_of(value: object) -> str | None:
    """ "Series" or "DataFrame" of an object that is just that, of pandas; "" of one of a class derived from
    it; None of anything else."""
    kind = type(value)
    if kind.__module__ in ("pandas", "pandas.core.series", "pandas.core.frame"):
        return kind.__name__ if kind.__name__ in ("Series", "DataFrame") else None
    named = any(
        c.__name__ in ("Series", "DataFrame") and c.__module__.partition(".")[0] == "pandas"
        for c in kind.__mro__[1:]
    )
    return "" if named else None


def is_index(value: object) -> bool:
    """Whether it is labels of pandas', which nobody can change."""
    return hasattr(value, "identical") and type(value).__module__.partition(".")[0] == "pandas"


@dataclass(frozen=True)
class Rows:
    """Labels of rows: number `labels` of what the call holds, and which of them. `fixed`: they are of the
    program itself, as the names of columns that a reduction has; `token` tells those apart."""

    labels: int
    length: int = field(repr=False)
    cut: tuple[int, int, int] | None = field(default=None, repr=False)
    token: str = field(default="", repr=False)
    fixed: Any = field(default=None, repr=False, compare=False)

    def of(self, held: Held) -> Any:
        """The index."""
        if self.fixed is not None:
            return self.fixed
        whole = held.labels[self.labels]
        return whole if self.cut is None else whole[slice(*_ends(self.cut))]

    def key(self) -> tuple[Hashable, ...]:
        """What equal rows share."""
        return (self.labels, self.length, self.cut, self.token)

    def part(self, picked: slice) -> Rows:
        """Some of the rows, by their places."""
        if self.fixed is not None:
            return fixed_rows(self.fixed[picked])
        own = range(self.length) if self.cut is None else range(*self.cut)
        part = own[picked]
        return Rows(self.labels, len(part), (part.start, part.stop, part.step))


def _ends(cut: tuple[int, int, int]) -> tuple[int, int | None, int]:
    """A range as a slice: one that goes back to the first element has no stop."""
    start, stop, step = cut
    return start, (None if stop < 0 else stop), step


def fixed_rows(index: Any) -> Rows:
    """Labels that are known when the function is traced."""
    labels = repr(index) if hasattr(index, "start") else repr(list(index))
    return Rows(-1, len(index), None, f"{labels} {index.names} {index.dtype}", index)


class Node:
    """Something of pandas, made of arrays."""

    def built(self, arrays: Sequence[Array], held: Held) -> Any:
        """The object."""
        raise NotImplementedError

    def key(self) -> Hashable:
        """What two nodes that are alike share."""
        raise NotImplementedError

    def moved(self, numbers: Sequence[int]) -> Node:
        """The same of arrays at other places: number n is at `numbers[n]`."""
        raise NotImplementedError


@dataclass(frozen=True)
class ObjectNode(Node):
    """An object that the call holds; its number is in array `at`."""

    at: int

    def built(self, arrays: Sequence[Array], held: Held) -> Any:
        """The object."""
        return held.object(arrays[self.at])

    def key(self) -> Hashable:
        """Its place."""
        return ("object", self.at)

    def moved(self, numbers: Sequence[int]) -> Node:
        """At another place."""
        return ObjectNode(numbers[self.at])


@dataclass(frozen=True)
class ArrayNode(Node):
    """An array, or a number, as it is."""

    at: int

    def built(self, arrays: Sequence[Array], held: Held) -> Any:
        """The array."""
        return arrays[self.at]

    def key(self) -> Hashable:
        """Its place."""
        return ("array", self.at)

    def moved(self, numbers: Sequence[int]) -> Node:
        """At another place."""
        return ArrayNode(numbers[self.at])


@dataclass(frozen=True)
class LabelsNode(Node):
    """The labels of rows."""

    rows: Rows

    def built(self, arrays: Sequence[Array], held: Held) -> Any:
        """The index."""
        return self.rows.of(held)

    def key(self) -> Hashable:
        """Which they are."""
        return ("labels", *self.rows.key())

    def moved(self, numbers: Sequence[int]) -> Node:
        """Itself."""
        return self


@dataclass(frozen=True)
class SeriesNode(Node):
    """A series: `values` is its elements, or a series that the call holds; `argument`: which frame of the
    caller's it is."""

    values: Node
    rows: Rows
    name: Hashable
    dtype: Any = field(default=None, compare=False, repr=False)
    argument: int = field(default=-1, compare=False, repr=False)

    def built(self, arrays: Sequence[Array], held: Held) -> Any:
        """The series."""
        return series(self.values.built(arrays, held), self.rows.of(held), self.name)

    def key(self) -> Hashable:
        """What it is made of."""
        return ("series", self.values.key(), *self.rows.key(), repr(self.name))

    def moved(self, numbers: Sequence[int]) -> Node:
        """Of elements at another place."""
        return SeriesNode(self.values.moved(numbers), self.rows, self.name)


@dataclass(frozen=True)
class FrameNode(Node):
    """A frame: `columns` as those of a series; `names` is their index."""

    columns: tuple[Node, ...]
    names: Any = field(compare=False)
    rows: Rows
    dtypes: tuple[Any, ...] = field(default=(), compare=False, repr=False)
    argument: int = field(default=-1, compare=False, repr=False)

    def built(self, arrays: Sequence[Array], held: Held) -> Any:
        """The frame."""
        rows = self.rows.of(held)
        parts = {n: series(c.built(arrays, held), rows, None) for n, c in enumerate(self.columns)}
        made = pandas().DataFrame(parts, index=rows, copy=False)
        made.columns = self.names
        return made

    def key(self) -> Hashable:
        """What it is made of."""
        return ("frame", *(c.key() for c in self.columns), repr(self.names), *self.rows.key())

    def moved(self, numbers: Sequence[int]) -> Node:
        """Of columns at other places."""
        return FrameNode(tuple(c.moved(numbers) for c in self.columns), self.names, self.rows)


def series(values: Any, rows: Any, name: Hashable) -> Any:
    """A series of elements, or of those of another one."""
    if kind_of(values) == "Series":
        found = values.copy(deep=False)
        found.index = rows
        found.name = name
        return found
    return pandas().Series(values, index=rows, name=name, copy=False)


def built(structure: Any, arrays: Sequence[Array], held: Held) -> Any:
    """A structure with objects in the places of its nodes."""
    return mapped(structure, lambda v: v.built(arrays, held) if isinstance(v, Node) else v)


def node_key(structure: Any) -> Hashable:
    """What two structures that are alike share."""
    keyed = mapped(structure, lambda v: v.key() if isinstance(v, Node) else _static(v))
    return key_of(keyed)


def _static(value: Any) -> Any:
    """A function by its code: it may be made anew each time that it is met."""
    if of_kind(value, np.generic) or (of_kind(value, np.ndarray) and value.size <= SMALL):
        array: Array = np.asarray(value)
        return ("numbers", str(array.dtype), array.shape, repr(array.tolist()))
    if of_kind(value, slice):
        return ("slice", repr(value))
    code = getattr(value, "__code__", None)
    if code is None or not hasattr(value, "__closure__"):
        return ("index", repr(value)) if hasattr(value, "identical") else value
    cells = [c.cell_contents for c in value.__closure__ or ()]
    return ["function", code, *map(_static, cells), *(value.__defaults__ or ())]


def own(value: Any, arrays: Sequence[Array]) -> Any:
    """A result that shares no memory with arrays: what is written to those later would be seen in it."""
    if kind_of(value) not in ("Series", "DataFrame"):
        return np.array(value) if of_kind(value, np.ndarray) else value
    columns = (
        [value] if kind_of(value) == "Series" else [value.iloc[:, n] for n in range(value.shape[1])]
    )
    mine = [c.to_numpy() for c in columns if of_kind(c.dtype, np.dtype) and c.dtype != object]
    shared = any(np.may_share_memory(m, cast(Any, a)) for m in mine for a in arrays)
    return value.copy() if shared else value


def assign(table: Any, label: Hashable, value: Any) -> None:
    """Put a column to a frame of the caller's, or, without a label, elements to a series; of None the column
    goes."""
    if kind_of(table) == "Series":
        table.iloc[:] = value.to_numpy()
    elif value is None:
        del table[label]
    else:
        table[label] = value
