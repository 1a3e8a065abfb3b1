"""The arith and math ops of bodies as Numba expressions: a table from op class to text."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import (
    FloatAttr,
    IndexType,
    UnrealizedConversionCastOp,
    bf16,
    f16,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation

from irkit.dialects.float_remainder import RemFOp
from irkit.dialects.types import is_integer, numpy_dtype, ui8, ui16, ui32, ui64
from irkit.errors import UnsupportedError
from irkit.rkernels.approximations import APPROXIMATE, is_approximate
from irkit.rkernels.binding.reciprocals import reciprocal_of

COMBINE = {
    "add": "acc + term",
    "mul": "acc * term",
    "max": "acc if (acc > term or acc != acc) else term",
    "min": "acc if (acc < term or acc != acc) else term",
}
"""How a term is combined with what there is."""
_OPERATORS: dict[type[Operation], str] = {
    arith.AddfOp: "{0} + {1}",
    arith.SubfOp: "{0} - {1}",
    arith.MulfOp: "{0} * {1}",
    arith.DivfOp: "{0} / {1}",
    arith.AddiOp: "{t}({0} + {1})",
    arith.SubiOp: "{t}({0} - {1})",
    arith.MuliOp: "{t}({0} * {1})",
    arith.MaximumfOp: "{0} if ({0} > {1} or {0} != {0}) else {1}",
    arith.MinimumfOp: "{0} if ({0} < {1} or {0} != {0}) else {1}",
    arith.MaxSIOp: "max({0}, {1})",
    arith.MinSIOp: "min({0}, {1})",
    arith.AndIOp: "{t}({0} & {1})",
    arith.OrIOp: "{t}({0} | {1})",
    arith.XOrIOp: "{t}({0} ^ {1})",
    # Python's quotient rounds down, arith's toward zero.
    arith.DivSIOp: "{t}({0} // {1}) if ({0} % {1} == 0 or ({0} < 0) == ({1} < 0)) else {t}({0} // {1} + 1)",
    # Python's remainder has the divisor's sign, arith's the dividend's.
    arith.RemSIOp: "{t}({0} % {1}) if ({0} % {1} == 0 or ({0} < 0) == ({1} < 0)) else {t}({0} % {1} - {1})",
    arith.DivUIOp: "{t}({u}({0}) // {u}({1}))",
    arith.RemUIOp: "{t}({u}({0}) % {u}({1}))",
    arith.MaxUIOp: "{0} if {u}({0}) > {u}({1}) else {1}",
    arith.MinUIOp: "{0} if {u}({0}) < {u}({1}) else {1}",
    arith.ShLIOp: "{t}({u}({0}) << {u}({1}))",
    arith.ShRSIOp: "{t}({0} >> {1})",
    arith.ShRUIOp: "{t}({u}({0}) >> {u}({1}))",
    math_dialect.IPowIOp: "{t}(ipow({0}, {1}))",
    math_dialect.PowFOp: "{0} ** {1}",
    math_dialect.Atan2Op: "math.atan2({0}, {1})",
    math_dialect.CopySignOp: "math.copysign({0}, {1})",
    RemFOp: "fmod({0}, {1})",
    math_dialect.FmaOp: "fma({0}, {1}, {2})",
}
_UNARY: dict[type[Operation], str] = {
    arith.NegfOp: "-{0}",
    math_dialect.AbsFOp: "abs({0})",
    math_dialect.AbsIOp: "{t}(abs({0}))",
    # No function of both targets rounds up to a float.
    math_dialect.CeilOp: "-floor(-{0})",
    math_dialect.RoundEvenOp: "rint({0})",
    math_dialect.ErfOp: "math.erf({0})",
    **{
        op: f"math.{op.name.removeprefix('math.')}({{0}})"
        for op in (
            math_dialect.AcosOp,
            math_dialect.AcoshOp,
            math_dialect.AsinOp,
            math_dialect.AsinhOp,
            math_dialect.AtanOp,
            math_dialect.AtanhOp,
            math_dialect.CosOp,
            math_dialect.CoshOp,
            math_dialect.Log10Op,
            math_dialect.Log1pOp,
            math_dialect.SinOp,
            math_dialect.SinhOp,
            math_dialect.TanOp,
        )
    },
    math_dialect.CbrtOp: "cbrt({0})",
    math_dialect.Log2Op: "log2({0})",
    math_dialect.Exp2Op: "exp2({0})",
    math_dialect.ExpM1Op: "math.expm1({0})",
    math_dialect.ExpOp: "math.exp({0})",
    math_dialect.FloorOp: "floor({0})",
    math_dialect.LogOp: "math.log({0})",
    math_dialect.SqrtOp: "math.sqrt({0})",
    math_dialect.TanhOp: "math.tanh({0})",
    arith.ExtFOp: "{t}({0})",
    arith.TruncFOp: "{t}({0})",
    arith.SIToFPOp: "{t}({0})",
    arith.FPToSIOp: "{t}({0})",
    arith.ExtSIOp: "{t}({0})",
    arith.TruncIOp: "{t}({0})",
    arith.IndexCastOp: "{t}({0})",
    arith.ExtUIOp: "{t}({u}({0}))",
    arith.UIToFPOp: "{t}({u}({0}))",
    arith.FPToUIOp: "{t}({v}({0}))",
    UnrealizedConversionCastOp: "{t}({0})",
}
# A boolean is a Python bool in a body and a byte in memory.
_BOOLEAN: dict[type[Operation], str] = {
    arith.AndIOp: "{0} and {1}",
    arith.OrIOp: "{0} or {1}",
    arith.XOrIOp: "{0} != {1}",
    arith.ExtUIOp: "{t}(1) if {0} else {t}(0)",
    arith.UIToFPOp: "{t}(1) if {0} else {t}(0)",
    arith.SelectOp: "{1} if {0} else {2}",
}
# By number: false, oeq, ogt, oge, olt, ole, one, ord, ueq, ugt, uge, ult, ule, une, uno, true.
_CMPF = (
    "False",
    "{0} == {1}",
    "{0} > {1}",
    "{0} >= {1}",
    "{0} < {1}",
    "{0} <= {1}",
    "({0} < {1}) or ({0} > {1})",
    "({0} == {0}) and ({1} == {1})",
    "not (({0} < {1}) or ({0} > {1}))",
    "not ({0} <= {1})",
    "not ({0} < {1})",
    "not ({0} >= {1})",
    "not ({0} > {1})",
    "{0} != {1}",
    "({0} != {0}) or ({1} != {1})",
    "True",
)
# eq, ne, slt, sle, sgt, sge, and the unsigned ones.
_CMPI = (
    *("{0} == {1}", "{0} != {1}", "{0} < {1}", "{0} <= {1}", "{0} > {1}", "{0} >= {1}"),
    *(f"{{u}}({{0}}) {sign} {{u}}({{1}})" for sign in ("<", "<=", ">", ">=")),
)


_NAMES: dict[Attribute, str] = {
    element: str(numpy_dtype(element)).replace("bool", "uint8")
    for element in (i1, i8, i16, i32, i64, ui8, ui16, ui32, ui64, f32, f64, IndexType())
}


HALVES: dict[Attribute, str] = {f16: "float16", bf16: "bfloat16"}
"""Floats of 16 bits in memory, which are float32 everywhere else: names of their pointers."""


def memory_type(element: Attribute) -> str:
    """Name of what a pointer to elements points to. Raises UnsupportedError as `numba_type`."""
    return HALVES.get(element) or numba_type(element)


def numba_type(element: Attribute) -> str:
    """Name of the Numba type of an element; booleans are bytes in memory, 16-bit floats are float32.

    Raises UnsupportedError for a type that emitted modules have no name for, as f128.
    """
    if element in HALVES:
        return "float32"
    if element not in _NAMES:
        raise UnsupportedError(f"elements of type {element}")
    return _NAMES[element]


# What gives a 16-bit float of such ones without rounding.
_EXACT = (
    arith.MaximumfOp,
    arith.MinimumfOp,
    arith.NegfOp,
    arith.SelectOp,
    math_dialect.AbsFOp,
    math_dialect.CeilOp,
    math_dialect.CopySignOp,
    math_dialect.FloorOp,
    math_dialect.RoundEvenOp,
)


def scalar_text(op: Operation, operands: Sequence[str]) -> str:
    """One arith or math op on named operands as an expression. Raises UnsupportedError."""
    template = quotient_of(op) or template_of(op)
    have, becomes = op.operands[0].type, op.results[0].type
    text = template.format(
        *operands, t=numba_type(becomes), u=_unsigned_name(have), v=_unsigned_name(becomes)
    )
    if becomes in HALVES and not isinstance(op, _EXACT):
        return f"round_{HALVES[becomes]}({text})"
    return text


def quotient_of(op: Operation) -> str | None:
    """A division by a constant as a call of `quotient`, with places for operands and their type; None where
    it is none, or is best left as it is."""
    if not isinstance(op, arith.DivfOp) or not isinstance(op.rhs.owner, arith.ConstantOp):
        return None
    value = op.rhs.owner.value
    assert isinstance(value, FloatAttr)
    known = reciprocal_of(value.value.data, op.rhs.type)
    if known is None:
        return None
    numbers = ", ".join(f"{{t}}({n!r})" for n in (known.high, known.low, known.least))
    return f"quotient({{0}}, {{1}}, {numbers})"


# To a 16-bit float they would round twice.
_CONVERSIONS = (arith.ExtFOp, arith.TruncFOp, arith.SIToFPOp, arith.UIToFPOp)


def _unsigned_name(element: Attribute) -> str:
    """Name of the unsigned type of an integer's width."""
    return f"uint{8 * numpy_dtype(element).itemsize}" if is_integer(element) else ""


def template_of(op: Operation) -> str:
    """One arith or math op as text with places for operands, the result's type (t), and the unsigned
    types of the first operand's (u) and the result's (v) width. Raises UnsupportedError."""
    if not op.operands or len(op.results) != 1:
        raise UnsupportedError(f"emission of '{op.name}' on scalars")
    for value in (*op.operands, *op.results):
        numba_type(value.type)
    if isinstance(op, arith.CmpfOp | arith.CmpiOp):
        known = _CMPF if isinstance(op, arith.CmpfOp) else _CMPI
        number = op.predicate.value.data
        if number < len(known):
            return known[number]
        raise UnsupportedError(f"emission of '{op.name}' with predicate {number}")
    have, becomes = op.operands[0].type, op.results[0].type
    if becomes in HALVES and have != f32 and isinstance(op, _CONVERSIONS):
        raise UnsupportedError(
            f"emission of '{op.name}' from {have} to {becomes}: by way of f32 only"
        )
    if is_approximate(op):
        places = ", ".join(f"{{{number}}}" for number in range(len(op.operands)))
        return f"{APPROXIMATE[type(op), becomes]}({places})"
    table = _BOOLEAN if have == i1 else {} if becomes == i1 else _OPERATORS | _UNARY
    if type(op) not in table:
        raise UnsupportedError(f"emission of '{op.name}' from {have} to {becomes}")
    return table[type(op)]
