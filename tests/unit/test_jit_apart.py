"""Arguments whose elements lie far apart: what NumPy has a view of, and what a copy."""

# pyright: basic
from __future__ import annotations

import itertools

import numpy as np
import pytest

from irkit.driver.programs.apart import with_gaps
from irkit.errors import InvalidInputError
from tests.unit.jitted import check, interpreted

RNG = np.random.default_rng(0)


def wide_strides(a):
    return [s for s, n in zip(np.asarray(a).strides, np.shape(a), strict=True) if n > 1]


def alike(function, cut):
    """Call a function and its twin with cuts of copies of the same memory; compare results and memory."""
    memory = [cut.base.copy(order="K") for _ in "ab"]
    start = cut.__array_interface__["data"][0] - cut.base.__array_interface__["data"][0]
    theirs, ours = (np.ndarray(cut.shape, cut.dtype, m, start, cut.strides) for m in memory)
    want, got = function(theirs), interpreted(function)(ours)
    for g, w in zip(got, want, strict=True):
        assert g.shape == w.shape
        np.testing.assert_allclose(g, w, rtol=1e-6)
        assert np.shares_memory(w, theirs) == np.shares_memory(g, ours)
        assert wide_strides(g) == wide_strides(w) or not np.shares_memory(g, ours)
    np.testing.assert_array_equal(*memory)


def reshaped(a):
    t = a.reshape(-1)
    t[0] = 5
    return a.sum(), t


def raveled(a):
    t = a.ravel()
    t += 1
    return a[0].sum(), t


def rows(a):
    t = np.ascontiguousarray(a[0])
    t[:1] = 7
    u = a.reshape(a.shape[0], -1)
    u[:, -1] -= 2
    return a + 1, u


def backwards(a):
    t = a[::-1].reshape(-1)
    a[...] = a * 2
    return t, a.T


CUTS = {
    "one": np.arange(90.0)[3::7],
    "back": np.arange(90)[::-9],
    "column": RNG.normal(size=(9, 5))[:, 3],
    "both": RNG.integers(0, 9, (20, 21))[1:17:4, ::5],
    "rows": RNG.normal(size=(9, 8))[::3],
    "turned": RNG.normal(size=(12, 12))[::3, ::2].T,
    "mirrored": RNG.normal(size=(12, 12)).astype("f4")[::-3, ::2],
    "joined": RNG.normal(size=(3, 4, 9))[:, :, 4],
    "parts": np.zeros((6, 8), np.int8)[:, 2:4],
    "complex": (RNG.normal(size=(9, 8)) + 1j)[::3, ::4],
    "complex column": (RNG.normal(size=(9, 8)) - 2j).astype("c8")[:, 5],
    "long": RNG.normal(size=(1, 40, 1))[:, ::13],
}


@pytest.mark.parametrize("function", [reshaped, raveled, rows, backwards])
@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_views_and_copies_are_numpys(function, cut):
    alike(function, cut)


def test_returned_views_are_of_the_callers_memory():
    memory = np.arange(400.0).reshape(20, 20)
    a = memory[::-6, 1::5]
    f = interpreted(lambda a: (a[1:, ::-2], a.diagonal(), a[0, 1], a.T[..., None]))
    for got, want in zip(f(a), f.__wrapped__(a), strict=True):
        np.testing.assert_array_equal(got, want)
        assert wide_strides(got) == wide_strides(want)
        assert isinstance(got, np.ndarray) == isinstance(want, np.ndarray)
    assert "copied, as their elements lie apart: a" in f.explain()
    f(a)[0][...] = -1
    assert (a[1:, ::-2] == -1).all()


def test_gaps_are_where_the_array_has_some():
    """For every way to cut, two dimensions can be joined in the copy where they can be in the array."""
    whole = np.zeros((7, 6, 8))
    steps = [slice(None), slice(None, None, -1), slice(None, None, 3), slice(1, 3), slice(2, 3)]
    for cut in itertools.product(steps, repeat=3):
        for axes in itertools.permutations(range(3)):
            a = whole[cut].transpose(axes)
            place, spec, _ = with_gaps(0, a, False, 0)
            seen = place.seen(np.zeros(spec.shape), a.shape)
            assert seen.flags.c_contiguous == a.flags.c_contiguous
            assert seen.flags.f_contiguous == a.flags.f_contiguous
            for shape in ((-1,), (a.shape[0], -1), (-1, a.shape[2])):
                views = [np.shares_memory(x.reshape(shape), x) for x in (seen, a)]
                assert views[0] == views[1], (cut, axes, shape)


@pytest.mark.parametrize(
    "made",
    [
        lambda a: np.asarray(a, order="F"),
        lambda a: np.asarray(a, order="C"),
        lambda a: np.asarray(a, copy=True),
        lambda a: np.asanyarray(a, order="A"),
        lambda a: np.array(a, copy=None, order="F"),
        lambda a: np.array(a, copy=None, ndmin=4),
        lambda a: np.array(a, order="F").reshape(-1, order="A"),
        lambda a: np.ascontiguousarray(a),
        lambda a: np.asfortranarray(a),
        lambda a: np.ascontiguousarray(a[0, 0]),
        lambda a: np.asfortranarray(a[0, 1]),
        lambda a: a.astype(np.float64, "F", copy=False),
        lambda a: a.astype(np.float64, "A", copy=False),
        lambda a: a.astype(np.float64, "C", copy=False),
        lambda a: np.asarray(a, copy=False),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("step", [1, 2, 5])
def test_orders_are_copied_to_where_numpy_copies(made, turned, step):
    """What is written to the array that is made is written to the argument, or not."""

    def function(a):
        made(a)[...] += 1
        return made(a), a

    cut = np.arange(400.0).reshape(20, 20)[::step, ::step]
    alike(function, cut.T if turned else cut)


def test_an_array_that_is_not_to_be_copied_and_is_in_another_order():
    def function(a):
        return np.asarray(a, order="F", copy=False)

    with pytest.raises(ValueError, match="Unable to avoid copy"):
        interpreted(function)(np.zeros((3, 4)))


def test_a_view_of_elements_that_share_memory():
    a = np.broadcast_to(np.arange(4.0), (3, 4))
    with pytest.raises(InvalidInputError, match=r"test_jit_apart.py:\d+: a view of an argument"):
        interpreted(lambda a: a[1:])(a)


def test_calls_of_the_host_with_complex_arguments():
    """The function is run once on copies of its arguments, which may be complex."""

    def function(x, y):
        x[0] = np.median(x.real) + 4
        return np.linalg.eigvals(np.outer(x, y).real)

    x = np.arange(6).view(np.float64).astype(complex)[::2] + 2j
    check(function, x, x + 1, tolerance=1e-9)
    y = x.copy()
    y.flags.writeable = False
    check(lambda x: np.median(x.imag), y)
