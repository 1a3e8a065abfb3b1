"""Loops of rows and columns, computed at once where turns need nothing of one another, held against NumPy."""

# pyright: basic
from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import scf

import irkit
from irkit.context import IrkitContext
from irkit.driver.programs.jitted import JittedFunction
from irkit.interp import run_module
from irkit.passes.graph.vectorise_loops import VectoriseLoops
from irkit.passes.program.functionalise import Functionalise
from tests.unit.jitted import Interpreted, check

KEPT: list[int] = []
"""Loops that were left, of each program."""


class AtOnce(Interpreted):
    """A program of values whose loops are gone where they can be, run by the interpreter."""

    def __init__(self, built) -> None:
        super().__init__(built)
        ctx = IrkitContext(weights=built.weights)
        self.values = built.module.clone()
        Functionalise().apply(ctx, self.values)
        VectoriseLoops().apply(ctx, self.values)
        self.values.verify()
        KEPT.append(sum(isinstance(op, scf.ForOp) for op in self.values.walk()))

    def run(self, buffers: Sequence[Any]):
        with np.errstate(all="ignore"):
            found = run_module(self.values, self.built.weights, buffers, "graph")
        results, rest = found[: self._results], found[self._results :]
        return results, dict(zip(self._written, rest, strict=True))


def at_once(function):
    return JittedFunction(function, AtOnce)


ROWS = ["a[i]", "a[i, 1:]", "a[:, i]", "a[2:, i]", "a[i, i:]", "a[i:, i]", "a[i, :i]", "a[i + 1]"]
ROWS += ["a[i, ::2]", "a[n - 1 - i]", "a[:-1, i]", "b[i]", "b[1:, i]", "v[i]", "v[i + 1]"]
STATEMENTS = [
    "{s} = x[{r}]",
    "{s} = x[{r}].sum()",
    "{s} = x[{r}] @ x[:, {c}]",
    "{s} += v[i]",
    "{s} *= 0.5",
    "{s} = np.where(x[{r}, {c}] > 0.5, {s}, -1.0)",
    "t = np.cumsum(x[:, {c}]); {s} = t[i] + t.max() * i",
    "{s} = v[i + 1]",
    "{s} = a[i + 1, 0]",
    "{s} = (x @ x[{r}])[{c}]",
    "{s} = np.exp(-np.abs(x[i:i + 2, {c}])).mean()",
    "a[i, i + 1:] = a[i + 1:, i] = (x[:, i] @ x)[i + 1:]",
    "a[i:, i] = (x[:, i] @ x)[i:]; a[i, i:] = a[i:, i]",
    "b[i] = a[i] + a[:, i]",
    "v += x[{r}]",
    "v -= x[{r}] * x[:, {c}]; v += 0.5",
    "v = x[{r}] - v",
    "v += a[{r}]; a[i] = x[i]",
    "for j in irkit.range(n): b[i, j] = (x[i] * x[:, j]).sum()",
]


def program(seed: int):
    """A function of matrices and a vector, its text, and its arrays."""
    r = random.Random(seed)
    n = r.randrange(7, 10)

    def statement() -> str:
        places = {
            "s": r.choice(ROWS),
            "r": r.choice(["i", "i + 1", "0"]),
            "c": r.choice(["i", "1"]),
        }
        return r.choice(STATEMENTS).format(**places)

    body = "\n        ".join(statement() for _ in range(r.choice([1, 1, 2, 3])))
    step = r.choice(["", "", ", 2"])
    rounds = f"irkit.range({r.choice([0, 1])}, n - 1{step})"
    text = f"def f(a, b, v, x, n={n}):\n    for i in {rounds}:\n        {body}\n"
    scope = {"np": np, "irkit": irkit}
    exec(compile(text, f"<seed {seed}>", "exec"), scope)
    g = np.random.default_rng(seed)
    return scope["f"], text, (g.random((n, n)), g.random((n, n)), g.random(n), g.random((n, n)))


def _has_meaning(function, arrays) -> bool:
    try:
        function(*(a.copy() for a in arrays))
    except (ValueError, IndexError):
        return False
    return True


@pytest.mark.parametrize("begin", range(0, 160, 20))
def test_random_loops_over_rows(begin: int) -> None:
    KEPT.clear()
    for seed in range(begin, begin + 20):
        function, text, arrays = program(seed)
        if not _has_meaning(function, arrays):
            continue
        try:
            check(function, *arrays, tolerance=1e-12, jit=at_once)
        except irkit.UnsupportedError:
            continue
        except AssertionError as error:
            raise AssertionError(text) from error
    assert KEPT.count(0) > 3


def _covariance(a, x):
    for i in irkit.range(len(a)):
        a[i:, i] = a[i, i:] = x[:, i] @ x[:, i:] / 3


def _last_turn_wins(a, x):
    for i in irkit.range(len(a)):
        a[i] = x[i]
        a[:, i] = x[i] * 2


def _own_row_then_next(a, x):
    for i in irkit.range(len(a) - 1):
        a[i] = a[i + 1] * x[i]


def _every_other(a, x):
    for i in irkit.range(len(a) // 2):
        a[2 * i, 1:] = a[2 * i + 1, :-1] + x[i, 1:]


def _trace(a, x):
    t = np.int64(0)
    for i in irkit.range(len(a)):
        t += (x[i, i] * 8).astype(np.int64)
    a += t


def _products(a, x):
    s = np.ones(len(a), np.int64)
    for i in irkit.range(len(a)):
        s -= (x[i] * x[:, i] * 8).astype(np.int64)
        s = 5 + s
    a += s


def _windows(a, x):
    for i in irkit.range(len(a) - 2):
        for j in irkit.range(len(a) - 2):
            a[i, j] = (x[i : i + 3, j : j + 3] * x[:3, :3]).sum()


def _steps_of_both(a, x):
    for i in irkit.range(len(a) // 3):
        for j in irkit.range(len(a) // 2):
            a[3 * i, 2 * j] = x[2 * i, j + 1] - x[1, 2 * j]


@pytest.mark.parametrize(
    "function",
    [
        _windows,
        _covariance,
        _last_turn_wins,
        _own_row_then_next,
        _every_other,
        _trace,
        _products,
    ],
)
def test_loops_without_a_carried_value_are_gone(function) -> None:
    KEPT.clear()
    rng = np.random.default_rng(1)
    check(function, rng.random((12, 12)), rng.random((12, 12)), tolerance=1e-12, jit=at_once)
    assert KEPT == [0]


def _from_the_last_row(a, x):
    for i in irkit.range(len(a) - 1):
        a[i + 1] = a[i] * x[i]


def _all_of_it(a, x):
    for i in irkit.range(len(a)):
        a[i] = a.sum() + x[i]


def _one_row(a, x):
    for i in irkit.range(len(a)):
        a[0] += x[i]


def _rows_of_columns(a, x):
    for i in irkit.range(len(a)):
        a[:, i] = a[i] + x[i]


def _sums_so_far(a, x):
    s = np.zeros(len(a))
    for i in irkit.range(len(a)):
        s += x[i]
        a[i] = s


def _sum_of_floats(a, x):
    """Each step is rounded: in another order the bits were others."""
    t = 0.0
    for i in irkit.range(len(a)):
        t += np.tanh(x[i, i])
    a += t


@pytest.mark.parametrize(
    "function",
    [_sums_so_far, _sum_of_floats, _from_the_last_row, _all_of_it, _one_row, _rows_of_columns],
)
def test_loops_that_carry_a_value_stay(function) -> None:
    KEPT.clear()
    rng = np.random.default_rng(2)
    check(function, rng.random((12, 12)), rng.random((12, 12)), tolerance=1e-12, jit=at_once)
    assert KEPT == [1]


def test_what_is_much_larger_than_its_arrays_stays_a_loop() -> None:
    def bins(data, counts):
        for i in irkit.range(len(counts)):
            counts[i] = (data > i).sum()

    KEPT.clear()
    check(bins, np.arange(1000.0) % 7, np.zeros(100, np.int64), jit=at_once)
    assert KEPT == [1]


@pytest.mark.parametrize("function", [_windows, _steps_of_both])
def test_an_inner_loop_is_gone_though_the_outer_one_stays(function) -> None:
    """Of windows, as values of all turns of both loops were too large."""
    KEPT.clear()
    rng = np.random.default_rng(4)
    check(function, rng.random((90, 90)), rng.random((90, 90)), tolerance=1e-12, jit=at_once)
    assert KEPT == [1]


def test_compiled_and_called_again() -> None:
    rng = np.random.default_rng(3)
    x, found = rng.random((40, 30)), np.zeros((30, 30))
    run = irkit.jit(target="cpu", cache=False)(_covariance)
    for scale in (1.0, 2.0):
        ours, theirs = found + scale, found + scale
        run(ours, x * scale)
        _covariance(theirs, x * scale)
        np.testing.assert_allclose(ours, theirs, 1e-12)
    assert "scf.for" not in run.ir("graph")
