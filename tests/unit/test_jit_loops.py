"""Loops of traced functions: kept where rounds are alike, unrolled or refused where they are not, and NumPy's
results either way."""

# pyright: basic
from __future__ import annotations

import collections
import functools
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import irkit
from irkit.errors import UnsupportedError
from tests.unit.jitted import check, interpreted

RNG = np.random.default_rng(0)


def loops_of(traced):
    """How many loops the last program has."""
    return traced.ir().count("scf.for")


def jacobi(a, b, steps):
    for _ in range(1, steps):
        b[1:-1] = 0.33333 * (a[:-2] + a[1:-1] + a[2:])
        a[1:-1] = 0.33333 * (b[:-2] + b[1:-1] + b[2:])


def in_turn(a, b, steps):
    for _ in range(steps):
        b[1:-1] = 0.5 * (a[:-2] + a[2:])
        a, b = b, a
    return a, b


def three_in_turn(a, b, c, steps):
    for t in range(steps):
        c[1:] = a[1:] + 0.5 * b[:-1] + t
        a, b, c = b, c, a
    return c


def handed_on(u, steps):
    for t in range(steps):
        un = u.copy()
        u = un * 0.9 + t
    return u, un, t


def two_back(x):
    a, b = np.zeros(3), np.ones(3)
    for i in range(100):
        c = a * 0.5 + b * x[i]
        a = b
        b = c
    return a, b, c


def stale(x):
    old = x
    for _ in range(40):
        v = old
        old = x * 0.5 + v
    return v, old


def rows(x):
    s, out = np.zeros(4), np.empty(len(x))
    for i in range(x.shape[0]):
        s += x[i]
        out[i] = s.sum() + i * 0.5 - (2 * i + 1) / 3
    return s, out, i


def neighbours(x):
    for i in range(1, x.shape[0] - 1):
        x[i] = x[i - 1] * 0.5 + x[i + 1]
    for i in range(len(x) - 2, -1, -1):
        x[i] += x[i + 1] * 0.25
    for i in range(0, len(x) - 3, 3):
        x[i : i + 3] *= 2


def nested(x, y):
    for i in range(30):
        for j in range(20):
            x[i, j] += x[j, i] * y[i] + j
    return i, j


def accumulated(x):
    t = 0.0
    for i in range(50):
        t += x[i]
    return t


@pytest.mark.parametrize(
    ("function", "args", "kept"),
    [
        (jacobi, (RNG.random(40), RNG.random(40), 300), 1),
        (in_turn, (RNG.random(8), RNG.random(8), 200), 1),
        (in_turn, (RNG.random(8), RNG.random(8), 201), 1),
        (three_in_turn, (*RNG.random((3, 8)), 200), 1),
        (three_in_turn, (*RNG.random((3, 8)), 202), 1),
        (handed_on, (RNG.random(8), 200), 1),
        (handed_on, (RNG.random(8), 4), 0),
        (two_back, (RNG.random(100),), 1),
        (stale, (RNG.random(5),), 1),
        (rows, (RNG.random((300, 4)),), 1),
        (neighbours, (RNG.random((50, 6)),), 3),
        (nested, (RNG.random((30, 30)), RNG.random(30)), 3),
        (accumulated, (RNG.random(50),), 1),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_loops_whose_rounds_are_alike_are_kept(function, args, kept):
    assert loops_of(check(function, *args, tolerance=1e-12)) == kept


def counting(x):
    k = 0
    for _ in range(20):
        k += 1
        x = x * 0.5
    return x * k


def collecting(x):
    found = []
    for i in range(20):
        found.append(x * i)
    return np.array(found), len(found)


def growing(x):
    for i in range(20):
        x[i, :i] += x[i, i]
    return x


def first_is_special(x):
    for i in range(40):
        if i == 0:
            x += 1
        elif i < 30:
            x *= 0.5
        else:
            x -= 1
    return x


def left_early(x):
    for i in range(40):
        x = x + i
        if i == 7:
            break
    return x, i


def cholesky(a):
    lower = np.zeros_like(a)
    for i in range(len(a)):
        for j in range(i + 1):
            s = a[i, j] - lower[i, :j] @ lower[j, :j]
            lower[i, j] = np.sqrt(s) if i == j else s / lower[j, j]
    return lower


def beside_the_diagonal(a):
    found = np.zeros_like(a)
    for i in range(len(a)):
        for j in range(len(a)):
            if j == i + 1:
                found[i, j] = a[i, j]
            elif j < i:
                found[i, j] -= a[j, i]
    return found


@pytest.mark.parametrize("function", [cholesky, beside_the_diagonal], ids=lambda f: f.__name__)
@pytest.mark.parametrize("extent", [1, 5, 6, 9])
def test_indices_of_two_loops_that_are_compared(function, extent):
    x = RNG.random((extent, extent))
    check(function, x @ x.T + np.eye(extent), tolerance=1e-12)


@pytest.mark.parametrize(
    "function", [counting, collecting, first_is_special, left_early], ids=lambda f: f.__name__
)
def test_what_python_keeps_from_round_to_round_is_not_lost(function):
    check(function, RNG.random(6), tolerance=1e-12)


def solved(lower, b):
    x = np.zeros_like(b)
    for i in range(len(b)):
        x[i] = (b[i] - lower[i, :i] @ x[:i]) / lower[i, i]
    return x


def solved_backwards(upper, x):
    for i in range(len(x) - 1, -1, -1):
        x[i] -= upper[i, i + 1 :].dot(x[i + 1 :])
        x[i] /= upper[i, i]
    return x


def covariance(data):
    own = data.shape[1]
    data -= data.mean(axis=0)
    c = np.zeros((own, own))
    for i in range(own):
        c[i:own, i] = data[:, i] @ data[:, i:own] / (len(data) - 1.0)
        c[i, i:own] = c[i:own, i]
    return c


def correlation(data):
    c = np.eye(data.shape[1])
    for i in range(data.shape[1] - 1):
        c[i + 1 :, i] = c[i, i + 1 :] = data[:, i] @ data[:, i + 1 :]
    return c


def eliminated(a):
    for k in range(len(a) - 1):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a


def factored(a):
    for k in range(len(a)):
        a[k, k] = np.sqrt(a[k, k] - a[k, :k] @ a[k, :k])
        a[k + 1 :, k] = (a[k + 1 :, k] - a[k + 1 :, :k] @ a[k, :k]) / a[k, k]
    return np.tril(a)


def of_what_came_before(x):
    for i in range(1, len(x)):
        own = x[:i]
        x[i] = np.sin(own).sum() + own.max() - own.min() + own.mean() + (own > 0.5).any()
        x[i] += np.std(own) * own.shape[0] / len(x) + own.astype("f4").prod()
    return x


def of_what_is_left(x):
    y = np.zeros(len(x))
    for i in range(len(x)):
        t = np.where(x[i:] > 0.5, x[i:], 0.0) * 2
        y[i] = t.sum()
        x[i:] = t / 3
        x[i:] += 0.25
    return y, t


def two_that_vary(a):
    for i in range(1, 30):
        a[:i, i:] *= a[:i, i - 1 : i] + 1
        a[:i, i:].T[:, None] -= 0.5
        a[i, i:] = a[:i, i:].sum(axis=0) / i
    return a


def steps_of_two(x):
    for i in range(0, 40, 2):
        x[i + 1 : 41] = x[i:40] * 0.5 + x[40 - i]
    return x


GROWING = [
    (solved, (RNG.random((150, 150)) + 150 * np.eye(150), RNG.random(150))),
    (solved_backwards, (RNG.random((33, 33)) + 33 * np.eye(33), RNG.random(33))),
    (covariance, (RNG.random((50, 37)),)),
    (correlation, (RNG.random((20, 140)),)),
    (eliminated, (RNG.random((31, 31)) + 31 * np.eye(31),)),
    (factored, (np.cov(RNG.random((20, 40))) + np.eye(20),)),
    (of_what_came_before, (np.sort(RNG.random(9)),)),
    (of_what_is_left, (RNG.random(50),)),
    (two_that_vary, (RNG.random((30, 32)) - 0.5,)),
    (steps_of_two, (RNG.random(50),)),
]


@pytest.mark.parametrize(("function", "args"), GROWING, ids=lambda v: getattr(v, "__name__", ""))
def test_slices_that_grow_or_shrink(function, args):
    tolerance = 1e-6 if function is of_what_came_before else 1e-10
    assert loops_of(check(function, *args, tolerance=tolerance)) == 1


def test_slices_that_grow_in_a_compiled_loop():
    lower, b = RNG.random((60, 60)) + 60 * np.eye(60), RNG.random(60)
    jit = functools.partial(irkit.jit, target="cpu", cache=False)
    found = check(solved, lower, b, tolerance=1e-12, jit=jit)
    assert "loop kept" in found.explain()
    # What is outside of a slice is computed too, and is never seen.
    lower[np.triu_indices(60, 1)] = np.nan
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(found(lower, b), solved(lower, b), 1e-12)


def ranks_added(c, a):
    for i in range(len(a)):
        c[i, : i + 1] *= 1.5
        for k in range(a.shape[1]):
            c[i, : i + 1] += a[i, k] * a[: i + 1, k]
    return c


def test_slices_that_grow_and_are_read_twice_in_a_compiled_loop():
    jit = functools.partial(irkit.jit, target="cpu", cache=False)
    check(ranks_added, RNG.random((20, 20)), RNG.random((20, 7)), jit=jit)


def rows_that_change_places(a):
    for i in range(11):
        t = a[i].copy()
        for j in range(12):
            a[i, j] = a[i + 1, j] + t[j] * a[i, 0]
        a[i + 1] = t
    return a


def test_a_row_that_is_read_when_another_is_in_its_place_in_a_compiled_loop():
    jit = functools.partial(irkit.jit, target="cpu", cache=False)
    check(rows_that_change_places, RNG.random((12, 12)), jit=jit)


def test_slices_that_grow_outside_of_what_has_a_form():
    def reversed_part(x):
        for i in range(20):
            x[:i] = np.sort(x[:i])[::-1]
        return x

    assert loops_of(check(reversed_part, RNG.random(20))) == 0
    with pytest.raises(UnsupportedError, match=r"np.sort of a slice whose length changes"):
        interpreted(_long_sorted)(RNG.random(300))


def _long_sorted(x):
    for i in range(300):
        x[:i] = np.sort(x[:i])


def test_slices_that_grow_and_wrap_are_unrolled():
    assert loops_of(check(growing, RNG.random((20, 20)), tolerance=1e-12)) == 1

    def wraps(x):
        for i in range(20):
            x[: i - 10] += 1
        return x

    assert loops_of(check(wraps, RNG.random(20))) == 0


def long_counting(x):
    k = 0
    for _ in range(1000):
        k += 1
        x = x + 1
    return x * k


def long_growing(x):
    for i in range(1000):
        x[: i - 500] += 1


def long_list(x):
    found = []
    for _ in range(1000):
        found.append(x.sum())
    return found


def long_attribute(x):
    class Box:
        count = 0

    box = Box()
    for _ in range(1000):
        box.count = box.count + 1
        x += 1
    return x * box.count


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (long_counting, "k changes from round to round"),
        (long_growing, "a slice that is of another size"),
        (long_list, r"found.* grows from round to round"),
        (long_attribute, r"box.*count"),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_long_loops_that_cannot_be_kept_are_refused(function, reason):
    with pytest.raises(
        UnsupportedError, match=rf"test_jit_loops.py:\d+: a loop of 1000 rounds .*{reason}"
    ):
        interpreted(function)(RNG.random(1001))


def newton(x):
    def go_on(y, n):
        return (abs(y * y - x) > 1e-12).any() & (n < 50)

    def step(y, n):
        return 0.5 * (y + x / y), n + 1

    y, n = irkit.while_loop(go_on, step, (x.copy(), np.int64(0)))
    for i in irkit.range(3):
        y += i
    return y, n


def test_loops_that_are_asked_for():
    traced = check(newton, np.array([2.0, 9.0, 100.0]), tolerance=1e-14)
    assert "scf.while" in traced.ir()
    assert loops_of(traced) == 1


STEPS = [
    "u = v * 0.5",
    "v = u + 1",
    "u, v = v, u",
    "u[1:] += v[:-1]",
    "w = u.copy()",
    "v = w",
    "w += i",
    "u = w * x[i]",
]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(STEPS), min_size=1, max_size=5), st.integers(1, 40))
def test_random_bodies(steps, rounds):
    """Whatever is bound anew, changes places or is written in place."""
    body = "\n        ".join(steps)
    text = f"""
def function(u, v, x):
    w = u * 2
    for i in range({rounds}):
        {body}
    return u, v, w, i
"""
    scope = {}
    exec(compile(text, "random_body.py", "exec"), scope)
    check(scope["function"], *RNG.random((2, 4)), RNG.random(40), tolerance=1e-9)


def means_by_ring(data, radius, count):
    found = np.zeros(count)
    width = radius.max()
    for i in range(count):
        ring = np.logical_and(width * i / count <= radius, radius < width * (i + 1) / count)
        values = data[ring]
        found[i] = values.mean()
    return found


def kept_by_mask(x, steps):
    for t in range(steps):
        large = x > 0.5
        picked = x[large]
        x[large] = picked * 0.75 + t
        x *= 0.5
    return picked.sum()


def test_what_a_mask_picks_may_differ_from_round_to_round():
    data, radius = RNG.random(20000), np.linspace(0, 1, 20000)
    traced = check(means_by_ring, data, radius, 150, tolerance=1e-13)
    assert loops_of(traced) == 1
    traced = check(kept_by_mask, RNG.random((3, 4)), 140, tolerance=1e-13)
    assert loops_of(traced) == 1


def of_the_class(x):
    y = np.ndarray(x.shape, dtype=np.float32)
    assert isinstance(y, np.ndarray)
    assert isinstance(x, np.ndarray)
    y[:] = x * 2
    return y


def test_arrays_made_by_their_class():
    check(of_the_class, RNG.random((3, 4)).astype(np.float64))
    with pytest.raises(UnsupportedError, match=r"np\.ndarray in memory that is given"):
        interpreted(lambda x: np.ndarray((2,), float, x))(np.zeros(2))


WEIGHTS = [1.0, 1.0, 1.0, 1.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]


def ones(n):
    for _ in range(n):
        yield 1


def through_a_list(x):
    for c in list(range(10)):
        x = x + c
    return x + sum(range(10)) + np.sum(range(10)) + (7 in [*range(10)])


def backwards(x):
    for c in sorted(range(10), reverse=True):
        x = x * 0.5 + c
    it = reversed(range(10))
    for c in range(9, 0, -1)[::2]:
        x = x * 0.5 + c
    return x + next(it)


def beside_a_list(x):
    for _, w in zip(range(10), WEIGHTS, strict=True):
        x = x + w
    return x


def beside_an_iterator(x):
    ahead = iter(WEIGHTS)
    for _ in range(10):
        x = x * next(ahead)
    return x


def beside_a_cycle(x):
    ahead = itertools.cycle([1.0, 1.0, 1.0, 7.0])
    for _ in range(10):
        x = x * next(ahead)
    return x


def of_a_generator(x):
    return x + sum(ones(10)) + len(list(ones(10))) + sum(1 for a in range(10) for b in range(a + 1))


def in_a_class(x):
    class Own:
        count = 0

    for _ in range(10):
        Own.count += 1
        x = x + 1
    return x * Own.count


def in_containers(x):
    held, more = bytearray(), collections.deque()
    for _ in range(10):
        held.append(1)
        more.append(2)
        x = x + 1
    return x * len(held) + len(more)


def in_a_function_that_is_called(x):
    seen = [0]

    def step(v):
        seen[0] += 1
        return v + 1

    def go(f, v):
        for _ in range(10):
            v = f(v)
        return v

    return go(step, x) * seen[0]


def through_a_method(x):
    held = []

    def go(note, v):
        for _ in range(10):
            note(1)
            v = v + 1
        return v

    return go(held.append, x) * len(held)


def as_text(x):
    for i in range(12):
        x = x + len(str(i)) + len(f"{i:03}{i}")
    return x


def in_bits(x):
    for i in range(12):
        x = (
            x
            + (i & 5)
            + (i << 1)
            + (~i ^ 3)
            + divmod(i, 3)[1]
            + abs(i - 6)
            + i.bit_length()
            + pow(i, 2, 5)
        )
    return x


def beside_numpys_numbers(x):
    for i in range(12):
        x = x * 0.5 + np.float32(2) * i + np.sin(i) + np.add(i, 1) + np.full(3, i).sum()
    return x


def single_precision(x):
    x = x.astype(np.float32)
    for i in range(12):
        x = x + np.float32(2) * i
    return x


def of_a_class(x):
    for i in range(12):
        x = x + isinstance(i, int) * 2 + isinstance(i, float) + (i == True)  # noqa: E712
    return x


HIDDEN = [
    as_text, in_bits, beside_numpys_numbers, single_precision, of_a_class,
    through_a_list, backwards, beside_a_list, beside_an_iterator, beside_a_cycle, of_a_generator,
    in_a_class, in_containers, in_a_function_that_is_called, through_a_method,
]  # fmt: skip


@pytest.mark.parametrize("function", HIDDEN)
def test_what_changes_unseen_is_not_lost(function):
    x = RNG.random(4)
    got, want = irkit.jit(target="cpu")(function)(x), function(x)
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-12)


def long_zip(x):
    for _, w in zip(range(1000), WEIGHTS * 100, strict=True):
        x = x + w
    return x


def test_long_loops_of_unseen_state_are_refused_by_line():
    with pytest.raises(
        UnsupportedError, match=r"loops.py:\d+: a loop of 1000 rounds that cannot be"
    ):
        irkit.jit(target="cpu")(long_zip)(np.ones(3))


def test_a_long_range_is_a_sequence():
    def f(x):
        r = range(2, 60, 3)
        return x[np.array(r)] + len(r) + r[3] + r.stop + (r == range(2, 60, 3)) + r.index(5)

    x = RNG.random(60)
    np.testing.assert_array_equal(irkit.jit(target="cpu")(f)(x), f(x))
