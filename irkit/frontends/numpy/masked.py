"""What a mask picks from an array. How many elements that are is not known, so they stay in their places:
they can be computed with, written through the same mask, and summed up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from irkit.dialects.graph import AndOp
from irkit.frontends.numpy import reductions
from irkit.frontends.numpy.alike import Values
from irkit.frontends.numpy.arrays import FAST_POWERS, fresh, in_buffer, value_of
from irkit.frontends.numpy.library import LIBRARY
from irkit.frontends.numpy.operands import operand
from irkit.frontends.numpy.places import refused, user_place
from irkit.frontends.numpy.recorder import recorder
from irkit.frontends.numpy.records import Check, Value
from irkit.weights import Array

UNKNOWN = "how many elements a mask picks is not known while the function is traced"


class MaskedArray(NDArrayOperatorsMixin):
    """`array[mask]`: `array` has all of it, `mask` is of its leading axes. Both are copies, so that
    a loop may hand them on; `same` is what masks are told apart by. `before`: so many axes stand before what
    was picked, which here comes first."""

    def __init__(
        self, value: Value, mask: Value, before: int = 0, known: Array | None = None
    ) -> None:
        """`known`: all elements of the array, where they are known while the function is traced."""
        self.array, self.same, self.before = fresh(value), mask, before
        self.held = fresh(mask)
        self.array.spot.buffer.known = None if known is None else in_buffer(known.copy())

    @property
    def value(self) -> Value:
        """All elements of the array."""
        return value_of(self.array)

    @property
    def mask(self) -> Value:
        """Which of them were picked."""
        return value_of(self.held)

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of the array."""
        return self.array.dtype

    @property
    def count(self) -> Any:
        """How many the mask picked: one of Python's numbers."""
        if self.before:
            raise refused(UNKNOWN)
        return _number_of(LIBRARY.sum(self.held, dtype=np.int64))

    @property
    def size(self) -> Any:
        """How many elements there are: one of Python's numbers."""
        rest = self.array.shape[self.held.ndim :]
        return _number_of(LIBRARY.sum(self.held, dtype=np.int64) * prod(rest))

    def __repr__(self) -> str:
        return f"<elements of a traced array {self.array!r} where a mask holds>"

    def __getattr__(self, name: str) -> Any:
        if name in REDUCTIONS and not name.startswith("_"):
            return partial(REDUCTIONS[name], self)
        # NumPy asks for its protocols by name, and takes `__array__` where there is none.
        if hasattr(np.ndarray, name) and not name.startswith("__"):
            raise refused(f"ndarray.{name} of elements picked by a mask: {UNKNOWN}")
        raise AttributeError(f"'numpy.ndarray' object has no attribute '{name}'")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__" or set(kwargs) - {"out"}:
            raise refused(f"{ufunc.__name__}.{method} of elements picked by a mask: {UNKNOWN}")
        plain = [self._beside(x) for x in inputs]
        out = kwargs.get("out")
        if out is not None:
            return self._into(ufunc, plain, out)
        result: Any = ufunc(*plain)
        r = recorder()
        value = r.expand(r.read(result.spot.view), self.array.shape)
        if result.dtype == bool and not self.before and self.held.shape == self.array.shape:
            # A test is false where nothing was picked, so that what hangs on it is asked of the mask alone.
            value = r.op(AndOp, self.mask, value)
        return MaskedArray(value, self.same, self.before)

    def _into(self, ufunc: np.ufunc, plain: list[Any], out: tuple[Any, ...]) -> Any:
        """Picked elements are a copy, which everything that is bound to it sees written."""
        if len(out) != 1 or not isinstance(out[0], MaskedArray):
            raise refused(f"out= of {ufunc.__name__} with elements picked by a mask: {UNKNOWN}")
        into = self._beside(out[0])
        if self.before or self.held.shape != into.shape:
            ufunc(*plain, out=into)
        else:
            # What was not picked is not seen: left as it is, it needs no computing where nothing is picked.
            ufunc(*plain, out=into, where=self.held)
        return out[0]

    def _beside(self, x: Any) -> Any:
        """An operand in its full place."""
        if isinstance(x, MaskedArray):
            self._beside_mask(x)
            if (x.before, x.array.ndim) != (self.before, self.array.ndim):
                raise refused(f"elements picked from arrays of other dimensions: {UNKNOWN}")
            return x.array
        if operand(x).shape != ():
            raise refused(f"an array beside elements picked by a mask: {UNKNOWN}")
        return x

    def _beside_mask(self, x: MaskedArray) -> None:
        """Raises UnsupportedError for what another mask picked."""
        if not same_mask(x.same, self.same):
            raise refused(f"elements picked by two masks together: {UNKNOWN}")

    def __pow__(self, other: Any) -> Any:
        fast = FAST_POWERS.get(other) if type(other) in (int, float) else None
        return fast(self) if fast is not None and self.dtype.kind in "fc" else np.power(self, other)

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        found = REDUCTIONS.get(func.__name__)
        if found is None:
            raise refused(f"np.{func.__name__} of elements picked by a mask: {UNKNOWN}")
        return found(*args, **kwargs)

    def __bool__(self) -> bool:
        raise refused(UNKNOWN)

    def __len__(self) -> int:
        raise refused(UNKNOWN)

    def __getitem__(self, key: Any) -> Any:
        """What a mask picks of what this one's picked: by both."""
        mask = key.array if type(key) is MaskedArray else None
        if mask is None or mask.dtype != bool or mask.ndim != self.held.ndim:
            raise refused(f"an index of elements picked by a mask: {UNKNOWN}")
        self._beside_mask(key)
        both = recorder().op(AndOp, self.mask, value_of(mask))
        return MaskedArray(self.value, both, self.before, self.array.spot.known)

    def __iter__(self) -> Any:
        raise refused(f"a loop over elements picked by a mask: {UNKNOWN}")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise refused(UNKNOWN)


def _reduction(kind: str) -> Callable[..., Any]:
    function: Callable[..., Any] = {
        "mean": reductions.mean,
        "std": reductions.std,
        "var": reductions.var,
    }.get(kind, reductions.of_kind(kind))

    def reduced(picked: MaskedArray, *args: Any, **kwargs: Any) -> Any:
        axis = args[0] if len(args) == 1 else kwargs.get("axis")
        if len(args) > 1 or set(kwargs) - {"axis"} or not (axis is None or _rows(picked, axis)):
            raise refused(f"np.{kind} with arguments, of elements picked by a mask: {UNKNOWN}")
        along = None if axis is None else 0
        r = recorder()
        shape = picked.held.shape + (1,) * (picked.array.ndim - picked.held.ndim)
        mask = fresh(r.reshape(picked.mask, shape))
        if kind not in ("max", "min"):
            return function(picked.array, axis=along, where=mask)
        message = f"zero-size array to reduction operation {kind}imum which has no identity"
        some = LIBRARY.any(mask)
        r.require(Check(user_place(), message, ValueError), value_of(some))
        return function(picked.array, axis=along, where=mask, initial=_last(kind, picked.dtype))

    return reduced


def _number_of(count: Any) -> Any:
    """A count as one of Python's numbers."""
    count.spot.weak = int
    return count


def _rows(picked: MaskedArray, axis: Any) -> bool:
    """Whether an axis is the one along which there are as many as the mask picks."""
    return (
        type(axis) is int
        and axis in (0, -picked.array.ndim)
        and picked.held.ndim == 1
        and not picked.before
    )


def _last(kind: str, dtype: np.dtype[Any]) -> Any:
    """What no element of a dtype comes before."""
    if dtype.kind == "b":
        return kind == "min"
    if dtype.kind in "iu":
        return getattr(np.iinfo(dtype), "min" if kind == "max" else "max")
    return -np.inf if kind == "max" else np.inf


REDUCTIONS: Mapping[str, Callable[..., Any]] = {
    name: _reduction(name)
    for name in ("sum", "prod", "any", "all", "mean", "std", "var", "max", "min")
}


def same_mask(a: Value, b: Value) -> bool:
    """Whether two masks are surely equal."""
    return a is b or Values(recorder().records).alike(a, b)


def masked_operand(value: Any, mask: Value, before: int, ndim: int) -> Value | None:
    """The elements of what was picked by `mask`, `before` axes before it, from an array of `ndim`, in their
    places; None for anything else."""
    if not isinstance(value, MaskedArray):
        return None
    if not same_mask(value.same, mask):
        raise refused(f"what one mask picked is written through another: {UNKNOWN}")
    if (value.before, value.array.ndim) != (before, ndim):
        raise refused(f"what was picked is written to an array of other dimensions: {UNKNOWN}")
    return value.value
