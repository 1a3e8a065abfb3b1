"""Traced programs of many operations, a kind for each way in which they grow, and the time to compile them.

    python -m benchmarks.long_programs --kinds chain mix --sizes 500 1000 2000

prints of each the processor's seconds of this process, and seconds by the clock of levels and emission;
beside these there are tracing before them, and machine code behind.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import irkit

Program = tuple[Callable[..., Any], tuple[np.ndarray[Any, Any], ...]]
"""A function, and arguments for it."""

LENGTH = 24
"""Elements of the arrays, which are small: what is looked at is the number of operations."""


def _turns(ops: int, each: int) -> list[int]:
    """What a `for` statement goes through that Python unrolls, with so many operations in each turn."""
    return list(range(max(1, ops // each)))


def chain(ops: int) -> Program:
    """Elementwise operations on one array, each of what the one before made."""

    def function(x: Any) -> Any:
        for _ in _turns(ops, 4):
            x = np.sin(x * 0.875 + 0.25) - x
        return x

    return function, (np.linspace(-1, 1, LENGTH),)


def apart(ops: int) -> Program:
    """Operations that have nothing to do with one another, whose results are rows of one array."""

    def function(x: Any) -> Any:
        return np.stack([np.cos(x + 0.5 * n) * x[n % LENGTH] for n in _turns(ops, 4)])

    return function, (np.linspace(-1, 1, LENGTH),)


def in_place(ops: int) -> Program:
    """Updates in place of slices that overlap, of two arrays."""

    def function(a: Any, b: Any) -> None:
        for n in _turns(ops, 4):
            a[1:] += 0.5 * a[:-1]
            b[n % 4 : n % 4 + 12] -= 0.25 * a[4:16]

    return function, (np.linspace(0, 1, LENGTH), np.linspace(1, 2, LENGTH))


def stencil(ops: int) -> Program:
    """Steps of a stencil, into one of two arrays from the other."""

    def function(u: Any, v: Any) -> None:
        for _ in _turns(ops, 6):
            v[1:-1] = (u[:-2] + u[1:-1] + u[2:]) / 3
            u[1:-1] = (v[:-2] + v[1:-1] + v[2:]) / 3

    return function, (np.linspace(0, 1, LENGTH), np.zeros(LENGTH))


def summed(ops: int) -> Program:
    """Small reductions between elementwise operations."""

    def function(x: Any) -> Any:
        for _ in _turns(ops, 4):
            x = x / (1 + np.sum(x * x))
        return x

    return function, (np.linspace(-1, 1, LENGTH),)


def scalars(ops: int) -> Program:
    """Numbers out of an array and into it, one at a time."""

    def function(x: Any) -> Any:
        y = np.zeros(LENGTH)
        for n in _turns(ops, 3):
            y[n % LENGTH] = y[(n + 1) % LENGTH] + 0.5 * x[n % LENGTH]
        return y

    return function, (np.linspace(-1, 1, LENGTH),)


def returned(ops: int) -> Program:
    """Functions of one array, each of which is returned."""

    def function(x: Any) -> Any:
        return [np.exp(x * (0.5 + n)) + x for n in _turns(ops, 3)]

    return function, (np.linspace(-1, 0, LENGTH),)


def total(ops: int) -> Program:
    """A sum of as many terms."""

    def function(x: Any) -> Any:
        found = x * 0.5
        for n in _turns(ops, 3):
            found = found + np.tanh(x * (n % 16))
        return found

    return function, (np.linspace(-1, 1, LENGTH),)


def mix(ops: int) -> Program:
    """Of all these in turn, on the same arrays."""

    def function(a: Any, b: Any) -> Any:
        total = a[0] * 0.0
        for n in _turns(ops, 12):
            t = np.tanh(a * 0.5 + b)
            a[1:] += 0.125 * t[:-1]
            b[n % 5 : n % 5 + 8] = t[2:10] - b[4:12]
            total = total + a.max() / (1 + np.sum(t * t))
            a *= 0.75
        return total

    return function, (np.linspace(0, 1, LENGTH), np.linspace(1, 2, LENGTH))


KINDS: dict[str, Callable[[int], Program]] = {
    "chain": chain,
    "apart": apart,
    "in_place": in_place,
    "stencil": stencil,
    "summed": summed,
    "scalars": scalars,
    "returned": returned,
    "total": total,
    "mix": mix,
}


def compiled_in(kind: str, ops: int) -> str:
    """A line of what it took to compile a program."""
    function, args = KINDS[kind](ops)
    compiled = irkit.jit(target="cpu", cache=False)(function)
    start = time.process_time()
    compiled.compile(*args)
    taken, report = time.process_time() - start, compiled.report()
    stages = ", ".join(f"{name} {seconds:.1f}" for name, seconds in report["seconds"].items())
    return f"{kind} of {ops}: {taken:.1f} s ({stages}), {len(report['roperators'])} rOperators"


def main() -> None:
    """Compile, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=[*KINDS])
    parser.add_argument("--sizes", nargs="+", type=int, default=[500, 1000, 2000])
    given = parser.parse_args()
    for kind in given.kinds:
        for ops in given.sizes:
            print(compiled_in(kind, ops), flush=True)


if __name__ == "__main__":
    main()
