"""Powers of float32 without a branch or a call, by logarithm and exponential of base 2 in float64."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownLambdaType=false
# Numba's stubs give an intrinsic the parameters of its typing function, the context included.
# pyright: reportCallIssue=false
from __future__ import annotations

import math
from typing import Any

import numpy as np

from irkit.runtime.intrinsics.cpu_bits import exponent, horner, mantissa, power_of_two
from irkit.runtime.intrinsics.cpu_functions import INFINITY, NAN, ONE, ZERO, inlined

TWO_LOG2_E = 2 / math.log(2)
# To 2^-30 of the logarithm, which a power multiplies by 150 at most.
ATANH = (
    0.1166523360815191815,
    0.1427541040798033165,
    0.2000006091990306336,
    0.3333333327724854578,
    1.0,
)
EXP2 = (
    0.0001546144469856912908,
    0.001340042817761583794,
    0.009618056678524638075,
    0.05550327226670302059,
    0.2402265092228875807,
    0.6931472067028325958,
    1.0,
)
# Beyond these powers of two all of float32 is zero, or infinite.
LOWEST, HIGHEST = -200.0, 200.0


@inlined
def _log2(x: Any) -> Any:
    """Logarithm of base 2 of a positive float32, in float64."""
    wide = np.float64(x)
    s = (mantissa(wide) - 1.0) / (mantissa(wide) + 1.0)
    return exponent(wide) + TWO_LOG2_E * s * horner(s * s, ATANH)


@inlined
def _exp2(t: Any) -> Any:
    """2^t of a float64, as a float32."""
    above = t if t > LOWEST else LOWEST
    c = above if above < HIGHEST else HIGHEST
    n = np.rint(c)
    return np.float32(horner(c - n, EXP2) * power_of_two(n))


@inlined
def pow_float32(x: Any, y: Any) -> Any:
    """x to the power of y, as C's `powf`."""
    a = abs(x)
    # Zero and infinity have logarithms of no use: their powers are among a few values.
    scale = _exp2(np.float64(y) * _log2(a))
    edge = ZERO if (a > ONE) == (y < ZERO) else INFINITY
    size = scale if ZERO < a < INFINITY and abs(y) < INFINITY else edge
    whole = np.floor(y) == y
    odd = whole and np.floor(y * np.float32(0.5)) * np.float32(2) != y
    signed = -size if odd and math.copysign(ONE, x) < ZERO else size
    power = signed if x >= ZERO or whole or a == INFINITY else NAN
    power = power if x == x and y == y else NAN
    power = ONE if a == ONE and abs(y) == INFINITY else power
    return ONE if x == ONE or y == ZERO else power
