"""Functions of arrays that random programs (`tools/fuzz/functions`) found to differ from NumPy."""

# pyright: basic

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irkit
from irkit.errors import UnsupportedError
from tests.unit.jitted import check, interpreted

BYTES = np.array([0, 5, 255], np.uint8)
SIGNED = np.array([-3, 100], np.int8)
TURNED = np.arange(24.0).reshape(2, 3, 4).transpose(1, 2, 0)


def test_numbers_that_no_element_can_be():
    check(lambda x: (x < -1, x >= -1, x < 300, x == 300, x != -5), BYTES)
    check(lambda x: (np.less(300, x), x < 200, x > -200), SIGNED)
    check(lambda x: (np.clip(x, -4, 300), np.clip(x, 1, 256)), BYTES)
    check(lambda x: (np.where(x > 1, x, -1), np.where(x > 1, 300, x)), BYTES)
    check(lambda x: (np.where(x > 0, 200, x), np.where(x > 0, x, -200)), SIGNED)


def test_limits_that_numpy_refuses():
    with pytest.raises(OverflowError):
        interpreted(lambda x: np.clip(x, 300, 400))(BYTES)


def test_limits_of_a_number_leave_a_number():
    check(
        lambda x: (np.clip(np.min(x), 0, 9), np.min(x).clip(0, 9).astype(np.bool)),
        np.float32(TURNED),
    )


def test_numbers_have_an_axis_of_their_own():
    check(lambda x: (np.sum(x[0], axis=0), np.max(x[0], axis=-1)), SIGNED)
    check(lambda x: (np.argmin(x[0], axis=-1, keepdims=True), np.cumsum(x[0], axis=0)), SIGNED)
    check(lambda x: (np.argsort(x[0]), np.sort(x[0], axis=None)), SIGNED)
    with pytest.raises(np.exceptions.AxisError):
        interpreted(lambda x: np.sort(x[0], axis=-1))(SIGNED)


def test_a_row_becomes_a_triangle():
    check(lambda x: (np.triu(x), np.tril(x, -1)), BYTES)


def test_rounded_truths_are_half_precision():
    check(lambda x: np.round(x > 0), SIGNED)


@pytest.mark.parametrize("order", "CFAK")
@pytest.mark.parametrize("x", [TURNED, TURNED.T, TURNED[:, ::-1], TURNED[0, ::2]])
def test_elements_in_the_order_of_memory(x, order):
    check(lambda x: (x.ravel(order), x.flatten(order)), x)


def test_strided_elements_in_a_row_are_a_copy():
    def written(x):
        y = x.ravel()
        y += 1
        return y

    check(written, np.arange(12)[::2])
    check(written, np.arange(12).reshape(6, 2)[:, :1])


def test_leading_extents_of_what_is_put_to_picked_places():
    def written(x):
        x[[0, 2], [1]] = np.ones((1, 1, 2))
        return x

    check(written, np.zeros((3, 2)))


def _at(i):
    return i.sum() % 3


def test_rows_at_computed_indices():
    def in_place(a, i):
        a[_at(i)] += 1
        k = _at(i)
        a[k] += 1
        a[k] *= 3
        return a.sum(0), a[k]

    def copied(a, i):
        r = a[_at(i)].copy()
        a += 1
        return r

    def read_before(a, i):
        r = a[_at(i)] * 2
        a += 1
        return r

    def many(a, i):
        for j in range(10):
            k = (i.sum() + j) % 3
            a[k] += j
        return a * 1

    i = np.array([1, 3])
    for f in (in_place, copied, read_before, many):
        check(f, np.zeros((3, 2)), i)


def test_an_array_as_an_index_copies():
    def f(a, i):
        r = a[i]
        r += 1
        return r

    check(f, np.zeros((3, 2)), np.array(1))


def test_views_at_computed_indices_that_tell():
    def read_after(a, i):
        r = a[_at(i)]
        a += 1
        return r

    def written(a, i):
        r = a[_at(i)]
        r += 1
        return r

    def written_within(a, i):
        a[_at(i)][0] = 5
        return a.sum()

    def put_elsewhere(a, i):
        r = a[_at(i)]
        r += 1
        a[_at(i) - 1] = r
        return a

    for f in (read_after, written, written_within, put_elsewhere):
        with pytest.raises(
            UnsupportedError, match=r"test_jit_found.py:\d+: a write to .* computed"
        ):
            interpreted(f)(np.zeros((3, 2)), np.array([1, 3]))


def test_sums_in_the_dtype_of_truths_are_truths():
    few = np.array([0.5, 0.25, -3, 0])
    check(lambda x: (np.sum(x, dtype=bool), np.prod(x[:3], dtype=bool), x.prod(dtype=bool)), few)
    check(lambda x: np.sum(x, dtype=bool), np.ones(256))


def test_what_truths_begin_with():
    check(lambda x: (np.min(x, initial=-2), np.max(x & False, initial=2.5)), SIGNED > 0)
    check(
        lambda x: (np.logical_and.reduce(x, initial=0), np.logical_or.reduce(x, initial=2)), BYTES
    )
    check(lambda x: np.logical_and.reduce(x, where=x > 0, initial=True), BYTES)


def test_an_einsum_that_sums_nothing_is_a_view():
    def written(x):
        turned, diagonal, rows = np.einsum("ij->ji", x), np.einsum("ii->i", x), np.einsum("i...", x)
        turned[0] = 5
        diagonal += 1
        return x * 2, turned, diagonal, rows, np.einsum("ji", x)

    check(written, np.ones((3, 3)))


def test_padding_is_converted_to_the_dtype():
    check(lambda x: (np.pad(x, 1, constant_values=-1), np.pad(x, 1, constant_values=300)), BYTES)


def test_numbers_of_python_that_are_arrays():
    halves = np.array([1, 0.1], np.float16)
    check(lambda x: (np.subtract.outer(x, 2.5), np.add.outer(1, x)), halves)
    check(lambda x: np.einsum("i,->i", x, 2.5), np.array([1, 0.1], np.float32))
    check(lambda x: (np.remainder(300, x, casting="no"), np.add(1, x, casting="safe")), TURNED)


def test_numbers_that_are_added_at_places():
    first: Any = (..., 0)

    def added(x, i):
        np.add.at(x, i, 1)
        np.multiply.at(x, first, 0.5)
        return x * 1

    check(added, np.ones(3, np.float32), np.array([0, 0, 1]))


@pytest.mark.parametrize(
    ("x", "number"), [(np.float32(BYTES), 1.1), (np.uint64(BYTES), 1), (BYTES, -1), (SIGNED, 2.0)]
)
def test_numbers_that_are_added_in_wider_dtypes(x, number):
    def added(x):
        np.add.at(x, [0, 0], number)

    with pytest.raises(UnsupportedError, match="convert the values before"):
        interpreted(added)(x)


def test_powers_of_one_truth_are_integers():
    check(lambda x: (x[0] ** 2, x[0] ** 1, x**2, x**1), SIGNED > 0)


def test_integers_to_powers_that_are_floats_are_floats():
    check(lambda i: (i**2.0, i**1.0, i**2, i**1, i**0.5, i[1] ** 2.0), np.arange(4))

    def in_place(i):
        i **= 2.0

    with pytest.raises(TypeError, match="Cannot cast ufunc 'power'"):
        interpreted(in_place)(np.arange(4))


def test_arrays_without_elements_need_not_be_written():
    def chosen(x, y):
        return np.choose((x > 0).astype(int), [x, y])

    check(chosen, np.zeros((3, 0)), np.array(1.0), jit=irkit.jit(target="cpu"))


def test_arrays_of_the_callers_keep_their_shape():
    def shaped(x):
        x.shape = (2, 2)
        return x

    def own(x):
        y, z = x[:], x * 2
        y.shape = z.shape = 2, 2
        x.shape = (4,)
        y += z
        return y, z

    with pytest.raises(UnsupportedError, match=r"py:\d+: the shape of an array of the caller's"):
        interpreted(shaped)(np.arange(4.0))
    check(own, np.arange(4.0))


@pytest.mark.parametrize(
    "function",
    [
        *(lambda x: np.add.accumulate(x[0]), lambda x: np.hypot.reduceat(x[0], [0])),
        *(lambda x: np.matvec(x, x), lambda x: np.vecmat(x, x), lambda x: np.vecdot(x, x[0])),
    ],
)
def test_too_few_dimensions_are_numpys_errors(function):
    with pytest.raises((TypeError, ValueError)) as theirs:
        function(np.ones(3))
    with pytest.raises(type(theirs.value), match=r"scalar|does not have enough dimensions"):
        interpreted(function)(np.ones(3))


def test_truths_of_no_elements_keep_their_dimensions():
    def reduced(x):
        y = x > 0
        return (
            np.logical_or.reduce(y, axis=1, keepdims=True),
            np.min(y, axis=(0, 1), keepdims=True, initial=0, where=y),
            y.all(axis=1),
        )

    check(reduced, np.zeros((3, 0, 2)))


def test_loops_over_arrays_without_elements():
    def moved(x):
        for i in irkit.range(3):
            y = x[i]
            x[i] = x[-1] + 1
            x[-1] = y
            for j in irkit.range(i):
                x[..., 0] -= x[j, ..., 0]
        return x[1:]

    check(moved, np.zeros((3, 0, 2)))


def test_one_element_is_combined_with_what_numpy_begins_with():
    def reduced(x, n):
        return (
            *(
                np.hypot.reduce(x, axis=0),
                np.hypot.reduce(x, axis=()),
                np.hypot.reduce(x[0], axis=0),
            ),
            *(np.gcd.reduce(n, axis=0), np.gcd.reduce(n), np.lcm.reduce(n)),
            *(np.hypot.reduceat(x, [0], axis=0), np.gcd.reduceat(n, [0, 1, 1], axis=1)),
            np.add.reduceat(n.astype(np.int8), [1, 0], axis=1),
        )

    check(reduced, np.array([[-4.0, 3.0]]), np.array([[-4, 6, -8]]))


def test_an_element_behind_an_ellipsis_is_no_number():
    def picked(x, i):
        y = x[..., i]
        y[...] = 9
        return x, y, x[i, ...], x[i], x[..., i.sum()]

    check(picked, np.arange(4.0), np.array(1))
