"""The arguments of a call: which arrays there are, and what is no array."""

from __future__ import annotations

import types
from collections.abc import Hashable, Sequence
from typing import Any, cast

import numpy as np

from irkit.annotations.frames import (
    ArrayNode,
    FrameNode,
    Node,
    ObjectNode,
    Rows,
    SeriesNode,
    kind_of,
    pandas,
)
from irkit.annotations.held import Held, same_objects
from irkit.annotations.structures import rebuilt
from irkit.dialects.types import element_type
from irkit.driver.programs.complex_border import as_pairs
from irkit.errors import UnsupportedError
from irkit.frontends.numpy.objects import is_booster, is_estimator
from irkit.frontends.numpy.places import user_place
from irkit.frontends.numpy.records import part_of
from irkit.frontends.numpy.tables.results import compiled_dtype
from irkit.frontends.numpy.trace import Leaf
from irkit.weights import Array

PLAIN = (int, float, complex, str, bytes, bool, type(None), np.generic, np.dtype)
BY_IDENTITY = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, np.ufunc)


class Flattened:
    """Arguments as a structure with leaves, the arrays in these, and a key of all that is no array."""

    def __init__(
        self,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        names: Sequence[str],
        numbered: bool = False,
    ) -> None:
        """`numbered`: its call has objects that are no arrays, even if no argument is one."""
        self.given: list[Array] = []
        """Arrays as they are given."""
        self.arrays: list[Array] = []
        """The same, those of complex numbers as their parts."""
        self.names: list[str] = []
        self._nodes: list[Any] = []
        self.tables: list[Any] = []
        """Frames and series among the arguments."""
        self.held: Held | None = Held() if numbered else None
        """What the call holds that is no array."""
        self.objects: list[str] = []
        """Columns of frames that are no arrays, each with its type."""
        keys: list[Hashable] = []
        parts: list[Any] = []
        for number, value in enumerate(args):
            name = names[number] if number < len(names) else f"argument {number}"
            parts.append(self._part(value, name, keys))
        rest: dict[str, Any] = {}
        for name in sorted(kwargs):
            keys.append(name)
            rest[name] = self._part(kwargs[name], name, keys)
        self.structure: Any = (parts, rest)
        self.key = tuple(keys)
        self.call = self._numbered()

    def _numbered(self) -> int | None:
        """The place of the number of the call."""
        if self.held is None:
            return None
        return self.leaf(np.array(self.held.number), "call").number

    def _table(self, value: Any, name: str, keys: list[Hashable]) -> Any:
        """A frame or series: columns of numbers are arrays, and others objects that the call holds."""
        own = same_objects(self.tables, value)
        if own is not None:
            keys.append(("table", own))
            return self._nodes[own]
        pandas()
        self.held = self.held or Held()
        rows = Rows(self.held.label(value.index), len(value))
        number = len(self.tables)
        self.tables.append(value)
        if kind_of(value) == "Series":
            node: Any = SeriesNode(
                self._column(value, name, keys), rows, value.name, value.dtype, number
            )
            keys.append(("series", repr(value.name), rows))
        else:
            if not value.columns.is_unique or value.columns.nlevels > 1:
                raise _refused(
                    f"argument '{name}': a frame with columns of one name, or of names of several levels"
                )
            own_columns = [value[c] for c in value.columns]
            columns = tuple(self._column(c, f"{name}[{c.name!r}]", keys) for c in own_columns)
            dtypes = tuple(c.dtype for c in own_columns)
            node = FrameNode(columns, value.columns, rows, dtypes, number)
            labels: list[Hashable] = [(type(c), repr(c)) for c in value.columns]
            keys.append(("frame", *labels, repr(value.columns.names), rows))
        self._nodes.append(node)
        return node

    def _column(self, series: Any, name: str, keys: list[Hashable]) -> Node:
        keys.append(str(series.dtype))
        if compiled_dtype(series.dtype):
            return ArrayNode(self.leaf(series.to_numpy(copy=False), name).number)
        assert self.held is not None
        number = self.held.keep(series)
        self.objects.append(f"{name} ({series.dtype})")
        return ObjectNode(self.leaf(np.array(number), name).number)

    def _part(self, value: Any, name: str, keys: list[Hashable]) -> Any:
        if type(value) is np.ndarray:
            keys.append("array")
            return self.leaf(value, name)
        if isinstance(value, PLAIN):
            # Of numbers that are equal, 1, 1.0 and True are not the same; nor are 0.0 and -0.0.
            keys.append((type(cast(object, value)), repr(cast(object, value))))
            return cast(object, value)
        if isinstance(value, dict):
            items = cast("dict[Any, Any]", value)
            keys.append(("dict", *map(repr, items)))
            return {k: self._part(v, f"{name}[{k!r}]", keys) for k, v in items.items()}
        if isinstance(value, list | tuple):
            items = cast("list[Any]", value)
            keys.append((type(items), len(items)))
            parts = [self._part(v, f"{name}[{n}]", keys) for n, v in enumerate(items)]
            return rebuilt(items, parts)
        if kind_of(value):
            return self._table(value, name, keys)
        if isinstance(value, BY_IDENTITY) or is_estimator(value) or is_booster(value):
            keys.append(value)
            return cast(object, value)
        raise _unknown(name, value)

    @property
    def is_complex(self) -> tuple[bool, ...]:
        """Which arrays are of complex numbers."""
        return tuple(a.dtype.kind == "c" for a in self.given)

    def leaf(self, array: Array, name: str) -> Leaf:
        """One more array."""
        check_array(array, name)
        self.given.append(array)
        self.arrays.append(as_pairs(array))
        self.names.append(name)
        return Leaf(len(self.arrays) - 1)


def check_array(array: Array, name: str, place: str | None = None) -> None:
    """Raises UnsupportedError for an array of elements that irkit has no type for: of an argument; of one
    that is read at `place` where that is given."""
    dtype = part_of(array.dtype) if array.dtype.kind == "c" else array.dtype
    try:
        element_type(dtype)
    except KeyError:
        what = f"argument '{name}'" if place is None else f"'{name}'"
        raise _refused(f"{what}: dtype {array.dtype}: {_why(array.dtype)}", place) from None


def _why(dtype: np.dtype[Any]) -> str:
    """Why there are no arrays of a dtype."""
    if not dtype.isnative:
        return "bytes in the order of another machine: array.astype(array.dtype.newbyteorder('='))"
    if dtype.kind == "O":
        return "an array of objects has no numbers to compute with"
    return "irkit has no such type"


def _refused(what: str, place: str | None = None) -> UnsupportedError:
    """An error of a call, at its line in the user's file, or of what is read at `place`."""
    return UnsupportedError(f"{place or user_place()}: {what}")


def _unknown(name: str, value: Any) -> UnsupportedError:
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if isinstance(value, np.ndarray):
        return _refused(
            f"argument '{name}': a {kind}, which computes otherwise than an array: pass numpy.asarray({name})"
        )
    if kind_of(value) == "":
        return _refused(
            f"argument '{name}': a {kind}, which may compute otherwise than a frame of pandas' own: pass "
            f"pandas.DataFrame({name})"
        )
    return _refused(
        f"argument '{name}' of type {kind}: expected arrays, numbers, text, None, functions, fitted "
        "estimators, and tuples, lists and dicts of them"
    )


def check_budget(budget: Any, what: str) -> int | None:
    """A budget of bytes, or None. Raises UnsupportedError for what is neither."""
    if budget is None or (isinstance(budget, int) and not isinstance(budget, bool) and budget > 0):
        return budget
    raise UnsupportedError(
        f"{what}: memory_budget = {budget!r}: expected a number of bytes, or None"
    )
