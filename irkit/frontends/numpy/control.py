"""Loops that are asked for: `irkit.range` and `irkit.while_loop`."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any, SupportsIndex, cast

import numpy as np

from irkit.errors import UnsupportedError
from irkit.frontends.numpy.arrays import TracedArray, empty, value_of
from irkit.frontends.numpy.indexing import assign
from irkit.frontends.numpy.loops import TracedRange
from irkit.frontends.numpy.operands import array_of
from irkit.frontends.numpy.places import refused, user_place
from irkit.frontends.numpy.recorder import recorder, tracing
from irkit.frontends.numpy.records import While
from irkit.frontends.numpy.shaping import copied


def loop_range(*arguments: int) -> Any:
    """Python's `range`; in a function that `irkit.jit` compiles, a loop over it is never unrolled.

    Raises UnsupportedError there, with the line, if its rounds differ in more than the index and the arrays.
    """
    rounds = range(*arguments)
    return TracedRange(rounds, explicit=True) if tracing() else rounds


def while_loop(
    condition: Callable[..., Any],
    body: Callable[..., Any],
    state: tuple[Any, ...],
    *,
    most: int | None = None,
) -> tuple[Any, ...]:
    """`while condition(*state): state = body(*state)`; returns the last state. With `most` the loop ends
    after so many rounds, whatever the condition says: gradients (`irkit.grad`) need such a number.

    In a function that `irkit.jit` compiles the loop goes on as long as the data say so: `state` is a tuple of
    arrays and numbers, which keep their shapes and dtypes, `condition` gives one boolean. Elsewhere it is the
    Python loop. Raises UnsupportedError where the body gives another number of arrays, shapes or dtypes.
    """
    if not _is_count(most):
        raise UnsupportedError(
            f"irkit.while_loop: most={most!r}: expected a whole number, 0 or more"
        )
    if not tracing():
        rounds = itertools.count() if most is None else range(most)
        for _ in rounds:
            if not condition(*state):
                break
            state = tuple(body(*state))
        return state
    if most is not None:
        return _bounded(condition, body, state, most)
    r = recorder()
    place = user_place()
    carried = [_own(x) for x in state]
    flag = empty((), np.dtype(bool))
    _ask(flag, condition, carried)
    outer, r.records = r.records, []
    try:
        if _step(body, carried):
            # From the second round on the numbers are NumPy's, and so is what is done with them.
            r.records = []
            _step(body, carried)
        _ask(flag, condition, carried)
    finally:
        inside, r.records = r.records, outer
    r.records.append(While(place, flag.spot.buffer, inside))
    return tuple(carried)


def _bounded(
    condition: Callable[..., Any], body: Callable[..., Any], state: tuple[Any, ...], most: int
) -> tuple[Any, ...]:
    """A loop that counts its rounds."""

    def asks(*held: Any) -> Any:
        asked = array_of(condition(*held[:-1]))
        _check_asked(asked)
        return np.logical_and(asked, held[-1] < most)

    def turn(*held: Any) -> Any:
        found = body(*held[:-1])
        return (*found, held[-1] + 1) if isinstance(found, tuple) else found

    return while_loop(asks, turn, (*state, np.int64(0)))[:-1]


def _is_count(most: object) -> bool:
    """Whether it is None, or a number of rounds."""
    return most is None or (isinstance(most, SupportsIndex) and operator.index(most) >= 0)


def _check_asked(held: TracedArray) -> None:
    if held.shape != ():
        raise refused(
            f"the condition of irkit.while_loop has shape {held.shape}: expected one boolean"
        )


def _own(x: Any) -> TracedArray:
    """An array that the loop may write."""
    array = array_of(x)
    scalar = array.spot.scalar
    made = copied(array)
    made.spot.scalar, made.spot.weak = scalar, array.spot.weak
    if array is not x and type(x) in (int, float):
        made.spot.weak = type(x)
    return made


def _ask(flag: TracedArray, condition: Callable[..., Any], state: list[TracedArray]) -> None:
    held = array_of(condition(*state))
    _check_asked(held)
    assign(flag, held)


def _step(body: Callable[..., Any], state: list[TracedArray]) -> bool:
    """One round: all of the new state is computed before any of the old is written. Whether numbers that were
    Python's became NumPy's: they are from now on."""
    found = body(*state)
    given: tuple[Any, ...] = cast("tuple[Any, ...]", found) if isinstance(found, tuple) else ()
    new = [array_of(x) for x in given]
    have = [(a.shape, a.dtype) for a in state]
    got = [(a.shape, a.dtype) for a in new]
    if have != got:
        raise refused(f"the body of irkit.while_loop gives {got}: expected a tuple of {have}")
    r = recorder()
    values = [value_of(a) for a in new]
    became = [
        a
        for a, n, x in zip(state, new, given, strict=True)
        if a.spot.weak is not None and n.spot.weak is None and type(x) not in (int, float)
    ]
    for array in became:
        array.spot.weak = None
    for array, value in zip(state, values, strict=True):
        r.write(value, array.spot.view)
    return bool(became)
