"""DAGs in odd hands: arrays that a function comes to unseen, recordings that end early, sizes of nothing."""

# pyright: basic, reportOptionalMemberAccess=false
from __future__ import annotations

import functools
import threading
from typing import NamedTuple

import numpy as np
import pytest
from numba import cuda

import irkit
from irkit.dags.mock import MockDevice

GLOBAL = np.zeros(8)


@cuda.jit
def add_one(x):
    n = cuda.grid(1)
    if n < x.size:
        x[n] += 1


@cuda.jit
def double(x):
    n = cuda.grid(1)
    if n < x.size:
        x[n] *= 2


class Holder:
    def __init__(self, x):
        self.held = [x]

    def square(self):
        self.held[0] *= self.held[0]


def square(x):
    x *= x


def square_first(parts):
    parts[0] *= parts[0]


def square_named(parts):
    parts["x"] *= parts["x"]


def square_global():
    square(GLOBAL)


def in_a_closure(x):
    def run():
        square(x)

    return run


CALLS = {
    "an argument": lambda d, x: d.call(square, x),
    "a list": lambda d, x: d.call(square_first, [x]),
    "a dict": lambda d, x: d.call(square_named, {"x": x}),
    "an object": lambda d, x: d.call(Holder.square, Holder(x)),
    "a method": lambda d, x: d.call(Holder(x).square),
    "a method of the array": lambda d, x: d.call(x.sort),
    "a closure": lambda d, x: d.call(in_a_closure(x)),
    "partial": lambda d, x: d.call(functools.partial(np.multiply, x, x, out=x)),
    "a default": lambda d, x: d.call(lambda y=x: square(y)),
    "a global": lambda d, x: d.call(square_global),
}


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_arrays_that_functions_come_to(name, eager):
    for seed in range(6):
        x = GLOBAL if name == "a global" else np.zeros(8)
        x[:] = np.arange(8.0)[::-1]
        with irkit.dag(MockDevice(seed=seed), eager=eager) as d:
            add_one[2, 4](x)
            CALLS[name](d, x)
            double[2, 4](x)
        if not eager:
            d.run()
        between = np.arange(1.0, 9) if "array" in name else np.arange(8.0, 0, -1) ** 2
        np.testing.assert_array_equal(x, between * 2)


def test_functions_that_come_to_too_much():
    many = [[n + 0.5] for n in range(20_000)]
    said = r"hostile.py:\d+: function 'square_first' may come to more than 10000 values"
    with irkit.dag("mock") as d, pytest.raises(irkit.UnsupportedError, match=said):
        d.call(square_first, many)


# Recordings that are not over


def test_what_was_launched_until_now_is_planned():
    x = np.zeros(8)
    with irkit.dag("mock") as d:
        add_one[2, 4](x)
        d.run()
        assert x.tolist() == [1] * 8
        double[2, 4](x)
    d.run()
    assert x.tolist() == [4] * 8
    d.launch(add_one[2, 4], x)
    d.run()
    assert x.tolist() == [11] * 8


def test_without_a_with():
    x = np.zeros(8)
    d = irkit.dag("mock")
    d.launch(add_one[2, 4], x)
    d.run()
    assert x.tolist() == [1] * 8


def test_a_recording_that_an_error_ended():
    x, d = np.zeros(8), irkit.dag("mock")

    def record():
        with d:
            add_one[2, 4](x)
            raise KeyError(3)

    with pytest.raises(KeyError):
        record()
    with pytest.raises(
        irkit.UnsupportedError, match=r"ended by an error \(KeyError\): record it anew"
    ):
        d.run()
    assert x.tolist() == [0] * 8


def test_one_dag_within_itself():
    with irkit.dag("mock") as d:
        with pytest.raises(
            irkit.UnsupportedError, match=r"hostile.py:\d+: launches are recorded by"
        ):
            d.__enter__()
        x = np.zeros(8)
        with irkit.dag("mock") as inner:
            add_one[2, 4](x)
        double[2, 4](x)
    inner.run()
    d.run()
    assert x.tolist() == [2] * 8


def test_threads_record_and_run():
    arrays = [np.full(8, float(n)) for n in range(6)]
    errors = []

    def go(x):
        try:
            with irkit.dag("mock") as d:
                add_one[2, 4](x)
                double[2, 4](x)
            d.run()
        except BaseException as error:
            errors.append(error)

    shared = np.zeros(8)
    with irkit.dag("mock") as d:
        add_one[2, 4](shared)
    plan = d.plan()
    threads = [threading.Thread(target=go, args=(x,)) for x in arrays]
    threads += [threading.Thread(target=plan.run) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not errors
    assert [x[0] for x in arrays] == [2.0 * (n + 1) for n in range(6)]
    assert shared.tolist() == [6] * 8


# What is no launch


@pytest.mark.parametrize(
    "sizes", [(0, 4), (2, 0), (-1, 4), (2, 2048), (2, (32, 32, 2)), ((1, 70000), 4)]
)
def test_sizes_that_no_gpu_launches(sizes):
    with (
        irkit.dag("mock"),
        pytest.raises(irkit.UnsupportedError, match=r"kernel 'add_one': (grid|block) \("),
    ):
        add_one[sizes](np.zeros(8))


def test_numbers_of_arguments():
    with (
        irkit.dag("mock"),
        pytest.raises(irkit.UnsupportedError, match="'add_one' takes 1 arguments, got 2"),
    ):
        add_one[2, 4](np.zeros(8), 1)


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [(-1, "f8"), ("abc", "f8"), ((2, -3), "f8"), (2.5, "f8"), (2, object), (2, "zz")],
)
def test_memory_that_cannot_be(shape, dtype):
    with irkit.dag("mock") as d:
        for make in (d.empty, d.staging):
            with pytest.raises(irkit.InvalidInputError, match=r"hostile.py:\d+: "):
                make(shape, dtype)


def test_devices_and_streams_that_are_none():
    with pytest.raises(irkit.UnsupportedError, match="device 3: a DAG runs on"):
        irkit.dag(3)
    with pytest.raises(irkit.UnsupportedError, match="streams='x': a whole number"):
        irkit.dag("mock", streams="x")


class Pair(NamedTuple):
    left: np.ndarray
    right: np.ndarray


@cuda.jit
def add_pair(pair):
    n = cuda.grid(1)
    if n < pair.left.size:
        pair.left[n] += pair.right[n]


def test_named_tuples_stay_what_they_are():
    x, y = np.arange(8.0), np.ones(8)
    with irkit.dag("mock") as d:
        add_pair[2, 4](Pair(x, y))
        double[2, 4](x)
    d.run()
    np.testing.assert_array_equal(x, (np.arange(8) + 1) * 2)


# Random programs of overlapping slices against their order


@cuda.jit
def scaled(x, by):
    """A row or a table, a thread for each element of the first axis."""
    n = cuda.grid(1)
    if n < x.shape[0]:
        x[n] = x[n] * by + n


@cuda.jit
def scaled_table(x, by):
    n, m = cuda.grid(2)
    if n < x.shape[0] and m < x.shape[1]:
        x[n, m] = x[n, m] * by + n - m


@cuda.jit
def rows_added(x, y):
    n, m = cuda.grid(2)
    if n < x.shape[0] and m < x.shape[1]:
        x[n, m] += y[n, m]


@cuda.jit
def added(x, y):
    n = cuda.grid(1)
    if n < x.shape[0]:
        x[n] += y[n]


def on_host(x):
    x[...] = x[..., ::-1].copy() % 1000


def cut(rng, size, least=1):
    """A slice with a step, forwards or backwards, of `least` elements or more."""
    step = int(rng.choice([1, 1, 2, 3, -1, -2]))
    length = int(rng.integers(least, max(least, (size - 1) // abs(step)) + 1))
    first = int(rng.integers(0, size - (length - 1) * abs(step)))
    if step > 0:
        return slice(first, first + (length - 1) * step + 1, step)
    last = first + (length - 1) * -step
    return slice(last, first - 1 if first else None, step)


def random_views(rng, flat):
    """Views of one memory: a row with a step, or a box of the table that it is."""
    if rng.random() < 0.5:
        return flat[cut(rng, flat.size)]
    table = flat.reshape(6, 8)
    if rng.random() < 0.3:
        table = table.T
    return table[cut(rng, table.shape[0]), cut(rng, table.shape[1])]


def random_program(rng, d, arrays):
    for _ in range(int(rng.integers(4, 12))):
        x, by = random_views(rng, arrays[rng.integers(len(arrays))]), float(rng.integers(1, 4))
        y = random_views(rng, arrays[rng.integers(len(arrays))])
        sizes = tuple(min(s) for s in zip(x.shape, y.shape, strict=False))
        pair = x.ndim == y.ndim and rng.random() < 0.6
        if pair:
            x, y = (v[tuple(slice(s) for s in sizes)] for v in (x, y))
        choice = rng.random()
        if choice < 0.2:
            on_host(x) if d is None else d.call(on_host, x)
        elif pair and not np.shares_memory(x, y):
            run(d, added if x.ndim == 1 else rows_added, np.add, x, y)
        else:
            run(d, scaled if x.ndim == 1 else scaled_table, in_order, x, by)


def in_order(x, by, out):
    grids = np.indices(x.shape)
    out[...] = x * by + (grids[0] if x.ndim == 1 else grids[0] - grids[1])


def run(d, kernel, model, x, other):
    if d is None:
        model(x, other, out=x)
    else:
        block = (64,) if x.ndim == 1 else (8, 8)
        kernel[(1,) * x.ndim, block](x, other)


@pytest.mark.parametrize("eager", [False, True])
@pytest.mark.parametrize("seed", range(15))
def test_random_programs_of_overlapping_views(seed, eager):
    right, arrays = ([np.arange(48.0) % (5 + n) for n in range(2)] for _ in range(2))
    random_program(np.random.default_rng(seed), None, right)
    with irkit.dag(MockDevice(seed=seed), eager=eager, streams=1 + seed % 5) as d:
        random_program(np.random.default_rng(seed), d, arrays)
    for _ in range(0 if eager else 1):
        d.run()
    for one, other in zip(arrays, right, strict=True):
        np.testing.assert_array_equal(one, other)
