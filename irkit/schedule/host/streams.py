"""Which stream a task goes to, and which events it must wait for.

The policy is GrCUDA's, "disjoint" (Parravicini et al., DAG-based Scheduling with Resource Sharing for
Multi-task Applications in a Polyglot GPU Runtime, IPDPS 2021): the first child goes to its parent's
stream, others go to a stream that is free, or a new one. What program order and earlier waits cover
already gets no event: vector clocks say how far every other queue certainly is (`happens_before.py`
has the same of whole schedules).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from irkit.schedule.host.model import HOST

Clock = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Placed:
    """A task that has a queue: its number, where it is there, and how far every queue certainly is when it
    ends."""

    number: int
    queue: int
    position: int
    clock: Clock

    def ended_by(self, clock: Clock) -> bool:
        """Whether it certainly has ended where the queues are as far as `clock` says."""
        return _at(clock, self.queue) > self.position


def _at(clock: Clock, queue: int) -> int:
    return clock[queue] if queue < len(clock) else 0


def _merged(a: Clock, b: Clock) -> Clock:
    if len(a) < len(b):
        a, b = b, a
    return tuple(max(n, _at(b, queue)) for queue, n in enumerate(a))


def reduced(parents: Sequence[Placed]) -> list[Placed]:
    """Parents, less those that another one comes after; in program order."""
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

    def __init__(self, limit: int, host_issues: bool = False) -> None:
        self._limit, self._host_issues = limit, host_issues
        self._known: list[Clock] = [(0,)]
        self._filled: list[int] = [0]
        self._tail: list[int] = [-1]

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
        on_host: bool,
        idle: Callable[[int], bool] = lambda queue: False,
        stream: int | None = None,
    ) -> tuple[Placed, list[Placed]]:
        """Task `number`, after its parents: where it goes, and the parents that it has to wait for.

        `idle` says of a stream that all its tasks have ended, where somebody can tell; `stream` is the one
        that it goes to, where that is known.
        """
        direct = reduced(parents)
        queue = HOST if on_host else self._opened(stream) or self._choose(direct, idle)
        clock = self._known[queue]
        if self._host_issues:
            clock = _merged(clock, self._known[HOST])
        waits = [p for p in direct if p.queue != queue and not p.ended_by(clock)]
        for parent in waits:
            clock = _merged(clock, parent.clock)
        position = self._filled[queue]
        own = tuple(position + 1 if q == queue else 0 for q in range(queue + 1))
        ended = _merged(clock, own)
        placed = Placed(number, queue, position, ended)
        # The next one here starts after this one.
        self._known[queue] = ended
        self._filled[queue] += 1
        self._tail[queue] = number
        return placed, waits

    def _opened(self, stream: int | None) -> int:
        """A stream that is there now; the host's queue for none."""
        while stream is not None and self.queues <= stream:
            self._known.append((0,))
            self._filled.append(0)
            self._tail.append(-1)
        return HOST if stream is None else stream

    def _choose(self, direct: Sequence[Placed], idle: Callable[[int], bool]) -> int:
        heirs = [p.queue for p in direct if p.queue != HOST and self._tail[p.queue] == p.number]
        if heirs:
            return heirs[0]
        before: Clock = self._known[HOST] if self._host_issues else (0,)
        for parent in direct:
            before = _merged(before, parent.clock)
        for queue in range(1, self.queues):
            if _at(before, queue) == self._filled[queue] or idle(queue):
                return queue
        if self.queues <= self._limit:
            return self._opened(self.queues)
        return min(range(1, self.queues), key=lambda queue: self._tail[queue])
