"""Prints the polynomials of `irkit/runtime/intrinsics/cpu_functions.py`: near-minimax Chebyshev fits.

Needs mpmath, whose `chebyfit` does the work. Of each polynomial it prints the coefficients, the highest
power's first, and the error of the fit before they are rounded.

    python tools/minimax.py
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import mpmath as mp

mp.mp.dps = 60

HALF_LN2 = mp.log(2) / 2
ROOT2 = mp.sqrt(2)
ZERO = mp.mpf(0)
# The square of (m - 1) / (m + 1) for m = sqrt(2).
LOG_END = ((ROOT2 - 1) / (ROOT2 + 1)) ** 2


@dataclass(frozen=True)
class Fit:
    """A polynomial with `count` coefficients that stands for `function` on [low, high].

    `series`: the function's value where its formula has none, or loses digits: near zero.
    """

    name: str
    function: Callable[[mp.mpf], mp.mpf]
    low: mp.mpf
    high: mp.mpf
    count: int


def _near_zero(
    formula: Callable[[mp.mpf], mp.mpf], step: float = 1e-25
) -> Callable[[mp.mpf], mp.mpf]:
    """`formula`, taken a little beside zero where it is 0/0."""

    def safe(x: mp.mpf) -> mp.mpf:
        with mp.workdps(160):
            return formula(x if abs(x) > step else mp.mpf(step))

    return safe


_exp = _near_zero(lambda r: (mp.exp(r) - 1 - r) / r**2)
_log = _near_zero(lambda f: (mp.log(1 + f) - f + f**2 / 2) / f**3)
_atanh = _near_zero(lambda z: (mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z)
_atan = _near_zero(lambda z: (mp.atan(mp.sqrt(z)) / mp.sqrt(z) - 1) / z)
_sin = _near_zero(lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z)
_cos = _near_zero(lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2)
_tanh = _near_zero(lambda z: (mp.tanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z)

_asin = _near_zero(lambda z: (mp.asin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z)
_erf = _near_zero(lambda z: (mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 2 / mp.sqrt(mp.pi)) / z)


def _erfcx(t: mp.mpf) -> mp.mpf:
    """exp(x^2) (1 - erf(x)) of t = (x - 2) / (x + 2)."""
    x = 2 * (1 + t) / (1 - t)
    return mp.erfc(x) * mp.exp(x * x)


FITS = (
    Fit("exp, float32: (exp(r) - 1 - r) / r^2", _exp, -HALF_LN2, HALF_LN2, 5),
    Fit("exp, float64", _exp, -HALF_LN2, HALF_LN2, 10),
    Fit("log, float32: (log(1 + f) - f + f^2/2) / f^3", _log, 1 / ROOT2 - 1, ROOT2 - 1, 9),
    Fit(
        "atanh, float64: (atanh(s)/s - 1) / s^2 of s^2",
        _atanh,
        ZERO,
        LOG_END,
        7,
    ),
    Fit("atanh, short", _atanh, ZERO, LOG_END, 4),
    Fit("atan, float32: (atan(t)/t - 1) / t^2 of t^2", _atan, ZERO, mp.mpf(1), 10),
    Fit("sin, float32: (sin(r)/r - 1) / r^2 of r^2", _sin, ZERO, (mp.pi / 4) ** 2, 3),
    Fit("cos, float32: (cos(r) - 1 + r^2/2) / r^4 of r^2", _cos, ZERO, (mp.pi / 4) ** 2, 3),
    Fit("tanh below 0.6, float64", _tanh, ZERO, mp.mpf("0.36"), 11),
    Fit("atan, float64", _atan, ZERO, mp.tan(mp.pi / 8) ** 2, 12),
    Fit("sin, float64", _sin, ZERO, (mp.pi / 4) ** 2, 6),
    Fit("cos, float64", _cos, ZERO, (mp.pi / 4) ** 2, 6),
    Fit("asin, float64: (asin(s)/s - 1) / s^2 of s^2", _asin, ZERO, mp.mpf("0.25"), 13),
    Fit("erf below 1, float64: (erf(x)/x - 2/sqrt(pi)) / x^2 of x^2", _erf, ZERO, mp.mpf(1), 11),
    Fit("erf of 1 to 6, float64", _erfcx, mp.mpf(-1) / 3, mp.mpf("0.5"), 16),
    Fit("exp2, float64 to 2^-32: exp2(f)", lambda f: mp.power(2, f), mp.mpf(-0.5), mp.mpf(0.5), 7),
)


def main() -> None:
    """Print every fit."""
    for fit in FITS:
        coefficients, error = mp.chebyfit(fit.function, [fit.low, fit.high], fit.count, error=True)
        print(f"{fit.name}: error {mp.nstr(error, 3)}")
        for c in coefficients:
            print(f"    {mp.nstr(c, 19)},")


if __name__ == "__main__":
    main()
