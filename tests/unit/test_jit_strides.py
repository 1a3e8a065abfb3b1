"""`as_strided`, and what joins and counts by being indexed: `r_`, `c_`, `mgrid`, `ogrid`."""

# pyright: basic

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import irkit
from irkit.errors import UnsupportedError
from tests.unit.jitted import check, interpreted

ROW = np.arange(9.0) ** 2
TABLE = np.arange(20.0).reshape(4, 5)


def test_windows_by_strides():
    check(lambda x: as_strided(x, (7, 3), (8, 8)).sum(1), ROW)
    check(lambda x: np.lib.stride_tricks.as_strided(x, (3, 4), (8, 16)), ROW)
    check(lambda x: as_strided(x[::-1], (3, 4), (-8, -8)).copy(), ROW)
    check(lambda x: as_strided(x, (3, 3), (0, 8)) * 2, ROW)
    check(lambda x: as_strided(x, (2, 2, 3, 3), x.strides * 2).sum((2, 3)), TABLE)
    check(
        lambda x: as_strided(x, (2, 2, 3, 3), x.strides * 2).sum((2, 3)), np.asfortranarray(TABLE)
    )
    check(lambda x: as_strided(x, (9,), (8,)), TABLE[1:3])
    check(lambda x: as_strided(x + 1j, (3, 3), (16, 32)).imag, ROW)
    check(lambda x: as_strided(x, (3, 3), (16, 32)), ROW + 1j)
    check(lambda x: (as_strided(x), as_strided(x, (2, 2)), as_strided(x, (0, 3), (8, 8))), ROW)


def test_a_loop_over_windows():
    def total(x):
        windows, s = as_strided(x, (6, 3), (8, 8)), np.zeros(3)
        for i in irkit.range(6):
            s += windows[i]
        return s

    check(total, ROW)


def test_a_view_of_other_strides_is_written():
    def written(x):
        rows = as_strided(x, (3, 3), (24, 8))
        rows[1] = rows[0]
        rows += 1
        return rows

    check(written, ROW)


def overlapping(x):
    windows = as_strided(x, (3, 3), (8, 8))
    windows[1] = 5
    return x


@pytest.mark.parametrize(
    ("function", "x", "message"),
    [
        (overlapping, ROW, "or a view, whose elements share memory"),
        (lambda x: as_strided(x, (3, 4), (8, 32)), ROW, "elements outside of the array's memory"),
        (lambda x: as_strided(x[::-1], (3, 4), (8, 8)), ROW, "elements outside"),
        (lambda x: as_strided(x, (3,), (4,)), ROW, "parts of elements"),
        (lambda x: as_strided(x, (2, 2)), TABLE[::2, ::2], "with gaps between its elements"),
        (lambda x: as_strided(x, (2, 2)), TABLE[:, ::4], "with gaps between its elements"),
    ],
)
def test_strides_that_are_refused(function, x, message):
    with pytest.raises(UnsupportedError, match=message):
        interpreted(function)(x)


def test_arguments_that_overlap_have_no_strides_of_their_own():
    x = np.arange(9.0)
    with pytest.raises(UnsupportedError, match="or that overlaps another"):
        interpreted(lambda x, y: as_strided(x, (3,), (8,)) + y[:3])(x[:5], x[2:])


def test_joined_by_an_index():
    check(lambda x, t: (np.r_[x, 1, t[0]], np.r_[1:4, x, 0], np.c_[t, t[:, 0]]), ROW, TABLE)
    check(lambda x: (np.c_[x, x], np.r_["0,2", x, x], np.r_["1,2,0", x, x], np.r_[x[:1]]), ROW)
    check(lambda x: (np.r_[x[0], x[1], 2], np.r_[np.float32(1), x.astype("f4"), 2]), ROW)


def test_grids_are_arrays_of_the_trace():
    def grids(x):
        whole, open_ = np.mgrid[0:3, 0:4], np.ogrid[:3, :4]
        whole *= 2
        return whole + x[0], open_[0] * open_[1] + x[1], np.mgrid[0:1:3j] * x[2]

    check(grids, ROW)

    def growing(x):
        total = 0
        for i in range(6):
            total = total + np.mgrid[0:i].sum() + x[i]
        return total

    check(growing, ROW)
