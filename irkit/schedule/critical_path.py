"""List scheduling by critical path: whatever is ready and most urgent is placed next, no wave is waited for.

A launch is a malleable task (`allotments.py`). What it gets is found by playing the program through on a
number of vEUs: when some are free, the launches that are ready share them so that the last ends soonest, the
most urgent ones first (R. L. Graham, Bounds on Multiprocessing Timing Anomalies, 1969, for list scheduling).
Where launches would end sooner with the vEUs that are free next, they wait for those.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from irkit.schedule.allotments import Allotment, Speedup, side_by_side
from irkit.schedule.dependences import Dependences, critical_path, dependences
from irkit.schedule.few_options import with_few_options
from irkit.schedule.footprint import Footprints
from irkit.schedule.model import Append, Buffer, Launch, Schedule, VDevice
from irkit.schedule.placement import Placer, Range
from irkit.schedule.wavefront import chosen, in_layers, place_wavefront
from irkit.schedule.waves import duration

ESTIMATE = "estimate_ns"


def place_list(buffers: Sequence[Buffer], launches: Sequence[Launch], device: VDevice) -> Schedule:
    """The appends of `launches`, given in program order, without their waits, by critical path.

    Launches get their options and vEUs in the company of what is ready beside them, or of their layer,
    whichever is estimated to end sooner; where one vEU alone would end sooner still, it does all. Launches
    that read the same constants keep one option and their vEUs, as with `place_wavefront`.

    `notes`: "waves", and "estimate_ns". Raises ScheduleError for a program that is not well formed.
    """
    launches = list(launches)
    feet = Footprints(buffers, [launch.as_one() for launch in launches])
    graph = dependences(feet)
    found = in_layers(graph, feet, launches, device)
    beside = in_company(graph, found.speedups, found.urgency, device.veus)
    made = [
        _listed(buffers, launches, with_few_options(launches, allotments), device)
        for allotments in dict.fromkeys((tuple(beside), tuple(found.allotments)))
    ]
    made.append(on_one_veu(buffers, launches, device))
    return min(made, key=estimate)


def place_best(buffers: Sequence[Buffer], launches: Sequence[Launch], device: VDevice) -> Schedule:
    """What `place_wavefront` or `place_list` makes, whichever is estimated to end sooner; of equals the
    former, whose waves are fewer.

    `notes`: "policy", which it is, and its own. Raises ScheduleError for a program that is not well formed.
    """
    policies = {"wavefront": place_wavefront, "list": place_list}
    made = {name: policy(buffers, launches, device) for name, policy in policies.items()}
    best = min(made, key=lambda name: estimate(made[name]))
    made[best].notes["policy"] = best
    return made[best]


def estimate(schedule: Schedule) -> float:
    """A policy's own estimate of the run time, in ns."""
    return float(schedule.notes[ESTIMATE])


def in_company(
    graph: Dependences, found: Sequence[Speedup], urgency: Sequence[float], veus: int
) -> list[Allotment]:
    """What each launch gets as the program is played through on `veus` vEUs."""
    play = _Play(graph, found, urgency, veus)
    while play.left:
        play.start()
        play.end_next()
    return [play.got[n] for n in range(len(found))]


class _Play:
    """A run of the program by times alone: which launches are ready, which run, how many vEUs are free."""

    def __init__(
        self, graph: Dependences, found: Sequence[Speedup], urgency: Sequence[float], veus: int
    ) -> None:
        self.found, self.free, self.now, self.left = found, veus, 0.0, len(found)
        self.got: dict[int, Allotment] = {}
        self._ready = _Ready(graph, urgency)
        self._running: list[tuple[float, int]] = []

    def start(self) -> None:
        """Start what is ready and has room, unless it is better to wait."""
        taken, room = list[int](), self.free
        while self._ready.heap and self._least(self._ready.first) <= room:
            taken.append(self._ready.pop())
            room -= self._least(taken[-1])
        members = [self.found[n] for n in taken]
        if not members:
            return
        got = side_by_side(members, self.free)
        if self._better_later(members, max(a.time for a in got)):
            self._ready.put_back(taken)
            return
        for n, allotted in zip(taken, got, strict=True):
            self.got[n] = allotted
            self.free -= allotted.veus
            heapq.heappush(self._running, (self.now + allotted.time, n))

    def _least(self, launch: int) -> int:
        return self.found[launch].steps[0].veus

    def _better_later(self, members: Sequence[Speedup], takes: float) -> bool:
        """Whether launches that would take so long now end sooner if they have the vEUs, too, that are free
        next, and start then."""
        if not self._running:
            return False
        end, launch = self._running[0]
        later = side_by_side(members, self.free + self.got[launch].veus)
        return end - self.now + max(a.time for a in later) < takes

    def end_next(self) -> None:
        """Go on to where the next launches end."""
        self.now = self._running[0][0]
        while self._running and self._running[0][0] <= self.now:
            ended = heapq.heappop(self._running)[1]
            self.free += self.got[ended].veus
            self.left -= 1
            self._ready.end(ended)


class _Ready:
    """Launches whose sources have all ended, the most urgent first."""

    def __init__(self, graph: Dependences, urgency: Sequence[float]) -> None:
        self._graph, self._urgency = graph, urgency
        self._open = [len(sources) for sources in graph.sources]
        self.heap: list[tuple[float, int]] = []
        self.put_back([n for n, count in enumerate(self._open) if count == 0])

    @property
    def first(self) -> int:
        return self.heap[0][1]

    def pop(self) -> int:
        return heapq.heappop(self.heap)[1]

    def put_back(self, launches: Sequence[int]) -> None:
        for n in launches:
            heapq.heappush(self.heap, (-self._urgency[n], n))

    def end(self, launch: int) -> None:
        for user in self._graph.users[launch]:
            self._open[user] -= 1
            if self._open[user] == 0:
                self.put_back([user])


def _listed(
    buffers: Sequence[Buffer],
    launches: Sequence[Launch],
    allotments: Sequence[Allotment],
    device: VDevice,
) -> Schedule:
    """Launches placed as they become ready: of those that can start soonest, the most urgent, but first those
    whose constants lie on some vEUs."""
    made = chosen(launches, allotments)
    feet = Footprints(buffers, made)
    graph = dependences(feet)
    widths = [found.veus for found in allotments]
    times = [duration(launch, width) for launch, width in zip(made, widths, strict=True)]
    urgency, placer = critical_path(graph, times), Placer(feet, graph, device)
    waves, appends = _Waves(graph, device.veus), list[Append]()
    sources_left = [len(sources) for sources in graph.sources]
    ready = {n: 0.0 for n, count in enumerate(sources_left) if count == 0}
    while ready:
        ends = placer.ends_in_order()
        starts = {n: max(at, ends[widths[n] - 1]) for n, at in ready.items()}
        soon = min(starts.values()) + device.wait_ns
        # Those with a home first: the others then see which vEUs are left.
        now = [n for n, start in starts.items() if start <= soon]
        launch = min(now, key=lambda n: (not placer.has_home(n), -urgency[n], n))
        del ready[launch]
        where = placer.place(launch, widths[launch])
        appends.append(Append(launch, where.first, where.veus, waves.take(launch, where)))
        for user in graph.users[launch]:
            sources_left[user] -= 1
            if sources_left[user] == 0:
                ready[user] = max(placer.end(source) for source in graph.sources[user])
    notes = {"waves": waves.count, ESTIMATE: placer.makespan()}
    return Schedule(device, list(buffers), made, appends, notes=notes)


class _Waves:
    """The waves of appends as they are listed: behind all sources, and on no vEU before what it has."""

    def __init__(self, graph: Dependences, veus: int) -> None:
        self._graph = graph
        self._of: dict[int, int] = {}
        self._last: NDArray[np.int64] = np.zeros(veus, np.int64)

    def take(self, launch: int, where: Range) -> int:
        """The wave of a launch on these vEUs."""
        taken = self._last[where.first : where.first + where.veus]
        behind = [self._of[source] + 1 for source in self._graph.sources[launch]]
        wave = max([int(taken.max()), *behind])
        taken[:] = wave
        self._of[launch] = wave
        return wave

    @property
    def count(self) -> int:
        """How many there are."""
        return len(set(self._of.values()))


def on_one_veu(buffers: Sequence[Buffer], launches: Sequence[Launch], device: VDevice) -> Schedule:
    """All launches on the first vEU, each by the option of the least work; none has to wait."""
    made: list[Launch] = []
    for launch in launches:
        work = [option.tasks * option.cost_ns for option in launch.options]
        made.append(launch.choose(int(np.argmin(work))) if work else launch)
    appends = [Append(n, 0, 1) for n in range(len(made))]
    total = sum(launch.tasks * launch.cost_ns for launch in made)
    notes = {"waves": min(len(made), 1), ESTIMATE: total}
    return Schedule(device, list(buffers), made, appends, notes=notes)
