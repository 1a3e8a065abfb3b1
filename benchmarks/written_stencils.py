"""Stencils and flows in plain NumPy, written anew from their definitions (see `written_programs.py`)."""

from __future__ import annotations

from typing import Any

import numpy as np

Arguments = tuple[Any, ...]


def jacobi_1d(steps: int, a: Any, b: Any) -> None:
    """Means of three neighbours, to and fro."""
    for _ in range(steps):
        b[1:-1] = (a[:-2] + a[1:-1] + a[2:]) / 3
        a[1:-1] = (b[:-2] + b[1:-1] + b[2:]) / 3


def jacobi_2d(steps: int, a: Any, b: Any) -> None:
    """Means of five neighbours, to and fro."""
    for _ in range(steps):
        for old, new in ((a, b), (b, a)):
            sides = old[1:-1, :-2] + old[1:-1, 2:] + old[:-2, 1:-1] + old[2:, 1:-1]
            new[1:-1, 1:-1] = 0.2 * (old[1:-1, 1:-1] + sides)


def _heated(t: Any) -> Any:
    mid = t[1:-1, 1:-1, 1:-1]
    across = t[2:, 1:-1, 1:-1] - 2 * mid + t[:-2, 1:-1, 1:-1]
    along = t[1:-1, 2:, 1:-1] - 2 * mid + t[1:-1, :-2, 1:-1]
    up = t[1:-1, 1:-1, 2:] - 2 * mid + t[1:-1, 1:-1, :-2]
    return mid + 0.125 * across + 0.125 * along + 0.125 * up


def heat_3d(steps: int, a: Any, b: Any) -> None:
    """The heat equation, explicit steps, to and fro."""
    for _ in range(steps):
        b[1:-1, 1:-1, 1:-1] = _heated(a)
        a[1:-1, 1:-1, 1:-1] = _heated(b)


def fdtd_2d(steps: int, ex: Any, ey: Any, hz: Any, source: Any) -> None:
    """Maxwell's equations in the plane, the fields in turn (Yee)."""
    for t in range(steps):
        ey[0, :] = source[t]
        ey[1:, :] -= (hz[1:, :] - hz[:-1, :]) / 2
        ex[:, 1:] -= (hz[:, 1:] - hz[:, :-1]) / 2
        curl = ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1]
        hz[:-1, :-1] -= 0.7 * curl


def hdiff(field: Any, out: Any, coefficient: Any) -> None:
    """Horizontal diffusion of a weather model: fluxes of the Laplacian, limited."""
    rows, columns = out.shape[:2]
    inside = field[1 : rows + 3, 1 : columns + 3]
    sides = field[2 : rows + 4, 1 : columns + 3] + field[: rows + 2, 1 : columns + 3]
    ends = field[1 : rows + 3, 2 : columns + 4] + field[1 : rows + 3, : columns + 2]
    laplacian = 4 * inside - (sides + ends)
    down = laplacian[1:, 1:-1] - laplacian[:-1, 1:-1]
    slope = field[2 : rows + 3, 2 : columns + 2] - field[1 : rows + 2, 2 : columns + 2]
    down = np.where(down * slope > 0, 0, down)
    right = laplacian[1:-1, 1:] - laplacian[1:-1, :-1]
    slope = field[2 : rows + 2, 2 : columns + 3] - field[2 : rows + 2, 1 : columns + 2]
    right = np.where(right * slope > 0, 0, right)
    change = down[1:] - down[:-1] + right[:, 1:] - right[:, :-1]
    out[...] = field[2 : rows + 2, 2 : columns + 2] - coefficient * change


def vadv(
    tendency_stage: Any, stage: Any, wind: Any, place: Any, tendency: Any, rate: float
) -> None:
    """Vertical advection of a weather model: a tridiagonal system per column, by Thomas's algorithm."""
    levels = stage.shape[2]
    upper, right = np.zeros_like(stage), np.zeros_like(stage)

    flow = 0.25 * (wind[1:, :, 1] + wind[:-1, :, 1])
    known = rate * place[:, :, 0] + tendency[:, :, 0] + tendency_stage[:, :, 0]
    known = known - 0.5 * flow * (stage[:, :, 1] - stage[:, :, 0])
    upper[:, :, 0] = 0.5 * flow / (rate - 0.5 * flow)
    right[:, :, 0] = known / (rate - 0.5 * flow)
    for k in range(1, levels - 1):
        below = -0.25 * (wind[1:, :, k] + wind[:-1, :, k])
        above = 0.25 * (wind[1:, :, k + 1] + wind[:-1, :, k + 1])
        known = rate * place[:, :, k] + tendency[:, :, k] + tendency_stage[:, :, k]
        known = known - 0.5 * below * (stage[:, :, k - 1] - stage[:, :, k])
        known = known - 0.5 * above * (stage[:, :, k + 1] - stage[:, :, k])
        scale = 1 / (rate - 0.5 * below - 0.5 * above - upper[:, :, k - 1] * 0.5 * below)
        upper[:, :, k] = 0.5 * above * scale
        right[:, :, k] = (known - right[:, :, k - 1] * 0.5 * below) * scale
    k = levels - 1
    below = -0.25 * (wind[1:, :, k] + wind[:-1, :, k])
    known = rate * place[:, :, k] + tendency[:, :, k] + tendency_stage[:, :, k]
    known = known - 0.5 * below * (stage[:, :, k - 1] - stage[:, :, k])
    scale = 1 / (rate - 0.5 * below - upper[:, :, k - 1] * 0.5 * below)
    found = (known - right[:, :, k - 1] * 0.5 * below) * scale

    tendency_stage[:, :, k] = rate * (found - place[:, :, k])
    for k in range(levels - 2, -1, -1):
        found = right[:, :, k] - upper[:, :, k] * found
        tendency_stage[:, :, k] = rate * (found - place[:, :, k])


def _source_of_pressure(u: Any, v: Any, dt: float, dx: float, dy: float, rho: float) -> Any:
    """Inside of the cavity."""
    ux = (u[1:-1, 2:] - u[1:-1, :-2]) / (2 * dx)
    vy = (v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * dy)
    uy = (u[2:, 1:-1] - u[:-2, 1:-1]) / (2 * dy)
    vx = (v[1:-1, 2:] - v[1:-1, :-2]) / (2 * dx)
    return rho * ((ux + vy) / dt - ux**2 - 2 * uy * vx - vy**2)


def cavity_flow(
    steps: int,
    turns: int,
    u: Any,
    v: Any,
    p: Any,
    dt: float,
    dx: float,
    dy: float,
    rho: float,
    nu: float,
) -> None:
    """Navier-Stokes in a cavity whose lid moves (step 11 of Barba's twelve)."""
    b = np.zeros_like(u)
    squares = dx**2 + dy**2
    for _ in range(steps):
        un, vn = u.copy(), v.copy()
        b[1:-1, 1:-1] = _source_of_pressure(u, v, dt, dx, dy, rho)
        for _ in range(turns):
            pn = p.copy()
            near = (pn[1:-1, 2:] + pn[1:-1, :-2]) * dy**2 + (pn[2:, 1:-1] + pn[:-2, 1:-1]) * dx**2
            p[1:-1, 1:-1] = near / (2 * squares) - dx**2 * dy**2 / (2 * squares) * b[1:-1, 1:-1]
            p[:, -1] = p[:, -2]
            p[0, :] = p[1, :]
            p[:, 0] = p[:, 1]
            p[-1, :] = 0
        here, there = un[1:-1, 1:-1], vn[1:-1, 1:-1]
        for new, old, across in (
            (u, un, (p[1:-1, 2:] - p[1:-1, :-2]) / dx),
            (v, vn, (p[2:, 1:-1] - p[:-2, 1:-1]) / dy),
        ):
            mid, left, low = old[1:-1, 1:-1], old[1:-1, :-2], old[:-2, 1:-1]
            moved = here * dt / dx * (mid - left) + there * dt / dy * (mid - low)
            spread = (old[1:-1, 2:] - 2 * mid + left) / dx**2 + (
                old[2:, 1:-1] - 2 * mid + low
            ) / dy**2
            new[1:-1, 1:-1] = mid - moved - dt / (2 * rho) * across + nu * dt * spread
        u[0, :] = u[:, 0] = u[:, -1] = 0
        u[-1, :] = 1
        v[0, :] = v[-1, :] = v[:, 0] = v[:, -1] = 0


def _wrapped(a: Any) -> Any:
    """One column more on either side, as the channel is periodic."""
    return np.concatenate([a[:, -1:], a, a[:, :1]], axis=1)


def channel_flow(
    turns: int,
    u: Any,
    v: Any,
    p: Any,
    dt: float,
    dx: float,
    dy: float,
    rho: float,
    nu: float,
    force: float,
) -> int:
    """Navier-Stokes in a periodic channel until the flow is steady (step 12 of Barba's twelve)."""
    b, squares = np.zeros_like(u), dx**2 + dy**2
    change, count = 1.0, 0
    while change > 0.001:
        un, vn = _wrapped(u), _wrapped(v)
        b[1:-1] = _source_of_pressure(un, vn, dt, dx, dy, rho)
        for _ in range(turns):
            pn = _wrapped(p)
            near = (pn[1:-1, 2:] + pn[1:-1, :-2]) * dy**2 + (pn[2:, 1:-1] + pn[:-2, 1:-1]) * dx**2
            p[1:-1] = near / (2 * squares) - dx**2 * dy**2 / (2 * squares) * b[1:-1]
            p[-1, :] = p[-2, :]
            p[0, :] = p[1, :]
        pn = _wrapped(p)
        here, there = un[1:-1, 1:-1], vn[1:-1, 1:-1]
        for new, old, across, push in (
            (u, un, (pn[1:-1, 2:] - pn[1:-1, :-2]) / dx, force),
            (v, vn, (pn[2:, 1:-1] - pn[:-2, 1:-1]) / dy, 0.0),
        ):
            mid, left, low = old[1:-1, 1:-1], old[1:-1, :-2], old[:-2, 1:-1]
            moved = here * dt / dx * (mid - left) + there * dt / dy * (mid - low)
            spread = (old[1:-1, 2:] - 2 * mid + left) / dx**2 + (
                old[2:, 1:-1] - 2 * mid + low
            ) / dy**2
            new[1:-1] = mid - moved - dt / (2 * rho) * across + nu * dt * spread + push * dt
        u[0, :] = u[-1, :] = v[0, :] = v[-1, :] = 0
        change = (np.sum(u) - np.sum(un[:, 1:-1])) / np.sum(u)
        count += 1
    return count
