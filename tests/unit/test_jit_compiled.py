"""`irkit.jit` whole: traced, compiled, run on a CPU; patterns of arguments, guards, what can be looked at."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import irkit
from irkit.errors import InvalidModelError, UnsupportedError
from tests.unit.jitted import check, interpreted

RNG = np.random.default_rng(0)


def compiled(function):
    return irkit.jit(target="cpu", mode="serial")(function)


def black_scholes(price, strike, t):
    c05, c10 = 3.0, 1.5
    a = np.log(price / strike)
    b = t * -0.1
    z = t * 0.4
    c = 0.25 * z
    y = 1 / np.sqrt(z)
    w1, w2 = (a - b + c) * y, (a - b - c) * y
    d1, d2 = c05 + c05 * np.tanh(w1), c05 + c10 * np.arctan(w2)
    strike *= np.exp(b)
    call = price * d1 - strike * d2
    np.subtract(call, price, out=t)
    return call, t


def statistics(x):
    centred = x - x.mean(axis=0)
    return centred.T @ centred / (x.shape[0] - 1.0), np.where(x > 0, x, 0).sum(1), x.max()


def test_whole_functions_are_compiled():
    check(black_scholes, *(RNG.random((3, 1000)) + 0.5), tolerance=1e-12, jit=compiled)
    check(statistics, RNG.random((50, 7)), tolerance=1e-12, jit=compiled)


def scale(x, by=2):
    x *= by
    return x


def test_each_pattern_is_traced_once():
    traced = interpreted(scale)
    x = RNG.random((4, 4))
    calls = [
        lambda: traced(x),
        lambda: traced(x, 2),
        lambda: traced(x, 2.0),
        lambda: traced(x.T),
        lambda: traced(x[:2]),
        lambda: traced(x.astype("f4")),
    ]
    for call in calls * 2:
        call()
    patterns = sum(len(found) for found in traced._known.values())
    # Of `by` left out and given, and of 2 and 2.0, the keys differ.
    assert patterns == len(calls)


LIMIT = 1.0


def limited(x):
    return np.minimum(x, LIMIT)


def test_globals_are_guarded():
    global LIMIT
    traced = interpreted(limited)
    x = np.array([0.5, 3.0])
    assert traced(x).tolist() == [0.5, 1.0]
    LIMIT = 2.0
    assert traced(x).tolist() == [0.5, 2.0]
    LIMIT = 1.0
    assert traced(x).tolist() == [0.5, 1.0]
    assert sum(len(found) for found in traced._known.values()) == 2


def add_in_place(a, b):
    a += b
    return a


def test_aliasing_patterns_are_traced_apart():
    traced = interpreted(add_in_place)
    x = np.arange(6.0)
    traced(x[:3], x[3:])
    traced(x[1:4], x[:3])
    traced(x[:3], x[:3])
    want = np.arange(6.0)
    want[:3] += want[3:]
    want[1:4] += want[:3].copy()
    want[:3] += want[:3]
    assert np.array_equal(x, want)
    assert sum(len(found) for found in traced._known.values()) == 3


def test_results_are_views_of_the_callers_arrays():
    def views(x, y):
        z = x + y
        return x, x[1:], y.T[::-1], z[0], z, z[::2]

    for turn in (lambda a: a, lambda a: a.T, lambda a: a[:, ::-1], lambda a: a[::2, 1:]):
        x, y = (turn(RNG.random((6, 6))) for _ in range(2))
        traced = interpreted(views)
        same, tail, flipped, row, z, half = traced(x, y)
        assert same is x
        assert np.shares_memory(tail, x)
        assert np.shares_memory(flipped, y)
        assert np.array_equal(flipped, y.T[::-1])
        assert np.shares_memory(z, half)
        assert np.array_equal(tail, x[1:])
        assert np.array_equal(row, (x + y)[0])


def test_what_lies_apart_is_copied_and_written_back():
    whole = RNG.random((50, 50))
    x = whole[:, 7]
    want = whole.copy()
    want[:, 7] *= 2
    result = interpreted(scale)(x)
    assert result is x
    assert np.array_equal(whole, want)
    repeated = np.lib.stride_tricks.as_strided(whole, (3, 4), (0, 8))
    with pytest.raises(UnsupportedError, match="elements share memory"):
        interpreted(scale)(repeated)


def test_a_call_from_a_traced_function_is_part_of_it():
    inner = interpreted(lambda x: x * 2)

    def outer(x):
        return inner(x) + 1

    assert interpreted(outer)(np.ones(2)).tolist() == [3, 3]


def test_methods_and_threads():
    class Model:
        weight = 3.0

        @irkit.jit(target="cpu")
        def plain(x):
            return x * 2

    assert Model.plain(np.ones(2)).tolist() == [2, 2]
    traced = interpreted(scale)
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(traced(np.ones(3)).tolist()))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[2, 2, 2]] * 4
    assert sum(len(found) for found in traced._known.values()) == 1


def test_what_can_be_looked_at():
    traced = compiled(statistics)
    with pytest.raises(InvalidModelError, match="was not called yet"):
        traced.ir()
    traced.compile(RNG.random((5, 3)))
    assert "memref.alloc" in traced.ir("program")
    assert "graph.matmul" in traced.ir("graph")
    assert "task.program" in traced.ir("schedule")
    assert "def " in traced.source
    assert traced.report()["proved"]
    assert traced.explain().startswith("1 arrays (x) in 1 buffers")
    assert traced.timelines()
    with pytest.raises(UnsupportedError, match="level 'x'"):
        traced.ir("x")


def first_and_next(a, v):
    """What is read of `a` before two rows of it are written is written last."""
    for i in irkit.range(2, 8):
        a[i], a[0] = a[1].copy(), a[i - 1].copy()
    for i in irkit.range(1, 8):
        last = v[i - 1].copy()
        v[i] *= 2
        v[:] = v * 3 + last


def test_a_slice_that_is_read_behind_a_write_to_all_of_its_array():
    check(first_and_next, RNG.random((10, 8)), np.arange(9.0), jit=compiled)


def by_way_of(x):
    """What differs in types inside of a sum alone, and in how often a number is summed."""
    narrow = x.astype("i1").astype("i8").sum(), x.astype("i2").astype("i8").sum()
    often = np.broadcast_to(x[1], (8,)).sum() * 2, np.broadcast_to(x[1], (9,)).sum() * 2
    return *narrow, *often


def test_what_differs_in_types_inside_is_not_one():
    check(by_way_of, np.arange(0, 60_000, 997), jit=compiled)
