"""What the host has of pandas in a trace: objects of which no elements are known, and calls that make
them."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeGuard

import numpy as np

from irkit.annotations.frame_calls import FrameCall, Step
from irkit.annotations.frames import ArrayNode, LabelsNode, Node, ObjectNode, Rows, SeriesNode
from irkit.annotations.structures import mapped, of_kind
from irkit.frontends.numpy.arrays import TracedArray, is_traced
from irkit.frontends.numpy.host_calls import host_call
from irkit.frontends.numpy.indices import Index
from irkit.frontends.numpy.operands import array_of
from irkit.frontends.numpy.places import refused
from irkit.frontends.numpy.recorder import recorder
from irkit.frontends.numpy.tables.host_side import itself, with_item, with_located
from irkit.frontends.numpy.tables.operators import OPERATORS, UNARY, install
from irkit.frontends.numpy.tables.results import Known, known_of

LAZY = frozenset(["groupby", "rolling", "expanding", "ewm", "resample"])
"""Methods whose results are nothing by themselves: what follows is part of the same call."""
CHANGING = frozenset(["insert", "pop", "update", "popitem", "setdefault", "__delitem__"])
"""Methods that change an object in place."""
WHY = "called by pandas"


class Gathering:
    """Nodes for a structure of traced things; `arrays` are what they are made of."""

    def __init__(self) -> None:
        self.arrays: list[TracedArray] = []

    def array(self, value: TracedArray) -> int:
        """The number of an array."""
        for number, known in enumerate(self.arrays):
            if known is value:
                return number
        self.arrays.append(value)
        return len(self.arrays) - 1

    def structure(self, value: Any) -> Any:
        """A structure with nodes."""
        return mapped(value, self.node)

    def node(self, value: Any) -> Any:
        """What stands for one value. Raises UnsupportedError for functions that see traced arrays."""
        if isinstance(value, Table):
            return value.node(self)
        if is_traced(value) or isinstance(value, Index):
            return ArrayNode(self.array(array_of(value)))
        if of_kind(value, slice):
            return _plain_slice(value)
        scope = getattr(value, "__globals__", None)
        if isinstance(value, types.FunctionType) and hasattr(scope, "capture"):
            return untraced(value)
        return getattr(value, "__wrapped__", value) if _is_stand_in(value) else value


def _plain_slice(value: slice) -> slice:
    if any(is_traced(v) or isinstance(v, Table) for v in (value.start, value.stop, value.step)):
        raise refused("a slice whose ends are computed")
    return value


def _is_stand_in(value: Any) -> bool:
    return type(value).__module__.startswith("irkit.frontends")


class Table:
    """Anything of pandas in a trace."""

    KIND = ""

    def node(self, gathering: Gathering) -> Node:
        """What it is made of."""
        raise NotImplementedError


def is_table(value: Any) -> TypeGuard[Table]:
    """Whether it is of pandas, in a trace."""
    return issubclass(type(value), Table)


def has_table(value: Any) -> bool:
    """Whether anything in a structure is."""
    found: list[Any] = []
    mapped(value, lambda v: found.append(v) if is_table(v) else None)
    return bool(found)


def recorded(source: Any, steps: Sequence[Step], title: str) -> Any:
    """Record a call; what it gives: an array where its type is known beforehand, else an object.

    Raises UnsupportedError, with the user's line, for what changes an object in place.
    """
    for step in steps:
        if step.kind == "call" and step.value[1].get("inplace"):
            raise refused(f"{title} with inplace=True: assign what it returns")
    array, known = known_of(source, steps)
    gathering = Gathering()
    nodes = gathering.structure(source)
    given = [Step(s.kind, gathering.structure(s.value)) for s in steps]
    call = FrameCall(nodes, given, array, title)
    found = host_call(call.annotation(WHY), (call_number(), *gathering.arrays), {})
    if array is None:
        return HostObject(found, (), known)
    from irkit.frontends.numpy.tables.series import TracedSeries

    assert known.rows is not None
    return TracedSeries(found, known.rows, known.name)


def call_number() -> TracedArray:
    """That of the call, by which its objects are found."""
    number = recorder().call
    if number is None:
        raise NeedNumberError
    return number


class NeedNumberError(BaseException):
    """The trace has objects of the host's: its call needs a number. Not an error of the user's, whose
    `except` must not see it."""


def host_function(function: Callable[..., Any], args: Any, kwargs: Any, title: str) -> Any:
    """A function of pandas, or of anyone's, of traced frames."""
    return recorded(function, [Step("call", (tuple(args), dict(kwargs)))], title)


def untraced(function: types.FunctionType) -> types.FunctionType:
    """A function that was made in a traced one, as Python has it. Raises UnsupportedError for one that sees
    arrays of the trace."""
    scope: Any = function.__globals__
    cells: list[types.CellType] = []
    for cell, name in zip(function.__closure__ or (), function.__code__.co_freevars, strict=True):
        value = cell.cell_contents
        if is_traced(value) or is_table(value) or isinstance(value, Index):
            raise refused(
                f"'{function.__name__}' is given to pandas, and reads '{name}', which is computed here"
            )
        cells.append(
            types.CellType(getattr(value, "__wrapped__", value) if _is_stand_in(value) else value)
        )
    made = types.FunctionType(
        function.__code__, scope.own, function.__name__, function.__defaults__, tuple(cells) or None
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def unknown(what: str) -> Exception:
    """The error of who wants a value of the host's."""
    return refused(
        f"{what} needs the value of what pandas gives, which is not known while the function is traced"
    )


NOTHING = Known()


class HostObject(Table):
    """An object of pandas' that the host has: `source` is its number, or what `steps` begin at."""

    def __init__(
        self,
        source: Any,
        steps: Sequence[Step] = (),
        known: Known = NOTHING,
        parent: Any = None,
    ) -> None:
        self._source, self._steps, self._known, self._parent = source, tuple(steps), known, parent
        self._changed = False

    changed = property(lambda self: self._changed)

    @property
    def __class__(self) -> type:  # pyright: ignore[reportIncompatibleMethodOverride]
        """`isinstance` says what it says of a series or frame."""
        if self._known.kind is None or self._steps:
            return HostObject
        from irkit.annotations.frames import pandas

        return getattr(pandas(), self._known.kind)

    @property
    def known(self) -> Known:
        """What is known of it."""
        return self._known if not self._steps else Known()

    def number(self) -> TracedArray:
        """Its number, an array."""
        if self._steps:
            found = recorded(self._source, self._steps, self._title())
            if not isinstance(found, HostObject):
                found = host_function(itself, (found,), {}, self._title())
            self._source, self._steps, self._known = found._source, (), found._known
        return self._source

    def node(self, gathering: Gathering) -> Node:
        """Its number; with rows that are known, a series of these."""
        made = ObjectNode(gathering.array(self.number()))
        known = self._known
        if known.kind == "Series" and known.rows is not None:
            return SeriesNode(made, known.rows, known.name)
        return made

    def _chain(self, step: Step) -> HostObject:
        start = self._source if self._steps else self
        return HostObject(start, (*self._steps, step), Known(), self)

    def _title(self) -> str:
        return title_of(self._source, self._steps)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        known = self.known
        if (
            known.kind == "Series"
            and name in ("name", "dtype")
            and getattr(known, name) is not None
        ):
            return getattr(known, name)
        if known.rows is not None and name in ("size", "shape", "index", "empty"):
            return _of_rows(known, name)
        return self._chain(Step("attribute", name))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        last = self._steps[-1] if self._steps else None
        name = last.value if last is not None and last.kind == "attribute" else ""
        if name in CHANGING:
            raise refused(f"'{name}' changes a frame in place: say what it is as a new one")
        chain = self._chain(Step("call", (args, kwargs)))
        if name in LAZY:
            return chain
        return recorded(chain._source, chain._steps, self._title())

    def __getitem__(self, key: Any) -> Any:
        chain = self._chain(Step("item", key))
        lazy = any(s.kind == "attribute" and s.value in LAZY for s in self._steps)
        return chain if lazy else recorded(chain._source, chain._steps, f"{self._title()}[]")

    def __setitem__(self, key: Any, value: Any) -> None:
        if not self._steps:
            self._become(host_function(with_item, (self, key, value), {}, "pandas.DataFrame[]="))
            return
        (where,) = self._steps if len(self._steps) == 1 else (None,)
        parent = self._parent
        if where is None or where.value not in ("loc", "iloc", "at", "iat") or not is_table(parent):
            raise refused("an assignment to part of what pandas gives: assign to the frame itself")
        if not isinstance(parent, HostObject):
            parent.set_located(where.value, key, value)  # pyright: ignore
            return
        made = host_function(
            with_located,
            (parent, where.value, key, value),
            {},
            f"pandas.DataFrame.{where.value}[]=",
        )
        parent._become(made)

    def _become(self, other: HostObject) -> None:
        self._source, self._steps, self._changed = other._source, other._steps, True
        self._known = replace(other._known, rows=None)

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            raise refused(f"an attribute, '{name}', of what pandas gives is assigned to")
        super().__setattr__(name, value)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if kwargs.get("out"):
            raise refused(f"numpy.{ufunc.__name__} of what pandas gives, with out=")
        called = ufunc if method == "__call__" else getattr(ufunc, method)
        return host_function(called, inputs, kwargs, f"numpy.{ufunc.__name__}")

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        return host_function(func, args, kwargs, f"numpy.{func.__name__}")

    def __len__(self) -> int:
        rows = self.known.rows
        if rows is None:
            raise unknown("len()")
        return rows.length

    def __bool__(self) -> bool:
        raise unknown("'if', 'while', 'and' or bool()")

    def __float__(self) -> float:
        raise unknown("float()")

    def __int__(self) -> int:
        raise unknown("int()")

    def __index__(self) -> int:
        raise unknown("a count, a shape or an index")

    def __iter__(self) -> Any:
        raise unknown("a loop")

    def __contains__(self, item: Any) -> bool:
        raise unknown("the operator 'in'")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise unknown("a function of NumPy")

    __hash__ = None  # pyright: ignore[reportAssignmentType]


def title_of(source: Any, steps: Sequence[Step]) -> str:
    """A call as messages have it."""
    kind = getattr(getattr(source, "known", None), "kind", None) or getattr(source, "KIND", "")
    path = [str(s.value) for s in steps if s.kind == "attribute"]
    return ".".join(["pandas", *([kind] if kind else []), *path])


def _of_rows(known: Known, name: str) -> Any:
    assert known.rows is not None
    if name == "index":
        return Labels(known.rows)
    if name == "shape" and known.kind != "Series":
        raise unknown("the number of columns")
    found = {
        "size": known.rows.length,
        "shape": (known.rows.length,),
        "empty": known.rows.length == 0,
    }
    return found[name]


class Labels(HostObject):
    """The labels of rows."""

    def __init__(self, rows: Rows) -> None:
        super().__init__(None, (), Known())
        self._rows = rows

    @property
    def rows(self) -> Rows:
        """Which rows have them."""
        return self._rows

    def number(self) -> TracedArray:
        """Its number, an array."""
        if self._source is None:
            found = host_function(itself, (self,), {}, "pandas.Index")
            self._source = found.number()
        return self._source

    def node(self, gathering: Gathering) -> Node:
        """Those of the rows."""
        return LabelsNode(self._rows)

    def __len__(self) -> int:
        return self._rows.length


def on_host(name: str, *operands: Any) -> Any:
    """An operator, by pandas."""
    function = OPERATORS.get(name) or UNARY[name]
    return host_function(function, operands, {}, f"pandas.{name}")


install(HostObject, on_host, on_host)
