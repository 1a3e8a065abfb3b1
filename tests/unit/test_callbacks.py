"""Callbacks: functions of the host that a compiled function calls in the order of its effects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irkit
from irkit.errors import UnsupportedError
from irkit.training import losses, optimizers

NOTES: list[Any] = []
X = np.arange(6.0)


@irkit.callback
def note(*arrays: Any, name: str = "") -> str:
    NOTES.append((name, *(np.array(a) for a in arrays)))
    return "dropped"


def told(run: Callable[..., Any], *args: Any) -> tuple[Any, list[Any], list[Any]]:
    """What it returns, what it leaves in its arguments, and what was noted."""
    given = [np.array(a) for a in args]
    NOTES.clear()
    found = run(*given)
    return found, given, list(NOTES)


def check(function: Any, *args: Any) -> Any:
    compiled = irkit.jit(target="cpu", cache=False)(function)
    wanted = told(function, *args)
    for _ in range(2):
        found = told(compiled, *args)
        np.testing.assert_array_equal(found[0], wanted[0])
        for a, b in zip(found[1], wanted[1], strict=True):
            np.testing.assert_array_equal(a, b)
        assert [n[0] for n in found[2]] == [n[0] for n in wanted[2]]
        for a, b in zip(found[2], wanted[2], strict=True):
            for x, y in zip(a[1:], b[1:], strict=True):
                np.testing.assert_array_equal(x, y)
    return compiled


def test_what_is_written_before_and_after() -> None:
    def f(x: Any) -> Any:
        x += 1
        note(x, name="first")
        x *= 2
        y = x[::-1] + x
        note(x[1:3], y, name="second")
        x[0] = 0
        return y

    told_of = check(f, X).explain()
    assert "a callback" in told_of


def test_in_loops_of_the_host_each_time() -> None:
    def f(x: Any) -> Any:
        for i in range(9):
            x[1:] += x[:-1]
            note(x, x[i % 3], name="round")
        return x.sum()

    check(f, X)
    assert len(NOTES) == 9


def test_beside_a_function_that_is_learnt_it_is_called_once() -> None:
    def f(x: Any) -> Any:
        note(x)
        return np.median(x) + x

    compiled = irkit.jit(target="cpu", cache=False)(f)
    assert len(told(compiled, X)[2]) == 1
    assert len(told(compiled, X)[2]) == 1


def test_what_it_is_given_it_leaves() -> None:
    @irkit.callback
    def careless(x: Any) -> None:
        x[0] = 7

    def f(x: Any) -> Any:
        y = x + 1
        careless(y)
        return y

    with pytest.raises(UnsupportedError, match="wrote"):
        irkit.jit(target="cpu", cache=False)(f)(X)


def test_an_error_in_it_leaves_the_arguments_as_they_were() -> None:
    @irkit.callback
    def failing(x: Any) -> None:
        raise KeyError("gone")

    def f(x: Any) -> Any:
        x += 1
        failing(x)
        x += 1

    x = X.copy()
    with pytest.raises(KeyError, match="gone"):
        irkit.jit(target="cpu", cache=False)(f)(x)
    np.testing.assert_array_equal(x, X)


def test_refusals_name_it() -> None:
    def alone(x: Any) -> Any:
        note(name="alone")
        return x + 1

    def differentiated(x: Any) -> Any:
        note(x)
        return (x * x).sum()

    with pytest.raises(UnsupportedError, match=r"callback '.*note' is given no array"):
        irkit.jit(target="cpu", cache=False)(alone)(X)
    with pytest.raises(UnsupportedError, match=r"differentiated calls .* not traced: '.*note'"):
        irkit.grad(differentiated, target="cpu")(X)
    with pytest.raises(UnsupportedError, match=r"irkit\.callback of int"):
        irkit.callback(3)  # pyright: ignore[reportArgumentType]

    def model(p: Any, x: Any) -> Any:
        note(x)
        return x @ p

    step = irkit.training_step(
        model,
        losses.mean_squared_error,
        optimizers.SGD(0.1),
        parameters=np.ones((3, 1)),
        target="cpu",
    )
    with pytest.raises(UnsupportedError, match="note'"):
        step(np.ones((2, 3)), np.ones((2, 1)))
