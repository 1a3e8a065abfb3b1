"""Functions and classes of pandas in traced functions, and functions of anyone's that are given frames."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from irkit.annotations.frames import fixed_rows, pandas
from irkit.frontends.numpy.arrays import TracedArray
from irkit.frontends.numpy.attempts import Attempt
from irkit.frontends.numpy.recorder import recorder, tracing
from irkit.frontends.numpy.tables.frame import Column, TracedFrame
from irkit.frontends.numpy.tables.objects import Table, has_table, host_function
from irkit.frontends.numpy.tables.series import TracedSeries, is_series

AS_METHODS = ("isna", "isnull", "notna", "notnull")
"""Functions that are methods of what they are given."""
CLASSES = ("DataFrame", "Series")


class FrameClass:
    """A class of pandas' in a traced function."""

    def __init__(self, kind: type) -> None:
        self.__wrapped__ = kind

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, self.__wrapped__)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from irkit.frontends.numpy.host_calls import has_traced

        kind = self.__wrapped__
        if not tracing() or not (has_traced((args, kwargs)) or has_table((args, kwargs))):
            return kind(*args, **kwargs)
        made = _series_of if kind.__name__ == "Series" else _frame_of
        found = made(*args, **kwargs)
        return (
            host_function(kind, args, kwargs, f"pandas.{kind.__name__}") if found is None else found
        )


def is_class(value: Any) -> bool:
    """Whether it is a series or frame class of pandas' own."""
    return (
        isinstance(value, type)
        and value.__name__ in CLASSES
        and value.__module__.partition(".")[0] == "pandas"
    )


def _series_of(data: Any = None, *rest: Any, name: Any = None, **others: Any) -> Any:
    """A series of an array; None of what is the host's."""
    if rest or others or not _is_column(data):
        return None
    return TracedSeries(data.copy(), _counted(data.size), name)


def _frame_of(data: Any = None, *rest: Any, **others: Any) -> Any:
    """A frame of a dict of arrays, or of series of the same rows; None of what is the host's."""
    if rest or others or type(data) is not dict or not data:
        return None
    entries = cast("dict[Any, Any]", data)
    values: list[Any] = list(entries.values())
    if all(_is_column(v) for v in values):
        sizes = {v.size for v in values}
        if len(sizes) > 1:
            raise ValueError("All arrays must be of the same length")
        parts: list[Column] = [v.copy() for v in values]
        return TracedFrame(parts, pandas().Index(list(entries)), _counted(values[0].size))
    if all(is_series(v) for v in values) and len({v.rows for v in values}) == 1:
        return TracedFrame([v.array for v in values], pandas().Index(list(entries)), values[0].rows)
    return None


def _is_column(value: Any) -> bool:
    return type(value) is TracedArray and value.ndim == 1 and value.dtype.kind in "biuf"


def _counted(length: int) -> Any:
    return fixed_rows(pandas().RangeIndex(length))


def call_with_tables(function: Callable[..., Any], args: Any, kwargs: Mapping[str, Any]) -> Any:
    """What a function gives that is given frames: pandas' and NumPy's are the host's, others are traced where
    that can be."""
    root = str(getattr(function, "__module__", None) or "").partition(".")[0]
    name = getattr(function, "__name__", type(function).__name__)
    if root == "pandas":
        if name in AS_METHODS and len(args) == 1 and not kwargs:
            return getattr(args[0], name)()
        return host_function(function, args, kwargs, f"pandas.{name}")
    from irkit.annotations.annotation import annotation_of

    if annotation_of(function) is None:
        before: list[tuple[Table, dict[str, Any]]] = [
            (t, dict(vars(t))) for t in _tables((args, kwargs))
        ]
        attempt, found = Attempt(recorder()), None
        with attempt:
            found = function(*args, **kwargs)
        if attempt.why is None:
            return found
        for table, state in before:
            vars(table).update(state)
            if type(table) is TracedFrame:
                vars(table)["_columns"] = list(state["_columns"])
    return host_function(function, args, kwargs, f"{root}.{name}")


def _tables(structure: Any) -> list[Table]:
    from irkit.annotations.structures import mapped
    from irkit.frontends.numpy.tables.objects import is_table

    found: list[Table] = []
    mapped(structure, lambda v: found.append(v) if is_table(v) else None)
    return found
