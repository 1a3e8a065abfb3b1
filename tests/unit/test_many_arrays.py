"""Programs of more arrays than one entry point takes: they are bound by groups of one kind."""

from __future__ import annotations

import re

import numpy as np
import pytest

import irkit
from irkit.lower.task_to_numba.entry_cpu import GROUP, MOST_ARRAYS

DTYPES = (np.float32, np.bool_, np.int32)


def mixed(*arrays):
    """Each array by itself, so that none is taken for another."""
    return tuple(~a if a.dtype == np.bool_ else a * 3 for a in arrays)


def given(count):
    rng = np.random.default_rng(count)
    shapes = [(3,), (2, 4)]
    return [
        np.asarray(rng.integers(0, 9, shapes[n % 2])).astype(DTYPES[n * 2 % 3])
        for n in range(count)
    ]


def check(program, arrays):
    for found, expected in zip(program(*arrays), mixed(*arrays), strict=True):
        assert np.asarray(found).dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("count", "mode"), [(32, "serial"), (33, "serial"), (33, "persistent"), (75, "per-wave")]
)
def test_each_array_is_bound_where_it_belongs(count, mode):
    program = irkit.jit(mixed, target="cpu", device="cpu2", mode=mode)
    arrays = given(count)
    check(program, arrays)
    # Other places, and the same program.
    check(program, [a.copy() for a in arrays])


def test_these_counts_are_at_the_border():
    assert MOST_ARRAYS == 2 * 32


def test_an_entry_point_takes_a_bounded_number_of_arrays():
    program = irkit.jit(mixed, target="cpu", device="cpu2")
    check(program, given(75))
    counts = [line.count("types.Array(") for line in program.source.splitlines()]
    assert max(counts) == GROUP
    # One for each rank and width of an element: one byte or four.
    assert len(re.findall(r"^def bind_\d+\(", program.source, re.MULTILINE)) == 2 * 2
