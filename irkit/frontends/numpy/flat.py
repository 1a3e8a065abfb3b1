"""`ndarray.flat`: the elements of an array in C order, whatever lies behind them in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import numpy as np

from irkit.annotations.structures import mapped
from irkit.frontends.numpy.arrays import ITERATED, TracedArray, Varying, is_traced
from irkit.frontends.numpy.indices import Index
from irkit.frontends.numpy.library import LIBRARY, OPERATORS, WRITING
from irkit.frontends.numpy.operands import array_of
from irkit.frontends.numpy.places import refused
from irkit.frontends.numpy.varying import VaryingArray
from irkit.frontends.numpy.writing import check_writeable
from irkit.weights import Array


class FlatIterator(Varying):
    """What NumPy has as `flatiter`. What is read of it is a copy, what is assigned to it is written to the
    array. It is an iterator too, which indexing sets to its beginning."""

    def __init__(self, array: TracedArray) -> None:
        self.base = array
        self._at = 0

    def exact(self, what: str = "an operation") -> TracedArray:
        """All elements, copied."""
        return self.base.flatten()

    copy = exact

    def __len__(self) -> int:
        return self.base.size

    def __iter__(self) -> Iterator[Any]:
        if len(self) > ITERATED:
            raise refused(
                f"a loop over the {len(self)} elements of an array: say with np. what it does to all"
            )
        return self

    def __next__(self) -> Any:
        if self._at >= len(self):
            raise StopIteration
        place = np.unravel_index(self._at, self.base.shape)
        self._at += 1
        return self.base[tuple(map(int, place))]

    def __getitem__(self, key: Any) -> Any:
        """An element, or some, copied. Raises NumPy's IndexError."""
        self._at, key = 0, _checked(key, len(self), write=False)
        found = _row_of(self.base)[key]
        view = is_traced(found) and not found.spot.scalar
        seen = view or type(found) is VaryingArray
        return LIBRARY.copy(found) if seen else found

    def __setitem__(self, key: Any, value: Any) -> None:
        """Values, in C order and again from the first where there are too few, go to elements. Raises
        NumPy's IndexError and ValueError, and UnsupportedError where NumPy would read what it has written."""
        check_writeable(self.base, "underlying array is read-only")
        self._at, key = 0, _checked(key, len(self), write=True)
        given = array_of(_converted(value, self.base.dtype))
        if _is_single(key) and (given.ndim or given.dtype.kind == "c" != self.base.dtype.kind):
            raise ValueError("Error setting single item of array.")
        source = value.base if isinstance(value, FlatIterator) else given
        _check_apart(self.base, source, key)
        row = _row_of(self.base)
        placed = _dealt(value if given.ndim == 0 else given, key, len(self))
        if placed is None:
            return
        row[key] = placed
        if not self.base.spot.owns(row.spot.layout):
            self.base[...] = row.reshape(self.base.shape)

    # NumPy's protocols

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if any(isinstance(x, FlatIterator) for x in kwargs.get("out", ())):
            raise TypeError("return arrays must be of ArrayType")
        return getattr(ufunc, method)(*map(_elements, inputs), **kwargs)

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        if func.__name__ in WRITING and isinstance(args[0], FlatIterator):
            raise TypeError(
                f"{func.__name__}() argument 1 must be a numpy.ndarray, not numpy.flatiter"
            )
        return func(*mapped(tuple(args), _elements), **mapped(dict(kwargs), _elements))

    def __hash__(self) -> int:
        raise TypeError("unhashable type: 'numpy.flatiter'")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.exact().__array__(dtype, copy)

    def __getattr__(self, name: str) -> Any:
        if name in ("index", "coords"):
            raise refused(f"ndarray.flat.{name}")
        raise AttributeError(f"'numpy.flatiter' object has no attribute '{name}'")


def _compared(name: str) -> Callable[..., Any]:
    def method(self: FlatIterator, other: Any) -> Any:
        return getattr(OPERATORS, name)(self.exact(), _elements(other))

    return method


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(FlatIterator, f"__{_name}__", _compared(_name))


def _elements(value: Any) -> Any:
    return value.exact() if isinstance(value, FlatIterator) else value


def _converted(value: Any, dtype: np.dtype[Any]) -> Any:
    """Numbers in a list as NumPy makes an array of them, which has a dtype at once."""
    known = isinstance(value, list | tuple) and not _has_traced(value)
    return np.array(cast(Any, value), dtype) if known else cast(Any, value)


def _row_of(array: TracedArray) -> TracedArray:
    """The elements as an array of one dimension: a view where they lie so."""
    return LIBRARY.reshape(array, -1)


def _checked(key: Any, size: int, write: bool) -> Any:
    """The one key of an index. Raises NumPy's IndexError for what is none."""
    if isinstance(key, tuple) and (write or key):
        keys = cast("tuple[Any, ...]", key)
        if len(keys) != 1:
            _as_numpy_says(keys, size)
        key = keys[0]
    if isinstance(key, bool | np.bool_ | float | np.floating):
        raise refused(f"ndarray.flat at {key!r}: whole numbers, slices and arrays are its indices")
    if isinstance(key, np.integer) and not is_traced(key):
        key = int(cast(Any, key))
    if is_traced(key) and key.dtype.kind == "b" and key.shape != (size,):
        _as_numpy_says(np.zeros(key.shape, bool), size)
    if not is_traced(key) and not isinstance(key, slice | Index) and not _has_traced(key):
        _as_numpy_says(key, size)
    return Ellipsis if isinstance(key, tuple) else cast(Any, key)


def _has_traced(key: Any) -> bool:
    parts = cast("list[Any]", key) if isinstance(key, list | tuple) else []
    return any(is_traced(k) or isinstance(k, Index) or _has_traced(k) for k in parts)


def _as_numpy_says(key: Any, size: int) -> None:
    """Raise what NumPy does of this index."""
    shadow: Any = np.broadcast_to(np.int8(0), (size,))
    shadow.flat[key]


def _is_single(key: Any) -> bool:
    """Whether an index is of one element."""
    return isinstance(key, int | Index) or (is_traced(key) and key.ndim == 0)


def _check_apart(array: TracedArray, value: TracedArray, key: Any) -> None:
    """Raises UnsupportedError where a value lies in the memory that is written: NumPy makes no copy of it."""
    if value.size <= 1 or value.dtype != array.dtype or value.spot.buffer is not array.spot.buffer:
        return
    if (key is Ellipsis or _is_all(key)) and value.spot.view == array.spot.view:
        return
    raise refused(
        "ndarray.flat is assigned elements of the same array, which NumPy reads while it writes: assign a "
        "copy"
    )


def _is_all(key: Any) -> bool:
    return isinstance(key, slice) and key == slice(None)


def _dealt(value: Any, key: Any, size: int) -> Any:
    """Values for the elements that a key picks, from the first again where they are too few; None where
    there are none. Raises UnsupportedError where it is not known how many elements there are."""
    if not is_traced(value) or value.ndim == 0:
        return value
    if value.size == 0:
        return None
    if value.size == 1:
        return value.reshape(())
    shape = _picked_shape(key, size)
    count = int(np.prod(shape))
    return value.reshape(-1)[np.arange(count) % value.size].reshape(shape) if count else None


def _picked_shape(key: Any, size: int) -> tuple[int, ...]:
    known: Any = key
    if is_traced(key):
        if key.dtype.kind != "b":
            return key.shape
        known = key.spot.known
        if known is None:
            raise refused(
                "ndarray.flat is assigned several values through a mask that is computed: np.where(mask, "
                "new, old)"
            )
    elif isinstance(key, list):
        return np.shape(cast("Array", LIBRARY.asarray(key)))
    row: Any = np.broadcast_to(np.int8(0), (size,))
    return row[known].shape
