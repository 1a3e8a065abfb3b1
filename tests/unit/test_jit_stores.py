"""Loops that write parts of arrays which they read, compiled, beside NumPy: fixed and moving places, steps,
backward views."""

from __future__ import annotations

import random

import numpy as np
import pytest

import irkit
from tests.unit.jitted import check

CPU = irkit.jit(target="cpu")


def sums_to_one_element(a, x, table):
    for i in range(len(x)):
        a[0] += x[i]
        table[3, 1:3] -= a[0] * x[i]


def steps_that_move(a, x, table):
    for i in range(0, 12, 3):
        a[i : i + 6 : 2] += x[i]
        table[::2, i % 2] = x[i]
        table[i // 3 : i // 3 + 5 : 2, 1:3] *= x[i]


def backward(a, x, table):
    for i in range(11):
        a[::-1] = a * x[i] + 1
        a[-2 - i] = a[-1 - i] * 0.5
        table[::-1, ::-2] += x[i]


def in_loops_of_loops(a, x, table):
    for i in range(6):
        for k in range(7):
            table[i, 2] += x[k]
            a[5] = a[5] * 0.5 + table[i, 2]
        a[2:4] += a[5]


def hand_on_and_read(a, x, table):
    total = np.zeros(40)
    for i in range(12):
        total[7] += x[i]
        total[8] = total[7] * a[i]
    return total, total[7]


@pytest.mark.parametrize(
    "function",
    [sums_to_one_element, steps_that_move, backward, in_loops_of_loops, hand_on_and_read],
)
def test_parts_are_written_as_numpy_writes_them(function):
    rng = np.random.default_rng(0)
    check(function, rng.random(20), rng.random(12), rng.random((9, 4)), jit=CPU)


def test_of_an_array_one_element_is_handed_on():
    twin = check(sums_to_one_element, np.ones(20), np.arange(12.0), np.ones((9, 4)), jit=CPU)
    graph = twin.ir("graph")
    loops = [line for line in graph.splitlines() if "scf.for" in line]
    assert len(loops) == 1
    assert "-> (tensor<1xf64>, tensor<1x2xf64>)" in loops[0]


STORES = [
    "a[{c}] += x[i]", "a[{c}] = a[{d}] * 0.5 + x[i - 1]", "a[{c}:{c} + 3] -= a[{d}:{d} + 3] * x[i]",
    "b[i : i + 6 : 2] += x[i]", "b[::-1] = b * 0.5 + x[i]", "b[i] = b[i - 1] + a[{c}]",
    "b[-1 - i] = a[{d}] - x[-i]", "a[{c}], b[{d}] = b[i], a[{d}]", "b[{c}::3] *= x[i]",
    "b[i + 2 : i - 1 : -1] = a[{c}]",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
def test_random_loops(seed):
    draw = random.Random(seed)
    lines = [draw.choice(STORES).format(c=draw.randrange(9), d=draw.randrange(9)) for _ in range(3)]
    text = "\n".join(
        ["def f(a, b, x):", "    for i in range(1, 9):", *(f"        {x}" for x in lines)]
    )
    scope = {}
    exec(compile(text, f"<{seed}>", "exec"), scope)
    rng = np.random.default_rng(seed)
    check(scope["f"], rng.random(40), rng.random(20), rng.random(10), jit=CPU)
