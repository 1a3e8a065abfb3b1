# pyright: basic
"""What the state of `irkit.while_loop` may be: numbers, arrays without axes, and arrays that the body
writes in place or returns as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irkit
from irkit.errors import UnsupportedError


def doubled(a: Any) -> Any:
    a *= 2
    return (a,)


def of_number(x: Any) -> Any:
    (y,) = irkit.while_loop(lambda a: a < 10, lambda a: (a * 2,), (x,))
    z = y
    y += 1
    return z, y


def of_bare(x: Any) -> Any:
    return irkit.while_loop(lambda a: a < 10, lambda a: (np.asarray(a * 2),), (x,))[0]


def in_place(x: Any) -> Any:
    return irkit.while_loop(lambda a: a.sum() < 10, doubled, (x,))[0], x


def of_part(x: Any) -> Any:
    def body(a: Any, n: Any) -> Any:
        a[n] *= 2
        return a, n + 1

    return irkit.while_loop(lambda a, n: n < 2, body, (x[1:], 0))[0]


def passed_on(x: Any) -> Any:
    y, _ = irkit.while_loop(lambda a, n: n < 2, lambda a, n: (a, n + 1), (x, 0))
    y += 1
    return x


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (of_number, np.float64(1)),
        (of_bare, np.array(1.0)),
        (of_bare, np.array(100.0)),
        (in_place, np.array(1.0)),
        (in_place, np.array([1.0, 2.0])),
        (in_place, np.array([10.0, 2.0])),
        (of_part, np.array([1.0, 2.0, 3.0])),
        (passed_on, np.array([1.0, 2.0])),
    ],
)
def test_it_is_the_loop_of_python(function: Callable[..., Any], x: Any) -> None:
    ours, theirs = np.copy(x) if isinstance(x, np.ndarray) else x, x
    found, expected = irkit.jit(target="cpu")(function)(ours), function(theirs)
    several = isinstance(found, tuple)
    for got, wanted in zip(found, expected, strict=True) if several else [(found, expected)]:
        assert type(got) is type(wanted)
        np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(ours, theirs)


def test_a_number_in_place_of_an_array_is_refused() -> None:
    """Later writes in place would be seen under other names, or not, as the data say."""
    with pytest.raises(
        UnsupportedError, match=r"makes a number of state\[0\].*`x\[\(\)\]` is a number"
    ):
        irkit.jit(target="cpu")(of_number)(np.array(1.0))


def another(x: Any) -> Any:
    return irkit.while_loop(lambda a: a.sum() < 10, lambda a: (doubled(a)[0] + 1,), (x,))


def twice(x: Any) -> Any:
    return irkit.while_loop(lambda a, b: a.sum() < 10, lambda a, b: (*doubled(a), b + 1), (x, x))


def outside(x: Any) -> Any:
    def body(a: Any) -> Any:
        x[0] += 1
        return (a,)

    return irkit.while_loop(lambda a: a.sum() < 10, body, (x,), most=3)


@pytest.mark.parametrize(
    ("function", "message"),
    [(another, "returns another array"), (twice, "another name"), (outside, "another name")],
)
def test_a_write_that_rounds_would_not_see_is_refused(
    function: Callable[..., Any], message: str
) -> None:
    with pytest.raises(UnsupportedError, match=message):
        irkit.jit(target="cpu")(function)(np.array([1.0, 2.0]))
