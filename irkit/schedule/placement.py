"""Where a launch goes: the earliest contiguous range of vEUs, or where its constants already are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from irkit.schedule.dependences import Dependences
from irkit.schedule.footprint import Footprints
from irkit.schedule.model import Access, VDevice
from irkit.schedule.waves import duration


@dataclass(frozen=True)
class Range:
    """vEUs [first, first + veus)."""

    first: int
    veus: int


def box_bytes(access: Access, itemsize: int) -> int:
    """Bytes of the largest box of an access."""
    sizes = (access.boxes[:, :, 1] - access.boxes[:, :, 0]).prod(axis=1)
    return int(sizes.max(initial=0)) * itemsize


class Placer:
    """Places launches one after another and keeps each vEU's estimated time.

    A constant that several launches read by equal boxes has a home: the range of the first of them.
    Later ones go home unless waiting for it costs more time than reading the constant again would;
    and a first one avoids vEUs whose scratchpad is already full of others' constants.
    """

    def __init__(self, feet: Footprints, graph: Dependences, device: VDevice) -> None:
        self.graph, self.launches, self.device = graph, feet.launches, device
        self._ends: NDArray[np.float64] = np.zeros(device.veus)
        self._load: NDArray[np.int64] = np.zeros(device.veus, np.int64)
        self._homes: dict[Hashable, Range] = {}
        self._done: dict[int, tuple[Range, float]] = {}
        self._constants = [self._read_constants(feet, n) for n in range(len(feet.launches))]
        uses = Counter(key for constants in self._constants for key in constants)
        for constants in self._constants:
            for key in [key for key in constants if uses[key] < 2]:
                del constants[key]

    @staticmethod
    def _read_constants(feet: Footprints, launch: int) -> dict[Hashable, int]:
        """Constant operands of a launch, and the bytes of each that one rTask reads."""
        tasks = feet.launches[launch].tasks
        return {
            (access.buffer, tasks, access.boxes.tobytes()): box_bytes(
                access, feet.buffers[access.buffer].itemsize
            )
            for _, access in feet.constant_reads(launch)
        }

    def has_home(self, launch: int) -> bool:
        """Whether the launch's largest repeated constant has been read before."""
        return self._main_constant(launch)[0] in self._homes

    def place(self, launch: int, width: int) -> Range:
        """Choose vEUs for `launch` and take them; all launches it depends on must be placed."""
        key, size = self._main_constant(launch)
        best, start = self._earliest(launch, width, sum(self._constants[launch].values()))
        home = self._homes.get(key)
        if (
            home is not None
            and self._start(launch, home) <= start + size / self.device.bytes_per_ns
        ):
            best = home
        else:
            best = self._beside_source(launch, best, start)
        self._take(launch, best)
        return best

    def _main_constant(self, launch: int) -> tuple[Hashable, int]:
        constants = self._constants[launch]
        return max(constants.items(), key=lambda item: item[1], default=((), 0))

    def _ready(self, launch: int) -> float:
        """When the results that `launch` reads have reached every vEU."""
        ends = (self._done[source][1] for source in self.graph.sources[launch])
        return max((end + self.device.wait_ns for end in ends), default=0.0)

    def _start(self, launch: int, where: Range) -> float:
        """When `launch` could start on `where`; results made task by task there need no wait."""
        ready = float(self._ends[where.first : where.first + where.veus].max())
        for source in self.graph.sources[launch]:
            made, end = self._done[source]
            near = made == where and self.graph.is_local(source, launch, where.veus)
            ready = max(ready, end if near else end + self.device.wait_ns)
        return ready

    def _earliest(self, launch: int, width: int, size: int) -> tuple[Range, float]:
        """The contiguous range with the earliest start; then the least loaded; then the first."""
        free = np.lib.stride_tricks.sliding_window_view(self._ends, width).max(axis=1)
        start = np.maximum(free, self._ready(launch))
        load = np.lib.stride_tricks.sliding_window_view(self._load, width).max(axis=1)
        limit = self.device.shared_bytes - self.launches[launch].scratch_bytes
        overfull = (load + size > limit) & (size > 0)
        first = int(np.lexsort((np.arange(len(start)), load * (size > 0), start, overfull))[0])
        return Range(first, width), float(start[first])

    def _beside_source(self, launch: int, best: Range, start: float) -> Range:
        """A source's own range, when the launch can start there no later than at `best`."""
        for source in sorted(self.graph.sources[launch], reverse=True):
            made = self._done[source][0]
            if made.veus == best.veus and self._start(launch, made) <= start:
                return made
        return best

    def _take(self, launch: int, where: Range) -> None:
        taken = slice(where.first, where.first + where.veus)
        end = self._start(launch, where) + duration(self.launches[launch], where.veus)
        self._ends[taken] = end
        self._done[launch] = (where, end)
        for key, size in self._constants[launch].items():
            if key not in self._homes:
                self._homes[key] = where
                self._load[taken] += size

    def end(self, launch: int) -> float:
        """Estimated end of a launch that is placed, in ns."""
        return self._done[launch][1]

    def ends_in_order(self) -> NDArray[np.float64]:
        """When ever more vEUs are done with what they have, in ns: [vEUs], ascending."""
        return np.sort(self._ends)

    def makespan(self) -> float:
        """Estimated end of everything placed so far, in ns."""
        return float(self._ends.max(initial=0.0))
