"""What functions that Numba compiles for the host do to their arrays, and what a DAG copies for them."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from test_dags import MODELS, square

import irkit
from irkit.dags.inference.host_code import host_effects
from irkit.dags.inference.memory_values import Root
from irkit.dags.mock import MockDevice

pytestmark = pytest.mark.filterwarnings("ignore:Grid size:Warning")


@numba.njit
def halved(x, y):
    for i in range(x.size):
        y[i] = x[i] / 2


@numba.njit
def by_another(x, y):
    halved(x[1:], y)


@numba.njit
def of_pairs(pair, y):
    y[:] = pair[0].sum() + np.mean(pair[0]) * pair[1].size


@numba.njit
def in_place(x, y):
    x += y


@numba.njit
def through_a_view(x, y):
    z = x.reshape(2, -1).T
    z[0, 0] = y.shape[0]


@numba.njit
def only_sizes(x, y):
    return x.size + y.size


@numba.njit
def swapped(x, y):
    for _ in range(3):
        x, y = y, x
    y[0] = 1.0


@numba.njit
def unknown_call(x, y):
    y[0] = np.linalg.norm(x)


@numba.njit(parallel=True)
def in_parallel(x, y):
    for i in numba.prange(x.size):
        y[i] = x[i]


X, Y = Root(0), Root(1)


@pytest.mark.parametrize(
    ("function", "reads", "writes"),
    [
        (halved, {X}, {Y}),
        (by_another, {X}, {Y}),
        (in_place, {X, Y}, {X}),
        (through_a_view, set(), {X}),
        (only_sizes, set(), set()),
        (swapped, set(), {X, Y}),
    ],
)
def test_what_is_read_and_written(function: Any, reads: set[Root], writes: set[Root]) -> None:
    found = host_effects(function, (np.ones(8), np.ones(8)))
    assert found is not None
    assert (found.reads, found.writes) == (reads, writes)


@pytest.mark.parametrize("function", [unknown_call, in_parallel])
def test_what_is_not_known_is_not_guessed(function: Any) -> None:
    """At the least what is done is said."""
    found = host_effects(function, (np.ones(8), np.ones(8)))
    assert found is not None
    assert X in found.reads
    assert Y in found.writes


def test_items_of_tuples_are_told_apart() -> None:
    found = host_effects(of_pairs, ((np.ones(8), np.ones(8)), np.ones(8)))
    assert found is not None
    assert found.reads == {Root(0, (0,))}
    assert found.writes == {Y}


def test_other_functions_say_nothing() -> None:
    assert host_effects(np.copyto, (np.ones(3), np.ones(3))) is None
    assert host_effects(halved, (object(), np.ones(3))) is None
    assert host_effects(halved, (np.ones(3), "x")) is None


def copies(function: Any) -> list[str]:
    """What a DAG copies around a function of the host's between two kernels."""
    x, y, out = np.arange(8.0), np.zeros(8), np.zeros(8)
    device = MockDevice(0, MODELS)
    with irkit.dag(device) as d:
        square[1, 32](x, x[:])
        d.call(function, x, y)
        square[1, 32](x, out)
        square[1, 32](y, y[:])
    d.run()
    np.testing.assert_array_equal(out, np.arange(8.0) ** 4)
    np.testing.assert_array_equal(y, (np.arange(8.0) ** 2 / 2) ** 2)
    return [r["name"] for r in d.report() if r["kind"] == "to_device"]


def test_what_a_function_only_reads_is_not_copied_back() -> None:
    # What the last kernel but one writes whole is not copied there.
    assert len(copies(halved)) == 2
    assert len(copies(halved.py_func)) == 3
