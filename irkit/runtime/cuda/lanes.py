"""Which launches of a program may run side by side when every rOperator is a kernel of its own.

Within a wave, nothing orders two vEUs: what runs on one of them waits for nothing on another. So
appends on disjoint ranges of vEUs are independent, and those that share a vEU stay in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, groupby
from typing import Any

from irkit.runtime.cuda.driver import Device, Event, Stream, call
from irkit.schedule.tables import Appended

MAX_LANES = 16


def lanes(appends: Sequence[Appended]) -> list[list[list[int]]]:
    """Per wave, lists of append numbers: one list after another in itself, all lists side by side."""
    numbered = list(enumerate(appends))
    return [_of_wave(list(wave)) for _, wave in groupby(numbered, lambda item: item[1].wave)]


def _of_wave(wave: list[tuple[int, Appended]]) -> list[list[int]]:
    ranges: list[tuple[int, int, list[int]]] = []
    for number, append in sorted(wave, key=lambda item: item[1].first_veu):
        first, end = append.first_veu, append.first_veu + append.veus
        if ranges and first < ranges[-1][1]:
            begin, before, numbers = ranges[-1]
            ranges[-1] = (begin, max(before, end), [*numbers, number])
        else:
            ranges.append((first, end, [number]))
    found = [sorted(numbers) for _, _, numbers in ranges]
    return [sorted(chain(*found[i::MAX_LANES])) for i in range(min(MAX_LANES, len(found)))]


class Fork:
    """Runs work on several streams at once; used while a stream is captured into a graph.

    What was captured names its streams and events, which are kept as long as this is.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self.streams: list[Stream] = []
        self.events: list[Event] = []

    def run(self, stream: Any, work: Sequence[Callable[[Any], object]]) -> None:
        """The first on `stream`, each other one on a stream of its own; `stream` then waits for all."""
        while len(self.streams) < len(work) - 1:
            self.streams.append(Stream(self._device))
        sides = [s.handle for s in self.streams[: len(work) - 1]]
        if sides:
            self._event(stream)
            for side in sides:
                call("cuStreamWaitEvent", side, self.events[-1].handle, 0)
        for side, part in zip((stream, *sides), work, strict=True):
            part(side)
        for side in sides:
            self._event(side)
            call("cuStreamWaitEvent", stream, self.events[-1].handle, 0)

    def run_lanes(
        self,
        stream: Any,
        waves: Sequence[Sequence[Sequence[int]]],
        launch: Callable[[int, Any, bool], bool],
    ) -> None:
        """`launch(number, stream, early)` all numbers of `lanes`, wave after wave.

        It says whether what is launched right behind may begin early: where lanes meet nothing may.
        """

        def lane(numbers: Sequence[int], early: bool, stream: Any) -> bool:
            for number in numbers:
                early = launch(number, stream, early)
            return early

        early = False
        for wave in waves:
            if len(wave) == 1:
                early = lane(wave[0], early, stream)
            else:
                self.run(stream, [partial(lane, numbers, False) for numbers in wave])
                early = False

    def _event(self, stream: Any) -> None:
        self.events.append(Event())
        self.events[-1].record(stream)
