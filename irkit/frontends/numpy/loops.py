"""Loops of a traced function: unrolled where they are short, else traced twice and kept as loops.

Of a loop that is kept two rounds that follow each other are traced. Where they did the same but for which
buffers they did it with, the second stands for all that follow; rounds before it stand alone. A buffer that
it uses where the round before used another one is carried: `u = un` or `a, b = b, a`. The variables of the
user's function are compared too, so that a list that grows or a number that counts is not lost. What goes
through a range otherwise than by a `for` statement (`list`, `zip`, a generator) keeps what nobody sees: there
rounds are unrolled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from irkit.frontends.numpy.affine import Affine, LoopSymbol
from irkit.frontends.numpy.carrying import Carried, Made, carried
from irkit.frontends.numpy.frames import snapshot
from irkit.frontends.numpy.indices import Index, index
from irkit.frontends.numpy.moving import WHY, moving_range
from irkit.frontends.numpy.places import refused, user_frame, user_place
from irkit.frontends.numpy.recorder import recorder, tracing
from irkit.frontends.numpy.records import For, Record
from irkit.frontends.numpy.statements import begins_a_statement
from irkit.frontends.numpy.unify import Unequal, Unifier
from irkit.weights import Array

SHORT = 4
"""Rounds up to which a loop is unrolled at once."""
UNROLLED = 128
"""Rounds up to which a loop is unrolled if it cannot be kept."""
TRIES = 6
"""Rounds at the beginning of a loop, of which two that follow each other must be alike."""


def traced_range(*arguments: Any) -> Any:
    """Python's `range`, for loops of a traced function."""
    moving = moving_range(arguments, lambda: _now(arguments))
    return _now(arguments) if moving is None else moving


def _now(arguments: Sequence[Any]) -> Any:
    """A range of indices as it is in the round at hand."""
    plain = [a.special(WHY) if isinstance(a, Index) else a for a in arguments]
    rounds: Any = range(*plain)
    return TracedRange(rounds) if len(rounds) > SHORT and tracing() else rounds


class TracedRange:
    """What `range` is in a traced function, if it is long."""

    def __init__(self, rounds: range, explicit: bool = False) -> None:
        self._rounds, self._explicit = rounds, explicit

    def __len__(self) -> int:
        return len(self._rounds)

    def __getitem__(self, key: Any) -> Any:
        found: Any = cast("Any", self._rounds)[key]
        return TracedRange(found, self._explicit) if isinstance(found, range) else found

    def __contains__(self, item: object) -> bool:
        return item in self._rounds

    def __eq__(self, other: object) -> bool:
        return self._rounds == (other._rounds if isinstance(other, TracedRange) else other)

    def __hash__(self) -> int:
        return hash(self._rounds)

    def __repr__(self) -> str:
        return repr(self._rounds)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rounds, name)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self._rounds, dtype)

    def __reversed__(self) -> _Backwards:
        return _Backwards(self._rounds[::-1], self._explicit)

    def __iter__(self) -> Iterator[Any]:
        if begins_a_statement(user_frame()):
            return _Rounds(self._rounds, self._explicit)
        return _unrolled(self._rounds, self._explicit)


class _Backwards(TracedRange):
    """What `reversed` gives: an iterator too."""

    def __next__(self) -> int:
        if not self._rounds:
            raise StopIteration
        first, self._rounds = self._rounds[0], self._rounds[1:]
        return first


def _unrolled(rounds: range, explicit: bool) -> Iterator[int]:
    """The numbers of a range that no `for` statement of its own goes through: how far its user has come, a
    `list`, a `zip` or a comprehension, cannot be seen. Raises UnsupportedError for many rounds in which
    something is computed."""
    records = recorder().records
    began = len(records)
    for done, number in enumerate(rounds):
        if explicit or (done >= UNROLLED and len(records) - began >= UNROLLED):
            raise refused(
                f"a loop of {len(rounds)} rounds that cannot be kept as a loop: its range is not that of a "
                "`for` statement alone but is given to a comprehension, a generator, zip or the like (up to "
                f"{UNROLLED} rounds are unrolled)"
            )
        yield number


@dataclass
class _Round:
    """A round that may stand for others: what happened in it, and the variables at its end."""

    symbol: LoopSymbol
    body: list[Record]
    begin: int
    """How many buffers had been made before it."""
    end: int = 0
    state: dict[str, Any] = field(default_factory=dict[str, Any])

    def stand_alone(self, outer: list[Record]) -> None:
        """It is itself, and no other."""
        self.symbol.fix(self.symbol.now)
        outer.extend(self.body)


class _Rounds:
    """One loop over a range, as Python goes round."""

    def __init__(self, rounds: range, explicit: bool) -> None:
        self._rounds, self._explicit = rounds, explicit
        self._next, self._stop = 0, len(rounds)
        self._place = user_place()
        self._why = f"none of its first {TRIES} rounds is like the one before"
        self._recorder = recorder()
        self._outer = self._recorder.records
        self._since = len(self._recorder.made)
        self._at_hand: _Round | None = None
        self._before: _Round | None = None
        self._kept = False

    def __iter__(self) -> _Rounds:
        return self

    def __next__(self) -> Any:
        frame = user_frame()
        if self._at_hand is not None and frame is not None:
            self._end_of_round(self._at_hand, snapshot(frame))
        if self._next >= self._stop:
            self._flush()
            raise StopIteration
        number = self._next
        self._next += 1
        if self._kept or number >= TRIES:
            self._flush()
            self._check_length()
            return self._rounds[number]
        symbol = LoopSymbol(number, self._stop - 1)
        self._at_hand = _Round(symbol, [], len(self._recorder.made))
        self._recorder.records = self._at_hand.body
        return index(Affine.of(self._rounds.start, {symbol: self._rounds.step}))

    def __del__(self) -> None:
        # Python has left the loop: `break`, `return`.
        if self._at_hand is not None and self._recorder.records is self._at_hand.body:
            self._recorder.records = self._outer
            self._flush()
            self._at_hand.stand_alone(self._outer)

    def _flush(self) -> None:
        """The round before is itself alone."""
        if self._before is not None:
            self._before.stand_alone(self._outer)
        self._before = None

    def _end_of_round(self, done: _Round, state: dict[str, Any]) -> None:
        self._recorder.records, self._at_hand = self._outer, None
        done.state, done.end = state, len(self._recorder.made)
        found = self._compared(done)
        self._flush()
        if found is not None:
            self._keep(done, found)
        elif done.symbol.special is not None:
            done.stand_alone(self._outer)
        else:
            self._before = done

    def _compared(self, done: _Round) -> Carried | None:
        """What is carried, if the round did what the one before did."""
        before = self._before
        if done.symbol.special is not None:
            self._why = done.symbol.special
            return None
        if before is None:
            return None
        unifier = Unifier({before.symbol: done.symbol})
        made = self._recorder.made
        sets = (made[before.begin : before.end], made[done.begin : done.end], made[self._since :])
        try:
            unifier.bodies(before.body, done.body)
            unifier.states(before.state, done.state, "")
            return carried(unifier.buffers, Made(*map(frozenset, sets)))
        except Unequal as error:
            self._why = str(error)
            return None

    def _keep(self, done: _Round, found: Carried) -> None:
        """This round and those after it become a loop; what a permutation of outer arrays leaves over is
        traced as it is."""
        symbol = done.symbol
        upper = self._stop - (self._stop - 1 - symbol.now) % found.period
        found.begin(self._recorder)
        inside = [*found.moves(self._recorder), *done.body]
        self._outer.append(For(self._place, symbol, symbol.now, upper, inside))
        symbol.fix(upper - 1)
        self._next, self._kept = upper, True

    def _check_length(self) -> None:
        """Raises UnsupportedError for a loop that is too long to be unrolled and cannot be kept."""
        if not self._kept and (self._explicit or self._stop > UNROLLED):
            own = "none of irkit.range's" if self._explicit else f"up to {UNROLLED} rounds"
            raise refused(
                f"a loop of {self._stop} rounds that cannot be kept as a loop: {self._why} "
                f"({own} are unrolled)"
            )
