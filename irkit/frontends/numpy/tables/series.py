"""A series of numbers in a trace: an array, labels of rows and a name."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, cast

import numpy as np

from irkit.annotations.frame_calls import Step
from irkit.annotations.frames import ArrayNode, Node, Rows, SeriesNode
from irkit.annotations.structures import of_kind
from irkit.frontends.numpy.arrays import TracedArray, Varying, is_traced
from irkit.frontends.numpy.indices import Index
from irkit.frontends.numpy.library import LIBRARY
from irkit.frontends.numpy.operands import elements_of
from irkit.frontends.numpy.places import refused
from irkit.frontends.numpy.tables.arithmetic import binary, unary, values_beside
from irkit.frontends.numpy.tables.methods import METHODS, Unlike
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
from irkit.frontends.numpy.tables.results import Known

AS_METHODS = {
    "sum": "sum", "prod": "prod", "mean": "mean", "max": "max", "amax": "max", "min": "min",
    "amin": "min", "any": "any", "all": "all", "round": "round", "around": "round", "cumsum": "cumsum",
    "cumprod": "cumprod", "clip": "clip",
}  # fmt: skip
"""Functions of NumPy that call the method of what they are given."""
AS_OPERATORS: Mapping[Any, str] = {
    np.add: "add", np.subtract: "sub", np.multiply: "mul", np.true_divide: "truediv",
    np.floor_divide: "floordiv", np.remainder: "mod", np.power: "pow", np.bitwise_and: "and",
    np.bitwise_or: "or", np.bitwise_xor: "xor", np.equal: "eq", np.not_equal: "ne", np.less: "lt",
    np.less_equal: "le", np.greater: "gt", np.greater_equal: "ge",
}  # fmt: skip
"""Universal functions for which pandas takes its operators."""


class TracedSeries(Table):
    """`values` is an array of one dimension that nobody writes: what is assigned to is another one."""

    KIND = "Series"

    def __init__(self, values: TracedArray, rows: Rows, name: Hashable) -> None:
        self._values, self._rows, self._name = values, rows, name
        self._argument: TracedArray | None = None

    @property
    def __class__(self) -> type:  # pyright: ignore[reportIncompatibleMethodOverride]
        """`isinstance` says what it says of a series."""
        from irkit.annotations.frames import pandas

        return pandas().Series

    @property
    def known(self) -> Known:
        """As of an object of the host's."""
        return Known(self._rows, self.dtype, "Series", self._name)

    @property
    def array(self) -> TracedArray:
        """Its elements."""
        return self._values

    def is_argument(self) -> None:
        """What is assigned to it from here on is seen by the caller."""
        self._argument = self._values

    @property
    def changed(self) -> bool:
        """Whether the caller has to see other elements."""
        return self._argument is not None and self._argument is not self._values

    @property
    def rows(self) -> Rows:
        """Its labels."""
        return self._rows

    def node(self, gathering: Gathering) -> Node:
        """Its array with labels."""
        return SeriesNode(ArrayNode(gathering.array(self._values)), self._rows, self._name)

    def like(self, values: Any, name: Any = ...) -> TracedSeries:
        """Other elements of the same rows."""
        return TracedSeries(values, self._rows, self._name if name is ... else name)

    # What is known

    dtype = property(lambda self: self._values.dtype)
    dtypes = dtype
    shape = property(lambda self: self._values.shape)
    size = property(lambda self: self._values.size)
    nbytes = property(lambda self: self._values.nbytes)
    index = property(lambda self: Labels(self._rows))
    empty = property(lambda self: self._values.size == 0)
    ndim = 1
    hasnans = property(lambda self: LIBRARY.any(LIBRARY.isnan(self._values)))

    @property
    def name(self) -> Hashable:
        """Its name."""
        return self._name

    @name.setter
    def name(self, name: Hashable) -> None:
        if self._argument is not None:
            raise refused(
                "a series that is an argument is given another name: series.rename(...) is a new one"
            )
        self._name = name

    @property
    def values(self) -> TracedArray:
        """Its elements, which cannot be written."""
        spot = self._values.spot
        view = spot.layout.view()
        view.flags.writeable = False
        return TracedArray(spot.viewed(view))

    @property
    def iloc(self) -> Places:
        """Rows by their places."""
        return Places(self)

    def __len__(self) -> int:
        return self._rows.length

    def __repr__(self) -> str:
        return f"<traced series {self._name!r} of {self._values.dtype}[{len(self)}]>"

    # What is done with it

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = METHODS.get(name)
        if found is None:
            return HostObject(self, (Step("attribute", name),), Known(), self)
        return _Method(self, name, found)

    def __getitem__(self, key: Any) -> Any:
        return host_item(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        if not _is_mask(key, self):
            raise refused(
                "an assignment to a series, but through a mask: series.where(...) is a new one"
            )
        try:
            made = METHODS["mask"](self, key, value)
        except Unlike:
            raise refused(
                f"an assignment to a series of {self.dtype} of what is none: series.mask(...) is a new one"
            ) from None
        self._values = made.array

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if kwargs.get("out") and not any(map(is_hosts, (*inputs, *kwargs["out"]))):
            # What is written is an array, which has no labels.
            return getattr(ufunc, method)(*map(elements_of, inputs), **kwargs)
        if method != "__call__" or kwargs or ufunc.nout != 1:
            return on_numpy(ufunc, method, inputs, kwargs)
        if ufunc in AS_OPERATORS:
            return binary(AS_OPERATORS[ufunc], *inputs)
        given = [values_beside(self, x) for x in inputs]
        if any(g is None for g in given) or self.dtype.kind == "b":
            return on_numpy(ufunc, method, inputs, kwargs)
        names = {x._name for x in inputs if is_series(x)}
        return self.like(cast(Any, ufunc)(*given), names.pop() if len(names) == 1 else None)

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: Any, kwargs: Any
    ) -> Any:
        name = func.__name__
        if name in AS_METHODS and args and args[0] is self and getattr(np, name, None) is func:
            kept = {k: v for k, v in kwargs.items() if v is not None}
            return getattr(self, AS_METHODS[name])(*args[1:], **kept)
        if (
            name in ("std", "var")
            and len(args) == 1
            and args[0] is self
            and set(kwargs) <= {"ddof"}
        ):
            return getattr(self, name)(ddof=kwargs.get("ddof", 0))
        plain = [x.array if is_series(x) else x for x in args]
        named = {k: v.array if is_series(v) else v for k, v in kwargs.items()}
        if any(issubclass(type(x), Table) for x in (*plain, *named.values())):
            return host_function(func, args, kwargs, f"numpy.{name}")
        return cast(Any, func)(*plain, **named)

    def __bool__(self) -> bool:
        raise ValueError(
            "The truth value of a Series is ambiguous. Use a.empty, a.bool(), a.item(), a.any() or a.all()."
        )

    def __iter__(self) -> Any:
        return iter(self._values)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise unknown("a function of NumPy")

    __hash__ = None  # pyright: ignore[reportAssignmentType]


class _Method:
    """A method that is compiled where it can be."""

    def __init__(self, series: TracedSeries, name: str, found: Callable[..., Any]) -> None:
        self._series, self._name, self._found = series, name, found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        series, name = self._series, self._name
        try:
            return self._found(series, *args, **kwargs)
        except Unlike:
            host = HostObject(series, (Step("attribute", name),), Known())
            return host(*args, **kwargs)


class Places:
    """`series.iloc`, or a frame's: slices are views, all else is the host's."""

    def __init__(self, of: Any) -> None:
        self._of = of

    def __getitem__(self, key: Any) -> Any:
        if of_kind(key, slice) and not any(
            is_traced(v) or isinstance(v, Index | Varying) for v in (key.start, key.stop, key.step)
        ):
            return self._of.part(key)
        host = HostObject(self._of, (Step("attribute", "iloc"),), Known())
        return host[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        raise refused("an assignment to iloc: where and mask make new ones")


def is_series(value: Any) -> bool:
    """Whether it is a series of numbers in a trace."""
    return type(value) is TracedSeries


def is_hosts(value: Any) -> bool:
    """Whether it is an object of the host's, or a frame."""
    return issubclass(type(value), Table) and not is_series(value)


def host_item(table: Any, key: Any) -> Any:
    """`table[key]`, by pandas."""
    return recorded(table, [Step("item", key)], f"pandas.{table.KIND}[]")


def on_numpy(ufunc: np.ufunc, method: str, inputs: Any, kwargs: Any) -> Any:
    """A universal function, as NumPy and pandas make it."""
    called = ufunc if method == "__call__" else getattr(ufunc, method)
    return host_function(called, inputs, kwargs, f"numpy.{ufunc.__name__}")


def _is_mask(key: Any, series: TracedSeries) -> bool:
    if is_series(key):
        return key.dtype == bool and key.rows == series.rows
    return is_traced(key) and key.dtype == bool and key.shape == series.shape


install(TracedSeries, binary, unary)
