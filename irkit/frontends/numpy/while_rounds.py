"""A `while` statement of a traced function, of which the test needs data: one loop of the program.

Rounds are Python's as long as the test is known. From the first test that is not, two rounds are traced and
the second stands for all. Variables that the loop binds are handed on by value: before a round each is a copy
of what the last one left, so that it does not matter which array that was. All else must be in the second
round what it was in the first. What a copy would tell from NumPy's array, a write to one of them while the
other is still read, is refused.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from irkit.dialects.graph import AndOp, NotOp, OrOp
from irkit.frontends.numpy.arrays import empty, fresh, is_traced, value_of
from irkit.frontends.numpy.frames import snapshot
from irkit.frontends.numpy.loops import TracedRange
from irkit.frontends.numpy.masked import MaskedArray
from irkit.frontends.numpy.places import at_place, refused, user_frame, user_place
from irkit.frontends.numpy.recorder import recorder
from irkit.frontends.numpy.records import Buffer, Record, Value, While
from irkit.frontends.numpy.unify import Unequal, Unifier
from irkit.frontends.numpy.varying import VaryingArray
from irkit.frontends.numpy.while_cells import Cell, Copy, MaskedCell, cells_of, is_kept

Names = tuple[str, ...]


class LeavesOnData(BaseException):
    """Data say whether the `for` statement whose first statement is the `if` at `place` goes on: it is to be
    a `while` statement. Not an error of the user's, whose `except` must not see it."""

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.place = place


class Span:
    """The numbers that a `for` statement goes through, which a `while` statement counts."""

    def __init__(self, rounds: Any) -> None:
        if not isinstance(rounds, range | TracedRange):
            raise refused("a `for` statement that data end, over what is not a range")
        self.first, self.stop, self.step = (
            int(getattr(rounds, n)) for n in ("start", "stop", "step")
        )

    def goes_on(self, turn: Any) -> Any:
        """Whether there is such a number."""
        return turn < self.stop if self.step > 0 else turn > self.stop


class WhileRounds:
    """One run of a `while` statement; `while_source` says what asks it for what."""

    given: Any = None
    """What the variable that was asked for is bound to."""

    def __init__(self, names: tuple[Names, Names, Names]) -> None:
        """`names`: variables that the loop assigns to, those of them that it binds, and those whose value
        from before a round nobody reads."""
        self._assigned, self._bound, self._dead = names
        self._loop: _Loop | None = None
        self._new: dict[str, Any] = {}
        self._gone: set[str] = set()

    # What the test is made of

    def negated(self, value: Any) -> Any:
        """`not value`"""
        found = _truth(value)
        return not value if found is None else fresh(recorder().op(NotOp, found), True)

    def is_open(self, value: Any, wanted: bool) -> bool:
        """Whether the next operand of `and` (`wanted` is true) or `or` has a say too."""
        return True if _truth(value) is not None else bool(value) is wanted

    def both(self, value: Any, other: Any) -> Any:
        """`value and other`, where `other` has a say."""
        return self._joined(AndOp, value, other)

    def either(self, value: Any, other: Any) -> Any:
        """`value or other`, where `other` has a say."""
        return self._joined(OrOp, value, other)

    def _joined(self, op: Any, value: Any, other: Any) -> Any:
        found = _truth(value)
        if found is None:
            return other
        beside = _truth(other)
        if beside is None:
            beside = recorder().constant(np.array(bool(other)))
        return fresh(recorder().op(op, found, beside), True)

    # Rounds

    def go_on(self, test: Any) -> bool:
        """Whether the body is run, once more."""
        frame, found = user_frame(), _truth(test)
        assert frame is not None
        if self._loop is None and found is None:
            return bool(test)
        if self._loop is None:
            self._loop = _Loop(frame, _assignable(self._assigned, frame), self._bound, self._dead)
            self._new, self._gone = self._loop.begin(cast(Value, found))
            return True
        if found is None:
            raise refused(
                "the test of a `while` loop hangs on data in one round, and not in the next"
            )
        with at_place(self._loop.place):
            again = self._loop.end_of_round(found)
        self._new, self._gone = self._loop.bindings, set(self._loop.fresh_names)
        if again:
            self._gone = set()
        return again

    def gives(self, name: str) -> bool:
        """Whether a variable is bound anew, to `given`."""
        found = name in self._new
        self.given = self._new.pop(name, None)
        return found

    def drops(self, name: str) -> bool:
        """Whether a variable is unbound."""
        found = name in self._gone
        self._gone.discard(name)
        frame = user_frame()
        return found and frame is not None and name in frame.f_locals

    def leaves(self, value: Any, line: int) -> bool:
        """Whether a `for` statement is left before a round. Raises LeavesOnData where data say so."""
        if _truth(value) is None:
            return bool(value)
        frame = user_frame()
        raise LeavesOnData(f"{frame.f_code.co_filename}:{line}" if frame is not None else "")

    def length(self, function: Any, value: Any) -> Any:
        """`len(value)`; `function` is what `len` is."""
        return value.count if function is len and type(value) is MaskedArray else function(value)

    def end(self) -> None:
        """After the statement. Raises UnsupportedError where `break` has left it in a round that stands for
        others."""
        if self._loop is not None and not self._loop.done:
            raise refused(
                "a `while` loop that goes on as long as data say so is left by `break`: its test alone can "
                "end it; irkit.while_loop says the same with functions"
            )


def _assignable(names: Names, frame: types.FrameType) -> Names:
    """Those that are variables of the function itself."""
    return tuple(n for n in names if n not in frame.f_code.co_freevars)


def _truth(value: Any) -> Value | None:
    """Whether an array of one element holds, where that is not known; None where it is."""
    if not is_traced(value) or value.spot.known is not None or value.size != 1:
        return None
    r = recorder()
    return r.cast(r.reshape(value_of(value), ()), np.dtype(bool))


# The loop


@dataclass
class _Round:
    """One that is traced: what happened, the buffers that it made, and variables at its end."""

    records: list[Record]
    begin: int
    made: set[Buffer] = field(default_factory=set[Buffer])
    states: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


class _Loop:
    """The loop from the first test on that needs data."""

    def __init__(self, frame: types.FrameType, names: Names, bound: Names, dead: Names) -> None:
        self._frame, self._names, self._is_bound, self._dead = frame, names, set(bound), set(dead)
        self._recorder = recorder()
        self.place = user_place()
        self._outer = self._recorder.records
        self._cells: dict[str, Cell | MaskedCell] = {}
        self._first: _Round | None = None
        self._round = _Round(self._outer, 0)
        self.fresh_names: tuple[str, ...] = ()
        """Variables that are bound in rounds alone."""
        self.bindings: dict[str, Any] = {}
        """What variables are bound to now."""
        self._ever_shared: dict[str, list[Buffer]] = {}
        self.done = False

    def begin(self, test: Value) -> tuple[dict[str, Any], set[str]]:
        """Before the first round: what variables are bound to anew, and which are unbound."""
        held = self._frame.f_locals
        alive = [n for n in self._names if n in held and not self._is_dead(n, held[n])]
        self.fresh_names = tuple(n for n in self._names if n not in alive)
        for name in self.fresh_names:
            self._recorder.dropped[name] = self.place
        kept = [n for n in alive if is_kept(held[n], n in self._is_bound)]
        before = {n: held[n] for n in kept}
        self._flag = empty((), np.dtype(bool))
        self._recorder.write(test, self._flag.spot.view)
        self._cells = cells_of(before)
        self._before = self._states()
        self._recorder.going.append(self.place)
        self._new_round(self._shared(before))
        return self.bindings, set(self.fresh_names)

    def _is_dead(self, name: str, value: Any) -> bool:
        return name in self._dead or type(value) is VaryingArray

    def _new_round(self, shared: Mapping[str, Sequence[Buffer]]) -> None:
        self._round = _Round([], len(self._recorder.made))
        self._recorder.records = self._round.records
        self._bind(shared)

    def _bind(self, shared: Mapping[str, Sequence[Buffer]]) -> None:
        """Variables have copies of what is kept; those of arrays that something else sees must not differ."""
        self.bindings = {n: c.copy() for n, c in self._cells.items()}
        for name, buffers in shared.items():
            pick = self.bindings[name].spot.buffer.pick = Copy(name, buffers)
            for buffer in buffers:
                buffer.picks.append(pick)

    def end_of_round(self, test: Value) -> bool:
        """Whether there is another to be traced."""
        held = self._frame.f_locals
        missing = [n for n in self._cells if n not in held]
        if missing:
            raise refused(f"'{missing[0]}' is deleted in a round of a `while` loop on data")
        after = {n: held[n] for n in self._cells}
        for value, view in [w for n, c in self._cells.items() for w in c.after(n, after[n])]:
            self._recorder.write(value, view)
        self._recorder.write(test, self._flag.spot.view)
        done = self._round
        done.made, done.states = {*self._recorder.made[done.begin :]}, self._states()
        shared = self._shared(after)
        self._recorder.records = self._outer
        if self._first is None:
            self._first = done
            self._new_round(shared)
            return True
        self._finish(self._first, done)
        self._bind(self._ever_shared)
        return False

    def _finish(self, first: _Round, second: _Round) -> None:
        try:
            self._compare(first, second)
        except Unequal as error:
            raise refused(
                f"a `while` loop on data of which rounds differ: {error} (what goes on as long as data say "
                "so may bind variables, and write arrays)"
            ) from None
        self._outer.append(While(self.place, self._flag.spot.buffer, second.records))
        self._recorder.going.remove(self.place)
        self.done = True

    def _compare(self, first: _Round, second: _Round) -> None:
        """Raises Unequal where the second round does not stand for all."""
        before = Unifier()
        self._compare_states(before, self._before, first.states)
        rounds = Unifier()
        rounds.bodies(first.records, second.records)
        self._compare_states(rounds, first.states, second.states)
        moved = [(p, q) for u in (before, rounds) for p, q in u.buffers.items() if p is not q]
        if any(p not in first.made or q not in second.made for p, q in moved):
            raise Unequal(
                "an array is replaced by another one that no variable of the loop's own is"
            )

    def _compare_states(
        self, unifier: Unifier, a: Sequence[dict[str, Any]], b: Sequence[dict[str, Any]]
    ) -> None:
        for x, y in zip(a, b, strict=True):
            unifier.states(x, y, "")

    # Variables

    def _states(self) -> list[dict[str, Any]]:
        """All variables of the function and of those that call it, but those that are handed on."""
        own = {*self._cells, *self.fresh_names}
        frames = list(_frames(self._frame))
        found = [snapshot(f) for f in frames]
        found[0] = {n: v for n, v in found[0].items() if n not in own}
        return found

    def _shared(self, values: Mapping[str, Any]) -> dict[str, list[Buffer]]:
        """Of those that are arrays of which something else sees elements: what that is."""
        picked = {n: v.array for n, v in values.items() if type(v) is MaskedArray}
        arrays = {n: v for n, v in values.items() if is_traced(v) and not v.spot.scalar}
        if not arrays and not picked:
            return {}
        frames = [snapshot(f) for f in _frames(self._frame)]
        for name, array in picked.items():
            others = [{n: v for n, v in frames[0].items() if n != name}, *frames[1:]]
            if any(b is array.spot.buffer for b in _buffers(others)):
                raise refused(
                    f"'{name}' of a `while` loop on data is what a mask picked, and so is another variable"
                )
        found: dict[str, list[Buffer]] = {}
        for name, array in arrays.items():
            buffer = array.spot.buffer
            if isinstance(buffer.pick, Copy):
                # It stands for others, which are no less shared.
                found[name] = [*buffer.pick.of]
                continue
            others = [{n: v for n, v in frames[0].items() if n != name}, *frames[1:]]
            if buffer.argument is not None or any(b is buffer for b in _buffers(others)):
                found[name] = [buffer]
        for name, buffers in found.items():
            self._ever_shared.setdefault(name, []).extend(buffers)
        return found


def _frames(frame: types.FrameType | None) -> Iterator[types.FrameType]:
    """Of the function and of traced functions that call it."""
    while frame is not None:
        if hasattr(frame.f_globals, "capture"):
            yield frame
        frame = frame.f_back


def _buffers(value: Any) -> Iterator[Buffer]:
    """Of all arrays in a snapshot."""
    if is_traced(value):
        yield value.spot.buffer
    elif isinstance(value, dict):
        for part in cast("dict[Any, Any]", value).values():
            yield from _buffers(part)
    elif isinstance(value, list):
        for part in cast("list[Any]", value):
            yield from _buffers(part)
