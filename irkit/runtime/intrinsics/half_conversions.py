"""LLVM text of conversions between float32 and 16-bit floats, of scalars and of vectors.

A `half` is a float16; an `i16` holds the bits of a bfloat16, which are the upper half of a float32's.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

ir: Any = import_module("llvmlite.ir")

HALF, I16, I32, FLOAT = ir.HalfType(), ir.IntType(16), ir.IntType(32), ir.FloatType()


def _like(value: Any, element: Any) -> Any:
    """The type of `element` for each lane of `value`."""
    if isinstance(value.type, ir.VectorType):
        return ir.VectorType(element, value.type.count)
    return element


def _number(value: Any, number: int) -> Any:
    """An integer constant of the type of `value`."""
    if isinstance(value.type, ir.VectorType):
        return ir.Constant(value.type, [number] * value.type.count)
    return ir.Constant(value.type, number)


def widened(builder: Any, value: Any) -> Any:
    """float32 of a half or of the bits of a bfloat16. Exact."""
    element = value.type.element if isinstance(value.type, ir.VectorType) else value.type
    if isinstance(element, ir.HalfType):
        return builder.fpext(value, _like(value, FLOAT))
    wide = builder.zext(value, _like(value, I32))
    return builder.bitcast(builder.shl(wide, _number(wide, 16)), _like(value, FLOAT))


def narrowed(builder: Any, value: Any, element: Any) -> Any:
    """A float32 rounded to nearest even: a half, or the bits of a bfloat16. NaN becomes a quiet NaN."""
    if isinstance(element, ir.HalfType):
        return builder.fptrunc(value, _like(value, HALF))
    bits = builder.bitcast(value, _like(value, I32))
    upper = builder.lshr(bits, _number(bits, 16))
    odd = builder.and_(upper, _number(bits, 1))
    up = builder.add(bits, builder.add(odd, _number(bits, 0x7FFF)))
    nan = builder.fcmp_unordered("uno", value, value)
    quiet = builder.or_(upper, _number(bits, 0x40))
    chosen = builder.select(nan, quiet, builder.lshr(up, _number(bits, 16)))
    return builder.trunc(chosen, _like(value, I16))
