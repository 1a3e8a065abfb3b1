"""Launches as they come: each is put into a stream at once, behind the events that it needs.

Nothing is kept that grows with the number of launches: of each part of an array the last uses, as
`Frontier` has them; the arrays of what has not ended; and at most `IN_FLIGHT` of those.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from irkit.dags.device import DagDevice, do_here, put
from irkit.dags.failures import drain, failed
from irkit.dags.steps import Step
from irkit.errors import DeviceError
from irkit.schedule.host.frontier import Frontier
from irkit.schedule.host.model import HOST, Use
from irkit.schedule.host.streams import Placed, Streams

IN_FLIGHT = 512
"""Launches that may be under way; the next one waits for the first of them."""
MEMO = 512
"""So many spans are known with their buffers until these change."""
SWEEP = 64
"""So many launches come between two looks for what has ended."""


@dataclass(eq=False, slots=True)
class Running:
    """A launch that was started; `step` keeps its arrays until it has ended."""

    placed: Placed
    event: Any
    step: Step | None


class Buffers:
    """Numbers of buffers: whatever overlaps is one. A space is a number too, 0 for the host's and 1
    the device's."""

    def __init__(self) -> None:
        self._spans: dict[int, list[tuple[int, int, int]]] = {0: [], 1: []}
        self._next = 0
        self._known: dict[tuple[int, tuple[int, int]], int] = {}

    def __len__(self) -> int:
        return sum(map(len, self._spans.values()))

    def number(self, space: int, span: tuple[int, int]) -> tuple[int, list[int]]:
        """The buffer that holds a span, and others that turn out to be the same one."""
        known = self._known.get((space, span))
        if known is not None:
            return known, []
        number, same = self._met(space, span)
        if same or len(self._known) >= MEMO:
            self._known.clear()
        self._known[space, span] = number
        return number, same

    def _met(self, space: int, span: tuple[int, int]) -> tuple[int, list[int]]:
        spans = self._spans[space]
        first = bisect_right(spans, span[0], key=lambda s: s[1])
        last = bisect_left(spans, span[1], key=lambda s: s[0])
        met = spans[first:last]
        if len(met) == 1 and met[0][0] <= span[0] and span[1] <= met[0][1]:
            return met[0][2], []
        if not met:
            self._next += 1
        number = met[0][2] if met else self._next
        low, high = (min([span[0], *(s[0] for s in met)]), max([span[1], *(s[1] for s in met)]))
        spans[first:last] = [(low, high, number)]
        return number, [s[2] for s in met[1:]]

    def keep(self, used: set[int]) -> None:
        """Forget all but some."""
        self._known.clear()
        for space, spans in self._spans.items():
            self._spans[space] = [s for s in spans if s[2] in used]


class Eager:
    """Starts steps on a device, on at most `limit` streams."""

    def __init__(self, device: DagDevice, limit: int) -> None:
        self._device = device
        self._policy = Streams(limit, host_issues=True)
        self._frontier = Frontier[Running](lambda running: running.placed.queue)
        self._buffers = Buffers()
        self._streams: list[Any] = [None]
        self._begin = device.begin()
        self._flying: deque[Running] = deque()
        self._tails: dict[int, Running] = {}
        self._count = 0

    def kept(self) -> int:
        """How many things are kept, for tests."""
        return len(self._frontier) + len(self._flying) + len(self._buffers) + len(self._tails)

    def start(self, step: Step) -> None:
        """Start one step. Raises DeviceError where the device fails: nothing is under way then."""
        try:
            self._start(step)
        except DeviceError as error:
            raise self._failed(error, step) from error

    def _start(self, step: Step) -> None:
        uses = self._numbered(step.task.uses)
        parents = [parent for use, buffer in uses for parent in self._frontier.before(use, buffer)]
        by_number = {parent.placed.number: parent for parent in parents}
        placed, waits = self._policy.place(
            self._count, [p.placed for p in parents], step.task, self._idle
        )
        self._count += 1
        events = [by_number[p.number].event for p in waits]
        running = Running(placed, self._issue(step, placed.queue, events), step)
        for use, buffer in uses:
            self._frontier.add(running, use, buffer)
        self._note(running)

    def finish(self) -> None:
        """Wait for everything. Raises DeviceError where the device fails."""
        try:
            while self._flying:
                self._end(self._flying[0], wait=True)
                self._flying.popleft()
        except DeviceError as error:
            raise self._failed(error, None) from error
        self._forget()

    def abandon(self) -> None:
        """Wait for what is under way, whatever became of it."""
        drain(self._device, self._streams[1:])
        self._flying.clear()

    def _failed(self, error: DeviceError, doing: Step | None) -> DeviceError:
        begun = [running.step for running in self._flying if running.step is not None]
        steps = begun if doing is None else [*begun, doing]
        told = failed(error, doing, steps, steps, whole=False)
        self.abandon()
        return told

    def _issue(self, step: Step, queue: int, events: list[Any]) -> Any:
        if queue == HOST:
            for event in events:
                self._device.synchronize(event)
            do_here(step.work)
            return None
        while len(self._streams) <= queue:
            self._streams.append(self._device.new_stream())
            self._device.wait(self._streams[-1], self._begin)
        stream = self._streams[queue]
        for event in events:
            self._device.wait(stream, event)
        put(self._device, step.work, stream)
        return self._device.record(stream)

    def _note(self, running: Running) -> None:
        if running.placed.queue == HOST:
            self._policy.host_knows(running.placed.clock)
            running.step = None
            return
        self._tails[running.placed.queue] = running
        self._flying.append(running)
        while self._flying and self._device.done(self._flying[0].event):
            self._end(self._flying.popleft(), wait=False)
        if len(self._flying) > IN_FLIGHT:
            self._end(self._flying.popleft(), wait=True)
        if self._count % SWEEP == 0:
            self._forget()

    def _end(self, running: Running, wait: bool) -> None:
        if wait:
            self._device.synchronize(running.event)
        running.step = None
        self._policy.host_knows(running.placed.clock)

    def _forget(self) -> None:
        known = self._policy.host_clock
        self._frontier.forget(lambda running: running.placed.ended_by(known))
        self._buffers.keep(self._frontier.buffers())

    def _idle(self, queue: int) -> bool:
        tail = self._tails.get(queue)
        return tail is None or tail.placed.ended_by(self._policy.host_clock)

    def _numbered(self, uses: Sequence[Use]) -> list[tuple[Use, int]]:
        """Uses with their buffers. The regions themselves stay counted from the start of their space."""
        found: list[tuple[Use, int]] = []
        joined = False
        for use in uses:
            number, same = self._buffers.number(use.region.buffer, use.region.hull)
            for other in same:
                self._frontier.join(other, number)
            joined = joined or bool(same)
            found.append((use, number))
        # A later use may have made one buffer of what an earlier one is in.
        return self._numbered(uses) if joined else found
