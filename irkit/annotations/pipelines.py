"""Calls that follow one another and are cut alike: chunk by chunk through all of them, so that what one
passes on to the next is still in a core's cache."""

from __future__ import annotations

from collections.abc import Sequence

from irkit.annotations.host_task import HostTask
from irkit.annotations.workers import in_parts, ranges
from irkit.weights import Array


class Pipeline:
    """`tasks` in order; `places` says for each which arrays of the pipeline are its own."""

    def __init__(self, tasks: Sequence[HostTask], places: Sequence[Sequence[int]]) -> None:
        self.tasks, self.places = tuple(tasks), tuple(map(tuple, places))

    def __call__(self, *arrays: Array) -> None:
        """Make all calls, one after another until each was seen to keep to its annotation. Raises as each."""
        own = [[arrays[n] for n in numbers] for numbers in self.places]
        cut = self.tasks[0].cut
        if cut is None or not all(task.checked for task in self.tasks):
            for task, given in zip(self.tasks, own, strict=True):
                task(*given)
            return

        def part(start: int, stop: int) -> None:
            for task, given in zip(self.tasks, own, strict=True):
                task.part(task.split(given, start, stop))

        unit_bytes = sum(a.nbytes for a in arrays) // max(1, cut.units)
        in_parts(part, ranges(cut.units, unit_bytes, len(self.tasks)))
