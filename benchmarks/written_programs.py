"""The programs of NumPy that npbench made known, written anew from what they compute.

Nothing of npbench's source is here: definitions are the papers' and textbooks' (PolyBench's linear algebra
and stencils, COSMO's horizontal diffusion and vertical advection, Barba's flows, azimuthal integration,
Mandelbrot's set), sizes those of npbench's presets S and M, inputs random. npbench's own source, where there
is a checkout, is run by `npbench_programs.py`; figures of these programs are none of npbench's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import written_stencils as stencils

Arguments = tuple[Any, ...]


@dataclass(frozen=True)
class Written:
    """One program: its function, what makes its arguments of a generator and sizes, and sizes by preset."""

    function: Callable[..., Any]
    arguments: Callable[..., Arguments]
    presets: dict[str, tuple[int, ...]]


def softmax(x: Any) -> Any:
    """Of the last axis."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def mlp(x: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any) -> Any:
    """Three layers."""
    x = np.maximum(x @ w1 + b1, 0)
    x = np.maximum(x @ w2 + b2, 0)
    return softmax(x @ w3 + b3)


def conv2d_bias(images: Any, weights: Any, bias: Any) -> Any:
    """Windows of all images, channels last, by every filter, pixel by pixel."""
    k, rows, columns = weights.shape[0], images.shape[1], images.shape[2]
    out = np.empty((len(images), rows - k + 1, columns - k + 1, weights.shape[3]), images.dtype)
    for i in range(rows - k + 1):
        for j in range(columns - k + 1):
            window = images[:, i : i + k, j : j + k, :, np.newaxis]
            out[:, i, j, :] = np.sum(window * weights[np.newaxis], axis=(1, 2, 3))
    return out + bias


def arc_distance(theta1: Any, phi1: Any, theta2: Any, phi2: Any) -> Any:
    """Along great circles of a unit sphere."""
    half = np.sin((theta2 - theta1) / 2) ** 2
    half = half + np.cos(theta1) * np.cos(theta2) * np.sin((phi2 - phi1) / 2) ** 2
    return 2 * np.arctan2(np.sqrt(half), np.sqrt(1 - half))


def azimint_naive(data: Any, radius: Any, points: int) -> Any:
    """Means of what lies in rings, by a mask for each ring."""
    most = radius.max()
    means = np.zeros(points)
    for i in range(points):
        ring = np.logical_and(most * i / points <= radius, radius < most * (i + 1) / points)
        means[i] = data[ring].mean()
    return means


def azimint_hist(data: Any, radius: Any, points: int) -> Any:
    """The same by two histograms."""
    count = np.histogram(radius, points)[0]
    return np.histogram(radius, points, weights=data)[0] / count


def go_fast(a: Any) -> Any:
    """What Numba's first page computes."""
    trace = 0.0
    for i in range(len(a)):
        trace += np.tanh(a[i, i])
    return a + trace


def compute(x: Any, y: Any, a: int, b: int, c: int) -> Any:
    """What Cython's page for NumPy users computes."""
    return np.clip(x, 2, 10) * a + y * b + c


def mandelbrot1(x0: float, x1: float, y0: float, y1: float, nx: int, ny: int, turns: int) -> Any:
    """Escape times on a grid, by masks."""
    c = np.linspace(x0, x1, nx) + np.linspace(y0, y1, ny)[:, None] * 1j
    n, z = np.zeros(c.shape, np.int64), np.zeros(c.shape, np.complex128)
    for turn in range(turns):
        inside = np.less(abs(z), 2.0)
        n[inside] = turn
        z[inside] = z[inside] ** 2 + c[inside]
    n[n == turns - 1] = 0
    return z, n


def mandelbrot2(x0: float, x1: float, y0: float, y1: float, nx: int, ny: int, turns: int) -> Any:
    """Escape times, each point by itself until it escapes: what has escaped is kept as it was."""
    c = np.linspace(x0, x1, nx)[:, None] + np.linspace(y0, y1, ny) * 1j
    z, kept, n = np.zeros_like(c), np.zeros_like(c), np.zeros(c.shape, np.int64)
    alive = np.ones(c.shape, bool)
    for turn in range(turns):
        z = np.where(alive, z * z + c, z)
        out = alive & (abs(z) > 2.0)
        n = np.where(out, turn + 1, n)
        kept = np.where(out, z, kept)
        alive = alive & ~out
    return kept, n


def gemm(alpha: float, beta: float, c: Any, a: Any, b: Any) -> None:
    """C = alpha A B + beta C."""
    c[:] = alpha * a @ b + beta * c


def k2mm(alpha: float, beta: float, a: Any, b: Any, c: Any, d: Any) -> None:
    """D = alpha A B C + beta D."""
    d[:] = alpha * a @ b @ c + beta * d


def k3mm(a: Any, b: Any, c: Any, d: Any) -> Any:
    """A B C D."""
    return a @ b @ c @ d


def atax(a: Any, x: Any) -> Any:
    """A' A x."""
    return (a @ x) @ a


def bicg(a: Any, p: Any, r: Any) -> Any:
    """A' r and A p."""
    return r @ a, a @ p


def mvt(x1: Any, x2: Any, y1: Any, y2: Any, a: Any) -> None:
    """x1 += A y1, x2 += A' y2."""
    x1 += a @ y1
    x2 += y2 @ a


def gemver(
    alpha: float,
    beta: float,
    a: Any,
    u1: Any,
    v1: Any,
    u2: Any,
    v2: Any,
    w: Any,
    x: Any,
    y: Any,
    z: Any,
) -> None:
    """A += u1 v1' + u2 v2'; x += beta A' y + z; w += alpha A x."""
    a += np.outer(u1, v1) + np.outer(u2, v2)
    x += beta * y @ a + z
    w += alpha * a @ x


def gesummv(alpha: float, beta: float, a: Any, b: Any, x: Any) -> Any:
    """alpha A x + beta B x."""
    return alpha * a @ x + beta * b @ x


def correlation(data: Any) -> Any:
    """Of columns, row by row of its upper triangle."""
    n, columns = data.shape
    deviation = data.std(axis=0)
    deviation[deviation <= 0.1] = 1.0
    data -= data.mean(axis=0)
    data /= np.sqrt(n) * deviation
    out = np.eye(columns, dtype=data.dtype)
    for i in range(columns - 1):
        out[i + 1 :, i] = out[i, i + 1 :] = data[:, i] @ data[:, i + 1 :]
    return out


def covariance(data: Any) -> Any:
    """Of columns, row by row of its upper triangle."""
    n, columns = data.shape
    data -= data.mean(axis=0)
    out = np.zeros((columns, columns), data.dtype)
    for i in range(columns):
        out[i:, i] = out[i, i:] = data[:, i] @ data[:, i:] / (n - 1.0)
    return out


def _of(names: str, *shapes: str, first: Arguments = (), dtype: str = "f8", low: float = 0) -> Any:
    """Arguments: `first`, and random arrays whose shapes are words of letters for sizes, and of digits."""

    def made(rng: np.random.Generator, *sizes: int) -> Arguments:
        known = dict(zip(names, sizes, strict=True))
        found = [[known[c] if c in known else int(c) for c in shape] for shape in shapes]
        return (*first, *((low + (1 - low) * rng.random(shape)).astype(dtype) for shape in found))

    return made


def _steps(names: str, *shapes: str) -> Any:
    """Arguments: the first size, a number of steps, and random arrays."""
    made = _of(names, *shapes)
    return lambda rng, *sizes: (sizes[0], *made(rng, *sizes))  # pyright: ignore


def _cavity(rng: np.random.Generator, n: int, steps: int, turns: int) -> Arguments:
    zeros = [np.zeros((n, n)) for _ in range(3)]
    return (steps, turns, *zeros, 0.1 / n, 2 / (n - 1), 2 / (n - 1), 1.0, 0.1)


def _channel(rng: np.random.Generator, n: int, turns: int) -> Arguments:
    u, v, p = np.zeros((n, n)), np.zeros((n, n)), np.ones((n, n))
    return (turns, u, v, p, 0.1 / n, 2 / (n - 1), 2 / (n - 1), 1.0, 0.1, 1.0)


def _compute(rng: np.random.Generator, m: int, n: int) -> Arguments:
    return (*(rng.integers(0, 1000, (m, n)) for _ in range(2)), 4, 3, 9)


def _mandelbrot(rng: np.random.Generator, n: int, turns: int) -> Arguments:
    return (-1.75, 0.25, -1.0, 1.0, n, n, turns)


def _hdiff(rng: np.random.Generator, i: int, j: int, k: int) -> Arguments:
    return (rng.random((i + 4, j + 4, k)), np.zeros((i, j, k)), rng.random((i, j, k)))


def _vadv(rng: np.random.Generator, i: int, j: int, k: int) -> Arguments:
    fields = [rng.random((i + (f == 2), j, k)) for f in range(5)]
    return (*fields, 3 / 20)


def _rings(rng: np.random.Generator, n: int, points: int) -> Arguments:
    return (rng.random(n), rng.random(n), points)


_SCALARS = (1.5, 1.2)
_WEATHER = {"S": (64, 64, 60), "M": (128, 128, 160)}
_RINGS = {"S": (400000, 1000), "M": (4000000, 1000)}
_ESCAPES = {"S": (125, 60), "M": (250, 150)}
_TALL = {"S": (4000, 5000), "M": (10000, 12500)}
_COLUMNS = {"S": (500, 600), "M": (1400, 1800)}
_GEMVER = ("nn", *"nnnnnnnn")
_LAYERS = ("83", "3a", "a", "ab", "b", "bc", "c")
_CHAIN = {"S": (800, 850, 900, 950, 1000), "M": (2000, 2200, 2400, 2600, 2800)}

PROGRAMS: dict[str, Written] = {
    "jacobi_1d": Written(
        stencils.jacobi_1d, _steps("tn", "n", "n"), {"S": (800, 3200), "M": (3000, 12000)}
    ),
    "jacobi_2d": Written(
        stencils.jacobi_2d, _steps("tn", "nn", "nn"), {"S": (50, 150), "M": (80, 350)}
    ),
    "heat_3d": Written(
        stencils.heat_3d, _steps("tn", "nnn", "nnn"), {"S": (25, 25), "M": (50, 40)}
    ),
    "fdtd_2d": Written(
        stencils.fdtd_2d,
        _steps("txy", "xy", "xy", "xy", "t"),
        {"S": (20, 200, 220), "M": (60, 400, 450)},
    ),
    "hdiff": Written(stencils.hdiff, _hdiff, _WEATHER),
    "vadv": Written(stencils.vadv, _vadv, {"S": (60, 60, 40), "M": (112, 112, 80)}),
    "softmax": Written(
        softmax, _of("nhs", "nhss", dtype="f4"), {"S": (16, 16, 128), "M": (32, 8, 256)}
    ),
    "mlp": Written(
        mlp,
        _of("abc", *_LAYERS, dtype="f4", low=-1),
        {"S": (30000, 2000, 2000), "M": (30000, 10000, 10000)},
    ),
    "arc_distance": Written(arc_distance, _of("n", *"nnnn"), {"S": (100000,), "M": (1000000,)}),
    "azimint_naive": Written(azimint_naive, _rings, _RINGS),
    "azimint_hist": Written(azimint_hist, _rings, _RINGS),
    "cavity_flow": Written(stencils.cavity_flow, _cavity, {"S": (61, 25, 5), "M": (121, 50, 10)}),
    "channel_flow": Written(stencils.channel_flow, _channel, {"S": (61, 5), "M": (121, 10)}),
    "go_fast": Written(go_fast, _of("n", "nn"), {"S": (2000,), "M": (6000,)}),
    "compute": Written(compute, _compute, {"S": (2000, 2000), "M": (5000, 5000)}),
    "mandelbrot1": Written(mandelbrot1, _mandelbrot, _ESCAPES),
    "mandelbrot2": Written(mandelbrot2, _mandelbrot, _ESCAPES),
    "conv2d_bias": Written(
        conv2d_bias,
        _of("okh", "8hh3", "kk3o", "o", dtype="f4"),
        {"S": (16, 2, 32), "M": (8, 5, 64)},
    ),
    "gemm": Written(
        gemm,
        _of("ijk", "ij", "ik", "kj", first=_SCALARS),
        {"S": (1000, 1100, 1200), "M": (2500, 2750, 3000)},
    ),
    "k2mm": Written(
        k2mm,
        _of("ijkm", "ik", "kj", "jm", "im", first=_SCALARS),
        {"S": (800, 850, 900, 950), "M": (2000, 2250, 2500, 2750)},
    ),
    "k3mm": Written(k3mm, _of("ijkmn", "ik", "kj", "jm", "mn"), _CHAIN),
    "atax": Written(atax, _of("mn", "mn", "n"), _TALL),
    "bicg": Written(bicg, _of("mn", "nm", "m", "n"), _TALL),
    "mvt": Written(mvt, _of("n", *"nnnn", "nn"), {"S": (5500,), "M": (11000,)}),
    "gemver": Written(gemver, _of("n", *_GEMVER, first=_SCALARS), {"S": (1000,), "M": (3000,)}),
    "gesummv": Written(
        gesummv, _of("n", "nn", "nn", "n", first=_SCALARS), {"S": (2000,), "M": (4000,)}
    ),
    "correlation": Written(correlation, _of("mn", "nm"), _COLUMNS),
    "covariance": Written(covariance, _of("mn", "nm"), _COLUMNS),
}
