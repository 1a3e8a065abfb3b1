"""Which functions may stand for the C library's where an op is granted `afn`."""

from __future__ import annotations

from xdsl.dialects import math as math_dialect
from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import f32, f64
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, Operation

APPROXIMATE: dict[tuple[type[Operation], Attribute], str] = {
    **{
        (
            op,
            element,
        ): f"{op.name.removeprefix('math.')}_{'float32' if element == f32 else 'float64'}"
        for element in (f32, f64)
        for op in (
            math_dialect.Atan2Op,
            math_dialect.AtanOp,
            math_dialect.ExpOp,
            math_dialect.Log1pOp,
            math_dialect.LogOp,
            math_dialect.TanhOp,
        )
    },
    **{
        (op, f64): f"{op.name.removeprefix('math.')}_float64"
        for op in (
            math_dialect.AcosOp,
            math_dialect.AsinOp,
            math_dialect.CosOp,
            math_dialect.CoshOp,
            math_dialect.ErfOp,
            math_dialect.Exp2Op,
            math_dialect.ExpM1Op,
            math_dialect.Log10Op,
            math_dialect.Log2Op,
            math_dialect.SinOp,
            math_dialect.SinhOp,
        )
    },
    (math_dialect.CosOp, f32): "cos_float32",
    (math_dialect.ErfOp, f32): "erf_float32",
    (math_dialect.PowFOp, f32): "pow_float32",
    (math_dialect.SinOp, f32): "sin_float32",
}
"""What stands for an op that may be approximated; each target's header has functions of these names."""


def may_be_approximate(op: Operation) -> bool:
    """Whether the op is granted `afn`."""
    flags = op.properties.get("fastmath")
    return isinstance(flags, FastMathFlagsAttr) and FastMathFlag.APPROX_FUNC in flags.data


def is_approximate(op: Operation) -> bool:
    """Whether an op on scalars is computed by another function than the C library's."""
    return may_be_approximate(op) and (type(op), op.results[0].type) in APPROXIMATE
