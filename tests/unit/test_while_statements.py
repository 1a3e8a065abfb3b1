"""`while` statements on data, in functions that `irkit.jit` compiles: NumPy's answers or a named refusal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

import irkit
from irkit.errors import UnsupportedError

RNG = np.random.default_rng(0)
MATRIX = RNG.random((9, 9)) @ RNG.random((9, 9)).T + 20 * np.eye(9)
VECTOR = RNG.random(9)


def gradients(a: Any, b: Any) -> Any:
    x, r, rr, n = np.zeros_like(b), b.copy(), b @ b, 0
    p = r
    while rr > 1e-20 and n < 100:
        q = a @ p
        x, r = x + rr / (p @ q) * p, r - rr / (p @ q) * q
        new = r @ r
        p, rr, n = r + (new / rr) * p, new, n + 1
    return x, n, rr


def in_place(a: Any, b: Any) -> Any:
    x, r, p, rr, n = np.zeros_like(b), b.copy(), b.copy(), b @ b, 0
    while not (rr <= 1e-20 or n >= 100):
        q = a @ p
        alpha = rr / (p @ q)
        x += alpha * p
        r -= alpha * q
        new = r @ r
        p *= new / rr
        p += r
        rr = new
        n += 1
    return x, n


def relaxed(a: Any, b: Any) -> Any:
    """Writes its argument; the first test is known."""
    err, steps = 1, 0
    while err > 1e-3:
        old = a.copy()
        a[1:-1] = 0.5 * (a[2:] + old[:-2])
        err = np.abs(a - old).max()
        steps += 1
    return steps, err


def swapped(a: Any, b: Any) -> Any:
    u, v, off, k = b.copy(), b.copy(), np.inf, 0
    while off > 1e-3:
        v[1:-1] = 0.5 * (u[2:] + u[:-2])
        off = np.abs(u - v).max()
        u, v = v, u
        k += 1
    return u, v, k


def nested(a: Any, b: Any) -> Any:
    k = 0
    while b.max() > 1e-3:
        v = b
        while v.sum() > 1:
            v = v * 0.5
            k += 1
        b = v * 0.25
    return b, k


def chained(a: Any, b: Any) -> Any:
    n = 0
    while 0.01 < b.max() < 10 and n < 50:
        b = b * 0.9
        n += 1
    else:
        b = b + 1
    return b, n


def in_a_loop(a: Any, b: Any) -> Any:
    out, count = np.zeros(len(b)), np.zeros(len(b), np.int64)
    for i in range(len(b)):
        x, n = b[i], 0
        while x > 0.01:
            x = x * 0.5
            n += 1
        out[i], count[i] = x, n
    return out, count


def _halved(v: Any, to: Any) -> Any:
    while v.max() > to:
        v = v / 2
    return v


def by_a_helper(a: Any, b: Any) -> Any:
    return _halved(b, 0.1) + _halved(b, 0.01), _halved(b, 100.0)


def of_the_host(a: Any, b: Any) -> Any:
    n = 0
    while np.median(b) > 0.1:
        b = b * 0.5
        n += 1
    return b, n


def weak(a: Any, b: Any) -> Any:
    x, n = b.astype(np.float32), 0
    while x.max() > 0.1 and n < 7:
        x = x * (0.5 + n * 0.01)
        n += 1
    return x, n / 2


def largest(a: Any, b: Any) -> Any:
    """Python's numbers before the loop, NumPy's in it."""
    v, lam, old, n = np.ones(len(a)), 0.0, np.float64(1), 0
    while abs(old - lam) > 1e-10:
        w = a @ v
        old = lam
        v = w / np.linalg.norm(w)
        lam = v @ a @ v
        n = n + (v > 0).sum()
    return lam, v, n


RIGHT = [largest, gradients, in_place, relaxed, swapped, nested, chained, in_a_loop, by_a_helper]


def _leaves(value: Any) -> list[Any]:
    parts = cast("list[Any]", value)
    return [x for v in parts for x in _leaves(v)] if isinstance(value, tuple | list) else [value]


@pytest.mark.parametrize("function", [*RIGHT, of_the_host, weak], ids=lambda f: f.__name__)
@pytest.mark.parametrize("scale", [1.0, 0.0])
def test_that_a_loop_has_numpys_answer(function: Callable[..., Any], scale: float):
    theirs, ours = ((MATRIX.copy(), VECTOR * scale) for _ in range(2))
    compiled = irkit.jit(target="cpu")(function)
    want, got = function(*theirs), compiled(*ours)
    for p, q in zip(_leaves((got, ours)), _leaves((want, theirs)), strict=True):
        assert type(p) is type(q)
        assert np.asarray(p).dtype == np.asarray(q).dtype
        np.testing.assert_allclose(p, q, 1e-10, 1e-13)


def test_that_it_is_one_loop_of_the_program():
    compiled = irkit.jit(target="cpu")(gradients)
    compiled(MATRIX, VECTOR)
    assert compiled.ir("schedule").count("task.while") == 1


def left(b: Any) -> Any:
    n = 0
    while b.max() > 0.1:
        b, n = b * 0.5, n + 1
        for _ in range(3):
            return b
    return b


def broken(b: Any, stop: Any = True) -> Any:
    while b.max() > 0.1:
        b = b * 0.5
        if stop:
            break
    return b


def bound_inside(b: Any) -> Any:
    while b.max() > 0.1:
        t = b * 0.5
        b = t + 0
    return t  # pyright: ignore[reportPossiblyUnboundVariable]


def growing(b: Any) -> Any:
    found: list[Any] = []
    while b.max() > 0.1:
        b = b * 0.5
        found.append(b)
    return b


def summed(b: Any) -> Any:
    s = 0
    while b.max() > 0.1:
        b = b * 0.5
        s += b.sum()
    return s


def shorter(b: Any) -> Any:
    while b.max() > 0.1:
        b = b[:-1] * 0.5
    return b


def seen_twice(b: Any) -> Any:
    r = b.copy()
    p, rr, n = r, r @ r, 0
    while rr > 1e-20 and n < 3:
        r -= 0.1 * p
        p, rr, n = p * 2, r @ r, n + 1
    return n, r, p


def kept_aside(b: Any) -> Any:
    u = b.copy()
    v, first, off = u.copy(), u, u.max()
    while off > 1e-3:
        v[1:-1] = 0.5 * (u[2:] + u[:-2])
        off = np.abs(u - v).max()
        u, v = v, u
    return u, v, first


def written_after(b: Any) -> Any:
    y = b * 1
    x = y
    while x.max() > 0.1:
        x = x * 0.5
    x[0] = 5.0
    return x, y


def narrower(b: Any) -> Any:
    a, scale, most = b.astype(np.float32), 0.5, b.max()
    while most > 1e-3:
        a = a * scale
        most, scale = a.max().astype(np.float64), np.float64(0.4)
    return a


REFUSED: list[tuple[Callable[..., Any], str]] = [
    (left, "left by `return`"),
    (broken, "left by `break`"),
    (bound_inside, "'t' is bound in rounds of this `while` loop alone"),
    (growing, "found grows from round to round"),
    (summed, "'s' is one of Python's numbers .* begin with np.float64"),
    (shorter, r"'b' is an array float64\[9\] before .* float64\[8\] after"),
    (narrower, r"'a' is an array float32\[9\] before .* float64\[9\] after"),
    (seen_twice, "'p' of a `while` loop on data is too"),
    (kept_aside, "of a `while` loop on data is too"),
    (written_after, "'x' of a `while` loop on data is too"),
]


@pytest.mark.parametrize(("function", "message"), REFUSED, ids=lambda f: getattr(f, "__name__", ""))
def test_that_what_rounds_cannot_say_is_refused_with_its_line(
    function: Callable[..., Any], message: str
):
    first = function.__code__.co_firstlineno
    with pytest.raises(UnsupportedError, match=message) as found:
        irkit.jit(target="cpu")(function)(VECTOR)
    assert __file__ in str(found.value)
    line = int(str(found.value).partition(f"{__file__}:")[2].partition(":")[0])
    assert first < line < first + 12


def test_that_a_function_without_a_file_is_refused():
    scope: dict[str, Any] = {}
    exec("def f(b):\n    while b.max() > 1:\n        b = b / 2\n    return b\n", scope)
    with pytest.raises(UnsupportedError, match=r"irkit\.while_loop repeats"):
        irkit.jit(target="cpu")(scope["f"])(VECTOR + 1)


def test_that_indices_beside_numbers_are_weak():
    """`i * 0.5 + 1` is a float of Python's: beside float32 it is float32."""

    def scaled(x: Any) -> Any:
        for i in range(50):
            x = x * (i * 0.5 + 1) / (i + 1.5)
        return x

    x = np.ones(3, np.float32)
    got = irkit.jit(target="cpu")(scaled)(x)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, scaled(x))
