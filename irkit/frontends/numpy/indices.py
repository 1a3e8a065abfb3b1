"""The index of a loop that is kept as a loop: a whole number that is known but for the round."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from irkit.frontends.numpy.affine import Affine
from irkit.frontends.numpy.library import OPERATORS


class Index:
    """A number that is affine in the rounds of loops. What is asked of it that differs from round to round
    is answered for the round at hand, which then stands for no other."""

    def __init__(self, affine: Affine) -> None:
        self._affine = affine

    # What the class of a number is asked for, it is a whole number.
    @property
    def __class__(self) -> type:  # pyright: ignore[reportIncompatibleMethodOverride]
        return int

    @property
    def affine(self) -> Affine:
        """As symbols that are fixed by now leave it."""
        return self._affine.settled

    @property
    def now(self) -> int:
        """Its number in the round that is traced."""
        return self._affine.now

    def special(self, why: str) -> int:
        """Its number, of this round alone."""
        for symbol, _ in self.affine.terms:
            symbol.special = symbol.special or why
        return self.now

    def __repr__(self) -> str:
        return f"<index {self.now}>"

    # Affine arithmetic

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Index):
            return index(self.affine.plus(other.affine))
        if type(other) is int:
            return index(self.affine.plus(Affine(other)))
        return self._other(OPERATORS.add, other)

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, Index):
            return index(self.affine.plus(other.affine, -1))
        if type(other) is int:
            return index(self.affine.plus(Affine(-other)))
        return self._other(OPERATORS.sub, other)

    def __mul__(self, other: Any) -> Any:
        if type(other) is int:
            return index(self.affine.times(other))
        return self._other(OPERATORS.mul, other)

    def __neg__(self) -> Any:
        return index(self.affine.times(-1))

    def __pos__(self) -> Any:
        return self

    def __radd__(self, other: Any) -> Any:
        return self + other if type(other) is int else self._other(OPERATORS.add, other, True)

    def __rsub__(self, other: Any) -> Any:
        return -self + other if type(other) is int else self._other(OPERATORS.sub, other, True)

    def __rmul__(self, other: Any) -> Any:
        return self * other if type(other) is int else self._other(OPERATORS.mul, other, True)

    def __truediv__(self, other: Any) -> Any:
        return self._other(OPERATORS.truediv, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._other(OPERATORS.truediv, other, True)

    def __pow__(self, other: Any, modulus: int | None = None) -> Any:
        if modulus is not None:
            return pow(self.special("pow() of a loop's index"), other, modulus)
        return self._other(OPERATORS.pow, other)

    def __rpow__(self, other: Any) -> Any:
        return self._other(OPERATORS.pow, other, True)

    def _other(self, op: Callable[[Any, Any], Any], other: Any, swapped: bool = False) -> Any:
        """Arithmetic with a result that is no whole number: one of a float stands for Python's."""
        from irkit.frontends.numpy.weak import weak_number

        if isinstance(other, np.generic | np.ndarray) or type(other).__name__ == "TracedArray":
            ufunc: Any = {
                OPERATORS.add: np.add,
                OPERATORS.sub: np.subtract,
                OPERATORS.mul: np.multiply,
                OPERATORS.truediv: np.true_divide,
                OPERATORS.pow: np.power,
            }[op]
            own = weak_number(self, int)
            return ufunc(other, own) if swapped else ufunc(own, other)
        if type(other) is float or (op is OPERATORS.truediv and type(other) in (int, Index)):
            own, theirs = weak_number(self, float), weak_number(other, float)
            return op(theirs, own) if swapped else op(own, theirs)
        mine = self.special(f"{op.__name__} of a loop's index")
        theirs = (
            other.special("arithmetic of a loop's index") if isinstance(other, Index) else other
        )
        return op(theirs, mine) if swapped else op(mine, theirs)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Beside arrays it is one of Python's numbers; of indices alone a number of this round."""
        from irkit.frontends.numpy.weak import weak_number

        if any(type(x).__name__ == "TracedArray" for x in inputs):
            return NotImplemented
        beside = any(isinstance(x, np.generic | np.ndarray) for x in inputs)
        if beside and method == "__call__" and not options:
            return ufunc(*[weak_number(x, int) for x in inputs])
        why = f"np.{ufunc.__name__} of a loop's index"
        numbers = [x.special(why) if isinstance(x, Index) else x for x in inputs]
        return getattr(ufunc, method)(*numbers, **options)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.special("an array of a loop's index"), dtype)

    def __floordiv__(self, other: Any) -> Any:
        return self._special(OPERATORS.floordiv, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return other // self.special("the operator // with a loop's index")

    def __mod__(self, other: Any) -> Any:
        return self._special(OPERATORS.mod, other)

    def __rmod__(self, other: Any) -> Any:
        return other % self.special("the operator % with a loop's index")

    def __and__(self, other: Any) -> Any:
        return self._special(OPERATORS.and_, other)

    def __rand__(self, other: Any) -> Any:
        return other & self.special("the operator & with a loop's index")

    def __or__(self, other: Any) -> Any:
        return self._special(OPERATORS.or_, other)

    def __ror__(self, other: Any) -> Any:
        return other | self.special("the operator | with a loop's index")

    def __xor__(self, other: Any) -> Any:
        return self._special(OPERATORS.xor, other)

    def __rxor__(self, other: Any) -> Any:
        return other ^ self.special("the operator ^ with a loop's index")

    def __lshift__(self, other: Any) -> Any:
        return self._special(OPERATORS.lshift, other)

    def __rlshift__(self, other: Any) -> Any:
        return other << self.special("the operator << with a loop's index")

    def __rshift__(self, other: Any) -> Any:
        return self._special(OPERATORS.rshift, other)

    def __rrshift__(self, other: Any) -> Any:
        return other >> self.special("the operator >> with a loop's index")

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __invert__(self) -> Any:
        return -self - 1

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __round__(self, digits: int | None = None) -> int:
        return round(self.special("round() of a loop's index"), digits)

    def __getattr__(self, name: str) -> Any:
        # What else an int has, `bit_length` or `real`; NumPy asks for what it has not.
        if name.startswith("__") or not hasattr(int, name):
            raise AttributeError(f"'int' object has no attribute '{name}'")
        return getattr(self.special(f"the attribute {name} of a loop's index"), name)

    def _special(self, op: Callable[[Any, Any], Any], other: Any) -> Any:
        right = (
            other.special(f"{op.__name__} of a loop's index") if isinstance(other, Index) else other
        )
        return op(self.special(f"{op.__name__} of a loop's index"), right)

    # Comparisons: the same in every round, or of this round alone

    def _compare(self, op: Callable[[Any, Any], bool], other: Any) -> bool:
        if type(other) not in (int, bool, float, Index):
            return NotImplemented
        off = self - other if isinstance(other, Index) else self
        if not isinstance(off, Index):
            return op(off, 0)
        to = 0 if isinstance(other, Index) else other
        low, high = off.affine.extent()
        ends = {op(low, to), op(high, to), op(off.now, to)}
        between = op in (operator.eq, operator.ne) and low <= to <= high and low != high
        if len(ends) == 1 and not between:
            return ends.pop()
        # Of both indices: the round of either loop stands for no other.
        off.special("a comparison of a loop's index")
        return op(off.now, to)

    def __lt__(self, other: Any) -> bool:
        return self._compare(operator.lt, other)

    def __le__(self, other: Any) -> bool:
        return self._compare(operator.le, other)

    def __gt__(self, other: Any) -> bool:
        return self._compare(operator.gt, other)

    def __ge__(self, other: Any) -> bool:
        return self._compare(operator.ge, other)

    def __eq__(self, other: object) -> bool:
        return self._compare(operator.eq, other)

    def __ne__(self, other: object) -> bool:
        return self._compare(operator.ne, other)

    def __hash__(self) -> int:
        return hash(self.special("the hash of a loop's index"))

    # Numbers

    def __str__(self) -> str:
        return str(self.special("the text of a loop's index"))

    def __format__(self, spec: str) -> str:
        return format(self.special("the text of a loop's index"), spec)

    def __bool__(self) -> bool:
        return self != 0

    def __index__(self) -> int:
        return self.special("a count, a shape or an index of a list that is a loop's index")

    def __int__(self) -> int:
        return self.special("int() of a loop's index")

    def __float__(self) -> float:
        return float(self.special("float() of a loop's index"))


def index(affine: Affine) -> Index | int:
    """An index, or the number that it is in every round."""
    settled = affine.settled
    return Index(settled) if settled.terms else settled.constant
