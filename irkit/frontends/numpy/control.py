"""Loops that are asked for: `irkit.range` and `irkit.while_loop`."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, SupportsIndex, cast

import numpy as np

from irkit.errors import UnsupportedError
from irkit.frontends.numpy.arrays import TracedArray, empty, is_traced, value_of
from irkit.frontends.numpy.indexing import assign
from irkit.frontends.numpy.loops import TracedRange
from irkit.frontends.numpy.operands import array_of
from irkit.frontends.numpy.places import refused, user_place
from irkit.frontends.numpy.recorder import recorder, tracing
from irkit.frontends.numpy.records import Buffer, Call, For, Record, While, Write, buffers_of
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
    arrays and numbers, which keep their shapes and dtypes, `condition` gives one boolean. An array that the
    body returns is that of the state, and may be written in place; in place of one that it replaces there is
    a new one after the loop, even after no round. Elsewhere it is the Python loop.
    Raises UnsupportedError where the body gives another number of arrays, shapes or dtypes, a number in place
    of an array without axes, or writes what it replaces.
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
        became, kept = _step(body, carried)
        if became:
            # From the second round on the numbers are NumPy's, and so is what is done with them.
            r.records = []
            _, kept = _step(body, carried)
        _check_names(state, [carried[n] for n in kept if kept[n]], r.records)
        _ask(flag, condition, carried)
    finally:
        inside, r.records = r.records, outer
    r.records.append(While(place, flag.spot.buffer, inside))
    return tuple(
        _back(state[n], array, kept[n]) if n in kept else array for n, array in enumerate(carried)
    )


def _back(given: Any, held: TracedArray, written: bool) -> Any:
    """The array that the loop was given and its body returned, with what was `written` to it, as `held` has
    it."""
    if not is_traced(given):
        return held
    if written:
        assign(given, held)
    return given


def _check_names(
    state: tuple[Any, ...], written: list[TracedArray], records: Sequence[Record]
) -> None:
    """That what a body writes has one name in it: rounds compute with copies of the state."""
    given = [x.spot.buffer for x in state if is_traced(x)]
    touched = {buffer for record in records for buffer in buffers_of(record)}
    twice = len(given) > len(set(given)) or not touched.isdisjoint(given)
    if not set(given).isdisjoint(_written(records)) or (written and twice):
        raise refused(
            "the body of irkit.while_loop writes an array of its state in place, and has one under another "
            "name too: expected one name of each, or a body that returns new arrays"
        )


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


def _step(body: Callable[..., Any], state: list[TracedArray]) -> tuple[bool, dict[int, bool]]:
    """One round: all of the new state is computed before any of the old is written. Whether numbers that were
    Python's became NumPy's, which they are from now on; and which arrays the body returned as they were given
    to it, and whether it wrote them."""
    r = recorder()
    before = len(r.records)
    found = body(*state)
    given: tuple[Any, ...] = cast("tuple[Any, ...]", found) if isinstance(found, tuple) else ()
    new = [array_of(x) for x in given]
    have = [(a.shape, a.dtype) for a in state]
    got = [(a.shape, a.dtype) for a in new]
    if have != got:
        raise refused(f"the body of irkit.while_loop gives {got}: expected a tuple of {have}")
    _check_numbers(state, new)
    kept = _returned(state, given, r.records[before:])
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
    return bool(became), kept


def _check_numbers(state: list[TracedArray], new: list[TracedArray]) -> None:
    """Whether each number stays one, and each array without axes an array: what is done with the state later
    hangs on it, and data say how many rounds there are."""
    for n, (old, made) in enumerate(zip(state, new, strict=True)):
        if old.spot.scalar == made.spot.scalar:
            continue
        was, becomes = (
            "a number" if a.spot.scalar else "an array without axes" for a in (old, made)
        )
        raise refused(
            f"the body of irkit.while_loop makes {becomes} of state[{n}], which is {was}: expected one of "
            "the two throughout; `x[()]` is a number, `np.asarray(x)` an array"
        )


def _returned(
    state: list[TracedArray], given: tuple[Any, ...], records: Sequence[Record]
) -> dict[int, bool]:
    """Numbers of the arrays of the state that are returned, and whether `records` write them."""
    written = set(_written(records))
    found: dict[int, bool] = {}
    for n, array in enumerate(state):
        writes = array.spot.buffer in written
        if given[n] is array and not array.spot.scalar:
            found[n] = writes
        elif writes:
            raise refused(
                f"the body of irkit.while_loop writes state[{n}] in place and returns another array: "
                "expected that array, or a body that writes none of its state"
            )
    return found


def _written(records: Iterable[Record]) -> Iterator[Buffer]:
    for record in records:
        if isinstance(record, Write):
            yield record.view.buffer
        if isinstance(record, Call):
            yield from (record.views[n].buffer for n in record.writes)
        if isinstance(record, For | While):
            yield from _written(record.body)
