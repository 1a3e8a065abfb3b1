"""Uses that a proof still has to look at, by the bytes that they touch."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, field

from irkit.schedule.host.model import Use
from irkit.schedule.host.overlap import conflict, covers


@dataclass(order=True)
class _Entry:
    low: int
    number: int
    task: int = field(compare=False)
    use: Use = field(compare=False)


class _ByPlace:
    """Uses of one buffer, in the order of their first bytes."""

    def __init__(self) -> None:
        self._entries: list[_Entry] = []
        self._longest = 0

    def near(self, low: int, high: int) -> Iterator[_Entry]:
        """Those whose hulls may have a byte from `low` on, before `high`."""
        at = bisect_left(self._entries, low - self._longest, key=lambda e: e.low)
        while at < len(self._entries) and self._entries[at].low < high:
            yield self._entries[at]
            at += 1

    def add(self, entry: _Entry) -> None:
        low, high = entry.use.region.hull
        self._longest = max(self._longest, high - low)
        insort(self._entries, entry)

    def drop(self, use: Use) -> None:
        """Forget those whose bytes are all among those of `use`."""
        low, high = use.region.hull
        gone = [e for e in self.near(low, high) if covers(use.region, e.use.region)]
        for entry in gone:
            del self._entries[bisect_left(self._entries, entry)]


class Standing:
    """Uses in program order. One that a later write covers is forgotten: if it certainly ends before the
    write, and the write before who comes later, its order with these follows. Whoever asks has to see to the
    first."""

    def __init__(self) -> None:
        self._reads: dict[int, _ByPlace] = {}
        self._writes: dict[int, _ByPlace] = {}
        self._count = 0

    def before(self, use: Use) -> Iterator[tuple[int, Use]]:
        """Earlier uses that conflict with one, and their tasks."""
        low, high = use.region.hull
        for table in (self._writes, self._reads) if use.writes else (self._writes,):
            known = table.get(use.region.buffer)
            if known is None:
                continue
            for entry in known.near(low, high):
                if conflict(entry.use, use):
                    yield entry.task, entry.use

    def add(self, task: int, use: Use) -> None:
        """A use by a task that certainly comes after all that `before` says of it."""
        buffer = use.region.buffer
        if use.writes:
            for table in (self._writes, self._reads):
                if buffer in table:
                    table[buffer].drop(use)
        table = self._writes if use.writes else self._reads
        low, _ = use.region.hull
        table.setdefault(buffer, _ByPlace()).add(_Entry(low, self._count, task, use))
        self._count += 1
