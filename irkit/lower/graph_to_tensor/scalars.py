"""Scalar ops in the bodies of `linalg.generic`s."""

from __future__ import annotations

from typing import cast

import numpy as np
from xdsl.builder import Builder
from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AnyFloat,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    UnrealizedConversionCastOp,
    i32,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from irkit.dialects.extremes import greatest, least
from irkit.dialects.types import is_float, numpy_dtype, signless


class Scalars:
    """Appends scalar ops to the body of a `linalg.generic`."""

    def __init__(self, block: Block) -> None:
        self._builder = Builder(InsertPoint.at_end(block))

    def as_type(self, value: SSAValue, to: Attribute) -> SSAValue:
        """The same bits under another type of integer: unsigned outside of bodies, signless in them."""
        if value.type == to:
            return value
        return self(UnrealizedConversionCastOp.get([value], [to]))

    def __call__(self, op: Operation) -> SSAValue:
        """Append `op`; returns its one result."""
        return self._builder.insert(op).results[0]

    def extended(self, value: SSAValue, unsigned: bool) -> SSAValue:
        """A signless integer of fewer bits as an i32."""
        return self(arith.ExtUIOp(value, i32) if unsigned else arith.ExtSIOp(value, i32))

    def turned(self, value: SSAValue, bits: float) -> SSAValue:
        """The integer `value` with these bits turned round."""
        return self(arith.XOrIOp(value, self.constant(bits, value.type))) if bits else value

    def constant(self, value: float, element: Attribute) -> SSAValue:
        """A scalar constant of type `element`."""
        return self(scalar_constant(value, element))


def scalar_constant(value: float, element: Attribute) -> arith.ConstantOp:
    """`arith.constant value : element`, rounded to the type; what is too large for it is infinite.

    An unsigned integer is a signless one, as in all of `arith`.
    """
    element = signless(element)
    if not is_float(element):
        return arith.ConstantOp(IntegerAttr(int(value), cast(IntegerType, element)))
    with np.errstate(over="ignore"):
        rounded = float(numpy_dtype(element).type(value))
    return arith.ConstantOp(FloatAttr(rounded, cast(AnyFloat, element)))


def lowest(element: Attribute) -> float:
    """The neutral element of max: -inf, or the least integer."""
    return least(numpy_dtype(element))


def highest(element: Attribute) -> float:
    """The neutral element of min: inf, or the greatest integer."""
    return greatest(numpy_dtype(element))
