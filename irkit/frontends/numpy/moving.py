"""Loops whose range has an index of a loop around them for an end: `for j in range(i)`.

Such a loop is kept as one that goes round as often as in any round of those around it. What it writes in
rounds that this range has not is what was there; what it computes there nobody sees. Of the rounds that are
traced, each for all, two that follow each other must be alike, hand nothing on to one another, and change no
variable that is read behind the loop. Where that is not so, the whole function is traced anew, with this
range as it is in the round at hand, which then stands for no other.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from irkit.dialects.graph import AndOp, CompareOp, WhereOp
from irkit.frontends.numpy.affine import Affine, LoopSymbol
from irkit.frontends.numpy.carrying import Made, begun, carried
from irkit.frontends.numpy.frames import snapshot
from irkit.frontends.numpy.indices import Index, index
from irkit.frontends.numpy.lived import read_behind
from irkit.frontends.numpy.places import user_frame, user_place
from irkit.frontends.numpy.recorder import Recorder, recorder, tracing
from irkit.frontends.numpy.records import Buffer, Call, For, Read, Record, Value, While, Write
from irkit.frontends.numpy.statements import begins_a_statement
from irkit.frontends.numpy.unify import Unequal, Unifier

SHORT = 2
"""Rounds up to which a loop is as it is."""
TRIES = 3
"""Rounds that are traced, of which two that follow each other must be alike."""
WHY = "the number of rounds of a loop"


class ExactRange(BaseException):
    """The range of the loop at `place` is to be taken as it is in each round around it. Not an error of the
    user's, whose `except` must not see it."""

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.place = place


@dataclass(frozen=True)
class Limits:
    """What a loop goes through: from `low` to below `high`, upwards or downwards."""

    low: Affine
    high: Affine
    step: int

    @staticmethod
    def of(arguments: Sequence[Any]) -> Limits | None:
        """Those of `range(*arguments)`, where an end is an index; None where the step is another than 1 and
        -1."""
        if not any(isinstance(a, Index) for a in arguments[:2]):
            return None
        start, stop = arguments[:2] if len(arguments) > 1 else (0, arguments[0])
        step = arguments[2] if len(arguments) > 2 else 1
        if type(step) is not int or abs(step) != 1:
            return None
        begin, end = _affine(start), _affine(stop)
        if begin is None or end is None:
            return None
        if step == 1:
            return Limits(begin, end, 1)
        return Limits(end.plus(Affine(1)), begin.plus(Affine(1)), -1)

    @property
    def ends(self) -> tuple[int, int]:
        """The least and the greatest end, in all rounds of the loops around."""
        return self.low.span()[0], self.high.span()[1]

    def number(self, symbol: LoopSymbol) -> Affine:
        """The number of a round, of those from the least to the greatest end."""
        low, high = self.ends
        return Affine.of(low if self.step == 1 else high - 1, {symbol: self.step})

    def backwards(self) -> Limits:
        """The same numbers from the last on."""
        return replace(self, step=-self.step)


def _affine(end: Any) -> Affine | None:
    if isinstance(end, Index):
        return end.affine
    return Affine(end) if type(end) is int else None


class MovingRange:
    """What `range` is in a traced function, if an end of it is an index. All but a `for` statement sees it as
    it is in the round at hand, which then stands for no other."""

    def __init__(self, limits: Limits, exact: Callable[[], Any]) -> None:
        self._limits, self._exact = limits, exact

    def __iter__(self) -> Iterator[Any]:
        frame, r = user_frame(), recorder()
        low, high = self._limits.ends
        open_ = frame is not None and begins_a_statement(frame) and not r.going
        if frame is None or not open_ or user_place() in r.exact or high - low <= SHORT:
            return iter(self._exact())
        return _Rounds(self._limits, frame)

    def __reversed__(self) -> Any:
        return _Backwards(self._limits.backwards(), lambda: reversed(self._exact()))

    def __len__(self) -> int:
        return len(self._exact())

    def __getitem__(self, key: Any) -> Any:
        return self._exact()[key]

    def __contains__(self, item: object) -> bool:
        return item in self._exact()

    def __eq__(self, other: object) -> bool:
        return self._exact() == other

    def __hash__(self) -> int:
        return hash(self._exact())

    def __repr__(self) -> str:
        return repr(self._exact())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._exact(), name)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self._exact().__array__(dtype)


class _Backwards(MovingRange):
    """What `reversed` gives: an iterator too."""

    _left: Any = None

    def __next__(self) -> Any:
        self._left = self._left or iter(self._exact())
        return next(self._left)


def moving_range(arguments: Sequence[Any], exact: Callable[[], Any]) -> MovingRange | None:
    """The range of these arguments, if a loop over it can be kept; `exact` is what it is in the round at
    hand."""
    limits = Limits.of(arguments) if tracing() else None
    return None if limits is None else MovingRange(limits, exact)


@dataclass
class _Round:
    """A round that is traced, which may stand for all."""

    symbol: LoopSymbol
    body: list[Record]
    begin: int
    """How many buffers had been made before it."""
    end: int = 0


class _Rounds:
    """One loop over such a range, as Python goes round."""

    def __init__(self, limits: Limits, frame: types.FrameType) -> None:
        self._limits, self._place = limits, user_place()
        self._recorder = recorder()
        self._outer = self._recorder.records
        self._since = len(self._recorder.made)
        self._before = snapshot(frame)
        self._empty = [b for b in self._recorder.made if not b.written]
        self._last: tuple[_Round, dict[str, Any]] | None = None
        self._at_hand: _Round | None = None
        self._tries, self._kept = 0, False
        self._recorder.moving.append(self._place)

    def __iter__(self) -> _Rounds:
        return self

    def __next__(self) -> Any:
        frame = user_frame()
        if self._at_hand is not None and frame is not None:
            self._end_of_round(self._at_hand, frame)
        if self._kept:
            raise StopIteration
        if self._tries == TRIES:
            self._give_up()
        self._tries += 1
        low, high = self._limits.ends
        # What holds of the index from round 0 on holds in all rounds. In another round the same must happen.
        symbol = LoopSymbol((self._tries + 1) % 2, high - low - 1)
        self._at_hand = _Round(symbol, [], len(self._recorder.made))
        self._recorder.records = self._at_hand.body
        return index(self._limits.number(symbol))

    def __del__(self) -> None:
        # Python has left the loop, which is then still one of `moving`: the trace is not taken.
        if self._at_hand is not None and self._recorder.records is self._at_hand.body:
            self._recorder.records = self._outer

    def _give_up(self) -> None:
        raise ExactRange(self._place)

    def _end_of_round(self, done: _Round, frame: types.FrameType) -> None:
        self._recorder.records, self._at_hand = self._outer, None
        done.end = len(self._recorder.made)
        state = snapshot(frame)
        if done.symbol.special is not None:
            self._give_up()
        last, self._last = self._last, (done, state)
        if last is None or not self._alike(*last, *self._last):
            return
        behind = read_behind(frame)
        if behind is None or self._changed(state) & {*behind, *(n for n in state if " " in n)}:
            self._give_up()
        first, second = sorted((done, last[0]), key=lambda r: r.symbol.now)
        self._keep(first)
        # Variables that nobody reads have what the other round left.
        second.symbol.fix(first.symbol.now)

    def _alike(
        self, first: _Round, state: dict[str, Any], second: _Round, new: dict[str, Any]
    ) -> bool:
        """Whether two rounds did the same, and hand nothing on."""
        unifier = Unifier({first.symbol: second.symbol})
        made = self._recorder.made
        sets = (made[first.begin : first.end], made[second.begin : second.end], made[self._since :])
        try:
            unifier.bodies(first.body, second.body)
            unifier.states(state, new, "")
            return not carried(unifier.buffers, Made(*map(frozenset, sets))).buffers
        except Unequal:
            return False

    def _changed(self, state: dict[str, Any]) -> set[str]:
        """Variables that are not what they were before the loop."""
        names = {*self._before, *state}
        return {
            n for n in names if not _same(self._before.get(n, _Unbound), state.get(n, _Unbound))
        }

    def _keep(self, done: _Round) -> None:
        """The round stands for all."""
        r = self._recorder
        own = frozenset(r.made[done.begin : done.end])
        if not _can_be_masked(done.body):
            self._give_up()
        for buffer in (b for b in self._empty if b.written):
            buffer.written = False
            begun(r, buffer)
        outer, r.records = r.records, []
        inside = _held(r, self._limits.number(done.symbol), self._limits)
        made, r.records = r.records, outer
        body = [*made, *_masked(r, done.body, inside, own)]
        low, high = self._limits.ends
        outer.append(For(self._place, done.symbol, 0, high - low, body))
        done.symbol.fix(high - low - 1)
        r.moving.remove(self._place)
        self._kept = True


class _Unbound:
    """What a variable is that has no value."""


def _same(p: Any, q: Any) -> bool:
    """Whether a variable is what it was."""
    unifier = Unifier()
    try:
        unifier.states(p, q, "")
    except Unequal:
        return False
    return all(a is b for a, b in unifier.buffers.items())


def _held(r: Recorder, number: Affine, limits: Limits) -> Value:
    """Whether a number is one of the range."""
    at, found = r.counter(number), None
    for end, predicate in ((limits.low, "ge"), (limits.high, "lt")):
        if not end.settled.terms:
            # It is in every round.
            continue
        here = r.op(CompareOp, at, r.counter(end), predicate=predicate)
        found = here if found is None else r.op(AndOp, found, here)
    assert found is not None
    return found


def _can_be_masked(body: Sequence[Record]) -> bool:
    """Whether rounds that are none of the range change nothing but what they write."""
    for record in body:
        if isinstance(record, Call | While):
            return False
        if isinstance(record, For) and not _can_be_masked(record.body):
            return False
    return True


def _masked(
    r: Recorder, body: Sequence[Record], inside: Value, own: frozenset[Buffer]
) -> Iterator[Record]:
    """A body that writes buffers of others only if a condition holds."""
    for record in body:
        if isinstance(record, For):
            yield replace(record, body=list(_masked(r, record.body, inside, own)))
        elif isinstance(record, Write) and record.view.buffer not in own:
            yield from _written_if(r, record, inside)
        else:
            yield record


def _written_if(r: Recorder, record: Write, inside: Value) -> Iterator[Record]:
    """What was there stays where the condition does not hold."""
    outer, r.records = r.records, []
    old = Value(record.value.type)
    everywhere = r.expand(inside, record.view.sizes)
    new = r.op(WhereOp, everywhere, record.value, old)
    made, r.records = r.records, outer
    yield Read(record.place, record.view, old, segment=record.segment)
    yield from (replace(m, place=record.place, segment=record.segment) for m in made)
    yield replace(record, value=new)
