"""Masks that are not known, beside slices and numbers: what is picked, written and summed up."""

# pyright: basic
from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from irkit.errors import UnsupportedError
from tests.unit.jitted import check, interpreted

Array = np.ndarray[Any, Any]


def drawn_key(rng: random.Random, shape: tuple[int, ...]) -> tuple[list[Any], int, int]:
    """A key of slices, numbers and perhaps an ellipsis, and the axes that the mask has in it."""
    at = rng.randrange(len(shape))
    axes = rng.randint(1, min(2, len(shape) - at))
    keys: list[Any] = []
    for axis, size in enumerate(shape):
        if at <= axis < at + axes:
            if axis == at:
                keys.append("mask")
        elif rng.random() < 0.3:
            keys.append(rng.randrange(-size, size))
        else:
            keys.append(slice(rng.choice([None, 0, 1]), None, rng.choice([None, 2, -1])))
    if rng.random() < 0.3 and keys[-1] == slice(None, None, None):
        keys[-1] = Ellipsis
    return keys, at, axes


USES = ("number", "more", "scaled", "sum", "extremes", "count")


def made(keys: list[Any], at: int, axes: int, use: str) -> Any:
    def function(a: Any, threshold: Any) -> Any:
        mask = a
        for axis in reversed(range(a.ndim)):
            if not at <= axis < at + axes:
                mask = mask.sum(axis=axis)
        mask = mask > threshold
        key = tuple(mask if k is mask or (isinstance(k, str)) else k for k in keys)
        if use == "number":
            a[key] = 7
        elif use == "more":
            a[key] += 1
        elif use == "scaled":
            a[key] = a[key] * 2 - np.abs(a[key])
        elif use == "sum":
            return a[key].sum(), np.mean(a[key] ** 2 + 1)
        elif use == "extremes":
            return a[key].max(), a[key].min()
        else:
            return a[key].size
        return None

    return function


@pytest.mark.parametrize("seed", range(60))
def test_masks_beside_other_indices(seed: int) -> None:
    rng = random.Random(f"masks {seed}")
    shape = rng.choice([(6, 5), (4, 4), (3, 4, 5), (5, 5, 5)])
    keys, at, axes = drawn_key(rng, shape)
    values = np.random.default_rng(seed).standard_normal(shape)
    # Low enough for some element to be picked.
    check(made(keys, at, axes, USES[seed % len(USES)]), values, -1.5, tolerance=1e-12)


def test_rows_beside_columns() -> None:
    def write(a: Array, v: Array) -> None:
        a[a[:, 0] > 0, 1:] = v
        a[a[:, 0] < 0, 2] *= 2

    a = np.random.default_rng(0).standard_normal((6, 5))
    check(write, a, np.arange(4.0))


def test_columns_of_the_rows_that_a_mask_picks() -> None:
    def sums(a: Array) -> Any:
        picked = a[a[:, 0] > 0]
        return picked.sum(axis=0), picked.mean(0), np.max(picked, axis=-2), picked.std(axis=0)

    check(sums, np.random.default_rng(0).standard_normal((6, 5)), tolerance=1e-12)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a, m: a[m].sum(axis=1), "np.sum with arguments"),
        (lambda a, m: a[:, m].sum(axis=0), "np.sum with arguments"),
        (lambda a, m: a[m, m].sum(), "several indices, other masks"),
        (lambda a, m: a[m, None].sum(), "or None"),
        (lambda a, m: a[m, [0, 1, 2, 3]].sum(), "several indices"),
        (lambda a, m: a[m] + a[:, m], "of other dimensions"),
        (lambda a, m: a[m] + a[m, 0], "of other dimensions"),
        (lambda a, m: a.__setitem__((slice(None), m), a[m]), "of other dimensions"),
        (lambda a, m: a.__setitem__((slice(None), m), a[:, :1]), "as many values as it picks"),
    ],
)
def test_what_hangs_on_how_many_are_picked_is_refused(function: Any, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        interpreted(function)(np.ones((4, 4)), np.ones(4, bool))


def test_masks_that_do_not_fit() -> None:
    with pytest.raises(IndexError, match="did not match"):
        interpreted(lambda a, m: a[:, m].sum())(np.ones((3, 4)), np.ones(3, bool))


def test_sorting_in_place() -> None:
    def ordered(a: Array) -> Any:
        a[1:].sort(axis=0, kind="stable")
        a.sort()
        return a[::2]

    check(ordered, np.random.default_rng(0).standard_normal((6, 5)))


@pytest.mark.parametrize("mode", ["wrap", "clip"])
def test_rows_beyond_the_ends(mode: Any) -> None:
    def taken(a: Array, k: Array) -> Any:
        return np.take(a, k, axis=1, mode=mode), np.take(a, [-9, 3, 70], mode=mode)

    check(taken, np.arange(30.0).reshape(6, 5), np.array([-7, -1, 0, 4, 12]))


ROW = np.random.default_rng(3).normal(size=9)


def test_masks_that_are_written_out_twice_are_one():
    def twice(x, y):
        x[y > 0] -= y[y > 0]
        x[(y > 1) & (x < 2)] *= y[(y > 1) & (x < 2)] + 1
        x[x > x[3]] -= x[x > x[3]]
        kept = (y > 0).copy()
        x[y > 0] = y[kept]
        return x

    check(twice, ROW, ROW[::-1].copy())


def written_between(x, y):
    picked = x[y > 0]
    y[0] = -y[0]
    x[y > 0] = picked
    return x


def turned_between(x, y):
    mask = y > 0
    picked = x[mask]
    mask[0] = ~mask[0]
    x[mask] = picked
    return x


def other_limits(x, y):
    x[y > 1] = x[y > 2]
    return x


@pytest.mark.parametrize("function", [written_between, turned_between, other_limits])
def test_masks_that_may_differ_are_two(function):
    with pytest.raises(UnsupportedError, match="what one mask picked is written through another"):
        interpreted(function)(ROW, ROW[::-1].copy())


def test_piecewise():
    p = np.piecewise
    check(lambda x: p(x, [x < 0, x > 1], [lambda t: -t, 5, lambda t: t**2]), ROW)
    check(lambda x: p(x, [x < 0], [lambda t: t - t.mean(), lambda t: t.sum()]), ROW)
    check(lambda x: (p(x, x < 0, [1, 2]), p(x, [x < 0, x < 1], [1, 2])), ROW)
    check(lambda x: p(x, [x < 0], [lambda t, k: t * k, lambda t, k: t + k], 3), ROW)
    check(lambda x: p(x[0], [x[0] < 0, x[0] >= 0], [lambda t: -t, lambda t: t * 2]), ROW)
    check(lambda x: p(x, [x < 0], [1.7, lambda t: t / 3]), np.arange(-3, 3))
    check(
        lambda x: (p(x, [x < 5], [0, 1]), p(x, [x[:, 0] < 5], [1, 2])), np.arange(20).reshape(4, 5)
    )
    check(lambda x: p(x, np.arange(9) > 3, [lambda t: -t, 2]), ROW)
    check(lambda x: p(x, [x < 0], [lambda t: -t, 2]), ROW[:0])
    with pytest.raises(ValueError, match="either 3 or 4 functions are expected"):
        interpreted(lambda x: p(x, [x < 0, x > 0, x > 1], [1]))(ROW)
