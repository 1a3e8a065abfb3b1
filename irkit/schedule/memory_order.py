"""An order of launches for the least bytes in use at once: beam search over what is done.

What is in use after some launches hangs on which are done alone, not on their order, so of two orders of the
same launches the one with the lower peak is kept: dynamic programming, exact as long as nothing is dropped.
Where there are more sets than the beam is wide, those stay whose peaks, and then whose bytes in use, are
least. The given order is kept where none that is better is found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from irkit.schedule.dependences import Dependences
from irkit.schedule.footprint import resolve_views
from irkit.schedule.model import Buffer, Launch

_MOST_STATES = 8_000
"""Sets of launches that are looked at in all."""

_WIDEST = 256
"""Sets that are kept for each number of launches done."""

_ROWS = 256
"""A "rows" buffer counts as one of so many rows of the batch."""


@dataclass(frozen=True)
class MemoryOrder:
    """Launches in order; bytes in use at once so, and in the order given; whether no order needs less."""

    launches: tuple[int, ...]
    peak: int
    given: int
    exact: bool


@dataclass(frozen=True)
class _State:
    """What is `done` and what is `ready`, as bits; bytes in use now, at most, and those of all launches
    together; the launch done last."""

    done: int
    ready: int
    live: int
    peak: int
    held: int
    launch: int = -1
    before: _State | None = None

    def order(self) -> list[int]:
        """The launches that are done."""
        found: list[int] = []
        state: _State | None = self
        while state is not None and state.launch >= 0:
            found.append(state.launch)
            state = state.before
        return found[::-1]


class _Program:
    """Launches and the planned buffers that they touch, as bits."""

    def __init__(
        self, buffers: Sequence[Buffer], launches: Sequence[Launch], graph: Dependences
    ) -> None:
        self.count = len(launches)
        self.sources = [_bits(found) for found in graph.sources]
        self.users = [_numbers(_bits(found)) for found in graph.users]
        places = resolve_views(buffers)
        self.touchers = dict[int, int]()
        self.touched: list[list[int]] = []
        for number, launch in enumerate(launches):
            roots = {places[a.buffer].root for a in (*launch.reads, *launch.writes)}
            planned = sorted(r for r in roots if buffers[r].space in ("arena", "rows"))
            self.touched.append(planned)
            for root in planned:
                self.touchers[root] = self.touchers.get(root, 0) | 1 << number
        self.sizes = {root: _size(buffers[root]) for root in self.touchers}

    def start(self) -> _State:
        """Nothing is done."""
        return _State(0, _bits(n for n in range(self.count) if not self.sources[n]), 0, 0, 0)

    def after(self, state: _State, launch: int) -> _State:
        """A launch that is ready is done: what it writes is there beside what it reads."""
        done = state.done | 1 << launch
        live = state.live
        freed = 0
        for root in self.touched[launch]:
            touchers = self.touchers[root]
            live += 0 if touchers & state.done else self.sizes[root]
            freed += 0 if touchers & ~done else self.sizes[root]
        ready = state.ready & ~(1 << launch)
        for user in self.users[launch]:
            if not self.sources[user] & ~done:
                ready |= 1 << user
        peak, held = max(state.peak, live), state.held + live
        return _State(done, ready, live - freed, peak, held, launch, state)


def order_for_memory(
    buffers: Sequence[Buffer], launches: Sequence[Launch], graph: Dependences, early: bool = False
) -> MemoryOrder:
    """The order of launches, given in program order, with the fewest bytes in use at once that is found.
    `early`: of such orders one that also frees early, that has fewer bytes in use on the average."""
    program = _Program(buffers, launches, graph)
    given = program.start()
    for number in range(program.count):
        given = program.after(given, number)

    def rank(state: _State) -> tuple[int, int]:
        return state.peak, state.held if early else 0

    states, exact = [program.start()], True
    width = max(1, min(_WIDEST, _MOST_STATES // max(1, program.count)))
    for _ in range(program.count):
        best = dict[int, _State]()
        for state in states:
            for launch in _numbers(state.ready):
                made = program.after(state, launch)
                known = best.get(made.done)
                if known is None or rank(made) < rank(known):
                    best[made.done] = made
        # What is at the given order's peak already is no better.
        kept = [state for state in best.values() if rank(state) < rank(given)]
        kept.sort(key=lambda state: (state.peak, state.live, state.done))
        exact = exact and len(kept) <= width
        states = kept[:width]
    if not states:
        return MemoryOrder(tuple(range(program.count)), given.peak, given.peak, exact)
    return MemoryOrder(tuple(states[0].order()), states[0].peak, given.peak, exact)


def _bits(numbers: Iterable[int]) -> int:
    return sum(1 << number for number in set(numbers))


def _numbers(bits: int) -> list[int]:
    found: list[int] = []
    while bits:
        lowest = bits & -bits
        found.append(lowest.bit_length() - 1)
        bits ^= lowest
    return found


def _size(buffer: Buffer) -> int:
    return buffer.nbytes * (_ROWS if buffer.space == "rows" else 1)
