"""The array that stands for one of NumPy's while a function is traced.

It has NumPy's protocols, operators, indexing and methods, and no values: whoever wants one is refused, with
the line of the user's file.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeGuard, cast

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from irkit.frontends.numpy.array_class import TracedArrayClass
from irkit.frontends.numpy.library import LIBRARY, OPERATORS
from irkit.frontends.numpy.places import refused
from irkit.frontends.numpy.recorder import recorder
from irkit.frontends.numpy.records import Value, part_of, parts_of
from irkit.frontends.numpy.spots import Spot
from irkit.weights import Array

ITERATED = 4096
"""Rows that a Python loop over an array may take one by one."""

FAST_POWERS: Mapping[float, np.ufunc] = {
    2: np.square,
    0.5: np.sqrt,
    -1: np.reciprocal,
    1: np.positive,
}
"""Powers for which NumPy's operator takes another function, with other bits."""


def fast_power(dtype: np.dtype[Any], exponent: Any) -> np.ufunc | None:
    """The function that `**` of arrays of `dtype` takes for one of Python's numbers, if any: integers to a
    power that is a float are floats, and have none."""
    if type(exponent) is not int and (type(exponent) is not float or dtype.kind not in "fc"):
        return None
    return FAST_POWERS.get(exponent) if dtype.kind in "fc" or exponent in (1, 2) else None


def unknown(what: str) -> Exception:
    """The error of who wants a value."""
    return refused(
        f"{what} needs the value of an array, which is not known while the function is traced: np.where "
        f"chooses element by element, irkit.while_loop repeats"
    )


class Varying:
    """An array whose shape changes from round to round of a loop, or an iterator of elements."""

    def exact(self, what: str = "an operation") -> TracedArray:
        """It as an array; as it is in the round that is traced, which then stands for no other."""
        raise NotImplementedError


def is_above(kind: Any) -> bool:
    """Whether a class takes calls with arrays to itself: arrays of other shapes, series, frames."""
    return issubclass(kind, Varying) or getattr(kind, "KIND", None) is not None


def kind_of_table(value: Any) -> str | None:
    """ "Series" or "DataFrame" of what stands for one whose elements are arrays."""
    kind = cast(Any, type(value))
    return getattr(kind, "KIND", None)


class TracedArray(NDArrayOperatorsMixin):
    """An array of a traced function, or one of NumPy's numbers: `spot` says where it lies."""

    __array_priority__ = 1000.0

    def __init__(self, spot: Spot) -> None:
        self.spot = spot

    @property
    def __class__(self) -> type:  # pyright: ignore[reportIncompatibleMethodOverride]
        """`isinstance` says what it says of the array that this stands for; the class itself is what a traced
        function has for `np.ndarray`."""
        return self.spot.layout.dtype.type if self.spot.scalar else TracedArrayClass

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents."""
        return self.spot.layout.shape

    @shape.setter
    def shape(self, shape: Any) -> None:
        seen = self.spot.layout.reshape(shape)
        if self.spot.outside and seen.shape != self.shape:
            raise refused(
                "the shape of an array of the caller's is assigned to: x = x.reshape(...)"
            )
        if not self.spot.owns(seen):
            raise AttributeError("Incompatible shape for in-place modification.")
        self.spot = self.spot.viewed(seen)

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of its elements."""
        return self.spot.layout.dtype

    @property
    def size(self) -> int:
        """How many elements it has."""
        return self.spot.layout.size

    @property
    def ndim(self) -> int:
        """How many dimensions it has."""
        return self.spot.layout.ndim

    itemsize = property(lambda self: self.spot.layout.itemsize)
    nbytes = property(lambda self: self.spot.layout.nbytes)
    strides = property(lambda self: self.spot.layout.strides)
    flags = property(lambda self: self.spot.layout.flags)
    T = property(lambda self: TracedArray(self.spot.viewed(self.spot.layout.T)))
    mT = property(lambda self: TracedArray(self.spot.viewed(self.spot.layout.mT)))

    @property
    def real(self) -> TracedArray:
        """Real parts, a view; itself where there are no others."""
        return self._part(0) if self.dtype.kind == "c" else self

    @property
    def imag(self) -> TracedArray:
        """Imaginary parts, a view; of real numbers zeros that cannot be written."""
        if self.dtype.kind == "c":
            return self._part(1)
        zeros = fresh(recorder().splat(0, self.dtype, self.shape), self.spot.scalar)
        zeros.spot.layout.flags.writeable = False
        return zeros

    @property
    def flat(self) -> Any:
        """Its elements in C order, to be read, assigned or gone through."""
        from irkit.frontends.numpy.flat import FlatIterator

        return FlatIterator(self)

    def _part(self, number: int) -> TracedArray:
        """Of a number of NumPy's a number."""
        layout = self.spot.layout
        found = TracedArray(self.spot.viewed(parts_of(layout)[number]))
        return fresh(value_of(found), scalar=True) if self.spot.scalar else found

    def __len__(self) -> int:
        return len(self.spot.layout)

    def __repr__(self) -> str:
        kind = "number" if self.spot.scalar else "array"
        return f"<traced {kind} {self.dtype}{list(self.shape)}>"

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("spot", "shape"):
            super().__setattr__(name, value)
        elif name in ("flat", "imag", "real") and not self.spot.scalar:
            getattr(self, name)[...] = value
        elif hasattr(np.ndarray, name):
            raise refused(f"ndarray.{name} is assigned to")
        else:
            raise AttributeError(
                f"'numpy.ndarray' object has no attribute '{name}' and no __dict__ for setting new attributes"
            )

    def __getattr__(self, name: str) -> Any:
        from irkit.frontends.numpy.methods import METHODS, OF_COMPLEX

        found = METHODS.get(name)
        if found is not None and self.dtype.kind == "c" and name not in OF_COMPLEX:
            raise refused(f"ndarray.{name} of complex numbers")
        if found is not None:
            return _Method(found, self)
        if hasattr(np.ndarray, name) and not name.startswith("_"):
            raise refused(f"ndarray.{name}")
        raise AttributeError(f"'numpy.ndarray' object has no attribute '{name}'")

    # NumPy's protocols

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        from irkit.frontends.numpy.ufunc_calls import ufunc_call

        if any(is_above(cast(Any, type(x))) for x in (*inputs, *kwargs.get("out", ()))):
            return NotImplemented
        return ufunc_call(ufunc, method, inputs, kwargs)

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        from irkit.frontends.numpy.functions import function_call

        if any(map(is_above, types)):
            return NotImplemented
        return function_call(func, args, kwargs)

    def __getitem__(self, key: Any) -> Any:
        from irkit.frontends.numpy.indexing import get_item

        return get_item(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        from irkit.frontends.numpy.indexing import set_item

        set_item(self, key, value)

    def __iter__(self) -> Iterator[Any]:
        if self.ndim == 0:
            raise TypeError("iteration over a 0-d array")
        if len(self) > ITERATED:
            raise refused(
                f"a loop over an array of {len(self)} rows: say with np. what it does to all"
            )
        return (self[i] for i in range(len(self)))

    def __pow__(self, other: Any) -> Any:
        # Of truths arrays have squares; their other powers, and all of one truth, are those of integers.
        number = type(other) in (int, float)
        if number and self.dtype.kind == "b":
            number = other == 2 and not self.spot.scalar
        if self.spot.scalar and self.dtype.kind != "c" and not (number and other in (2, -1, 1)):
            return power_of(self, other)
        ufunc = fast_power(self.dtype, other) if number else None
        return np.power(self, other) if ufunc is None else ufunc(self)

    def __rpow__(self, other: Any) -> Any:
        return power_of(other, self)

    def __round__(self, digits: int | None = None) -> Any:
        if not self.spot.scalar or self.dtype.kind not in "iuf":
            raise TypeError("round() of an array, a truth or a complex number, which have none")
        if digits is None:
            return round(self._known("round() without digits, an int of Python's,").item())
        return np.round(self, digits)

    # Values, which are seldom known

    def _known(self, what: str) -> Any:
        """Its elements, if they are the same in every call."""
        found = self.spot.known
        if found is None:
            raise unknown(what)
        return found

    def __str__(self) -> str:
        return str(self._known("str(), format() or print()"))

    def __format__(self, how: str) -> str:
        return format(self._known("str(), format() or print()"), how)

    def __bool__(self) -> bool:
        return bool(self._known("'if', 'while', 'and' or bool()"))

    def __float__(self) -> float:
        return float(self._known("float() or a function of math"))

    def __int__(self) -> int:
        return int(self._known("int()"))

    def __complex__(self) -> complex:
        return complex(self._known("complex()"))

    def __index__(self) -> int:
        return operator.index(self._known("a count, a shape or an index of a list"))

    def __contains__(self, item: Any) -> bool:
        return item in self._known("the operator 'in'")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self._known("a function that is not traced"), dtype)

    def __hash__(self) -> int:
        if not self.spot.scalar:
            raise TypeError("unhashable type: 'numpy.ndarray'")
        return hash(self._known("hash(), a key of a dict or an element of a set")[()])


def power_of(base: Any, exponent: Any) -> Any:
    """The power that an operator asks for: of two numbers, C's, which of 0.5 is no root (`powers.py`)."""
    from irkit.frontends.numpy.powers import number_power

    return number_power(base, exponent)


class _Method:
    """A method of an array, as of NumPy's own."""

    def __init__(self, function: Callable[..., Any], array: TracedArray) -> None:
        self._function, self._array = function, array

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(self._array, *args, **kwargs)


def _in_place(plain: Callable[[Any, Any], Any], ufunc: np.ufunc) -> Callable[..., Any]:
    """An operator such as +=: of an array it writes it, of a number it makes another."""

    def method(self: TracedArray, other: Any) -> Any:
        if self.spot.scalar:
            return plain(self, other)
        fast = fast_power(self.dtype, other) if ufunc is np.power else None
        if fast is not None:
            return fast(self, out=(self,))
        return ufunc(self, other, out=(self,))

    return method


_IN_PLACE: Mapping[str, tuple[Callable[[Any, Any], Any], np.ufunc]] = {
    "add": (OPERATORS.add, np.add),
    "sub": (OPERATORS.sub, np.subtract),
    "mul": (OPERATORS.mul, np.multiply),
    "matmul": (OPERATORS.matmul, LIBRARY.matmul),
    "truediv": (OPERATORS.truediv, np.true_divide),
    "floordiv": (OPERATORS.floordiv, np.floor_divide),
    "mod": (OPERATORS.mod, np.remainder),
    "pow": (OPERATORS.pow, np.power),
    "lshift": (OPERATORS.lshift, np.left_shift),
    "rshift": (OPERATORS.rshift, np.right_shift),
    "and": (OPERATORS.and_, np.bitwise_and),
    "or": (OPERATORS.or_, np.bitwise_or),
    "xor": (OPERATORS.xor, np.bitwise_xor),
}

for _name, (_plain, _ufunc) in _IN_PLACE.items():
    setattr(TracedArray, f"__i{_name}__", _in_place(_plain, _ufunc))


def _of_numbers(name: str) -> Callable[..., Any]:
    """An operator: of two that stand for Python's numbers it gives one that does."""
    plain = getattr(TracedArray, name)

    def method(self: TracedArray, other: Any) -> Any:
        kinds = self.spot.weak, _python_kind(other)
        if bool in kinds and None not in kinds:
            # Of two of Python's truths it has the sum of 0s and 1s.
            self, other = _number(self), _number(other)
        made = plain(self, other)
        if type(made) is TracedArray and None not in kinds:
            made.spot.weak = float if float in kinds or "truediv" in name else int
        return made

    return method


def _number(value: Any) -> Any:
    """One of Python's truths as its int."""
    if type(value) is not TracedArray or value.spot.weak is not bool:
        return int(value) if type(value) is bool else value
    return fresh(recorder().cast(value_of(value), np.dtype(np.int64)), scalar=True, weak=int)


def _python_kind(value: Any) -> type | None:
    """Whether a number is Python's int or float, or stands for one; None for all else."""
    if type(value) is TracedArray:
        return value.spot.weak
    if type(value) is float:
        return float
    return int if type(value) in (int, bool) or type(value).__name__ == "Index" else None


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    for _side in ("", "r"):
        setattr(TracedArray, f"__{_side}{_name}__", _of_numbers(f"__{_side}{_name}__"))


def is_traced(value: Any) -> TypeGuard[TracedArray]:
    """Whether it is an array of a trace: it passes for one of NumPy's."""
    return type(value) is TracedArray


def fresh(value: Value, scalar: bool = False, weak: type | None = None) -> TracedArray:
    """A new array with this value. `scalar`: a number where there are no dimensions."""
    made = empty(value.shape, value.dtype)
    recorder().write(value, made.spot.view)
    made.spot.scalar, made.spot.weak = scalar and value.shape == (), weak
    return made


def empty(shape: Sequence[int], dtype: np.dtype[Any], fortran: bool = False) -> TracedArray:
    """A new array of no contents; `fortran`: with columns that lie together."""
    sizes = tuple(shape)
    buffer = recorder().alloc(sizes[::-1] if fortran else sizes, dtype)
    # Complex elements are parts side by side.
    base = buffer.base.view(dtype)[..., 0] if dtype.kind == "c" else buffer.base
    return TracedArray(Spot(buffer, base.T if fortran else base))


def in_buffer(array: Array) -> Array:
    """What a new buffer has that holds `array`, which is in C order: of complex numbers their parts."""
    if array.dtype.kind != "c":
        return array
    return array.reshape((*array.shape, 1)).view(part_of(array.dtype))


def value_of(array: TracedArray) -> Value:
    """Its elements now."""
    return recorder().read(array.spot.view)
