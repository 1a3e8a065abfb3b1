"""A frame in a trace: columns of numbers are arrays, others are of the host."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, cast

import numpy as np

from irkit.annotations.frame_calls import Step
from irkit.annotations.frames import (
    ArrayNode,
    FrameNode,
    Node,
    ObjectNode,
    Rows,
    pandas,
)
from irkit.annotations.structures import of_kind
from irkit.frontends.numpy.arrays import TracedArray, fresh, is_traced
from irkit.frontends.numpy.library import LIBRARY
from irkit.frontends.numpy.places import refused
from irkit.frontends.numpy.recorder import recorder
from irkit.frontends.numpy.tables.columnwise import binary, columnwise, reduced, unary
from irkit.frontends.numpy.tables.host_side import column_located, column_with, rows_of
from irkit.frontends.numpy.tables.methods import METHODS
from irkit.frontends.numpy.tables.objects import (
    Gathering,
    HostObject,
    Labels,
    Table,
    host_function,
    recorded,
    unknown,
)
from irkit.frontends.numpy.tables.operators import install
from irkit.frontends.numpy.tables.reducing import REDUCTIONS
from irkit.frontends.numpy.tables.results import Known
from irkit.frontends.numpy.tables.series import Places, TracedSeries, is_series, on_numpy
from irkit.frontends.numpy.tables.unlike import Unlike

COLUMNWISE = frozenset([
    "abs", "astype", "clip", "fillna", "isna", "isnull", "mask", "notna", "notnull", "replace", "round",
    "where",
])  # fmt: skip
"""Methods that are those of each column, where arguments are numbers, or frames of the same columns."""
Column = TracedArray | HostObject


class TracedFrame(Table):
    """`columns`: of each label, an array that nobody writes, or an object of the host's."""

    KIND = "DataFrame"

    def __init__(self, columns: Sequence[Column], names: Any, rows: Rows) -> None:
        self._columns, self._names, self._rows = list(columns), names, rows
        self._original: tuple[list[Column], Any] = ([], None)

    def is_argument(self) -> None:
        """What is assigned to it from here on is seen by the caller."""
        self._original = (list(self._columns), self._names)

    original = property(lambda self: self._original)

    @property
    def __class__(self) -> type:  # pyright: ignore[reportIncompatibleMethodOverride]
        """`isinstance` says what it says of a frame."""
        return pandas().DataFrame

    known = property(lambda self: Known(self._rows, None, "DataFrame"))
    columns = property(lambda self: self._names)
    rows = property(lambda self: self._rows)
    index = property(lambda self: Labels(self._rows))
    shape = property(lambda self: (self._rows.length, len(self._names)))
    size = property(lambda self: self._rows.length * len(self._names))
    empty = property(lambda self: self.size == 0)
    iloc = property(lambda self: Places(self))
    loc = property(lambda self: Located(self))
    ndim = 2

    @property
    def parts(self) -> list[Column]:
        """Its columns, in order."""
        return self._columns

    @property
    def values(self) -> TracedArray:
        """All elements, of one type."""
        return self.to_numpy()

    def node(self, gathering: Gathering) -> Node:
        """Its columns with labels."""
        parts: list[Node] = []
        for column in self._columns:
            if is_traced(column):
                parts.append(ArrayNode(gathering.array(column)))
            else:
                parts.append(ObjectNode(gathering.array(cast(HostObject, column).number())))
        return FrameNode(tuple(parts), self._names, self._rows)

    def __len__(self) -> int:
        return self._rows.length

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._names)

    def __contains__(self, label: Hashable) -> bool:
        return label in self._names

    def __repr__(self) -> str:
        return f"<traced frame of {self._rows.length} rows and columns {list(self._names)}>"

    def keys(self) -> Any:
        """The names of columns."""
        return self._names

    def items(self) -> Iterator[tuple[Hashable, Any]]:
        """Names and columns."""
        return ((name, self.column(n)) for n, name in enumerate(self._names))

    # Columns

    def column(self, number: int) -> Any:
        """A column as a series."""
        found, name = self._columns[number], self._names[number]
        if is_traced(found):
            return TracedSeries(found, self._rows, name)
        own = cast(HostObject, found)
        return HostObject(own.number(), (), Known(self._rows, own.known.dtype, "Series", name))

    def _place(self, label: Any) -> int:
        return int(self._names.get_loc(label))

    def chosen(self, labels: Sequence[Hashable]) -> TracedFrame:
        """Some of the columns. Raises KeyError for a label of none."""
        missing = [x for x in labels if x not in self._names]
        if missing:
            raise KeyError(f"{missing} not in index")
        at = [self._place(x) for x in labels]
        return TracedFrame([self._columns[n] for n in at], self._names[at], self._rows)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in self._names and not hasattr(pandas().DataFrame, name):
            return self.column(self._place(name))
        if name in COLUMNWISE or name in REDUCTIONS:
            return _Method(self, name)
        return HostObject(self, (Step("attribute", name),), Known(), self)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "columns":
            names = pandas().Index(value)
            if len(names) != len(self._columns):
                raise ValueError(
                    f"Length mismatch: Expected axis has {len(self._columns)} elements, new values have "
                    f"{len(names)} elements"
                )
            self._names = names
            return
        if not name.startswith("_"):
            if name not in self._names:
                raise refused(
                    f"an attribute, '{name}', of a frame is assigned to: frame['{name}'] is a column"
                )
            self[name] = value
            return
        super().__setattr__(name, value)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str | int | tuple) and not is_traced(key):
            return self.column(self._place(key))
        plain = isinstance(key, list) and all(
            isinstance(k, str | int) for k in cast("list[Any]", key)
        )
        if plain or isinstance(key, type(self._names)):
            return self.chosen(list(cast("list[Any]", key)))
        return recorded(self, [Step("item", key)], "pandas.DataFrame[]")

    def __setitem__(self, key: Any, value: Any) -> None:
        if not isinstance(key, str | int) or is_traced(key):
            raise refused(
                "an assignment to a frame, but of one column: where and mask make new ones"
            )
        made = self._as_column(key, value)
        if key in self._names:
            self._columns[self._place(key)] = made
            return
        self._columns.append(made)
        self._names = self._names.append(pandas().Index([key]))

    def _as_column(self, key: Hashable, value: Any) -> Column:
        """What a column that is assigned to has: of a series with other labels, what pandas aligns."""
        if is_series(value) and value.rows == self._rows:
            return value.array
        if is_traced(value) and value.ndim == 1 and value.dtype.kind in "biuf":
            if value.shape[0] != self._rows.length:
                raise ValueError(
                    f"Length of values ({value.shape[0]}) does not match length of index "
                    f"({self._rows.length})"
                )
            return value.copy()
        if (
            type(value) is HostObject
            and value.known.kind == "Series"
            and value.known.rows == self._rows
        ):
            return HostObject(value.number(), (), value.known)
        if type(value) in (float, bool) or (type(value) is int and abs(value) < 2**63):
            r = recorder()
            return fresh(r.expand(r.constant(np.array(value)), (self._rows.length,)))
        made = host_function(column_with, (self, key, value), {}, "pandas.DataFrame[]=")
        return HostObject(made.number(), (), Known(self._rows, None, "Series", key))

    def __delitem__(self, key: Any) -> None:
        at = self._place(key)
        del self._columns[at]
        self._names = self._names.delete(at)

    def pop(self, key: Any) -> Any:
        """A column, which the frame has no more."""
        found = self[key]
        del self[key]
        return found

    def set_located(self, where: str, key: Any, value: Any) -> None:
        """`frame.loc[mask, column] = value`, and no other."""
        pair = of_kind(key, tuple) and len(key) == 2
        mask, label = (key[0], key[1]) if pair else (None, None)
        if where != "loc" or not isinstance(label, str | int) or label not in self._names:
            raise refused(
                f"an assignment to {where}, but of a column through a mask: where and mask make new ones"
            )
        at = self._place(label)
        own = self.column(at)
        try:
            if not is_series(own):
                raise Unlike
            self._columns[at] = METHODS["mask"](own, mask, value).array
        except Unlike:
            made = host_function(column_located, (self, key, value), {}, "pandas.DataFrame.loc[]=")
            known = Known(self._rows, None, "Series", label)
            self._columns[at] = HostObject(made.number(), (), known)

    # New frames

    def part(self, rows: slice) -> TracedFrame:
        """Rows by their places."""
        cut = self._rows.part(rows)
        parts = [
            c[rows] if is_traced(c) else host_function(rows_of, (c, rows), {}, "pandas.Series.iloc")
            for c in self._columns
        ]
        return TracedFrame(parts, self._names, cut)

    def head(self, n: int = 5) -> TracedFrame:
        """The first rows."""
        return self.part(slice(None, n))

    def tail(self, n: int = 5) -> TracedFrame:
        """The last rows."""
        return self.part(slice(-n if n else len(self), None))

    def copy(self, deep: bool = True) -> TracedFrame:
        """Another frame of the same columns, which nobody writes."""
        return TracedFrame(self._columns, self._names, self._rows)

    def assign(self, **columns: Any) -> TracedFrame:
        """A frame with further columns, some of them functions of the frame."""
        made = self.copy()
        for name, value in columns.items():
            made[name] = value(made) if callable(value) and not isinstance(value, Table) else value
        return made

    def drop(self, labels: Any = None, *, axis: Any = 0, columns: Any = None, **rest: Any) -> Any:
        """Without some columns; rows are the host's."""
        gone = labels if columns is None and axis in (1, "columns") else columns
        if gone is None or rest or (columns is not None and labels is not None):
            host = HostObject(self, (Step("attribute", "drop"),), Known(), self)
            return host(labels, axis=axis, columns=columns, **rest)
        names = [gone] if isinstance(gone, str | int) else list(gone)
        missing = [x for x in names if x not in self._names]
        if missing:
            raise KeyError(f"{missing} not found in axis")
        return self.chosen([x for x in self._names if x not in names])

    def rename(self, *args: Any, **named: Any) -> Any:
        """With other names of columns; rows are the host's."""
        if args or set(named) != {"columns"}:
            return HostObject(self, (Step("attribute", "rename"),), Known(), self)(*args, **named)
        plain: Any = pandas().DataFrame(columns=self._names).rename(columns=named["columns"])
        return TracedFrame(self._columns, plain.columns, self._rows)

    def to_numpy(self, dtype: Any = None, copy: bool = False, **rest: Any) -> Any:
        """Rows by columns, of the type that all columns fit."""
        arrays = [c for c in self._columns if is_traced(c)]
        kinds = {a.dtype.kind == "b" for a in arrays}
        if rest or len(arrays) < max(1, len(self._columns)) or len(kinds) > 1:
            host = HostObject(self, (Step("attribute", "to_numpy"),), Known(), self)
            return host(dtype, copy, **rest)
        found: Any = LIBRARY.stack(arrays, axis=1)
        return found if dtype is None else found.astype(dtype)

    @property
    def dtypes(self) -> Any:
        """Of each column."""
        parts = [self.column(n).dtype for n in range(len(self._columns))]
        if any(isinstance(p, HostObject) for p in parts):
            raise unknown("dtypes")
        return pandas().Series(parts, index=self._names, dtype=object)

    # NumPy

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        arrays = all(is_traced(c) and c.dtype.kind != "b" for c in self._columns)
        if method != "__call__" or kwargs or ufunc.nout != 1 or len(inputs) != 1 or not arrays:
            return on_numpy(ufunc, method, inputs, kwargs)
        return self.like([cast(Any, ufunc)(c) for c in self._columns])

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        return host_function(func, args, kwargs, f"numpy.{func.__name__}")

    def like(self, columns: Sequence[Column]) -> TracedFrame:
        """Other columns of the same names and rows."""
        return TracedFrame(columns, self._names, self._rows)

    def __bool__(self) -> bool:
        raise ValueError(
            "The truth value of a DataFrame is ambiguous. Use a.empty, a.bool(), a.item(), a.any() or "
            "a.all()."
        )

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise unknown("a function of NumPy")

    __hash__ = None  # pyright: ignore[reportAssignmentType]


class _Method:
    """A method of each column, or a reduction of each."""

    def __init__(self, frame: TracedFrame, name: str) -> None:
        self._frame, self._name = frame, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        frame, name = self._frame, self._name
        try:
            if name in COLUMNWISE:
                return columnwise(frame, name, args, kwargs)
            return reduced(frame, name, kwargs if not args else {"": args})
        except Unlike:
            return HostObject(frame, (Step("attribute", name),), Known(), frame)(*args, **kwargs)


class Located:
    """`frame.loc`: columns by name are the frame's own, rows by label the host's."""

    def __init__(self, frame: TracedFrame) -> None:
        self._frame = frame

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple) and len(key) == 2 and _is_all(key[0]):  # pyright: ignore
            return self._frame[cast(Any, key)[1]]
        host = HostObject(self._frame, (Step("attribute", "loc"),), Known(), self._frame)
        return host[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, tuple) and len(key) == 2 and _is_all(key[0]):  # pyright: ignore
            self._frame[cast(Any, key)[1]] = value
            return
        self._frame.set_located("loc", key, value)


def _is_all(key: Any) -> bool:
    return isinstance(key, slice) and key == slice(None)


install(TracedFrame, binary, unary)
