"""NumPy as a traced function sees it: what makes arrays makes traced ones, the rest is NumPy's own."""

from __future__ import annotations

import operator
import types
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

import numpy as np

from irkit.frontends.numpy import index_tricks, views
from irkit.frontends.numpy.array_class import TracedArrayClass
from irkit.frontends.numpy.arrays import TracedArray, Varying, empty, fresh, in_buffer, is_traced
from irkit.frontends.numpy.indices import Index
from irkit.frontends.numpy.lists import taking_lists
from irkit.frontends.numpy.operands import traced_list
from irkit.frontends.numpy.places import refused
from irkit.frontends.numpy.recorder import recorder
from irkit.frontends.numpy.shaping import cast_to, lies_as
from irkit.weights import Array


def _extents(shape: Any) -> tuple[int, ...]:
    """A shape as NumPy reads it."""
    if is_traced(shape):
        shape = operator.index(shape)
    return np.broadcast_to(np.int8(0), shape).shape


def _filled(fill: Any) -> Callable[..., TracedArray]:
    def made(shape: Any, dtype: Any = float, order: str = "C", **rest: Any) -> TracedArray:
        """`np.zeros`, `np.ones`; None for `np.empty`."""
        _no_more(rest)
        extents = _extents(shape)
        array = empty(extents, np.dtype(dtype), order == "F" and len(extents) > 1)
        if fill is not None:
            array[...] = fill
        return array

    return made


def _full(
    shape: Any, fill_value: Any, dtype: Any = None, order: str = "C", **rest: Any
) -> TracedArray:
    """`np.full`"""
    if dtype is None:
        dtype = fill_value.dtype if is_traced(fill_value) else np.asarray(fill_value).dtype
    array = _filled(None)(shape, dtype, order, **rest)
    array[...] = fill_value
    return array


def _array(
    given: Any,
    dtype: Any = None,
    *,
    copy: Any = True,
    order: str | None = "K",
    ndmin: int = 0,
    **rest: Any,
) -> Any:
    """`np.array`: a copy, unless NumPy needs none and is asked for none. Raises ValueError where it needs one
    that it is not to make."""
    _no_more(rest)
    if isinstance(given, Index):
        given = given.special("an array of a loop's index")
    if isinstance(given, Varying):
        given = given.exact("np.array")
    if is_traced(given):
        made = _of_traced(given, dtype or given.dtype, copy, order or "K")
    elif (
        isinstance(given, list | tuple)
        and (found := traced_list(cast("list[Any]", given))) is not None
    ):
        made = found if dtype is None else cast_to(found, dtype)
    else:
        made = known(np.array(cast(Any, given), dtype))
    return made if ndmin <= made.ndim else made.reshape((1,) * (ndmin - made.ndim) + made.shape)


def _of_traced(given: Any, dtype: Any, copy: Any, order: str) -> Any:
    """What `np.array` makes of an array or a number of the trace."""
    if copy or given.dtype != dtype or not lies_as(given, order):
        if copy is False:
            np.array([0], copy=False)  # NumPy's own error
        made = cast_to(given, dtype, order)
        made.spot.scalar = False
        return made
    return TracedArray(given.spot.viewed(given.spot.layout)) if given.spot.scalar else given


def _asarray(
    given: Any, dtype: Any = None, order: Any = None, *, copy: Any = None, **rest: Any
) -> Any:
    """`np.asarray` and its like: what is an array stays itself."""
    return _array(given, dtype, copy=copy, order=order, **rest)


def _in_order(order: str) -> Callable[..., Any]:
    """`np.ascontiguousarray` and `np.asfortranarray`: of no number."""

    def made(given: Any, dtype: Any = None, **rest: Any) -> Any:
        return _array(given, dtype, copy=None, order=order, ndmin=1, **rest)

    return made


class _TypeClass(type):
    """`type` in a traced function: of an array it is what stands for `np.ndarray`."""

    def __call__(cls, *given: Any, **rest: Any) -> Any:
        if len(given) == 1 and is_traced(given[0]):
            return given[0].__class__
        return type(*given, **rest)

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, type)

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, type)

    def __getattr__(cls, name: str) -> Any:
        return getattr(type, name)


class TracedType(metaclass=_TypeClass):
    """`type`: says what an array of the trace is."""

    def __class_getitem__(cls, item: Any) -> Any:
        return type[item]


def _no_more(rest: Mapping[str, Any]) -> None:
    odd = {k for k, v in rest.items() if v is not None and k not in ("subok", "device", "like")}
    if odd:
        raise refused(f"creation of an array with {', '.join(sorted(odd))}=")


def known(array: Array) -> TracedArray:
    """An array whose elements are known now, as one of the trace: a copy."""
    if array.dtype.kind not in "biufc":
        raise refused(f"an array of dtype {array.dtype}")
    if array.size == 0:
        return empty(array.shape, array.dtype)
    r = recorder()
    first = array.reshape(-1)[0]
    same = array.size > 1 and bool((array == first).all())
    value = r.splat(first, array.dtype, array.shape) if same else r.constant(array)
    made = fresh(value)
    made.spot.buffer.known = in_buffer(np.array(array, order="C"))
    return made


def _of_shape(array: Any) -> Any:
    """Something of the same shape that NumPy may look at."""
    return np.broadcast_to(np.int8(0), array.shape) if is_traced(array) else array


def _broadcast(*arrays: Any) -> Any:
    """`np.broadcast`, of elements where they are known."""
    if any(map(_unknown, arrays)):
        return _BroadcastShape(*arrays)
    return np.broadcast(*(np.array(a) if is_traced(a) else a for a in arrays))


class _BroadcastShape:
    """The shape of arrays together. Raises UnsupportedError where elements are asked for."""

    def __init__(self, *arrays: Any) -> None:
        self._known = np.broadcast(*(_of_shape(a) for a in arrays))

    def __getattr__(self, name: str) -> Any:
        if name not in ("nd", "ndim", "numiter", "shape", "size"):
            raise refused(f"np.broadcast(...).{name}: the elements of arrays side by side")
        return getattr(self._known, name)

    def __iter__(self) -> Any:
        raise refused("np.broadcast(...) that is iterated: the elements of arrays side by side")


MAKERS: Mapping[str, Callable[..., Any]] = {
    "array": _array,
    "asanyarray": _asarray,
    "asarray": _asarray,
    "ascontiguousarray": _in_order("C"),
    "asfortranarray": _in_order("F"),
    "as_strided": views.as_strided,
    "broadcast": _broadcast,
    "empty": _filled(None),
    "full": _full,
    "ones": _filled(1),
    "zeros": _filled(0),
}
"""Functions of `numpy` that make arrays of what need not be traced."""

KNOWN = frozenset(
    [
        "arange",
        "bartlett",
        "blackman",
        "eye",
        "fromfunction",
        "geomspace",
        "hamming",
        "hanning",
        "identity",
        "indices",
        "kaiser",
        "linspace",
        "logspace",
        "tri",
        "vander",
        "ix_",
        "meshgrid",
        "diag_indices",
        "tril_indices",
        "triu_indices",
        "frombuffer",
        "fromstring",
    ]
)
"""Functions whose arrays are made now, of numbers that are known, and traced from there on."""

REFUSED = frozenset(
    [
        "random",
        "fromfile",
        "fromiter",
        "genfromtxt",
        "load",
        "loadtxt",
        "memmap",
        "nditer",
        "ndenumerate",
        "vectorize",
        "apply_along_axis",
        "apply_over_axes",
        "frompyfunc",
    ]
)
"""What reads from outside, or calls back: a trace would keep what it found once."""


class TracedNamespace:
    """A module of NumPy with what makes arrays replaced. `lifts`: what is made of numbers that are known is
    an array of the trace, so that it may be written; NumPy's own functions make axes and shapes of it."""

    def __init__(self, module: types.ModuleType, lifts: bool = True) -> None:
        self._module, self._lifts = module, lifts

    def __getattr__(self, name: str) -> Any:
        return traced_attribute(getattr(self._module, name), name, self._lifts)

    def __repr__(self) -> str:
        return f"<traced {self._module.__name__}>"


def traced_attribute(found: Any, name: str, lifts: bool = True) -> Any:
    """What stands for `found`, an attribute of NumPy."""
    if isinstance(found, types.ModuleType):
        if name in REFUSED:
            raise refused(f"np.{name}: a trace would keep what it gives once")
        return TracedNamespace(found, lifts) if found.__name__.startswith("numpy") else found
    if found is np.ndarray:
        return TracedArrayClass
    if found is np.errstate or found is np.seterr:
        return partial(_floating_errors, found)
    if name in ("r_", "c_", "mgrid", "ogrid"):
        return index_tricks.stand_in(found, _lifted if lifts else lambda made: made)
    own = getattr(np, name, None)
    if not callable(found) or (own is not found and getattr(found, "__name__", "") != name):
        return found
    if name in MAKERS and getattr(found, "__module__", "numpy").startswith("numpy"):
        return MAKERS[name]
    if name in REFUSED and own is found:
        raise refused(f"np.{name}: a trace would keep what it gives once")
    if name in KNOWN and own is found:
        return _made_now(found, lifts)
    return taking_lists(found)


def _floating_errors(function: Callable[..., Any], **said: Any) -> Any:
    """`np.errstate` and `np.seterr`, where they ask for no exception."""
    heard = [f"{k}={v!r}" for k, v in said.items() if v in ("raise", "call")]
    if heard:
        raise refused(
            f"np.{function.__name__}({', '.join(heard)}): compiled arithmetic tells nobody of infinities and "
            "NaN: look at the results (np.isfinite)"
        )
    return function(**said)


def _made_now(function: Callable[..., Any], lifts: bool) -> Callable[..., Any]:
    def made(*args: Any, **kwargs: Any) -> Any:
        from irkit.frontends.numpy.globals import traced_function

        if any(map(_unknown, (*args, *kwargs.values()))):
            own = getattr(function, "__wrapped__", function)
            if not isinstance(own, types.FunctionType):
                raise refused(f"np.{function.__name__} of numbers that are computed")
            return traced_function(own)(*args, **kwargs)
        found = function(*map(_plain, args), **{k: _plain(v) for k, v in kwargs.items()})
        return _lifted(found) if lifts else found

    return made


def _unknown(value: Any) -> bool:
    return is_traced(value) and value.spot.known is None


def _plain(value: Any) -> Any:
    """A number that is known, of an array or a loop's index."""
    if is_traced(value):
        return np.array(value)[()]
    return value.special("an array of a loop's index") if isinstance(value, Index) else value


def _lifted(made: Any) -> Any:
    if isinstance(made, np.ndarray):
        return known(cast(Array, made))
    if isinstance(made, tuple | list):
        parts = cast("tuple[Any, ...]", made)
        return type(parts)(map(_lifted, parts))
    return made
