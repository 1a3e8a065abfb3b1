"""Loops whose range has the index of a loop around them for an end: kept where their rounds are alike, and
NumPy's results, also in what stands behind them."""

# pyright: basic
from __future__ import annotations

import functools
import sys

import numpy as np
import pytest

import irkit
from irkit.dialects.program.check import program_faults
from irkit.frontends.numpy.lived import read_behind
from tests.unit.jitted import check, interpreted

RNG = np.random.default_rng(0)
N = 9


def square():
    return RNG.random((N, N)) + 0.5


def factored(a):
    for i in range(len(a)):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[:j, j]
            a[i, j] /= a[j, j]
        for j in range(i, len(a)):
            a[i, j] -= a[i, :i] @ a[:i, j]
    return a


def orthogonal(a):
    q, r = np.zeros_like(a), np.zeros((a.shape[1], a.shape[1]))
    for k in range(a.shape[1]):
        r[k, k] = np.sqrt(a[:, k] @ a[:, k])
        q[:, k] = a[:, k] / r[k, k]
        for j in range(k + 1, a.shape[1]):
            r[k, j] = q[:, k] @ a[:, j]
            a[:, j] -= q[:, k] * r[k, j]
    return q, r


def backwards(a):
    for i in range(N - 1, -1, -1):
        for j in reversed(range(i)):
            a[i, j] = a[i, j + 1] * 0.5 + a[j, i]
        for j in range(N - 1, i, -1):
            a[i, j - 1] += a[i, j] * a[i, i]
    return a


def both_ends(a):
    for i in range(N):
        for j in range(N - 1 - i, i):
            a[i, j] += a[j, i] * 0.25 + i * j
    return a


def three_deep(a):
    for i in range(N):
        for j in range(i, N):
            for k in range(i, j):
                a[i, j] = np.maximum(a[i, j], a[i, k] + a[k, j] * 0.5)
    return a


def made_before(a):
    z, o, y = np.zeros((N, N)), np.ones(N), np.empty(N)
    for i in range(N):
        for j in range(i):
            z[i, j] += z[j, i] + o[j]
            z[j, i], y[j] = z[i, j] * 2, z[i, j]
            o[j] += 1
    return z, o, y[: N - 1]


def complex_and_small(a):
    b, c = a + 1j * a.T, (a * 10).astype(np.int32)
    for i in range(N):
        for j in range(i):
            b[i, j] = b[i, j] * b[j, i] - b[j, j]
            c[i, j] = c[i, j] // (c[j, i] + 1) + j
    return b, c


def always_so(a):
    for i in range(N):
        for j in range(i):
            if 0 <= j <= N:
                a[i, j] += 1
        else:
            a[i, i] = 7
    return a


@pytest.mark.parametrize(
    "function",
    [
        factored,
        orthogonal,
        backwards,
        both_ends,
        three_deep,
        made_before,
        complex_and_small,
        always_so,
    ],
)
def test_ranges_that_hang_on_a_loop_around_are_kept(function):
    assert 2 <= loops_of(check(function, square(), tolerance=1e-11)) <= 6


def loops_of(traced):
    return traced.ir().count("scf.for")


@pytest.mark.parametrize("function", [factored, orthogonal, made_before, three_deep])
def test_such_loops_compiled(function):
    jit = functools.partial(irkit.jit, target="cpu", cache=False)
    found = check(function, square(), tolerance=1e-11, jit=jit)
    # What rounds beyond the range compute is never seen.
    given = square()
    if function is three_deep:
        given[np.tril_indices(N, -1)] = np.nan
        expected = function(given.copy())
        np.testing.assert_array_equal(found(given), expected)


def the_index(a):
    for i in range(N):
        for j in range(i):
            a[i, j] += a[j, i]
    return a, j


def the_last_value(a):
    t = a[0, 0] * 1
    for i in range(1, N):
        for j in range(i):
            t = a[i, j] * 2
        a[i] = t
    return a


def a_flag(a):
    hit = False
    for i in range(N):
        for j in range(i):
            hit, a[i, j] = True, 1
        if not hit:
            a[i] = 3
    return a


def a_dict(a):
    held = {"k": a[0] * 1}
    for i in range(N):
        for j in range(i):
            held["k"] = a[j] * 2
        a[i] += held["k"]
    return a


def a_variable_of_a_closure(a):
    n = 0

    def bump():
        nonlocal n
        n = 1

    for i in range(N):
        for j in range(i):
            bump()
            a[i, j] += 1
        a[i] += n
    return a


def a_sum(a):
    y = np.zeros(N)
    for i in range(N):
        s = 0.0
        for j in range(i):
            s += a[i, j] * a[0, j]
        y[i] = s
    return y


def arrays_in_turn(a):
    b = a.copy()
    for i in range(N):
        for j in range(i):
            a[i, j] = b[j, i]
            a, b = b, a
    return a, b


def left(a):
    for i in range(N):
        for j in range(i):
            a[i, j] += 1
            if j == 3:
                break
    return a


def left_at_once(a):
    for i in range(1, N):
        for j in range(i):
            a[i, j] += 1
            return a


def rounds_that_differ(a):
    for i in range(N):
        for j in range(i):
            if j == 0:
                a[i, j] = 5
            elif j % 2:
                a[i, j] += 1
    return a


def other_than_a_statement(a):
    for i in range(N):
        for j, k in zip(range(i), range(N), strict=False):
            a[i, j] += k
        for n, j in enumerate(range(i)):
            a[i, j] += n
        a[i] += sum(a[j, j] for j in range(i)) + len(range(i)) + (3 in range(i))
        if range(i) == range(3):
            a[i] += 1
    return a


def on_data(a):
    for i in range(N):
        for j in range(i):
            n = a[i, j] * 1
            while n < 5:
                n = n * 2 + 1
            a[i, j] = n
    return a


def of_the_host(a):
    for i in range(1, N):
        for j in range(1, i):
            a[i, j] += np.median(a[:, j])
    return a


@pytest.mark.parametrize(
    "function",
    [
        the_index,
        the_last_value,
        a_flag,
        a_dict,
        a_variable_of_a_closure,
        a_sum,
        arrays_in_turn,
        left,
        left_at_once,
        rounds_that_differ,
        other_than_a_statement,
        on_data,
        of_the_host,
    ],
)
def test_what_such_a_loop_leaves_behind_is_numpys(function):
    check(function, square(), tolerance=1e-12)


def picked(a, at):
    y = np.zeros(N)
    for i in range(N):
        for j in range(i - 3):
            y[at[j]] += a[i, at[j]]
    return y


def test_an_index_out_of_bounds_counts_in_rounds_of_the_range_alone():
    at = np.array([0, 5, 3, 2, 7, 99, -99, 1000, 4])
    traced = check(picked, square(), at)
    assert loops_of(traced) == 3
    at[1] = 99
    with pytest.raises(IndexError, match="out of bounds"):
        traced(square(), at)


def test_long_ones_that_cannot_be_kept_are_refused_as_they_are():
    def long_sum(x):
        for i in range(200):
            s = 0.0
            for j in range(i):
                s += x[j]
            x[i] = s

    with pytest.raises(irkit.UnsupportedError, match="the number of rounds of a loop"):
        interpreted(long_sum)(RNG.random(200))


def only_in_part(x):
    y = np.empty(N)
    for i in range(N):
        y[:i] = x[:i] + i
    return y[: N - 1]


def left_corner(a):
    for i in range(N):
        for j in range(N - i):
            a[i + j, j] += a[i, j] * 0.5
    return a


def no_rounds_at_all(a):
    for j in range(N + 1):
        for k in range(j, N):
            a[j, k] += 1
    return a


@pytest.mark.parametrize("function", [left_corner, no_rounds_at_all])
def test_places_that_only_rounds_of_no_range_have_are_not_touched(function):
    # Of a larger array the ends of each loop alone are inside, those of both are not.
    check(function, RNG.random((N + 3, N + 3)) if function is left_corner else square())


@pytest.mark.parametrize(("function", "args"), [(only_in_part, (N,)), (made_before, (N, N))])
def test_nothing_is_read_that_was_never_written(function, args):
    traced = interpreted(function)
    traced(RNG.random(args))
    assert not list(program_faults(traced._of((), {}).runner.built.module))


class _Asking:
    """An iterator that notes, at its end, what is read behind its loop."""

    def __init__(self, found):
        self._found, self._left = found, 2

    def __iter__(self):
        return self

    def __next__(self):
        self._left -= 1
        if self._left < 0:
            self._found.append(read_behind(sys._getframe(1)))
            raise StopIteration
        return self._left


def test_variables_that_are_read_behind_a_loop():
    found = []

    def loops(x, y):
        for i in _Asking(found):
            t = u = x + i
            v = w = t
        t = 3 if x else y
        try:
            u = t + w
        except ValueError:
            print(v)
        return u

    loops(1, 2)
    # Of cells nobody knows who reads them.
    assert found[0] == {"x", "y", "w", "v", "u", "found"}
