"""`accumulate`, `reduce` and `reduceat` of universal functions, and the views that NumPy makes of memory."""

# pyright: basic

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import irkit
from irkit.errors import UnsupportedError
from tests.unit.jitted import check, interpreted

compiled = irkit.jit(target="cpu")
RNG = np.random.default_rng(5)
ROW, LONG, MATRIX = RNG.random(17), RNG.random(333), RNG.random((3, 140, 2))
WHOLE = RNG.integers(1, 9, 200)
ODD = LONG.copy()
ODD[[37, 150, 222]] = np.nan, np.inf, -np.inf


def test_running_extremes_have_the_bits_of_numpy():
    check(lambda x: (np.maximum.accumulate(x), np.minimum.accumulate(-x)), ODD)
    check(lambda x: (np.fmin.accumulate(x), np.fmax.reduce(x), np.logical_xor.reduce(x > 0.5)), ODD)
    check(
        lambda x: (np.maximum.accumulate(x, axis=1), np.minimum.accumulate(x[:, ::-3], 1)), MATRIX
    )
    check(lambda x: np.maximum.accumulate(x, out=np.empty(333)), LONG)


def test_running_sums_in_blocks():
    f = compiled(lambda x: (np.cumsum(x, 1), np.cumsum(x), x[:, ::-1].cumsum(axis=1)))
    want = f.__wrapped__(MATRIX)
    for got, wanted in zip(f(MATRIX), want, strict=True):
        np.testing.assert_allclose(got, wanted, 1e-13)
    check(lambda x: (np.cumsum(x), np.cumsum(x.astype(np.int8), dtype=np.int8)), WHOLE)
    g = compiled(lambda x: np.cumsum(x))
    # What comes before an infinite element is not touched by it.
    assert np.array_equal(np.isfinite(g(np.nan_to_num(ODD))), np.isfinite(np.nan_to_num(ODD)))
    assert np.array_equal(np.isnan(g(ODD)), np.isnan(np.cumsum(ODD)))


def test_whole_numbers_bit_by_bit():
    check(lambda x: (np.bitwise_or.accumulate(x), np.bitwise_xor.accumulate(x)), WHOLE)
    check(lambda x: (np.bitwise_and.reduce(x), np.gcd.reduce(x), np.cumprod(x[:9])), WHOLE)
    table = WHOLE.reshape(4, 5, 10)
    check(lambda x: (np.bitwise_or.reduce(x, axis=(0, 2)), np.bitwise_or.reduce(x, 1)), table)
    check(lambda x: np.bitwise_xor.reduce(x, axis=None, keepdims=True), table)


def test_functions_that_keep_their_order():
    check(lambda x: (np.subtract.accumulate(x), np.divide.accumulate(x)), ROW)
    check(lambda x: (np.subtract.reduce(x), np.true_divide.accumulate(x)), WHOLE[:7])
    check(lambda x: np.subtract.accumulate(x), WHOLE)
    with pytest.raises(UnsupportedError, match="divide of 333 elements one after another"):
        interpreted(lambda x: np.divide.accumulate(x))(LONG)
    with pytest.raises(ValueError, match="not reorderable"):
        interpreted(lambda x: np.subtract.reduce(x, axis=(0, 1)))(MATRIX)
    with pytest.raises(TypeError, match=r"No loop matching|did not contain a loop"):
        interpreted(lambda x: np.less.accumulate(x))(ROW)


def test_reductions_between_indices():
    check(lambda x: np.maximum.reduceat(x, [0, 4, 8, 3, 3, 16]), ROW)
    check(lambda x: np.add.reduceat(x, np.array([2, 1]), axis=1), WHOLE.reshape(20, 10))
    with pytest.raises(IndexError, match="index 17 out-of-bounds"):
        interpreted(lambda x: np.add.reduceat(x, [3, 17]))(ROW)


def test_windows_and_parts_are_views():
    check(lambda x: (sliding_window_view(x, 4), sliding_window_view(x, 4).max(1)), ROW)
    check(lambda x: sliding_window_view(x, (1, 3, 2)).min((3, 4, 5)), MATRIX)

    def parts(x):
        several = np.array_split(x, 4)
        several[1] += 1
        return np.split(x, [3, 8]), np.hsplit(x, [2]), several

    check(parts, ROW.copy())
    with pytest.raises(ValueError, match="equal division"):
        interpreted(lambda x: np.split(x, 3))(ROW)


def test_what_numpy_does_not_let_be_written():
    f = compiled(lambda x: (x.diagonal(), sliding_window_view(x, 2, axis=0), x.T))
    assert [a.flags.writeable for a in f(np.eye(3))] == [False, False, True]


def test_memory_seen_otherwise():
    def parts(z):
        both = z.view(np.float64)
        both += 1
        return both, z.view()

    check(parts, np.arange(4) + 1j * np.arange(4))
    with pytest.raises(UnsupportedError, match="view of float64 as int64"):
        interpreted(lambda x: x.view(np.int64))(ROW)


def test_copies_have_rows_unless_asked():
    def orders(x):
        return [y.flags.f_contiguous for y in (x.copy(), np.copy(x), x.copy("K"), x.copy("A"))]

    f = compiled(orders)
    x = np.asfortranarray(RNG.random((3, 4)))
    assert f(x) == orders(x) == [False, True, True, True]


def test_signed_beside_unsigned_numbers():
    signed, unsigned = np.array([-5, 3, 2**62]), np.array([3, 3, 2**63], np.uint64)
    check(lambda x, y: (x < y, x <= y, x > y, x >= y, x == y, x != y), signed, unsigned)
    check(lambda x, y: (y < x, y <= x, y > x, y >= x, y == x, y != x), signed, unsigned)


def test_pythons_truths_stay_pythons():
    def alike(x):
        same = np.array_equal(x, x)
        return same, same + same, same * 2.5, np.allclose(x, x + 1)

    found = compiled(alike)(ROW)
    assert found == (True, 2, 2.5, False)
    assert [type(v) for v in found] == [bool, int, float, bool]


def test_numbers_of_a_while_loop():
    def halved(x, scale):
        return irkit.while_loop(
            lambda x, n, e: x.sum() > 1,
            lambda x, n, e: (x / 2, n + 1, x.max()),
            (x, 0, scale),
        )

    found = compiled(lambda x: halved(x, 1.0))(ROW)
    want = halved(ROW, 1.0)
    assert [type(v) for v in found] == [type(v) for v in want]
    assert found[1] == want[1]


@pytest.mark.parametrize("jit", [interpreted, compiled])
def test_running_sums_of_nothing_but_minus_zero(jit):
    x = np.zeros((2, 90), np.float32)
    x[:, :70] = -0.0
    f = jit(lambda x: (np.cumsum(x, 1), np.add.accumulate(x[:, ::-1], 1), np.cumsum(x[0, :9])))
    for got, want in zip(f(x), f.__wrapped__(x), strict=True):
        assert np.array_equal(np.signbit(got), np.signbit(want))
