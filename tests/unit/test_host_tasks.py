"""Functions that irkit does not compile, in functions that it does: tasks of the host, called as they are."""

from __future__ import annotations

import functools
import math
import random
import threading

import numpy as np
import pytest
import scipy.ndimage
import scipy.special
from scipy.ndimage import gaussian_filter

import irkit
from irkit.annotations import Argument, ArrayType
from irkit.errors import UnsupportedError
from tests.unit import host_functions
from tests.unit.jitted import check

compiled = functools.partial(irkit.jit, target="cpu", cache=False)
X = np.random.default_rng(0).random((6, 5))


def works(function, *args, tolerance=1e-12):
    return check(function, *args, tolerance=tolerance, jit=compiled)


def test_library_functions_between_compiled_regions():
    def f(x, k):
        y = np.sin(x) * 2
        z = scipy.ndimage.gaussian_filter(y, 1.0)
        z += gaussian_filter(x, k)
        x += 1
        return z - np.median(z), math.sqrt(np.sum(z * z)), scipy.special.gamma(x)

    told = works(f, X, 2.0).explain()
    line = f.__code__.co_firstlineno
    assert f"test_host_tasks.py:{line + 2}: 240 bytes in" in told
    for name in (
        "scipy.ndimage.gaussian_filter",
        "numpy.median",
        "math.sqrt",
        "scipy.special.gamma",
    ):
        assert f"host task: {name} at" in told
    assert "irkit has no form of numpy.median" in told


def test_report_and_text():
    jitted = works(lambda x: gaussian_filter(x + 1, 1.0) * 2, X)
    (task,) = jitted.report()["host_tasks"]
    assert task["function"] == "scipy.ndimage.gaussian_filter"
    assert (task["bytes_in"], jitted.report()["proved"]) == (240, True)
    assert len(jitted.report()["regions"]) == 2
    assert "program.call @gaussian_filter_0" in jitted.ir("program")
    assert "func.call @main_region0" in jitted.ir("host")
    assert jitted.ir("graph").count("func.func @main") == 2
    assert "numba" in jitted.source
    assert len(jitted.timelines()) == 2


def test_a_function_of_another_module_is_traced_where_it_can_be():
    told = works(lambda x: host_functions.scaled(x, 3.0) + 1, X).explain()
    assert "host task" not in told
    told = works(lambda x: host_functions.branching(x) + 1, X).explain()
    assert "host_functions.branching" in told
    assert "cannot be traced: 'if'" in told


def test_a_refusal_that_is_caught_is_no_trace():
    # Traced as it stands it would take the way of the `except`.
    told = works(lambda x: host_functions.swallows(x) * 2, X).explain()
    assert "goes on otherwise" in told


def test_writes_of_functions_of_which_nothing_is_known():
    def f(x):
        y = x * 2
        host_functions.doubles_in_place(y[1:, ::2])
        host_functions.doubles_in_place(x)
        return y + x

    works(f, X)


def test_arguments_that_were_not_changed_are_not_written():
    x = X.copy()
    x.flags.writeable = False
    f = compiled(lambda x: host_functions.branching(x) + 1)
    assert np.array_equal(f(x), host_functions.branching(x) + 1)


def test_structures_of_arguments_and_results():
    def f(x, y):
        found = host_functions.structured({"a": x + 1, "b": [y, 2]}, name="mean")
        return found["mean"] + found["parts"][1], found["count"], found["parts"]

    works(f, X, X[::-1].copy())


def test_loops_around_calls():
    def f(x):
        for i in range(7):
            x[i % 2] = host_functions.branching(x[1]) * 0.5
            x *= 1.5
        return x.sum()

    works(f, X)

    def g(x):
        for i in irkit.range(6):
            x[i] += host_functions.branching(x[i])
        return x

    works(g, X)


def test_results_that_hang_on_values():
    f = compiled(lambda x: host_functions.positive(x) * 2)
    assert np.array_equal(f(np.array([1.0, -1.0, 2.0])), [2.0, 4.0])
    with pytest.raises(
        UnsupportedError,
        match=r"\.py:\d+: '.*positive' returned float64\[3\], and float64\[2\] was",
    ):
        f(np.array([1.0, 1.0, 2.0]))


def test_what_differs_from_call_to_call_in_one_run():
    def f(x):
        return host_functions.positive(x).sum() + host_functions.positive(-x).sum()

    with pytest.raises(UnsupportedError, match="hangs on values"):
        compiled(f)(np.array([1.0, -1.0, 2.0]))


def test_results_that_share_memory():
    x = np.ones(4)
    for function in (host_functions.window, host_functions.remembered):
        with pytest.raises(UnsupportedError, match=r"\.py:\d+: .*returned a view of an array"):
            compiled(lambda x, function=function: function(x) + function(x * 2))(x)
    works(lambda x: host_functions.gives_back(x) + 1, X)


def test_results_that_have_no_form():
    with pytest.raises(UnsupportedError, match=r"\.py:\d+: .*text' returned a builtins.str"):
        compiled(lambda x: host_functions.text(x))(X)


def test_an_error_in_the_middle_changes_nothing():
    def f(x):
        x += 1
        host_functions.doubles_in_place(x)
        y = host_functions.below(x, 20.0)
        x += y
        return x

    jitted, x = compiled(f), np.ones(3)
    jitted(x)
    assert x.tolist() == [9.0] * 3
    x[:] = 30
    with pytest.raises(ValueError, match="too large") as raised:
        jitted(x)
    assert x.tolist() == [30.0] * 3
    line = f.__code__.co_firstlineno + 3
    assert (
        f"test_host_tasks.py:{line}: in 'tests.unit.host_functions.below'"
        in raised.value.__notes__[0]
    )


def test_the_functions_own_errors_come_from_the_first_run():
    x = np.full(3, 30.0)
    with pytest.raises(ValueError, match="too large"):
        compiled(lambda x: host_functions.below(x, 20.0))(x)


@irkit.annotate
def noted(x):
    return x[::-1] + 1 if x[0] > 0 else x - 1


def test_a_function_of_ones_own():
    told = works(lambda x: noted(x * 2), np.ones(5)).explain()
    assert "host task: tests.unit.test_host_tasks.noted" in told or "noted at" in told
    assert noted(np.ones(2)).tolist() == [2.0, 2.0]


def test_what_an_annotation_says_is_not_tried():
    calls = []

    def counted(x, scale, out=None):
        calls.append(1)
        if out is None:
            return x * scale
        out[...] = x * scale
        return out

    known = irkit.annotate(counted, writes=["out"], result=_result_of_counted)

    def f(x):
        y = known(x, 2.0)
        known(y, 3.0, out=x)
        return y

    jitted, x = compiled(f), np.ones(4)
    jitted.compile(x)
    assert not calls
    assert jitted(x).tolist() == [2.0] * 4
    assert x.tolist() == [6.0] * 4
    assert len(calls) == 2
    assert "240 bytes" not in jitted.explain()


def _result_of_counted(x, scale, out=None):
    return ArrayType(x.shape, x.dtype) if out is None else Argument("out")


def test_annotations_that_are_wrong():
    def careless(x, y):
        y += x
        return x.copy()

    wrong = irkit.annotate(careless, result="x")
    x, y = np.ones(3), np.ones(3)
    with pytest.raises(
        UnsupportedError, match="careless' wrote its argument 'y', which its annotation"
    ):
        compiled(lambda x, y: wrong(x, y))(x, y)
    assert y.tolist() == [1.0] * 3
    with pytest.raises(UnsupportedError, match="no parameter 'z'; it has x, y"):
        irkit.annotate(careless, writes=["z"])
    with pytest.raises(UnsupportedError, match="expected a function"):
        irkit.annotate(3)
    late = irkit.annotate(lambda x: x.sum(), result="x")
    with pytest.raises(
        UnsupportedError, match=r"returned a number \(float64\), and float64\[3\] was"
    ):
        compiled(lambda x: late(x))(x)
    fixed = irkit.annotate(lambda x: x.fill(0), writes=["x"], result=lambda x: None)
    x.flags.writeable = False
    with pytest.raises(ValueError, match="writes 'x', which is read-only"):
        compiled(lambda x: fixed(x))(x)


def test_a_function_that_is_made_in_the_traced_one():
    def f(x):
        return host_functions.applied(lambda v: v + 1 if v[0] > 0 else v, x)

    with pytest.raises(UnsupportedError, match="is traced, and is given to a function of the host"):
        compiled(f)(X[0])


def test_functions_that_call_compiled_ones():
    inner = compiled(lambda x: np.sin(x) + 1)

    @irkit.annotate
    def outer(x, depth):
        found = inner(x)
        return f(found, depth - 1) if depth else found

    @compiled
    def f(x, depth):
        return outer(x * 0.5, depth) + 1

    x = np.ones(3)
    want = x
    for _ in range(3):
        want = np.sin(want * 0.5) + 1
    assert np.allclose(f(x, 2), want + 3)


def test_many_threads():
    f = compiled(lambda x: gaussian_filter(x * 2, 1.0) + host_functions.branching(x))
    arrays = [np.random.default_rng(n).random((6, 5)) for n in range(8)]
    found = [None] * 8

    def work(n):
        for _ in range(5):
            found[n] = f(arrays[n])

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for x, y in zip(arrays, found, strict=True):
        want = gaussian_filter(x * 2, 1.0) + host_functions.branching(x)
        assert np.allclose(y, want, 1e-12)


def test_random_sequences_of_calls():
    """Calls and compiled code in any order, on views that overlap: as Python has it."""
    for seed in range(16):
        rng = random.Random(seed)
        steps = [(rng.randrange(5), rng.randrange(3), rng.randrange(3)) for _ in range(6)]

        def f(x, y, steps=tuple(steps)):
            views = [x[1:], x[:-1], y[::-1]]
            for kind, a, b in steps:
                if kind == 0:
                    views[a] *= 0.75
                elif kind == 1:
                    host_functions.doubles_in_place(views[a])
                elif kind == 2:
                    views[a][...] = host_functions.branching(views[b]) + 0.5
                elif kind == 3:
                    views[a] += np.median(views[b])
                else:
                    host_functions.accumulates(views[a], views[b])
            return x + 1, y

        check(f, X[0].copy(), X[1, :4].copy(), tolerance=1e-12)
        if seed < 2:
            works(f, X[0].copy(), X[1, :4].copy())
