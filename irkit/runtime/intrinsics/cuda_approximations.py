"""The functions that stand for those of bodies where the IR grants `afn`, on a GPU: libdevice's own.

They have no branches worth avoiding, and errors of one or two units of the last place. Only tanh's is: where
a few threads take several one after another, as in a step of a recurrence, it is most of the time.
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

from irkit.runtime.intrinsics.cuda_libdevice import exp2, log2

ir: Any = import_module("llvmlite.ir")
types: Any = import_module("numba.cuda").types
intrinsic: Any = import_module("numba.cuda.extending").intrinsic

_F32 = ir.FloatType()
TANH = (-0.33333316445350647, 0.13332585990428925, -0.05385230854153633, 0.021071678027510643,
        -0.006274239160120487)  # fmt: skip
"""tanh(x) = x + x (c0 x² + c1 x⁴ + ...): below 0.55 within 0.02 units of the last place."""


def _approximate(builder: Any, instruction: str, x: Any) -> Any:
    code = ir.InlineAsm(ir.FunctionType(_F32, [_F32]), f"{instruction} $0, $1;", "=f,f")
    return builder.call(code, [x])


@intrinsic
def tanh_float32(typing_context: Any, x: Any) -> Any:
    """tanh of a float32, within 2.3 units of the last place, with no branch."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def number(value: float) -> Any:
            return ir.Constant(_F32, value)

        (x,) = args
        word = ir.IntType(32)
        bits = builder.bitcast(x, word)
        size = builder.bitcast(builder.and_(bits, ir.Constant(word, (1 << 31) - 1)), _F32)
        # 1 - 2 / (exp(2x) + 1): overflow gives 1.
        power = _approximate(
            builder, "ex2.approx.ftz.f32", builder.fmul(size, number(2 / math.log(2)))
        )
        share = _approximate(builder, "rcp.approx.ftz.f32", builder.fadd(power, number(1.0)))
        large = builder.fma(share, number(-2.0), number(1.0))
        square = builder.fmul(x, x)
        series = number(TANH[-1])
        for coefficient in TANH[-2::-1]:
            series = builder.fma(series, square, number(coefficient))
        small = builder.fma(builder.fmul(series, square), size, size)
        near = builder.fcmp_ordered("<", size, number(0.55))
        found = builder.select(near, small, large)
        sign = builder.and_(bits, ir.Constant(word, -(1 << 31)))
        return builder.bitcast(builder.or_(builder.bitcast(found, word), sign), _F32)

    return types.float32(types.float32), generate


acos_float64 = math.acos
asin_float64 = math.asin
atan_float32 = atan_float64 = math.atan
atan2_float32 = atan2_float64 = math.atan2
cos_float32 = cos_float64 = math.cos
cosh_float64 = math.cosh
erf_float32 = erf_float64 = math.erf
exp_float32 = exp_float64 = math.exp
exp2_float64 = exp2
expm1_float64 = math.expm1
log_float32 = log_float64 = math.log
log10_float64 = math.log10
log1p_float32 = log1p_float64 = math.log1p
log2_float64 = log2
pow_float32 = math.pow
sin_float32 = sin_float64 = math.sin
sinh_float64 = math.sinh
tanh_float64 = math.tanh
