"""Which arrays a kernel writes whole: they need not be on the device before."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda")

from numba import cuda, float64

import irkit
from irkit.dags.kernels import NumbaLaunch
from irkit.dags.mock import MockDevice

pytestmark = pytest.mark.filterwarnings("ignore:Grid size:Warning")
LIMIT = 6


@cuda.jit
def strided(x, y):
    for i in range(cuda.grid(1), y.size, cuda.gridsize(1)):
        y[i] = 2 * x[i]


@cuda.jit
def written_out(x, y):
    first = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    for i in range(first, len(y), cuda.blockDim.x * cuda.gridDim.x):
        y[i] = 2 * x[i]


@cuda.jit
def a_thread_each(x, y):
    i = cuda.grid(1)
    if i < y.shape[0]:
        y[i] = 2 * x[i]


@cuda.jit
def threads_that_leave(x, y):
    i = cuda.threadIdx.x + cuda.blockDim.x * cuda.blockIdx.x
    if i >= y.shape[0]:
        return
    y[i] = 2 * x[i]


@cuda.jit
def both_branches(x, y):
    for i in range(cuda.grid(1), x.shape[0], cuda.gridsize(1)):
        value = -x[i] if x[i] < 0 else x[i]
        y[i] = value


@cuda.jit
def of_a_larger(x, y):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        if i < 1000000:
            y[i] = x[i]


@cuda.jit
def from_one(x, y):
    for i in range(1, y.size):
        y[i] = x[i]


@cuda.jit
def one_less(x, y):
    for i in range(cuda.grid(1), y.size - 1, cuda.gridsize(1)):
        y[i] = x[i]


@cuda.jit
def some(x, y):
    for i in range(cuda.grid(1), y.size, cuda.gridsize(1)):
        if x[i] > 0.5:
            y[i] = x[i]


@cuda.jit
def until(x, y):
    for i in range(y.size):
        if x[i] > 0.9:
            break
        y[i] = x[i]


@cuda.jit
def but_some(x, y):
    for i in range(y.size):
        if x[i] > 0.9:
            continue
        y[i] = x[i]


@cuda.jit
def shifted(x, y):
    for i in range(cuda.grid(1), y.size - 1, cuda.gridsize(1)):
        y[i + 1] = x[i]


@cuda.jit
def wide_steps(x, y):
    for i in range(cuda.grid(1), y.size, 2 * cuda.gridsize(1)):
        y[i] = x[i]


@cuda.jit
def few_threads(x, y):
    first = cuda.grid(1)
    if first < 2:
        for i in range(first, y.size, cuda.gridsize(1)):
            y[i] = x[i]


@cuda.jit
def first_thread(x, y):
    if cuda.threadIdx.x == 0:
        for i in range(y.size):
            y[i] = x[i]


@cuda.jit
def added(x, y):
    for i in range(cuda.grid(1), y.size, cuda.gridsize(1)):
        y[i] += x[i]


@cuda.jit
def to_six(x, y):
    for i in range(cuda.grid(1), LIMIT, cuda.gridsize(1)):
        y[i] = x[i]


@cuda.jit
def reassigned(x, y):
    for i in range(cuda.grid(1), y.size, cuda.gridsize(1)):
        if x[i] < 0.5:
            i = 0
        y[i] = x[i]


@cuda.jit
def no_bound(x, y):
    i = cuda.grid(1)
    y[i] = x[i]


WHOLE = [strided, written_out, a_thread_each, threads_that_leave, both_branches]
PARTS = [of_a_larger, from_one, one_less, some, until, but_some, shifted, wide_steps, few_threads,
         first_thread, added, to_six, reassigned]  # fmt: skip


def covers(kernel: Any, grid: tuple[int, ...], block: tuple[int, ...], *arrays: Any) -> bool:
    """Whether a launch writes all of its second argument."""
    used = NumbaLaunch(arrays, kernel, grid, block).uses(True)
    return next(use for use in used if use.path == (1,)).covers


def name(kernel: Any) -> str:
    return str(kernel.py_func.__name__)


@pytest.mark.parametrize("kernel", WHOLE, ids=name)
def test_what_is_written_whole(kernel: Any) -> None:
    assert covers(kernel, (2,), (32,), np.ones(50), np.ones(50))


@pytest.mark.parametrize("kernel", PARTS, ids=name)
def test_what_is_written_in_part(kernel: Any) -> None:
    assert not covers(kernel, (2,), (32,), np.ones(50), np.ones(50))


def test_the_launch_decides() -> None:
    """Too few threads; a bound of another array; arrays with gaps; a bound that is known."""
    assert not covers(a_thread_each, (1,), (32,), np.ones(50), np.ones(50))
    assert not covers(no_bound, (1,), (32,), np.ones(50), np.ones(50))
    assert covers(no_bound, (5,), (10,), np.ones(50), np.ones(50))
    assert not covers(both_branches, (2,), (32,), np.ones(49), np.ones(50))
    assert not covers(strided, (2,), (32,), np.ones(50), np.ones(100)[::2])
    assert covers(to_six, (2,), (32,), np.ones(LIMIT), np.ones(LIMIT))


@cuda.jit
def plane(x, y):
    i0, j0 = cuda.grid(2)
    for i in range(i0, y.shape[0], cuda.gridsize(2)[0]):
        for j in range(j0, y.shape[1], cuda.gridsize(2)[1]):
            y[i, j] = x[i, j]


@cuda.jit
def rows(x, y):
    n, m = y.shape
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        for j in range(m):
            y[i, j] = x[i, j]


@cuda.jit
def turned(x, y):
    i, j = cuda.grid(2)
    if i >= x.shape[0] or j >= x.shape[1]:
        return
    y[j, i] = x[i, j]


@cuda.jit
def diagonal(x, y):
    for i in range(cuda.grid(1), y.shape[0], cuda.gridsize(1)):
        for j in range(cuda.grid(1), y.shape[1], cuda.gridsize(1)):
            y[i, j] = x[i, j]


@cuda.jit
def one_column(x, y):
    for i in range(cuda.grid(1), y.shape[0], cuda.gridsize(1)):
        y[i, i] = x[i, i]


@cuda.jit
def mixed_up(x, y):
    i0, j0 = cuda.grid(2)
    for i in range(i0, y.shape[0], cuda.gridsize(2)[1]):
        for j in range(j0, y.shape[1], cuda.gridsize(2)[0]):
            y[i, j] = x[i, j]


@cuda.jit
def lower(x, y):
    for i in range(cuda.grid(1), y.shape[0], cuda.gridsize(1)):
        for j in range(i):
            y[i, j] = x[i, j]


def test_planes() -> None:
    square = np.ones((12, 12)), np.ones((12, 12))
    assert all(covers(k, (2, 2), (8, 8), *square) for k in (plane, rows, turned))
    others = (diagonal, one_column, mixed_up, lower)
    assert not any(covers(k, (2, 2), (8, 8), *square) for k in others)
    # The bounds of `turned` are those of the other array, the other way round.
    assert covers(turned, (2, 2), (8, 8), np.ones((7, 12)), np.ones((12, 7)))
    assert not covers(turned, (2, 2), (8, 8), np.ones((7, 12)), np.ones((12, 8)))
    assert not covers(turned, (1, 2), (8, 8), np.ones((12, 12)), np.ones((12, 12)))


def copies(device: MockDevice, kernel: Any, x: Any, y: Any) -> list[str]:
    with irkit.dag(device) as d:
        kernel[2, 32](x, y)
    with d.plan() as plan:
        plan.run()
        return [task.name for task in plan.plan.tasks if task.kind == "to_device"]


def test_what_is_written_whole_is_not_copied_there() -> None:
    x, y = np.arange(50.0), np.full(50, np.nan)
    assert copies(MockDevice(), strided, x, y) == ["to device: x"]
    np.testing.assert_array_equal(y, 2 * x)
    z = np.full(50, 7.0)
    assert copies(MockDevice(), some, x / 50, z) == ["to device: x", "to device: y"]
    assert (z[:20] == 7).all()


@cuda.jit
def backwards(y, x):
    for i in range(cuda.grid(1), y.size, cuda.gridsize(1)):
        y[i] = x[i] + float64(1)


def test_an_array_that_is_read_by_another_name_is_copied() -> None:
    """The written argument comes first, and is the one that is read."""
    y = np.arange(50.0)
    with irkit.dag(MockDevice()) as d:
        backwards[2, 32](y, y)
    with d.plan() as plan:
        plan.run()
    np.testing.assert_array_equal(y, np.arange(50.0) + 1)


@pytest.mark.parametrize("seed", range(6))
def test_random_launches_leave_what_one_after_another_leaves(seed: int) -> None:
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    arrays = [rng.random(24) for _ in range(4)]
    serial = [a.copy() for a in arrays]
    with irkit.dag(MockDevice(seed=seed)) as d:
        for _ in range(8):
            kernel = draw.choice([*WHOLE, some, one_less, added, wide_steps, few_threads])
            a, b = draw.sample(range(4), 2)
            part = draw.choice([slice(None), slice(0, 16), slice(8, 24)])
            blocks = draw.choice([1, 2])
            kernel[blocks, 16](arrays[a][part], arrays[b][part])
            with irkit.dag(MockDevice()) as alone:
                kernel[blocks, 16](serial[a][part], serial[b][part])
            with alone.plan() as plan:
                plan.run()
    with d.plan() as plan:
        plan.run()
    for found, wanted in zip(arrays, serial, strict=True):
        np.testing.assert_array_equal(found, wanted)
