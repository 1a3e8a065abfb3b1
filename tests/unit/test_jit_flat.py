"""`ndarray.flat` and views of other bits in traced functions, beside NumPy."""

# pyright: basic

from __future__ import annotations

import numpy as np
import pytest

import irkit
from irkit import UnsupportedError
from tests.unit.jitted import check, interpreted

compiled = irkit.jit(target="cpu")
A = np.arange(12.0).reshape(3, 4) - 5
KINDS = [
    A,
    np.asfortranarray(A),
    A.T[::-1],
    A + 1j * A[::-1],
    np.asfortranarray(A.astype(np.int32)),
    np.arange(24.0).reshape(2, 3, 4),
    np.empty((0, 3)),
]


def reads(a):
    some = a.flat[:3]
    some[:] = 9
    return some, a.flat[...], a.flat[()], a.flat[::-2], a.flat[[]], len(a.flat), a.flat.copy()


def reads_elements(a):
    places = np.array([[0, 1], [5, -2]])
    return a.flat[1], a.flat[-1], a.flat[(2,)], a.flat[[0, 2]], a.flat[places], a.flat[np.int64(3)]


def deals_values(a):
    a.flat[1:8] = [1, 2, 3]
    a.flat[::5] = a.dtype.type(7)
    a.flat[:2] = (4, 5, 6, 7)
    a.flat[3:3] = [1, 2]
    a.flat[4:] = []
    return a * 2


def writes_all(a):
    a.flat = [9, 8]
    b = a.copy()
    b.T.flat = a
    b.flat[...] = b.flat
    return b


def writes_elements(a):
    a.flat[1] = 5
    a.flat[-1] = a[0, 0]
    a.flat[[0, 0, 2]] = [5, 6]
    a.flat[np.array([[2, 3], [4, 5]])] = [1, 2, 3]
    a[:, ::-1].flat[[4, 1]] = a.sum()
    return a.T.flat[:3]


@pytest.mark.parametrize("function", [reads, deals_values, writes_all])
@pytest.mark.parametrize("a", KINDS, ids=range(len(KINDS)))
def test_elements_in_order(function, a):
    check(function, a)


@pytest.mark.parametrize("function", [reads_elements, writes_elements])
@pytest.mark.parametrize("a", KINDS[:5], ids=range(5))
def test_elements_at_places(function, a):
    check(function, a)


def test_flat_as_an_array():
    def used(a):
        a.flat[a.ravel() > 2] = 1.5
        place = np.argmin(a)
        a.flat[place] = 100
        both = np.concatenate([a.flat, a.T.flat]), np.array([a.flat]), np.asarray(a.flat)
        return both, a.flat == 100, a.flat < a.T.flat, np.add(a.flat, 1), a.ravel() * a.flat

    check(used, A)
    check(lambda a: a.flat[a.ravel() > 0].sum(), A)


def test_flat_is_an_iterator():
    def gone_through(a):
        f = a.flat
        first, second = next(f), next(f)
        rest, none = list(f), list(f)
        f[3]
        total = 0
        for v in a.T.flat:
            total = total * 0.5 + v
        return first, second, rest, none, next(f), total, [i * v for i, v in enumerate(a.flat)]

    check(gone_through, A)
    with pytest.raises(UnsupportedError, match="a loop over the 5000 elements"):
        interpreted(lambda x: [v for v in x.flat])(np.zeros((50, 100)))


def test_flat_in_loops_that_are_kept():
    def kept(a, b):
        for k in range(1, 200):
            a.flat[k] += a.flat[k - 1] * 0.5
            b.T.flat[k] = b.T.flat[k - 1] + 1
        return a

    check(kept, np.arange(200.0).reshape(10, 20), np.arange(200.0).reshape(10, 20), jit=compiled)


def assigns(key, value):
    def function(a):
        a.flat[key] = value

    return function


@pytest.mark.parametrize(
    "function",
    [
        assigns(0, [1, 2]),
        assigns(0, np.ones(1)),
        assigns(3, 1j),
        assigns(12, 1),
        assigns([12], 1),
        assigns((1, 2), 1),
        assigns((), 1),
        assigns(None, 1),
        assigns([True, False], 1),
        lambda a: a.flat[a > 1],
        lambda a: a.flat + 1,
        lambda a: -a.flat,
        lambda a: a.flat.shape,
        lambda a: np.copyto(a.flat, 1.0),
        lambda a: np.add(a, 1, out=a.flat),
        lambda a: assigns(0, 1)(np.broadcast_to(a, (2, 3, 4))),
    ],
)
def test_flat_raises_what_numpy_raises(function):
    with pytest.raises((IndexError, TypeError, ValueError, AttributeError)) as theirs:
        function(A.copy())
    with pytest.raises(theirs.type):
        interpreted(function)(A.copy())


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a: assigns(slice(1, None), a.flat)(a), "assigned elements of the same array"),
        (lambda a: assigns(slice(None), a[::-1])(a), "assigned elements of the same array"),
        (lambda a: assigns(a.ravel() > 2, [1.0, 2.0])(a), "several values through a mask"),
        (lambda a: a.flat[True], "ndarray.flat at True"),
        (lambda a: a.flat, "a result that is ndarray.flat"),
        (lambda a: a.flat.coords, "ndarray.flat.coords"),
    ],
)
def test_flat_refused(function, message):
    with pytest.raises(UnsupportedError, match=message):
        interpreted(function)(A.copy())


def mixes_bits(i):
    h = i.view(np.uint32)
    h = (h ^ np.uint32(61)) ^ (h >> np.uint32(16))
    return (h * np.uint32(9)).view(np.int32), i[0].view(np.uint32), i[::2].view("u4")


def writes_complex(a):
    z = a.view(complex)
    z *= 1j
    for k in range(1, 3):
        z[k] = z[k - 1] * 0.5
    w = np.zeros((2, 2))
    w.view(complex)[1:] = z[0, 0]
    return a + 1, w, z.imag


def test_views_of_other_dtypes():
    check(mixes_bits, np.arange(-3, 4, dtype=np.int32))
    check(lambda b: (b.view(np.uint8) + 1, b.view(np.int8) * 2), A > 0)
    check(writes_complex, A)
    check(lambda a: np.array([1, 2], np.int32).view(np.float32) * a[0, 0].astype("f4"), A)

    def carried(a):
        z = a.view(complex)
        for _ in range(200):
            z = z * 0.5 + 1
        return z, a

    check(carried, A, tolerance=1e-12, jit=compiled)
    with pytest.raises(ValueError, match="last axis must be contiguous"):
        interpreted(lambda a: a.T.view(complex))(A)


def writes_the_array(i):
    u = i.view(np.uint32)
    i += 1
    return u * 2


def writes_the_view(i):
    u = i.view(np.uint32)
    u += 1
    return u * 2, i


@pytest.mark.parametrize("function", [writes_the_array, writes_the_view])
def test_a_view_that_is_a_copy_is_not_told_from_one(function):
    with pytest.raises(UnsupportedError, match="view of other dtype"):
        interpreted(function)(np.arange(4, dtype=np.int32))
