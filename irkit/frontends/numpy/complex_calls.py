"""Functions of complex numbers in a trace: by rules of their parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from irkit.annotations.structures import mapped
from irkit.frontends.array_ops import complex_numbers
from irkit.frontends.numpy.arrays import is_traced
from irkit.frontends.numpy.operands import Operand
from irkit.frontends.numpy.places import refused
from irkit.frontends.numpy.recorder import recorder
from irkit.frontends.numpy.records import ComplexValue, Value
from irkit.frontends.numpy.ufuncs import complex_rule_of


def complex_call(
    ufunc: np.ufunc, operands: Sequence[Operand], dtypes: Sequence[np.dtype[Any]]
) -> Value:
    """What a universal function is of complex numbers. Raises UnsupportedError for one without a rule."""
    r = recorder()
    if ufunc is np.power:
        base, exponent = operands
        made = complex_numbers.whole_power(r.compose, _parts(base, dtypes[0]), _whole(exponent))
        return ComplexValue(*made)
    rule = complex_rule_of(ufunc)
    if rule is None:
        raise refused(f"np.{ufunc.__name__} of complex numbers")
    # Products of NumPy's numbers are not those of its arrays.
    plain = ufunc in (np.multiply, np.square) and all(o.is_number for o in operands)
    options = {"fused": False} if plain else {}
    parts = [_parts(o, t) for o, t in zip(operands, dtypes, strict=False)]
    found = rule(r.compose, *parts, **options)
    if not isinstance(found, tuple):
        return found
    real, imaginary = cast("tuple[Value, Value]", found)
    shape = np.broadcast_shapes(real.shape, imaginary.shape)
    return ComplexValue(r.expand(real, shape), r.expand(imaginary, shape))


def _parts(given: Operand, dtype: np.dtype[Any]) -> tuple[Value, Value]:
    value = given.value(dtype)
    assert isinstance(value, ComplexValue)
    return value.parts


def _whole(exponent: Operand) -> int:
    """The exponent of a power. Raises UnsupportedError unless it is a whole number that is known."""
    known = exponent.known
    one = known.item() if known is not None and known.shape == () else None
    largest = complex_numbers.LARGEST_POWER
    if one is None or one != (whole := int(one.real)) or abs(whole) >= largest:
        raise refused(
            f"complex numbers to a power that is not a known whole number below {largest}: "
            "np.exp(n * np.log(z))"
        )
    return whole


def has_complex(given: Any) -> bool:
    """Whether there is an array of complex numbers in a structure."""
    found: list[Any] = []
    mapped(given, lambda v: found.append(v if is_traced(v) or isinstance(v, np.ndarray) else 0))
    return any(np.dtype(getattr(v, "dtype", float)).kind == "c" for v in found)
