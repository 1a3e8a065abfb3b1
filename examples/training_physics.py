"""A physics fit: springs and friction of a chain of masses, by gradients of its simulation in NumPy.

    python examples/training_physics.py

The simulation steps forward in time, in a loop over arrays that it writes. Its gradient goes back through all
steps; what is wanted are the constants by which it gives the motion that was seen.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import irkit

MASSES, STEPS, DT = 6, 120, 0.05


def simulate(stiffness: Any, friction: Any, start: Any, seen: Any) -> Any:
    """Positions of all masses at each step, into `seen` (steps, masses): springs between neighbours and
    the walls, friction by speed."""
    x, v = start.copy(), np.zeros_like(start)
    force = np.zeros_like(start)
    for n in range(STEPS):
        force[:] = -stiffness[:-1] * x - stiffness[1:] * x - friction * v
        force[1:] += stiffness[1:-1] * x[:-1]
        force[:-1] += stiffness[1:-1] * x[1:]
        v += DT * force
        x += DT * v
        seen[n] = x
    return seen


def loss(logs: Any, start: Any, wanted: Any) -> Any:
    """How far the motion is from what was seen. `logs`: logarithms of the constants, all of them positive."""
    constants = np.exp(logs)
    made = simulate(constants[:-1], constants[-1], start, np.zeros_like(wanted))
    return ((made - wanted) ** 2).mean()


def main(rounds: int) -> bool:
    """Fit; whether the constants were found."""
    rng = np.random.default_rng(0)
    real = np.append(rng.uniform(0.6, 1.8, MASSES + 1), 0.15)
    start = rng.standard_normal(MASSES)
    wanted = simulate(real[:-1], real[-1], start, np.zeros((STEPS, MASSES)))
    step = irkit.value_and_grad(loss, target="cpu")
    logs, mean, square = np.zeros_like(real), np.zeros_like(real), np.zeros_like(real)
    value = np.inf
    for n in range(1, rounds + 1):  # Adam
        value, gradient = step(logs, start, wanted)
        mean, square = 0.9 * mean + 0.1 * gradient, 0.99 * square + 0.01 * gradient**2
        logs -= 0.05 * (mean / (1 - 0.9**n)) / (np.sqrt(square / (1 - 0.99**n)) + 1e-12)
        if n == 1 or n % (rounds // 5) == 0:
            print(f"round {n:4}: loss {value:.2e}")
    off = np.abs(np.exp(logs) - real).max()
    print("stiffness", np.exp(logs[:-1]).round(3), "friction", np.exp(logs[-1]).round(3))
    print(f"largest error of a constant: {off:.1e}")
    return bool(off < 0.02)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Fit the constants of a simulation.")
    parser.add_argument("--rounds", type=int, default=300)
    raise SystemExit(0 if main(parser.parse_args().rounds) else 1)
