"""Python values as properties of ops."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import BoolAttr, FloatAttr, IntegerAttr, StringAttr, f64, i64
from xdsl.ir import Attribute

from irkit.dialects.types import int_array


def attribute(value: Attribute | bool | int | float | str | Sequence[int]) -> Attribute:
    """A Python value as a property: bool, i64, f64, string or array<i64>."""
    match value:
        case Attribute():
            return value
        case bool():
            return BoolAttr.from_bool(value)
        case int():
            return IntegerAttr(value, i64)
        case float():
            return FloatAttr(value, f64)
        case str():
            return StringAttr(value)
        case _:
            return int_array(value)
