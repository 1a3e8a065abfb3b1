"""The arith and math ops of bodies as Numba expressions: a table from op class to text."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, Operation

from irkit.dialects.types import numpy_dtype
from irkit.errors import UnsupportedError

_BINARY: dict[type[Operation], str] = {
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
    arith.DivSIOp: "{t}(abs({0}) // abs({1})) if ({0} < 0) == ({1} < 0) else {t}(-(abs({0}) // abs({1})))",
    math_dialect.PowFOp: "{0} ** {1}",
}
_UNARY: dict[type[Operation], str] = {
    arith.NegfOp: "-{0}",
    math_dialect.AbsFOp: "abs({0})",
    math_dialect.AbsIOp: "{t}(abs({0}))",
    # No function of both targets rounds up to a float.
    math_dialect.CeilOp: "-floor(-{0})",
    math_dialect.ErfOp: "math.erf({0})",
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
# eq, ne, slt, sle, sgt, sge; the unsigned ones that follow have no emission.
_CMPI = ("{0} == {1}", "{0} != {1}", "{0} < {1}", "{0} <= {1}", "{0} > {1}", "{0} >= {1}")


def numba_type(element: Attribute) -> str:
    """Name of the Numba type of an element; booleans are bytes in memory."""
    return str(numpy_dtype(element)).replace("bool", "uint8")


def template_of(op: Operation) -> str:
    """One arith or math op as text with places for operands and the result's type."""
    if isinstance(op, arith.CmpfOp | arith.CmpiOp):
        known = _CMPF if isinstance(op, arith.CmpfOp) else _CMPI
        number = op.predicate.value.data
        if number < len(known):
            return known[number]
        raise UnsupportedError(f"emission of '{op.name}' with predicate {number}")
    have, becomes = op.operands[0].type, op.results[0].type
    table = _BOOLEAN if have == i1 else {} if becomes == i1 else _BINARY | _UNARY
    if type(op) not in table:
        raise UnsupportedError(f"emission of '{op.name}' from {have} to {becomes}")
    return table[type(op)]
