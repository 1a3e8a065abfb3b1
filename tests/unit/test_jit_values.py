"""Traced functions beside NumPy, run by the interpreter: operations, views, aliasing, dtypes, indexing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import irkit
from tests.unit.jitted import check, interpreted

RNG = np.random.default_rng(0)


def floats(*shape, dtype=np.float64):
    return (RNG.standard_normal(shape) * 3).astype(dtype)


def mutation_order(x, y):
    r = x + 1
    x *= 2
    return r + y, x - r


def overlapping_sum(a):
    a[1:] += a[:-1]


def overlapping_copy(a):
    a[:-1] = a[1:]
    a[::-1][2:] = a[2:]
    return a


def views_of_copies(a):
    b = a.T.reshape(-1)
    b[0] = 7
    c = a.ravel()
    c[1] = 9
    d = a[1:, None, ::-2]
    d += 1
    return b, c, a, d


def out_is_an_input(x, y):
    np.add(x, y, out=x)
    np.multiply(x, y, out=y[::-1])
    np.subtract(x, 1, out=x, where=x > 0)
    return x - y


def stencil(x):
    x[1:-1, 1:-1] = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
    x[0] = x[-1]
    x[:, 0] = 1
    return x[1:3, ::-2]


def scalars(x, s):
    s += 1
    s[()] = s * 2
    t = x[0]
    t += 1
    return x * s, s, t, x[2] * s, x.sum() + x[0]


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (mutation_order, (floats(5), floats(5))),
        (overlapping_sum, (floats(9),)),
        (overlapping_copy, (floats(9),)),
        (views_of_copies, (floats(6, 4),)),
        (views_of_copies, (floats(4, 6).T,)),
        (out_is_an_input, (floats(6), floats(6))),
        (stencil, (floats(5, 5),)),
        (stencil, (np.asfortranarray(floats(6, 5)),)),
        (scalars, (floats(5), np.array(3.0))),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_effects_are_numpys(function, args):
    check(function, *args)


def arithmetic(x, y):
    return x + y, x - 1, 2.5 * x, x / 2, x // 2, x % 3, -x, abs(x), x**2, x > y, x == 1


def bits(x, y):
    return x & 3, x | y, x ^ y, ~x, x << 1, x >> 1


def functions_of_integers(x, y):
    return (
        np.maximum(x, y),
        np.sign(x),
        x.mean(),
        x.sum(),
        np.abs(x),
        divmod(x, y),
        x.astype("i1").sum(),
    )


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "i2", "u1"])
def test_dtypes_follow_numpys_rules(dtype):
    x, y = (RNG.integers(1, 100, 12).astype(dtype) for _ in range(2))
    check(arithmetic, x, y)
    check(arithmetic, x, y.astype("f4"))
    if dtype[0] != "f":
        check(bits, x, y)
        check(functions_of_integers, x, y, tolerance=1e-12)


def test_pythons_numbers_are_weak():
    check(lambda x: (x + 1, x * 2.0, x + np.float64(1), x + True), floats(3, dtype=np.float32))
    check(lambda x: (x + 1, x * 2.0, np.where(x > 1, x, 0)), np.arange(4, dtype=np.int8))


def reductions(x):
    return (
        x.sum(), x.sum(0), x.mean(axis=1, keepdims=True), x.max(), x.min(1), x.argmax(), x.argmin(0),
        x.std(), x.var(1), np.cumsum(x, 1), x.prod(), np.any(x > 2), np.all(x > -9, axis=0),
        np.count_nonzero(x > 0), np.ptp(x), np.average(x), np.trace(x), np.sum(x, where=x > 0),
        np.max(x, initial=0.0), np.add.reduce(x), np.maximum.reduce(x, axis=1), np.sort(x), np.cumprod(x[0]),
    )  # fmt: skip


def products(a, b, v):
    return (
        a @ b, a @ v, v @ b, v @ v, np.dot(a, b), np.outer(v, v), a.dot(v), np.inner(v, v), np.vdot(v, v),
        np.tensordot(a, b, 1), np.einsum("ij,jk->ik", a, b), np.einsum("ij,j->i", a, v), np.kron(v, v),
        np.matmul(np.stack([a, a]), b), np.cross(v[:3], v[1:]),
    )  # fmt: skip


def moves(x):
    return (
        np.roll(x, 2), np.roll(x, -1, 0), np.flip(x), np.diff(x), np.concatenate([x, x[:1]]),
        np.stack([x, x]), np.vstack([x, x]), np.hstack([x, x]), np.tile(x, 2), np.repeat(x, 2, 1),
        np.transpose(x), x.swapaxes(0, 1), np.moveaxis(x, 0, 1), np.expand_dims(x, 0), x.flatten(),
        np.squeeze(x[None]), np.gradient(x[0]), np.meshgrid(x[0], x[1]), np.trapezoid(x[0]), np.rot90(x),
        np.triu(x), np.tril(x, 1), np.diag(x), np.diag(x[0]), np.pad(x, 1), np.atleast_2d(x[0]),
        np.pad(x, ((1, 2), (0, 1)), "edge"), np.broadcast_to(x[0], (3, 4)),
    )  # fmt: skip


def functions_of_floats(x):
    return (
        np.exp(x), np.sin(x), np.log1p(abs(x)), np.arctan2(x, x + 1), np.hypot(x, x), np.cbrt(x),
        np.log2(abs(x)), np.tanh(x), np.expm1(x), x**3, x**-1, x**0.5, np.power(x, 2), np.modf(x),
        np.floor_divide(x, 1.5), np.fmod(x, 2), np.round(x, 2), np.rint(x), np.trunc(x), np.clip(x, -1, 1),
        np.isnan(x), np.isfinite(x), np.fmax(x, 0), np.logaddexp(x, x), np.copysign(x, -1),
        np.heaviside(x, 0.5), np.degrees(x),
    )  # fmt: skip


def made(x):
    y, z, e = np.zeros_like(x), np.ones((4, 4)), np.eye(4)
    y[1] = np.arange(4)
    return (
        y + x,
        z * x,
        e @ x,
        np.linspace(0, 1, 4) * x,
        np.full((2, 2), 3),
        np.array([1, x[0, 0]]),
        z,
    )


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (reductions, (floats(4, 4),)),
        (products, (floats(3, 4), floats(4, 5), floats(4))),
        (moves, (floats(4, 4),)),
        (functions_of_floats, (floats(9),)),
        (made, (floats(4, 4),)),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_functions_of_numpy(function, args):
    check(function, *args, tolerance=1e-11)


def masks(x):
    m = x > 0
    x[m] = 0
    x[~m] *= 2
    x[x < -3] = -3
    return x, x[~m].sum(), x[~m].mean(), np.where(m, x, 1)


def picked(x, i, j):
    y = x[[0, 2]]
    x[[1, 1, 3]] = y[[0, 1, 0]]
    return y, x[i, j], x[i], x[:, j], x[i[0], j[1]], np.take(x, i), x[np.array([True, False] * 2)]


def scattered(x, i):
    x[i] = np.arange(3.0)
    return x


def test_indexing():
    check(masks, floats(7), tolerance=1e-14)
    check(picked, floats(4, 5), RNG.integers(-4, 4, 3), RNG.integers(0, 5, 3))
    check(scattered, floats(9), np.array([3, -1, 3]))


def combined(x, i, u, n, k):
    np.add.at(x, i, u)
    np.subtract.at(x, (i, i % 3), 1.5)
    np.multiply.at(x, [0, 0, 2], u[:1])
    np.maximum.at(x[1:], i % 3, u)
    np.minimum.at(x, (slice(None), [0, 0]), u[0, 0])
    np.add.at(x, 1, 2.0)
    np.add.at(n, i, k)
    np.multiply.at(n, i, np.uint8(3))
    np.maximum.at(n, (i,), 7)
    return x


def test_each_of_equal_indices_counts_at_a_place():
    indices, numbers = np.array([3, -1, 3, 0]), RNG.integers(0, 256, (2, 5)).astype(np.uint8)
    check(
        combined, floats(5, 3), indices, floats(4, 3), numbers[0], numbers[1][:4], tolerance=1e-14
    )


def test_a_place_that_no_index_names_keeps_its_bits():
    x, u = np.array([-0.0, 1.0, -0.0, np.nan]), np.array([np.inf, 2.0])
    traced = check(lambda x, i, u: np.add.at(x, i, u), x, np.array([1, 1]), u)
    kept = x.copy()
    traced(kept, np.array([2, 2]), np.array([1.0, 0.5]))
    assert kept.tobytes() == np.array([-0.0, 1.0, 1.5, np.nan]).tobytes()


def test_sums_at_places_are_the_same_in_every_run():
    def sums(x, i, u):
        np.add.at(x, i, u)
        return x

    i, u = RNG.integers(0, 7, 500), floats(500, 3).astype(np.float32)
    traced = irkit.jit(sums, target="cpu", device="cpu2")
    found = {traced(np.zeros((7, 3), np.float32), i, u).tobytes() for _ in range(4)}
    assert len(found) == 1


def structures(d, *rest, scale=2):
    d["a"] += d["b"][0] * d["b"][1] * scale
    return {"r": d["a"], "t": (d["b"][0], 1, None, "x"), "rest": [r * 2 for r in rest]}


def test_structures_of_arguments_and_results():
    check(structures, {"a": floats(3), "b": [floats(3), 2]}, floats(2), floats(1))


TABLE = floats(5)


def helper(x):
    return np.sqrt(np.abs(x)) + TABLE


def enclosing():
    from numpy import zeros

    weights = floats(5)

    def inner(x):
        z = zeros(5)
        z[1:] = helper(x)[1:] * weights[:-1]
        return z

    return inner


def test_helpers_globals_and_enclosing_variables():
    traced = check(enclosing(), floats(5))
    x = floats(5)
    TABLE[:] = 7
    assert np.array_equal(traced(x), enclosing_with(traced, x))


def enclosing_with(traced, x):
    """The same function, untraced, with the globals as they are now."""
    return traced.__wrapped__(x)


PARTS = [
    slice(None),
    slice(1, None),
    slice(None, -1),
    slice(None, None, 2),
    slice(None, None, -1),
    slice(2, 5),
]


def numpy_copies(length: int, to: int, source: int) -> bool:
    """Whether NumPy assigns one part of an array to another as if by a copy: 2.4.6 does not where
    `a[1:5] = a[::2]` of 7 elements reads what it has written."""
    a = np.arange(length) + 1.0
    target, given = a[PARTS[to]], a[PARTS[source]]
    n = min(len(target), len(given))
    wanted = given[-n:].copy()
    target[:n] = given[-n:]
    return np.array_equal(target[:n], wanted)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_random_updates_of_overlapping_slices(data):
    """Chains of updates of parts of one array and of a copy by parts of both."""
    length = data.draw(st.integers(5, 9))
    steps = data.draw(
        st.lists(
            st.tuples(
                *[st.sampled_from(range(len(PARTS)))] * 2, st.sampled_from("+=*c"), st.booleans()
            ),
            min_size=1,
            max_size=5,
        )
    )
    assume(all(numpy_copies(length, to, source) for to, source, how, _ in steps if how == "="))

    def update(a, b):
        for to, source, how, own in steps:
            target, given = a[PARTS[to]], (a if own else b)[PARTS[source]]
            n = min(len(target), len(given))
            target, given = target[:n], given[-n:]
            if how == "+":
                target += given
            elif how == "*":
                np.multiply(target, given, out=target)
            elif how == "=":
                target[...] = given
            else:
                b = a.copy()
        return a, b[::-1]

    a = np.arange(length) + 1.0
    check(update, a, -a)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(PARTS), st.sampled_from(PARTS), st.booleans())
def test_arguments_that_overlap(first, second, turned):
    """Arguments that are views of one array: read and written in order."""

    def update(a, b):
        n = min(a.shape[0], b.shape[0])
        a[:n] += b[:n]
        b[:n] -= 2 * a[:n]
        return a * 1.0

    def both(owner):
        owner = owner.T if turned else owner
        return owner[first], owner[second]

    from tests.unit.jitted import compare, interpreted

    ours, theirs = (np.arange(36.0).reshape(6, 6) for _ in range(2))
    compare(interpreted(update)(*both(ours)), update(*both(theirs)), 0, "result")
    compare(ours, theirs, 0, "owner")


def extremes_of_zeros(x, y):
    """Which of two zeros it is that is taken."""
    extremes = np.maximum(x, y), np.minimum(x, y), np.maximum(x, 0), np.minimum(-0.0, x)
    limits = np.clip(x, 0, 1), np.clip(x, -1, -0.0), np.clip(x, 0, None), np.clip(x, None, -0.0)
    arrays = np.clip(x, y, 2), np.clip(x, y[0], y[2]), x.clip(y[2], np.zeros(1, x.dtype))
    return *extremes, *limits, *arrays, x.clip(max=y[0])


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2"])
def test_zeros_have_the_sign_that_numpy_takes(dtype):
    x = np.array([-0.0, 0.0, -0.0, 0.0, 1, -3, 0.0], dtype)
    y = np.array([0.0, -0.0, -0.0, 0.0, -0.0, 0.0, 2], dtype)
    for got, want in zip(
        interpreted(extremes_of_zeros)(x, y), extremes_of_zeros(x, y), strict=True
    ):
        assert np.array_equal(got, want)
        assert np.array_equal(np.signbit(got), np.signbit(want))


def test_numbers_are_rounded_to_digits():
    check(lambda x: (round(x[0], 1), round(x[1], 0), round(np.int64(25), -1)), floats(2))
    with pytest.raises(TypeError, match="round"):
        interpreted(lambda x: round(x))(floats(2))
