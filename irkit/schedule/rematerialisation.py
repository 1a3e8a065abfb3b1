"""What to compute again rather than keep, within a budget of bytes in use at once. No IR types here.

A program is steps in order. Its *turn* is the step at which most bytes are in use: where forward ends,
if there is a backward part behind it. What was made before it is, behind it, either kept or made again,
when it is first read there; what that needs is kept or made again in turn. Candidates of what is kept:

- the values of a minimum cut between what may not be computed again and what is read behind the turn, with
  bytes as capacities and dear steps barred, so that what is cheap is made again (as PyTorch's partitioner
  does; torch/_functorch/partitioners.py);
- what crosses the borders of segments of the part before the turn (T. Chen et al., Training Deep Nets with
  Sublinear Memory Cost, 2016), which are of about equal length and end where few bytes cross; behind them a
  tail is kept as it is, as long as the budget has room for;
- both at once: the cut's values inside of segments too.

Where steps are in segments that the user named, what is made and read in one only is made again in every
candidate.

Each is played through, step by step, with what its own repetitions need; of those within the budget the
cheapest is taken.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import accumulate
from typing import Any

_SEGMENTS = (1, 2, 4, 8, 16, 32, 64)
_HALVINGS = 8
"""Of the place at which the tail begins."""


@dataclass(frozen=True)
class Step:
    """Reads and writes values, by number, in `cost` ns. `repeatable`: may be computed again; `dear`: not by
    a cut, as it is a product or takes as long; `segment`: which of the user's it is in; `until`: the last
    step before which it may be computed again, where a later one finds that what it reads has changed."""

    reads: tuple[int, ...]
    writes: tuple[int, ...]
    cost: float
    repeatable: bool = True
    dear: bool = False
    segment: str | None = None
    until: int | None = None


@dataclass(frozen=True)
class Program:
    """Steps in order, and the bytes of each value: 0 for what takes none of the memory that is planned
    (arguments, results, constants). `root`: the value that a value is a view of, or itself."""

    steps: Sequence[Step]
    nbytes: Sequence[int]
    root: Sequence[int]


@dataclass(frozen=True)
class Played:
    """One way to run a program: (step, the versions of what it reads) in order, a version being the place at
    which a value was made, or None for what is no step's; the most bytes in use, and ns in all."""

    runs: list[tuple[int, tuple[int | None, ...]]]
    peak: int
    cost: float


class Rematerialiser:
    """Plays a program with some of its values kept and the others made again."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.named = set[int]()
        self.maker = {value: n for n, s in enumerate(program.steps) for value in s.writes}
        given = self.play(set(self.maker), len(program.steps))
        self.naive = Played(given.runs, given.peak, given.cost)
        self.turn = self._widest(given)
        self.across = self._across()
        self.named = self._named()
        self.asked = self.play(set(self.maker), self.turn) if self.named else self.naive
        """The program with what is inside of the user's segments made again, and no more."""

    def within(self, budget: int) -> Played:
        """The cheapest candidate of at most `budget` bytes, of equal ones that of the fewest; else any."""
        best = self.asked
        for played in self._candidates(budget):
            if (played.peak > budget, played.cost, played.peak) < _rank(best, budget):
                best = played
        return best

    def least(self) -> Played:
        """The candidate with the fewest bytes."""
        return min((self.asked, *self._candidates(0)), key=lambda p: (p.peak, p.cost))

    def _candidates(self, budget: int) -> Iterator[Played]:
        if self.asked.peak <= budget:
            return
        cheap, fixed = self.cut(), self._fixed()
        cut = self.play(cheap, self.turn)
        yield cut
        # A cut that keeps all has nothing to add to segments.
        insides = (cheap, fixed) if cut.cost > self.naive.cost else (fixed,)
        for count in _SEGMENTS:
            for inside in insides:
                yield from self._segmented(count, inside, budget)

    def _segmented(self, count: int, inside: set[int], budget: int) -> Iterator[Played]:
        """With `count` segments, `inside` of which some values are kept too, and tails of several lengths."""
        yield self.play(inside | self._crossing(count, self.turn), self.turn)
        low, high = 0, self.turn
        for _ in range(_HALVINGS):
            tail = (low + high) // 2
            kept = inside | self._crossing(count, tail)
            kept |= {value for value, made in self.maker.items() if made >= tail}
            played = self.play(kept, self.turn)
            yield played
            # The longer the tail, the less is made again.
            low, high = (low, tail) if played.peak <= budget else (tail + 1, high)

    def _fixed(self) -> set[int]:
        """What cannot be made again."""
        return {v for v, n in self.maker.items() if not self.program.steps[n].repeatable}

    def _named(self) -> set[int]:
        """What is made in a segment of the user's, and before the turn read nowhere else: if nowhere at all,
        behind it by the segment's own backward part."""
        steps = self.program.steps
        forward, behind = (_readers(part) for part in (steps[: self.turn], steps[self.turn :]))
        found: set[int] = set()
        for value, made in self.maker.items():
            own = steps[made].segment
            if own is None or made >= self.turn or not steps[made].repeatable:
                continue
            near = forward.get(value, set())
            if near <= {own} and own in (near or behind.get(value, set())):
                found.add(value)
        return found

    def _crossing(self, count: int, tail: int) -> set[int]:
        """What is made in one of `count` segments before `tail`, and read in another or in the tail."""
        borders = self._borders(count, tail)
        segment = [bisect_right(borders, n) for n in range(self.turn)]
        kept: set[int] = set()
        for n, step in enumerate(self.program.steps[: self.turn]):
            for value in step.reads:
                made = self.maker.get(value)
                if made is not None and segment[made] != segment[n]:
                    kept.add(value)
        return kept

    def _borders(self, count: int, tail: int) -> list[int]:
        """Where segments before `tail`, which is the last border, end: near to where they would if they were
        equal, where fewest bytes cross."""
        found: list[int] = []
        reach = max(1, tail // (2 * count))
        for even in (number * tail // count for number in range(1, count)):
            near = range(max(0, even - reach), min(tail, even + reach) + 1)
            found.append(min(near, key=lambda at: (self.across[at], abs(at - even))))
        return [*sorted(found), tail]

    def _across(self) -> list[int]:
        """Before each step up to the turn, the bytes of what is made by then and read there or behind."""
        last = dict[int, int]()
        for n, step in enumerate(self.program.steps[: self.turn]):
            last.update(dict.fromkeys(step.reads, n))
        change = [0] * (self.turn + 2)
        for value, until in last.items():
            if value in self.maker:
                change[self.maker[value] + 1] += self._bytes(value)
                change[until + 1] -= self._bytes(value)
        return list(accumulate(change))

    def cut(self) -> set[int]:
        """What is kept at least bytes when no dear step is computed again: a minimum cut."""
        networkx: Any = import_module("networkx")
        graph: Any = networkx.DiGraph()
        graph.add_node("from")
        graph.add_node("to")
        for value, made in self.maker.items():
            if made >= self.turn:
                continue
            graph.add_edge((value, "in"), (value, "out"), capacity=self._bytes(value) + 1)
            step = self.program.steps[made]
            if step.dear or not step.repeatable:
                graph.add_edge("from", (value, "in"))
        for n, step in enumerate(self.program.steps):
            self._needs(graph, n, step)
        _, (near, far) = networkx.minimum_cut(graph, "from", "to")
        return {
            value
            for value, made in self.maker.items()
            if made < self.turn and (value, "in") in near and (value, "out") in far
        }

    def _needs(self, graph: Any, number: int, step: Step) -> None:
        """What is read behind the turn must be there; what is made again needs what it reads."""
        for value in step.reads:
            if self.maker.get(value, self.turn) >= self.turn:
                continue
            if number >= self.turn:
                graph.add_edge((value, "out"), "to")
                continue
            for made in step.writes:
                graph.add_edge((value, "out"), (made, "in"))

    def _bytes(self, value: int) -> int:
        """What is in use while a value is kept."""
        while self.program.root[value] != value:
            value = self.program.root[value]
        return self.program.nbytes[value]

    def play(self, kept: set[int], turn: int) -> Played:
        """The program with what is not `kept` of what was made before `turn` made again behind it."""
        kept = kept - self.named
        while True:
            play = _Play(self.program, self.maker, kept, turn)
            for number in range(len(self.program.steps)):
                play.run(number, number >= turn)
            if not play.late:
                return play.done()
            kept |= play.late

    def _widest(self, played: Played) -> int:
        """The step at which most bytes are in use."""
        live = _live(self.program, played.runs)
        return live.index(max(live, default=0)) if live else 0


def _readers(steps: Sequence[Step]) -> dict[int, set[str | None]]:
    """Of each value that is read the segments in which it is."""
    found: dict[int, set[str | None]] = {}
    for step in steps:
        for value in step.reads:
            found.setdefault(value, set()).add(step.segment)
    return found


def _rank(played: Played, budget: int) -> tuple[bool, float, int]:
    return played.peak > budget, played.cost, played.peak


class _Play:
    """Runs of steps one after another, some of them again."""

    def __init__(self, program: Program, maker: dict[int, int], kept: set[int], turn: int) -> None:
        self._program, self._maker, self._kept, self._turn = program, maker, kept, turn
        self._runs: list[tuple[int, tuple[int | None, ...]]] = []
        self._first: dict[int, int] = {}
        self._again: dict[int, int] = {}
        self.late: set[int] = set()
        """What was made again when what that reads had changed."""

    def run(self, number: int, behind: bool) -> None:
        """A step for the first time."""
        step = self._program.steps[number]
        for value in step.reads if behind else ():
            self._provide(value, number)
        reads = tuple(self._version(value, behind) for value in step.reads)
        for value in step.writes:
            self._first[value] = len(self._runs)
        self._runs.append((number, reads))

    def _provide(self, value: int, reader: int) -> None:
        """Make a value again before `reader`, and before it what that needs, unless it is there."""
        waiting = [value]
        while waiting:
            top = waiting[-1]
            missing = self._missing(top)
            waiting += missing
            if missing:
                continue
            waiting.pop()
            if self._gone(top) and top not in self._again:
                self._repeat(self._maker[top], reader)

    def _repeat(self, number: int, reader: int) -> None:
        step = self._program.steps[number]
        if step.until is not None and reader > step.until:
            self.late.update(step.writes)
        reads = tuple(self._version(value, True) for value in step.reads)
        for made in step.writes:
            self._again[made] = len(self._runs)
        self._runs.append((number, reads))

    def _missing(self, value: int) -> list[int]:
        if not self._gone(value) or value in self._again:
            return []
        reads = self._program.steps[self._maker[value]].reads
        return [v for v in reads if self._gone(v) and v not in self._again]

    def _gone(self, value: int) -> bool:
        made = self._maker.get(value)
        return made is not None and made < self._turn and value not in self._kept

    def _version(self, value: int, behind: bool) -> int | None:
        if behind and self._gone(value):
            return self._again[value]
        return self._first.get(value)

    def done(self) -> Played:
        """What became of it."""
        live = _live(self._program, self._runs)
        cost = sum(self._program.steps[number].cost for number, _ in self._runs)
        return Played(self._runs, max(live, default=0), cost)


def _live(program: Program, runs: Sequence[tuple[int, tuple[int | None, ...]]]) -> list[int]:
    """Bytes in use at each run: of what was made by then, and is still read, or is made or read there."""
    root_of: dict[tuple[int, int], tuple[int, int]] = {}
    first: dict[tuple[int, int], int] = {}
    last: dict[tuple[int, int], int] = {}
    for at, (number, versions) in enumerate(runs):
        step = program.steps[number]
        read = {value: version for value, version in zip(step.reads, versions, strict=True)}
        for value, version in read.items():
            if version is not None:
                last[root_of[value, version]] = at
        for value in step.writes:
            root = program.root[value]
            source = read.get(root) if root != value else None
            place = (value, at) if source is None else root_of[root, source]
            root_of[value, at] = place
            first.setdefault(place, at)
            last[place] = at
    change = [0] * (len(runs) + 1)
    for (value, made), begin in first.items():
        size = program.nbytes[value]
        change[begin] += size
        change[last[value, made] + 1] -= size
    live: list[int] = []
    for amount in change[:-1]:
        live.append((live[-1] if live else 0) + amount)
    return live
