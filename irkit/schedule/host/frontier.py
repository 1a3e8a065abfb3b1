"""What later tasks may have to wait for: the last uses of each part of each buffer.

Program order is followed once. A use that a later write covers is forgotten, as whoever conflicts with
it conflicts with that write; so is what the caller says has ended. What is kept does not grow with the
number of tasks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from irkit.schedule.host.model import Region, Use
from irkit.schedule.host.overlap import conflict, covers

T = TypeVar("T")

KEPT = 64
"""Uses kept of a buffer before they are put together, as that of their hull."""


@dataclass(eq=False, slots=True)
class Live(Generic[T]):
    """A use that still matters, the task that it is of, and how many were added before it."""

    task: T
    use: Use
    at: int


class Frontier(Generic[T]):
    """Live uses by buffer. `queue_of` says in which queue a task is: of those in one queue, the last of
    several that read the same stands for all, and so does the last of several that are put together.
    Buffers are those of regions, or those that the caller says.
    """

    def __init__(self, queue_of: Callable[[T], int], kept: int = KEPT) -> None:
        self._queue_of, self._kept = queue_of, kept
        self._live: dict[int, list[Live[T]]] = {}
        self._added = 0

    def __len__(self) -> int:
        return sum(len(live) for live in self._live.values())

    def before(self, use: Use, buffer: int | None = None) -> list[T]:
        """The tasks that a use must come after."""
        live = self._live.get(use.region.buffer if buffer is None else buffer, ())
        return [one.task for one in live if conflict(one.use, use)]

    def add(self, task: T, use: Use, buffer: int | None = None) -> None:
        """Take note of a use by a task that comes after all that `before` said."""
        buffer = use.region.buffer if buffer is None else buffer
        known = self._live.get(buffer, ())
        kept = [one for one in known if not self._replaced(one, task, use)]
        kept.append(Live(task, use, self._added))
        self._added += 1
        if len(kept) > self._kept:
            kept = self._together(kept)
        self._live[buffer] = kept

    def forget(self, ended: Callable[[T], bool]) -> None:
        """Drop the uses of tasks that have ended for whoever comes later."""
        for buffer, live in list(self._live.items()):
            left = [one for one in live if not ended(one.task)]
            if left:
                self._live[buffer] = left
            else:
                del self._live[buffer]

    def buffers(self) -> set[int]:
        """The buffers that have live uses."""
        return set(self._live)

    def join(self, buffer: int, into: int) -> None:
        """Two buffers that the caller told apart, of regions that are counted alike, turn out to be one."""
        moved = self._live.pop(buffer, [])
        # The last of a queue stands for the others there.
        self._live[into] = sorted([*self._live.get(into, []), *moved], key=lambda one: one.at)

    def _replaced(self, old: Live[T], task: T, use: Use) -> bool:
        """Whether what conflicts with an old use conflicts with this one, which comes after it."""
        if not covers(use.region, old.use.region):
            return False
        if use.writes:
            return True
        # Readers are in no order, unless they are in one queue.
        return not old.use.writes and self._queue_of(old.task) == self._queue_of(task)

    def _together(self, live: list[Live[T]]) -> list[Live[T]]:
        """One read and one write of the hull for each queue, of the last task there."""
        groups: dict[tuple[int, bool], list[Live[T]]] = {}
        for one in sorted(live, key=lambda live: live.at):
            groups.setdefault((self._queue_of(one.task), one.use.writes), []).append(one)
        return [Live(g[-1].task, _hull(g), g[-1].at) for g in groups.values()]


def _hull(group: list[Live[T]]) -> Use:
    first = group[0].use
    low = min(one.use.region.hull[0] for one in group)
    high = max(one.use.region.hull[1] for one in group)
    region = Region.of(first.region.buffer, low, (high - low,), (1,), 1)
    return Use(region, not first.writes, first.writes, first.name)
