"""Values of tensor expressions as scalar ops in the body of a `linalg.generic`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, Operation, SSAValue

from irkit.dialects.types import element_type, is_float, is_unsigned
from irkit.expressions.typing import Typed
from irkit.lower.graph_to_tensor.elementwise import convert, sigmoid
from irkit.lower.graph_to_tensor.guarded import quotient, remainder
from irkit.lower.graph_to_tensor.scalars import Scalars

Values = Sequence[SSAValue]
Unary = Callable[[SSAValue], Operation]
Binary = Callable[[SSAValue, SSAValue], Operation]

_OF_FLOATS: dict[str, Unary] = {
    "acos": math.AcosOp,
    "acosh": math.AcoshOp,
    "asin": math.AsinOp,
    "asinh": math.AsinhOp,
    "atan": math.AtanOp,
    "atanh": math.AtanhOp,
    "cbrt": math.CbrtOp,
    "ceil": math.CeilOp,
    "cos": math.CosOp,
    "cosh": math.CoshOp,
    "erf": math.ErfOp,
    "exp": math.ExpOp,
    "exp2": math.Exp2Op,
    "expm1": math.ExpM1Op,
    "floor": math.FloorOp,
    "log": math.LogOp,
    "log10": math.Log10Op,
    "log1p": math.Log1pOp,
    "log2": math.Log2Op,
    "neg": arith.NegfOp,
    "round": math.RoundEvenOp,
    "sin": math.SinOp,
    "sinh": math.SinhOp,
    "sqrt": math.SqrtOp,
    "tan": math.TanOp,
    "tanh": math.TanhOp,
    "abs": math.AbsFOp,
}
_PAIRS_OF_FLOATS: dict[str, Binary] = {
    "+": arith.AddfOp,
    "-": arith.SubfOp,
    "*": arith.MulfOp,
    "/": arith.DivfOp,
    "max": arith.MaximumfOp,
    "min": arith.MinimumfOp,
    "pow": math.PowFOp,
    "atan2": math.Atan2Op,
    "copysign": math.CopySignOp,
}
_PAIRS: dict[str, Binary] = {
    "+": arith.AddiOp,
    "-": arith.SubiOp,
    "*": arith.MuliOp,
    "max": arith.MaxSIOp,
    "min": arith.MinSIOp,
}
_UNSIGNED: dict[str, Binary] = {**_PAIRS, "max": arith.MaxUIOp, "min": arith.MinUIOp}
_FLOAT_SIGNS = {"<": "olt", "<=": "ole", ">": "ogt", ">=": "oge", "==": "oeq", "!=": "une"}
_SIGNS = {"<": "slt", "<=": "sle", ">": "sgt", ">=": "sge", "==": "eq", "!=": "ne"}


def combined(operator: str, element: Attribute) -> Binary:
    """The op of an operator of two numbers."""
    if is_float(element):
        return _PAIRS_OF_FLOATS[operator]
    return (_UNSIGNED if is_unsigned(element) else _PAIRS)[operator]


def applied(s: Scalars, part: Typed, values: Values) -> SSAValue:
    """What is applied in `part`, to values of its arguments; whole numbers are signless."""
    kind = part.kind
    own = element_type(part.arguments[0].dtype)
    if kind == "cast":
        return convert(s, values[0], element_type(part.dtype), own)
    if kind == "select":
        return s(arith.SelectOp(values[0], values[1], values[2]))
    if kind in ("&&", "||"):
        return s((arith.AndIOp if kind == "&&" else arith.OrIOp)(values[0], values[1]))
    if kind == "!":
        return s(arith.XOrIOp(values[0], s.constant(1, i1)))
    if kind in _SIGNS:
        return _compared(s, kind, values, own)
    return _number(s, kind, values, own)


def _compared(s: Scalars, sign: str, values: Values, element: Attribute) -> SSAValue:
    if is_float(element):
        return s(arith.CmpfOp(values[0], values[1], _FLOAT_SIGNS[sign]))
    predicate = _SIGNS[sign]
    # A signed i1 would be 0 or -1.
    if is_unsigned(element) or element == i1:
        predicate = predicate.replace("s", "u")
    return s(arith.CmpiOp(values[0], values[1], predicate))


def _number(s: Scalars, kind: str, values: Values, element: Attribute) -> SSAValue:
    if kind == "relu":
        return s(combined("max", element)(values[0], s.constant(0, element)))
    if kind == "sign":
        return _sign(s, values[0], element)
    if is_float(element):
        if kind == "sigmoid":
            return sigmoid(s, values[0])
        if kind in _OF_FLOATS:
            return s(_OF_FLOATS[kind](values[0]))
    if kind in ("/", "%") and not is_float(element):
        return _divided(s, kind, values, is_unsigned(element))
    if kind == "neg":
        return s(arith.SubiOp(s.constant(0, element), values[0]))
    if kind == "abs":
        return values[0] if is_unsigned(element) else s(math.AbsIOp(values[0]))
    return s(combined(kind, element)(values[0], values[1]))


def _sign(s: Scalars, x: SSAValue, element: Attribute) -> SSAValue:
    zero, one = s.constant(0, element), s.constant(1, element)
    above = _compared(s, ">", [x, zero], element)
    if is_unsigned(element):
        return s(arith.SelectOp(above, one, zero))
    below = _compared(s, "<", [x, zero], element)
    negative = s(arith.SelectOp(below, s.constant(-1, element), x))
    return s(arith.SelectOp(above, one, negative))


def _divided(s: Scalars, kind: str, values: Values, unsigned: bool) -> SSAValue:
    """Whole numbers, rounded down; 0 where the divisor is."""
    x, y = values
    if unsigned:
        return (quotient if kind == "/" else remainder)(s, x, y, True)
    zero, one = s.constant(0, x.type), s.constant(1, x.type)
    rest = remainder(s, x, y, False)
    below = s(arith.XOrIOp(_below(s, rest, zero), _below(s, y, zero)))
    moved = s(arith.AndIOp(s(arith.CmpiOp(rest, zero, "ne")), below))
    if kind == "%":
        return s(arith.SelectOp(moved, s(arith.AddiOp(rest, y)), rest))
    towards_zero = quotient(s, x, y, False)
    return s(arith.SelectOp(moved, s(arith.SubiOp(towards_zero, one)), towards_zero))


def _below(s: Scalars, x: SSAValue, y: SSAValue) -> SSAValue:
    return s(arith.CmpiOp(x, y, "slt"))
