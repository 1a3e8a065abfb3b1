"""Which bytes of a host array are true on the host and which on the device, and what must be copied
before a use.

A byte is true on one side or on both. What is copied is what the use needs and its side lacks, and no
more: a slice of an array moves alone.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

Span = tuple[int, int]
"""First byte, and the one behind the last."""


class Spans:
    """A set of bytes, as spans in order that do not touch."""

    def __init__(self, *spans: Span) -> None:
        self._spans: list[Span] = []
        for span in spans:
            self.add(span)

    def __iter__(self) -> Iterator[Span]:
        return iter(self._spans)

    def __len__(self) -> int:
        return len(self._spans)

    def _touching(self, span: Span) -> tuple[int, int]:
        """Numbers of the spans that meet `span` or end where it starts."""
        first = bisect_left(self._spans, span[0], key=lambda s: s[1])
        return first, bisect_right(self._spans, span[1], key=lambda s: s[0])

    def within(self, span: Span) -> list[Span]:
        """What of a span is in the set."""
        first, last = self._touching(span)
        cut = [(max(a, span[0]), min(b, span[1])) for a, b in self._spans[first:last]]
        return [(a, b) for a, b in cut if a < b]

    def add(self, span: Span) -> None:
        """Take bytes in."""
        if span[0] >= span[1]:
            return
        first, last = self._touching(span)
        met = self._spans[first:last]
        if len(met) == 1 and met[0][0] <= span[0] and span[1] <= met[0][1]:
            return
        met.append(span)
        self._spans[first:last] = [(min(a for a, _ in met), max(b for _, b in met))]

    def remove(self, span: Span) -> None:
        """Take bytes out."""
        if span[0] >= span[1]:
            return
        first, last = self._touching(span)
        left: list[Span] = []
        for a, b in self._spans[first:last]:
            left += [s for s in ((a, min(b, span[0])), (max(a, span[1]), b)) if s[0] < s[1]]
        self._spans[first:last] = left


@dataclass
class Sides:
    """What each side lacks of one allocation, by addresses on the host."""

    device_lacks: Spans
    host_lacks: Spans = field(default_factory=Spans)

    def on_device(self, span: Span, writes: bool, covers: bool = False) -> list[Span]:
        """What must be copied to the device before it uses a span; it is true there from then on. Nothing
        for a use that writes all of it before it reads any."""
        needed: list[Span] = []
        if self.device_lacks:
            needed = [] if covers else self.device_lacks.within(span)
            self.device_lacks.remove(span)
        if writes:
            self.host_lacks.add(span)
        return needed

    def on_host(self, span: Span, writes: bool) -> list[Span]:
        """What must be copied to the host before it uses a span; it is true there from then on."""
        needed: list[Span] = []
        if self.host_lacks:
            needed = self.host_lacks.within(span)
            self.host_lacks.remove(span)
        if writes:
            self.device_lacks.add(span)
        return needed
