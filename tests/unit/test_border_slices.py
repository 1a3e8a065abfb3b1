"""Edges of an array that repeat what lies beside them, in one launch with what makes it: NumPy's bits."""

# pyright: basic

from __future__ import annotations

import re

import numpy as np
import pytest

import irkit

RNG = np.random.default_rng(5)


def inside(p):
    return (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]) / 4 - p[1:-1, 1:-1] / 3


def cavity(p):
    p[1:-1, 1:-1] = inside(p.copy())
    p[:, -1] = p[:, -2]
    p[0, :] = p[1, :]
    p[:, 0] = p[:, 1]
    p[-1, :] = 0
    return p


def mirrored(p):
    p[1:-1, 1:-1] = inside(p)
    p[0] = p[2]
    p[-1] = p[-3]
    p[:, 0] = p[:, 2]
    p[:, -1] = p[:, -3]
    return p


def periodic(p):
    p[1:-1, 1:-1] = inside(p)
    p[:, 0] = p[:, -2]
    p[:, -1] = p[:, 1]
    p[0] = p[-2]
    p[-1] = p[1]
    return p


def wide(p):
    p[2:-2, 3:-3] = p[2:-2, 3:-3] * 2 + 1
    p[:2] = p[2:4]
    p[:, -3:] = p[:, 3:6]
    return p


def many(p):
    """More edges than one launch takes."""
    p[1:-1, 1:-1] = inside(p)
    for row in range(4):
        p[row] = p[row + 1]
        p[:, row] = p[:, row + 1]
    return p


def read_again(p):
    """The edge is needed elsewhere too."""
    p[1:-1, 1:-1] = inside(p)
    edge = p[1]
    p[0] = edge
    return p, edge + 1


def solid(p):
    p[1:-1, 1:-1, 1:-1] = p[1:-1, 1:-1, 1:-1] * 0.5 + p[:-2, 1:-1, 2:]
    p[0] = p[1]
    p[:, 0] = p[:, 1]
    p[:, :, -1] = p[:, :, -2]
    return p


CASES = {f.__name__: f for f in (cavity, mirrored, periodic, wide, many, read_again)}


def looped(step):
    def program(p):
        for _ in range(25):
            p = step(p)
            p = p[0] if isinstance(p, tuple) else p
        return p

    return program


def check(function, p, device):
    program, mine, numpys = irkit.jit(target="cpu", device=device)(function), p.copy(), p.copy()
    got, want = program(mine), function(numpys)
    for one, other in zip(
        got if isinstance(got, tuple) else (got,),
        want if isinstance(want, tuple) else (want,),
        strict=True,
    ):
        assert np.array_equal(one, other)
    assert np.array_equal(mine, numpys)
    return program


@pytest.mark.parametrize("device", ["cpu1", "cpu2"])
@pytest.mark.parametrize("name", CASES)
def test_edges(name, device):
    for shape, dtype in (((17, 23), np.float64), ((40, 33), np.float32), ((64, 150), np.float64)):
        p = RNG.standard_normal(shape).astype(dtype)
        check(CASES[name], p, device)
        check(looped(CASES[name]), p, device)


@pytest.mark.parametrize("device", ["cpu1", "cpu2"])
def test_edges_of_a_solid(device):
    check(solid, RNG.standard_normal((9, 14, 21)), device)
    check(looped(solid), RNG.standard_normal((12, 9, 16)), device)


def test_one_launch_makes_the_edges_too():
    """Of a large array: those of a small one are more than an eighth of it."""
    program = check(looped(cavity), RNG.standard_normal((60, 70)), "cpu2")
    roperators = set(re.findall(r"task\.roperator @(\w+)", program.ir("task")))
    assert len(roperators) == 2, roperators
