"""Rule 'meaning': a schedule computes its function, call by call and byte by byte."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from schedule_toys import boxes, split, whole

from irkit.errors import ScheduleError
from irkit.schedule.byte_runs import runs_of
from irkit.schedule.devices import device
from irkit.schedule.meaning import Call, Function, Piece, Port, Value, cut, joined
from irkit.schedule.model import Access, Append, Buffer, Launch, Schedule
from irkit.schedule.translation import check_translation


def piece(kind: str, name: int | str, start: int, stop: int, which: int = 0) -> Piece:
    return Piece((kind, name, which), start, stop)


def value(*pieces: Piece) -> Value:
    return joined(pieces)


FUNCTION = Function(
    "f",
    [Port((4,), "float64")],
    [Port((8,), "float64")],
    [
        Call("g", (value(piece("input", 0, 0, 32)),)),
        Call("h", (value(piece("result", 0, 0, 32)), value(piece("constant", "w", 0, 32)))),
        Call("k", (value(piece("result", 0, 0, 32), piece("result", 1, 0, 32)),)),
    ],
    [value(piece("result", 2, 0, 64))],
)


def schedule(order: tuple[int, ...] = (0, 1, 2)) -> Schedule:
    """g writes the first half of c, h the second, k reads all of it."""
    buffers = [
        Buffer("x", "input", (4,), 8, element="float64", port=0),
        Buffer("w", "constant", (4,), 8, element="float64", source="w"),
        Buffer("c", "arena", (8,), 8, element="float64"),
        Buffer("a", "arena", (4,), 8, parent=2, element="float64"),
        Buffer("b", "arena", (4,), 8, parent=2, parent_offset=32, element="float64"),
        Buffer("y", "output", (8,), 8, element="float64", port=0),
    ]
    all4, all8 = whole((4,), 1), whole((8,), 1)
    launches = [
        Launch("g", "g", 1, (Access(0, all4),), (Access(3, all4),)),
        Launch("h", "h", 1, (Access(3, all4), Access(1, all4)), (Access(4, all4),)),
        Launch("k", "k", 1, (Access(2, all8),), (Access(5, all8),)),
    ]
    appends = [Append(n, 0, 1, n) for n in range(len(order))]
    return Schedule(device("test4"), buffers, [launches[n] for n in order], appends)


def refused(found: Schedule, function: Function = FUNCTION) -> str:
    with pytest.raises(ScheduleError, match="rule 'meaning'") as caught:
        check_translation(found, function)
    return str(caught.value)


def test_a_schedule_of_its_function_is_one() -> None:
    check_translation(schedule(), FUNCTION)


def test_every_launch_once() -> None:
    assert "launch 2 (@k) of @f is never appended" in refused(schedule((0, 1)))
    assert "append 2 ('g') computes again what @f launches less often" in refused(
        schedule((0, 1, 0, 2))
    )


def test_operands_are_those_of_the_function() -> None:
    text = refused(schedule((0, 2, 1)))
    assert "append 1 ('k') reads, as operand 0, bytes that nothing has written" in text
    found = schedule()
    found.launches[1] = replace(found.launches[1], reads=found.launches[1].reads[::-1])
    assert "append 1 ('h') computes what no launch of @f does" in refused(found)
    found = schedule()
    found.buffers[1] = replace(found.buffers[1], source="v")
    assert "append 1 ('h') computes what no launch" in refused(found)


def test_views_are_where_the_function_has_them() -> None:
    found = schedule()
    found.buffers[3] = replace(found.buffers[3], parent_offset=32)
    found.buffers[4] = replace(found.buffers[4], parent_offset=0)
    assert "append 2 ('k') computes what no launch" in refused(found)


def test_only_what_is_read_counts() -> None:
    """k reads the first half alone, so it may run before the second is written."""
    first = whole((8,), 1)
    first[:, 0, 1] = 4
    found = schedule((0, 2, 1))
    found.launches[1] = replace(found.launches[1], reads=(Access(2, first),))
    check_translation(found, FUNCTION)
    second = first + 4
    found.launches[1] = replace(found.launches[1], reads=(Access(2, second),))
    assert "bytes that nothing has written" in refused(found)


def test_what_is_returned_is_there_at_the_end() -> None:
    found = schedule()
    found.launches.append(
        replace(found.launches[0], name="over", writes=(Access(6, whole((4,), 1)),))
    )
    found.buffers.append(Buffer("z", "output", (4,), 8, parent=5, element="float64"))
    found.appends.append(Append(3, 0, 1, 3))
    calls = [*FUNCTION.calls, FUNCTION.calls[0]]
    text = refused(found, replace(FUNCTION, calls=calls))
    assert "'y' does not hold output 0 of @f at the end" in text


def test_ports_are_those_of_the_function() -> None:
    found = schedule()
    found.buffers[5] = replace(found.buffers[5], port=1)
    assert "output 0 of @f has 0 buffers, expected 1" in refused(found)
    found.buffers[5] = replace(found.buffers[5], port=0, element="int64")
    assert "output 0 of @f is 8 of float64, its buffer 'y' is 8 of int64" in refused(found)


def test_equal_calls_may_take_each_others_place() -> None:
    """Two equal calls compute the same, whichever append is whose."""
    second = (value(piece("result", 1, 0, 32)), value(piece("constant", "w", 0, 32)))
    calls = [FUNCTION.calls[0], FUNCTION.calls[0], Call("h", second)]
    twice = Function("f", [Port((4,), "float64")], [], calls)
    found = schedule((0, 0, 1))
    found.buffers.pop()
    check_translation(found, twice)


def test_values_are_cut_and_joined() -> None:
    both = value(piece("input", 0, 0, 16), piece("input", 0, 16, 32), piece("input", 1, 0, 8))
    assert both == (piece("input", 0, 0, 32), piece("input", 1, 0, 8))
    assert cut(both, 24, 36) == (piece("input", 0, 24, 32), piece("input", 1, 0, 4))
    assert cut(both, 0, 0) == ()


def test_runs_of_boxes() -> None:
    flat, square = Buffer("b", "arena", (8,), 4), Buffer("b", "arena", (4, 4), 4)
    assert runs_of(whole((8,), 2), flat) is None
    assert runs_of(split((8,), 3), flat) is None
    assert runs_of(boxes([(0, 2)], [(5, 8)], [(3, 3)]), flat) == [(0, 8), (20, 32)]
    columns = boxes([(0, 4), (1, 3)])
    assert runs_of(columns, square) == [(4, 12), (20, 28), (36, 44), (52, 60)]
    rows = Buffer("r", "rows", (-1, 4), 4)
    assert runs_of(boxes([(0, 1), (0, 2)], [(1, 2), (0, 2)]), rows) == [(0, 8)]
    large = Buffer("l", "arena", (2048, 1024), 4)
    assert runs_of(boxes([(1, 2), (0, 8)]), large) == [(4096, 4128)]
    scalar = Buffer("s", "arena", (), 4)
    assert runs_of(np.zeros((1, 0, 2), np.int64), scalar) is None


# State

UPDATE = Function(
    "f",
    [Port((4,), "float64"), Port((4,), "float64"), Port((4,), "float64")],
    [Port((4,), "float64"), Port((4,), "float64"), Port((4,), "float64")],
    [
        Call("g", (value(piece("input", 0, 0, 32)),)),
        Call("h", (value(piece("input", 1, 0, 32)), value(piece("input", 2, 0, 32)))),
    ],
    [
        value(piece("result", 0, 0, 32)),
        value(piece("result", 1, 0, 32)),
        value(piece("input", 2, 0, 32)),
    ],
    state=((0, 2), (2, 1)),
)
"""Inputs 0 and 2 are state: what follows them is output 2 (the old input 2) and output 1."""


def stateful(first: int = 0, second: int = 1) -> Schedule:
    """g reads state 0; then state 1 is copied there, by k; then h updates state 1 in place."""
    buffers = [
        Buffer("s", "state", (4,), 8, element="float64", port=first),
        Buffer("x", "input", (4,), 8, element="float64", port=1),
        Buffer("t", "state", (4,), 8, element="float64", port=second),
        Buffer("y", "output", (4,), 8, element="float64", port=0),
    ]
    all4 = whole((4,), 1)
    launches = [
        Launch("g", "g", 1, (Access(0, all4),), (Access(3, all4),)),
        Launch("k", "k", 1, (Access(2, all4),), (Access(0, all4),)),
        Launch("h", "h", 1, (Access(1, all4), Access(2, all4)), (Access(2, all4),)),
    ]
    return Schedule(device("test4"), buffers, launches, [Append(n, 0, 1, n) for n in range(3)])


COPIED = replace(
    UPDATE,
    calls=[UPDATE.calls[0], Call("k", (value(piece("input", 2, 0, 32)),)), UPDATE.calls[1]],
    returned=[
        value(piece("result", 0, 0, 32)),
        value(piece("result", 2, 0, 32)),
        value(piece("result", 1, 0, 32)),
    ],
)


def reordered(*order: int) -> Schedule:
    found = stateful()
    return replace(found, launches=[found.launches[n] for n in order])


def test_state_starts_as_the_argument_and_ends_as_the_result() -> None:
    check_translation(stateful(), COPIED)


def test_an_old_value_is_read_before_the_new_one_takes_its_place() -> None:
    # k before g: g reads what k has written. h before k: k copies the new value.
    assert "append 1 ('g') computes what no launch of @f does" in refused(
        reordered(1, 0, 2), COPIED
    )
    assert "append 2 ('k') computes what no launch of @f does" in refused(
        reordered(0, 2, 1), COPIED
    )


def test_state_that_is_not_written_is_missed() -> None:
    """The function says that state 0 takes the old value of state 1, and nothing moves it there."""
    found = stateful()
    found.launches.pop(1)
    found.appends.pop()
    assert "'s' does not hold output 2 of @f at the end" in refused(found, UPDATE)


def test_state_of_the_wrong_pair_is_refused() -> None:
    assert "rule 'meaning'" in refused(stateful(1, 0), COPIED)


def test_state_is_one_buffer_and_no_input_besides() -> None:
    assert "state 0 of @f has 2 buffers, expected 1" in refused(stateful(0, 0), COPIED)
    assert "@f has no state 7" in refused(stateful_with(port=7), COPIED)
    assert "@f has no input 0" in refused(stateful_with(space="input", port=0), COPIED)


def stateful_with(**changes) -> Schedule:
    """With one more buffer."""
    found = stateful()
    extra = Buffer("z", "state", (4,), 8, element="float64", port=0)
    return replace(found, buffers=[*found.buffers, replace(extra, **changes)])
