"""Which stream a task goes to, and which events it must wait for.

A choice is how a task gets its stream. `inherited` is GrCUDA's, "disjoint" (Parravicini et al., DAG-based
Scheduling with Resource Sharing for Multi-task Applications in a Polyglot GPU Runtime, IPDPS 2021): the
first child goes to its parent's stream, others go to a stream that is free, or a new one. `earliest` is
list scheduling: where it is expected to start first. What program order and earlier waits cover
already gets no event: vector clocks say how far every other queue certainly is (`happens_before.py`
has the same of whole schedules).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from irkit.schedule.host.expected import WAIT_NS
from irkit.schedule.host.model import HOST, HostTask, Kind

Clock = tuple[int, ...]
Idle = Callable[[int], bool]
"""Says of a stream that all its tasks have ended, where somebody can tell."""
Choice = Callable[["Streams", HostTask, Sequence["Placed"], Idle], int]
"""Which stream a task behind these parents goes to."""
BY_KIND: Final[Mapping[Kind, int]] = {
    "to_device": 1,
    "kernel": 2,
    "program": 2,
    "to_host": 3,
    "collective": 4,
}
"""A GPU has an engine for copies in each direction beside its multiprocessors: where tasks of a kind wait
for one another anyway, a stream for each keeps all three busy."""


def _never(queue: int) -> bool:
    """Nobody can tell."""
    return False


@dataclass(eq=False, slots=True)
class Placed:
    """A task that has a queue: its number, where it is there, how far every queue certainly is when it
    ends, and when, in ns, that is expected."""

    number: int
    queue: int
    position: int
    clock: Clock
    end: float = 0.0

    def ended_by(self, clock: Clock) -> bool:
        """Whether it certainly has ended where the queues are as far as `clock` says."""
        return _at(clock, self.queue) > self.position


def _at(clock: Clock, queue: int) -> int:
    return clock[queue] if queue < len(clock) else 0


def _merged(a: Clock, b: Clock) -> Clock:
    if a is b:
        return a
    # Queues that one of them does not have are at 0 there.
    return (*map(max, a, b), *a[len(b) :], *b[len(a) :])


def reduced(parents: Sequence[Placed]) -> list[Placed]:
    """Parents, less those that another one comes after; in program order."""
    if len(parents) < 2:
        return list(parents)
    # Of those in one queue, the last comes after the others.
    last: dict[int, Placed] = {}
    for parent in parents:
        known = last.get(parent.queue)
        if known is None or known.position < parent.position:
            last[parent.queue] = parent
    found = sorted(last.values(), key=lambda p: p.number)
    return [p for p in found if not any(q is not p and p.ended_by(q.clock) for q in found)]


class Streams:
    """Queues as they fill up. At most `limit` streams are used beside the host's queue.

    `host_issues`: the host puts tasks into streams one by one, after it has run its own before them;
    so every task starts after all that the host has waited for.
    """

    def __init__(self, limit: int, host_issues: bool = False, choice: Choice | None = None) -> None:
        self._limit, self._host_issues = limit, host_issues
        self._choice: Choice = choice or inherited
        self._known: list[Clock] = [(0,)]
        self._filled: list[int] = [0]
        self._tail: list[int] = [-1]
        self._free: list[float] = [0.0]

    @property
    def queues(self) -> int:
        """How many there are, the host's among them."""
        return len(self._filled)

    def finished(self, queue: int) -> Clock:
        """How far every queue is where all of `queue` has ended."""
        own = tuple(self._filled[queue] if q == queue else 0 for q in range(self.queues))
        return _merged(self._known[queue], own)

    def host_knows(self, clock: Clock) -> None:
        """The host has waited until the queues are so far."""
        self._known[HOST] = _merged(self._known[HOST], clock)

    @property
    def host_clock(self) -> Clock:
        """How far every queue certainly is, as the host knows."""
        return self._known[HOST]

    def place(
        self,
        number: int,
        parents: Sequence[Placed],
        task: HostTask,
        idle: Idle = _never,
    ) -> tuple[Placed, list[Placed]]:
        """A task, the `number`th, after its parents: where it goes, and the parents that it has to wait for.

        `idle` says of a stream that all its tasks have ended, where somebody can tell.
        """
        direct = reduced(parents)
        queue = HOST if task.on_host else self._choice(self, task, direct, idle)
        start = self.expected_start(queue, direct)
        clock = self._known[queue]
        if self._host_issues:
            clock = _merged(clock, self._known[HOST])
        waits = [p for p in direct if p.queue != queue and not p.ended_by(clock)]
        for parent in waits:
            clock = _merged(clock, parent.clock)
        position = self._filled[queue]
        ended = _merged(clock, (*(0,) * queue, position + 1))
        placed = Placed(number, queue, position, ended, start + task.cost_ns)
        # The next one here starts after this one.
        self._known[queue] = ended
        self._filled[queue] += 1
        self._tail[queue] = number
        self._free[queue] = placed.end
        return placed, waits

    def expected_start(self, queue: int, direct: Sequence[Placed]) -> float:
        """When a task behind these would start there, in ns."""
        others = [parent.end + WAIT_NS for parent in direct if parent.queue != queue]
        free = self._free[queue] if queue < self.queues else 0.0
        return max([free + WAIT_NS * bool(others), *others])

    def heirs(self, direct: Sequence[Placed]) -> list[int]:
        """The streams in which one of the parents is the last."""
        return [p.queue for p in direct if p.queue != HOST and self._tail[p.queue] == p.number]

    def free(self, direct: Sequence[Placed], idle: Idle) -> int | None:
        """A stream all of whose tasks certainly have ended when the parents have; a new one, where there may
        be one more."""
        before: Clock = self._known[HOST] if self._host_issues else (0,)
        for parent in direct:
            before = _merged(before, parent.clock)
        for queue in range(1, self.queues):
            if _at(before, queue) == self._filled[queue] or idle(queue):
                return queue
        return self.another() if self.queues <= self._limit else None

    def another(self) -> int:
        """A new stream."""
        self._known.append((0,))
        self._filled.append(0)
        self._tail.append(-1)
        self._free.append(0.0)
        return self.queues - 1

    def oldest(self) -> int:
        """The stream whose last task came first."""
        return min(range(1, self.queues), key=lambda queue: self._tail[queue])

    def soonest(self, direct: Sequence[Placed]) -> int:
        """The stream, or a new one, in which a task would start first; one in which a parent is the last,
        where that makes no difference."""
        heirs = self.heirs(direct)
        candidates = [*heirs, *range(1, min(self.queues, self._limit) + 1)]
        found = min(candidates, key=lambda queue: self.expected_start(queue, direct))
        return self.another() if found == self.queues else found


def inherited(streams: Streams, task: HostTask, direct: Sequence[Placed], idle: Idle) -> int:
    """The stream of a parent that is the last there, or a free one, or the one that was used longest ago."""
    heirs = streams.heirs(direct)
    if heirs:
        return heirs[0]
    free = streams.free(direct, idle)
    return streams.oldest() if free is None else free


def earliest(streams: Streams, task: HostTask, direct: Sequence[Placed], idle: Idle) -> int:
    """Where a task is expected to start first."""
    return streams.soonest(direct)


def by_kind(streams: Streams, task: HostTask, direct: Sequence[Placed], idle: Idle) -> int:
    """A stream for each kind of task, whatever their number."""
    while streams.queues <= BY_KIND[task.kind]:
        streams.another()
    return BY_KIND[task.kind]
