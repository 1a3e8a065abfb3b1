"""The NumPy meaning of the arith and math ops in bodies: a table from op class to a function.

Each works on whole arrays of operands. Results have the op's result type.
"""

from __future__ import annotations

import math as libm
from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, UnrealizedConversionCastOp
from xdsl.ir import Operation

from irkit.dialects.float_remainder import RemFOp
from irkit.dialects.fused import multiply_add
from irkit.dialects.graph.semantics.elementwise import divide, maximum, minimum, power
from irkit.dialects.types import numpy_dtype
from irkit.errors import UnsupportedError
from irkit.weights import Array

Function = Callable[..., Any]


def _erf(x: Array) -> Array:
    flat = [libm.erf(v) for v in np.ravel(x).tolist()]
    return np.array(flat, dtype=np.float64).reshape(np.shape(x))


def _identity(x: Array) -> Array:
    return x


def _to_unsigned(x: Array) -> Array:
    # What follows takes the low bits.
    return x.astype(np.uint64)


def _unsigned_of(function: Function) -> Function:
    """`function` on integers read as unsigned ones."""

    def unsigned(*operands: Array) -> Array:
        return function(*(x.astype(np.dtype(f"u{x.dtype.itemsize}")) for x in operands))

    return unsigned


def _wrapping(function: Function) -> Function:
    """Sums and differences, of i1 too: modulo 2, which NumPy's booleans are not."""

    def wrapping(lhs: Array, rhs: Array) -> Array:
        return lhs ^ rhs if lhs.dtype.kind == "b" else function(lhs, rhs)

    return wrapping


def _widened(x: Array) -> Array:
    return x if x.dtype.kind == "b" else x.astype(np.dtype(f"u{x.dtype.itemsize}"))


_FUNCTIONS: dict[type[Operation], Function] = {
    arith.AddfOp: np.add,
    arith.AddiOp: _wrapping(np.add),
    arith.AndIOp: np.bitwise_and,
    arith.DivSIOp: divide,
    arith.DivUIOp: _unsigned_of(np.floor_divide),
    arith.FPToUIOp: _to_unsigned,
    arith.MaxUIOp: _unsigned_of(np.maximum),
    arith.MinUIOp: _unsigned_of(np.minimum),
    RemFOp: np.fmod,
    arith.RemSIOp: np.fmod,
    arith.RemUIOp: _unsigned_of(np.remainder),
    arith.ShLIOp: _unsigned_of(np.left_shift),
    arith.ShRSIOp: np.right_shift,
    arith.ShRUIOp: _unsigned_of(np.right_shift),
    arith.DivfOp: np.divide,
    arith.ExtFOp: _identity,
    arith.ExtSIOp: _identity,
    arith.ExtUIOp: _widened,
    arith.FPToSIOp: _identity,
    arith.IndexCastOp: _identity,
    arith.MaxSIOp: np.maximum,
    arith.MaximumfOp: maximum,
    arith.MinSIOp: np.minimum,
    arith.MinimumfOp: minimum,
    arith.MulfOp: np.multiply,
    arith.MuliOp: np.multiply,
    arith.NegfOp: np.negative,
    arith.OrIOp: np.bitwise_or,
    arith.SIToFPOp: _identity,
    arith.SelectOp: np.where,
    arith.SubfOp: np.subtract,
    arith.SubiOp: _wrapping(np.subtract),
    arith.TruncFOp: _identity,
    arith.TruncIOp: _identity,
    arith.UIToFPOp: _widened,
    arith.XOrIOp: np.bitwise_xor,
    UnrealizedConversionCastOp: _identity,
    math.AbsFOp: np.abs,
    math.AbsIOp: np.abs,
    math.AcosOp: np.arccos,
    math.AcoshOp: np.arccosh,
    math.AsinOp: np.arcsin,
    math.AsinhOp: np.arcsinh,
    math.Atan2Op: np.arctan2,
    math.AtanOp: np.arctan,
    math.AtanhOp: np.arctanh,
    math.CbrtOp: np.cbrt,
    math.CeilOp: np.ceil,
    math.CopySignOp: np.copysign,
    math.CosOp: np.cos,
    math.CoshOp: np.cosh,
    math.IPowIOp: np.power,
    math.RoundEvenOp: np.rint,
    math.SinOp: np.sin,
    math.SinhOp: np.sinh,
    math.TanOp: np.tan,
    math.ErfOp: _erf,
    math.Exp2Op: np.exp2,
    math.ExpM1Op: np.expm1,
    math.ExpOp: np.exp,
    math.FloorOp: np.floor,
    math.FmaOp: multiply_add,
    math.Log10Op: np.log10,
    math.Log1pOp: np.log1p,
    math.Log2Op: np.log2,
    math.LogOp: np.log,
    math.PowFOp: power,
    math.SqrtOp: np.sqrt,
    math.TanhOp: np.tanh,
}


def _never(x: Array, y: Array) -> Array:
    return np.zeros(np.broadcast_shapes(x.shape, y.shape), np.bool_)


def _unordered(x: Array, y: Array) -> Array:
    return np.isnan(x) | np.isnan(y)


def _not(function: Function) -> Function:
    def negation(x: Array, y: Array) -> Array:
        return ~function(x, y)

    return negation


def _ordered_unequal(x: Array, y: Array) -> Array:
    return (x < y) | (x > y)


# By number: false, oeq, ogt, oge, olt, ole, one, ord, ueq, ugt, uge, ult, ule, une, uno, true.
_FLOAT_PREDICATES: tuple[Function, ...] = (
    _never,
    np.equal,
    np.greater,
    np.greater_equal,
    np.less,
    np.less_equal,
    _ordered_unequal,
    _not(_unordered),
    _not(_ordered_unequal),
    _not(np.less_equal),
    _not(np.less),
    _not(np.greater_equal),
    _not(np.greater),
    np.not_equal,
    _unordered,
    _not(_never),
)


def _unsigned(function: Function) -> Function:
    def compare(x: Array, y: Array) -> Array:
        if x.dtype.kind == "b":
            return function(x, y)
        kind = np.dtype(f"u{x.dtype.itemsize}")
        return function(x.astype(kind), y.astype(kind))

    return compare


# By number: eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge.
_INTEGER_PREDICATES: tuple[Function, ...] = (
    np.equal,
    np.not_equal,
    np.less,
    np.less_equal,
    np.greater,
    np.greater_equal,
    _unsigned(np.less),
    _unsigned(np.less_equal),
    _unsigned(np.greater),
    _unsigned(np.greater_equal),
)


def scalar_constant(op: arith.ConstantOp) -> Array:
    """The value of a constant that is no tensor, as an array without dimensions."""
    value = op.value
    if not isinstance(value, FloatAttr | IntegerAttr):
        raise UnsupportedError(f"the tensor interpreter does not know the constant {value}")
    return np.array(value.value.data).astype(numpy_dtype(op.result.type))


def evaluate_scalar(op: Operation, operands: list[Array]) -> Array:
    """The result of one arith or math op on arrays that broadcast together.

    Raises UnsupportedError for an op that is not in the table.
    """
    if isinstance(op, arith.ConstantOp):
        return scalar_constant(op)
    if isinstance(op, arith.CmpfOp):
        function: Function | None = _FLOAT_PREDICATES[op.predicate.value.data]
    elif isinstance(op, arith.CmpiOp):
        function = _INTEGER_PREDICATES[op.predicate.value.data]
    else:
        function = _FUNCTIONS.get(type(op))
    if function is None:
        raise UnsupportedError(f"the tensor interpreter does not know '{op.name}'")
    with np.errstate(all="ignore"):
        return np.asarray(function(*operands)).astype(numpy_dtype(op.results[0].type), copy=False)
