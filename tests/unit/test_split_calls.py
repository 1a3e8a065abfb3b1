"""Annotated calls in parts: equal to the whole call, chunk by chunk through several, on several threads."""

from __future__ import annotations

import functools
import random
import threading

import numpy as np
import pytest
import scipy.ndimage
import scipy.special

import irkit
from irkit.annotations import (
    Argument,
    ArraySplit,
    ArrayType,
    Broadcast,
    Generic,
    RowSplit,
    SplitType,
    annotation_of,
    in_parts,
    workers,
)
from irkit.annotations.sets import load_sets, ndimage
from irkit.errors import UnsupportedError
from tests.unit.jitted import check

compiled = functools.partial(irkit.jit, target="cpu", cache=False)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Parts of a few units, on several threads."""
    monkeypatch.setattr(workers, "LEAST", 1)
    monkeypatch.setattr(workers, "usable_cores", lambda: 3)
    monkeypatch.setattr(workers, "cache_bytes", lambda: 1024)


class Parts:
    """A function that notes of which shapes it is called, and by which threads."""

    def __init__(self, function):
        self.function, self.shapes, self.threads = function, [], set()
        self.__name__ = function.__name__

    def __call__(self, *args, **kwargs):
        self.shapes.append(np.shape(args[0]))
        self.threads.add(threading.get_ident())
        return self.function(*args, **kwargs)


def noted(function, parameters, **said):
    watched = Parts(function)
    return watched, irkit.annotate(watched, parameters=parameters, **said)


def scale(x, by):
    return np.asarray(x) * by + 1.0


def test_a_call_is_made_in_parts_after_the_first():
    watched, known = noted(
        scale,
        ["x", "by"],
        types={"x": ArraySplit(0), "by": Broadcast()},
        returns=ArraySplit(0),
        result="x",
    )
    f = compiled(lambda x, by: known(x, by) * 2)
    x, by = np.random.rand(40, 3), np.random.rand(3)
    for _ in range(2):
        watched.shapes.clear()
        assert np.array_equal(f(x, by), scale(x, by) * 2)
    assert sorted(watched.shapes) == [(8, 3), (16, 3), (16, 3)]
    assert "in parts of 40" in f.explain()


def test_parts_that_give_other_values_are_refused():
    def running(x):
        return np.cumsum(x, axis=0)

    wrong = irkit.annotate(running, types={"x": ArraySplit(0)}, returns=ArraySplit(0), result="x")
    f = compiled(lambda x: wrong(x) + 1)
    with pytest.raises(
        UnsupportedError, match="running' gives other values in parts than as a whole"
    ):
        f(np.random.rand(20, 3))
    right = irkit.annotate(running, types={"x": ArraySplit(1)}, returns=ArraySplit(1), result="x")
    x = np.random.rand(3, 40)
    f = compiled(lambda x: right(x) + 1)
    assert np.array_equal(f(x), running(x) + 1)
    assert np.array_equal(f(x), running(x) + 1)


def test_what_is_written_is_written_in_parts():
    def bump(x, y, out):
        x += y
        out[...] = x * 2
        return out

    watched, known = noted(
        bump,
        ["x", "y", "out"],
        types={"x": ArraySplit(0), "y": ArraySplit(0), "out": ArraySplit(0)},
        returns=ArraySplit(0),
        writes=["x", "out"],
        result=Argument("out"),
    )

    def f(x, y):
        out = np.empty_like(x)
        return known(x, y, out) + 1

    jitted = compiled(f)
    for seed in range(3):
        x, y = np.random.default_rng(seed).random((2, 30))
        want = x + y
        assert np.array_equal(jitted(x, y), want * 2 + 1)
        assert np.array_equal(x, want)
    assert len(watched.shapes) > 6

    # One array that is read and written: parts would see one another.
    def g(x):
        known(x[1:], x[:-1], x[1:].copy())
        return x

    jitted = compiled(g)
    for _ in range(2):
        ours, theirs = np.arange(30.0), np.arange(30.0)
        theirs[1:] += theirs[:-1]
        assert np.array_equal(jitted(ours), theirs)


def test_calls_that_follow_one_another_go_chunk_by_chunk():
    first, one = noted(
        scale, ["x", "by"], types={"x": Generic("A")}, returns=Generic("A"), result="x"
    )
    second, two = noted(
        lambda x, y: x - y, ["x", "y"], types={"x": Generic("A"), "y": Generic("A")},
        returns=Generic("A"), result="x",
    )  # fmt: skip
    order = []
    first.function = lambda x, by: order.append(1) or scale(x, by)
    second.function = lambda x, y: order.append(2) or x - y

    f = compiled(lambda x: two(one(x, 3.0), x))
    x = np.random.rand(600)
    want = scale(x, 3.0) - x
    for _ in range(2):
        order.clear()
        assert np.array_equal(f(x), want)
    assert "chunk by chunk: test_split_calls.scale" in f.explain()
    assert "program.call @pipeline0" in f.ir("host")
    assert order != sorted(order)


def test_what_keeps_calls_from_one_chain():
    _, one = noted(
        scale, ["x", "by"], types={"x": ArraySplit(0)}, returns=ArraySplit(0), result="x"
    )
    _, other = noted(
        scale, ["x", "by"], types={"x": ArraySplit(1)}, returns=ArraySplit(1), result="x"
    )
    summed = irkit.annotate(
        lambda x, y: x + y.sum(), types={"x": ArraySplit(0)}, returns=ArraySplit(0), result="x"
    )
    x = np.random.rand(24, 24)
    cases = [
        lambda x: other(one(x, 2.0), 3.0),  # along another axis
        lambda x: one(one(x, 2.0)[::-1], 3.0),  # another view of what was written
        lambda x: summed(x, one(x, 2.0)),  # whole of what was written in parts
    ]
    for function in cases:
        f = compiled(function)
        for _ in range(2):
            assert np.array_equal(f(x), function(x))
        assert "chunk by chunk" not in f.explain()


def test_an_error_in_a_part():
    def picky(x):
        if x.max() > 35:
            raise ValueError("part")
        x += 1

    known = irkit.annotate(
        picky, types={"x": ArraySplit(0)}, returns=Broadcast(), writes=["x"], result=lambda x: None
    )
    f = compiled(lambda x: known(x))
    x = np.zeros(40)
    f(x)
    assert x.tolist() == [1.0] * 40
    x[:] = np.arange(40)
    with pytest.raises(ValueError, match="part"):
        f(x)
    assert np.array_equal(x, np.arange(40))


def test_nested_parts_do_not_wait_for_one_another():
    inner = irkit.annotate(
        lambda x: x + 1, types={"x": ArraySplit(0)}, returns=ArraySplit(0), result="x"
    )
    low = compiled(lambda x: inner(x) * 2)
    outer = irkit.annotate(
        lambda x: low(np.array(x)), types={"x": ArraySplit(0)}, returns=ArraySplit(0), result="x"
    )
    high = compiled(lambda x: outer(x) + 1)
    x = np.random.rand(64)
    for _ in range(3):
        assert np.allclose(high(x), (x + 1) * 2 + 1, 1e-15)


UFUNCS = [
    "gamma",
    "gammaln",
    "erfc",
    "ndtr",
    "j0",
    "erfinv",
    "logit",
    "xlogy",
    "beta",
    "hyp2f1",
]


@pytest.mark.parametrize("name", UFUNCS)
def test_scipy_special(name):
    ufunc = getattr(scipy.special, name)

    def f(*given):
        return ufunc(*given) * 2

    for seed in range(3):
        rng = np.random.default_rng(seed)
        shapes = [(5, 24), (24,), (5, 1), ()][: ufunc.nin]
        given = [np.asarray(rng.uniform(0.1, 0.9, s)) for s in shapes]
        jitted = check(f, *given, tolerance=1e-15, jit=compiled)
        got, want = jitted(*given), f(*given)
        assert np.array_equal(got, want)
    assert f"scipy.special.{name} at" in jitted.explain()


def test_what_irkit_has_of_scipy_special_is_compiled():
    def f(x):
        return scipy.special.erf(x) + scipy.special.expit(x)

    f = check(f, np.random.rand(9), tolerance=1e-14, jit=compiled)
    assert "host task" not in f.explain()


ARGUMENTS = {
    "convolve": ([[0, 1], [2, 3]],), "correlate": ([[0, 1], [2, 3]],), "convolve1d": ([1, 2, 1],),
    "correlate1d": ([1, 2, 1],), "gaussian_filter": (1.0,), "gaussian_filter1d": (1.0,),
    "gaussian_laplace": (1.0,), "shift": (1.5,), "rank_filter": (2, 3), "percentile_filter": (30, 3),
}  # fmt: skip
NO_SIZE = ("laplace", "prewitt", "sobel", *ndimage.BINARY)


@pytest.mark.parametrize("name", [*ndimage.FILTERS, *ndimage.ALONG_ONE_AXIS, *ndimage.BINARY])
def test_scipy_ndimage(name):
    load_sets("scipy")
    function = getattr(scipy.ndimage, name)
    assert annotation_of(function).writes == ("output",)
    given = ARGUMENTS.get(name, () if name in NO_SIZE else (3,))
    for dtype in (np.float32, np.float64, np.int64):
        x = np.random.default_rng(0).integers(0, 9, (12, 24)).astype(dtype)

        def fresh(x):
            return function(x, *given) + x[0, 0]

        def into(x):
            out = np.zeros(x.shape, bool if name in ndimage.BINARY else x.dtype)
            function(x, *given, output=out)
            return out

        def typed(x):
            return function(x, *given, output=np.float32)

        for f in (fresh, into, typed):
            check(f, x)
    f = compiled(fresh)
    assert np.array_equal(f(x), fresh(x))
    assert np.array_equal(f(x), fresh(x))
    assert ("in parts" in f.explain()) == (name in ndimage.ALONG_ONE_AXIS)


def test_random_splits_are_the_whole_call():
    for seed in range(40):
        rng = random.Random(seed)
        rank = rng.randint(1, 3)
        shape = [rng.randint(1, 20) for _ in range(rank)]
        axis = rng.randrange(-rank, rank)
        x = np.random.default_rng(seed).random(shape)
        # Of extent 1 it is broadcast, and given whole.
        y = x[::-1].copy() if rng.random() < 0.5 else np.take(x, [0], axis).copy()
        known = irkit.annotate(
            lambda x, y: x * 2 + y,
            types={"x": ArraySplit(axis), "y": ArraySplit(axis)},
            returns=ArraySplit(axis),
            result="x",
        )
        want = known(x, y)
        assert np.array_equal(in_parts(known, x, y), want), seed
        f = compiled(lambda x, y, known=known: known(x, y)) if seed < 10 else None
        if f is not None:
            assert np.array_equal(f(x, y), want)
            assert np.array_equal(f(x, y), want), seed


def test_frames_of_pandas_by_rows():
    pandas = pytest.importorskip("pandas")

    def ratio(frame, by):
        return frame["a"] / frame["b"].abs() + by

    known = irkit.annotate(ratio, types={"frame": RowSplit()}, returns=RowSplit(), result="frame")
    frame = pandas.DataFrame(np.random.rand(50, 2), columns=["a", "b"], index=range(100, 150))
    pandas.testing.assert_series_equal(in_parts(known, frame, 2.0), ratio(frame, 2.0))
    generic = irkit.annotate(ratio, types={"frame": Generic("F")}, returns=RowSplit())
    pandas.testing.assert_series_equal(in_parts(generic, frame, by=2.0), ratio(frame, 2.0))


def test_in_parts_of_what_says_nothing():
    with pytest.raises(UnsupportedError, match="has no annotation"):
        in_parts(np.median, np.ones(3))


def test_how_parts_are_cut(monkeypatch):
    monkeypatch.undo()
    cores = workers.usable_cores()
    cuts = workers.ranges(1 << 20, 8, 1)
    assert len(cuts) == cores
    assert cuts[-1][1] == 1 << 20
    chunks = workers.ranges(1 << 22, 24, 2)
    assert all((b - a) * 24 <= workers.cache_bytes() // 2 + 8 * 24 for a, b in chunks)
    assert workers.ranges(100, 8, 2) == [(0, 100)]
    assert ArrayType((3,), np.dtype(float)).nbytes == 24


class Sized(SplitType):
    """Of as many units as it is told."""

    def __init__(self, units):
        self.units = units

    def size(self, value):
        return self.units

    def split(self, value, start, stop):
        return value[start:stop]

    def merge(self, parts):
        return np.concatenate(parts)


@pytest.mark.parametrize("units", [-3, "x", 2.5])
def test_sizes_that_are_none(units):
    known = irkit.annotate(
        lambda x: x * 2, types={"x": Sized(units)}, returns=Sized(units), result="x"
    )
    with pytest.raises(UnsupportedError, match=f"Sized.size gives {units!r}: expected a whole"):
        compiled(lambda x: known(x))(np.ones(3))
    with pytest.raises(UnsupportedError, match="size gives"):
        irkit.annotations.in_parts(known, np.ones(3))


def test_a_size_may_be_asked_as_of_an_array():
    class Rows(Sized):
        def size(self, value):
            assert (value.ndim, value.size) == (2, 3 * len(value))
            return np.int64(len(value))

    known = irkit.annotate(lambda x: x * 2, types={"x": Rows(0)}, returns=Rows(0), result="x")
    x = np.random.rand(40, 3)
    f = compiled(lambda x: known(x))
    assert np.array_equal(f(x), x * 2)
    assert np.array_equal(f(x), x * 2)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"types": {"x": 3}}, "types\\['x'\\] is 3: expected a split type"),
        ({"returns": "x"}, "returns is 'x': expected a split type"),
        ({"result": 5}, "result is 5: expected the name of a parameter"),
        ({"cost": 3}, "cost is 3: expected a function"),
        ({"device_twin": 3}, "device_twin is 3: expected a function"),
    ],
)
def test_what_an_annotation_cannot_say(said, expected):
    with pytest.raises(UnsupportedError, match=expected):
        irkit.annotate(lambda x: x, **said)
