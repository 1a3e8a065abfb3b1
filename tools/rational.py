"""Prints the rational functions of `irkit/runtime/intrinsics/cpu_functions.py`: near-minimax, well rounded.

An odd function is x * over(x^2) / under(x^2), both polynomials positive. Each fit is a sequence of weighted
linear least squares (H. L. Loeb; weights after C. L. Lawson, as in L. N. Trefethen, Approximation Theory and
Approximation Practice, chapter 24). Then, for some seconds each, the last places of coefficients are changed
at random while the largest error of the float32 function falls. Needs mpmath.

    python tools/rational.py [SECONDS]
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np

mp.mp.dps = 60
_POINTS, _ROUNDS = 160, 40
Coefficients = list[np.float32]


@dataclass(frozen=True)
class Fit:
    """`function` on [-limit, limit] with so many powers of x^2 above and below. `slope`: at zero."""

    name: str
    function: Callable[[Any], Any]
    wide: Callable[[Any], Any]
    slope: Any
    limit: float
    over: int
    under: int


_ERF = np.frompyfunc(math.erf, 1, 1)
FITS = (
    Fit("tanh", mp.tanh, np.tanh, mp.mpf(1), 9.02, 4, 4),
    Fit("erf", mp.erf, lambda x: _ERF(x).astype(float), 2 / mp.sqrt(mp.pi), 3.925, 5, 5),
)


def fitted(fit: Fit) -> tuple[list[Any], list[Any]]:
    """The two polynomials, lowest powers first."""
    angles = [(2 * n + 1) * mp.pi / (4 * _POINTS) for n in range(_POINTS)]
    places = [fit.limit * mp.cos(a) for a in angles]
    squares = [(x / fit.limit) ** 2 for x in places]
    wanted = [fit.function(x) / x for x in places]
    weights, below = [mp.mpf(1)] * _POINTS, [mp.mpf(1)] * _POINTS
    best: tuple[Any, list[Any], list[Any]] | None = None
    for _ in range(_ROUNDS):
        rows, right = mp.matrix(_POINTS, fit.over + fit.under), mp.matrix(_POINTS, 1)
        for n, (z, g) in enumerate(zip(squares, wanted, strict=True)):
            weight = mp.sqrt(weights[n]) / (g * below[n])
            terms = [z**k for k in range(1, fit.over + 1)]
            terms += [-g * z**k for k in range(1, fit.under + 1)]
            for m, term in enumerate(terms):
                rows[n, m] = term * weight
            right[n] = (g - fit.slope) * weight
        found = list(mp.lu_solve(rows.T * rows, rows.T * right))
        over, under = [fit.slope, *found[: fit.over]], [mp.mpf(1), *found[fit.over :]]
        below = [mp.polyval(under[::-1], z) for z in squares]
        errors = [
            abs(mp.polyval(over[::-1], z) / (b * g) - 1)
            for z, g, b in zip(squares, wanted, below, strict=True)
        ]
        worst = max(errors)
        if best is None or worst < best[0]:
            best = worst, over, under
        weights = [w * (e / worst + mp.mpf("1e-3")) for w, e in zip(weights, errors, strict=True)]
    assert best is not None
    scale = mp.mpf(fit.limit) ** 2
    print(f"{fit.name}: error {mp.nstr(best[0], 3)}")
    over, under = ([c / scale**k for k, c in enumerate(p)] for p in best[1:])
    return over, under


def _horner(coefficients: Coefficients, z: Any) -> Any:
    """As fused multiply-adds compute it."""
    total = np.full_like(z, coefficients[-1])
    for c in coefficients[-2::-1]:
        total = (total.astype(np.float64) * z + np.float64(c)).astype(np.float32)
    return total


def _error(fit: Fit, over: Coefficients, under: Coefficients, x: Any, exact: Any) -> float:
    """The largest, in units of the last place."""
    c = np.minimum(x, np.float32(fit.limit))
    z = c * c
    got = np.minimum(c * _horner(over, z) / _horner(under, z), np.float32(1))
    unit = np.exp2(np.floor(np.log2(exact)) - 23)
    return float((np.abs(got.astype(np.float64) - exact) / unit).max())


def polished(fit: Fit, over: list[Any], under: list[Any], seconds: float) -> None:
    """Round both, scaled alike, and print the best that is found in so many seconds."""
    rng = np.random.default_rng(5)
    x = np.linspace(1e-3, fit.limit * 1.02, 90_001).astype(np.float32)
    exact = fit.wide(x.astype(np.float64))
    best: tuple[float, Coefficients, Coefficients] | None = None
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if best is None or rng.random() < 0.15:
            scale = 1.0 if fit.slope == 1 else rng.uniform(1, 2)
            tried = [[np.float32(float(c * scale)) for c in p] for p in (over, under)]
            # Near zero there is nothing else.
            if abs(float(tried[0][0]) / float(tried[1][0]) / float(fit.slope) - 1) > 1e-8:
                continue
        else:
            tried = [[_beside(c, rng) if k else c for k, c in enumerate(p)] for p in best[1:]]
        worst = _error(fit, *tried, x, exact)
        if best is None or worst < best[0]:
            best = worst, *tried
    assert best is not None
    print(f"    {best[0]:.2f} units of the last place; highest powers first, above and below")
    for coefficients in best[1:]:
        print("    " + ", ".join(repr(float(c)) for c in coefficients[::-1]))


def _beside(c: np.float32, rng: np.random.Generator) -> np.float32:
    """Mostly itself; else a float up to three places away."""
    if rng.random() > 0.3:
        return c
    for _ in range(rng.integers(1, 4)):
        c = np.nextafter(c, np.float32(rng.choice([-1e30, 1e30])))
    return c


def main() -> None:
    """Print every fit."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    for fit in FITS:
        polished(fit, *fitted(fit), seconds)


if __name__ == "__main__":
    main()
