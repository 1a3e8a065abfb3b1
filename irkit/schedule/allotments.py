"""How many vEUs a launch gets, and which of its options it runs by, alone and side by side with others.

The rTasks of an option may be run on fewer vEUs than there are rTasks, several in turn. So a launch is what
the literature calls a malleable task: its time falls in steps as it gets more vEUs. Of launches that run side
by side, the end that all can meet soonest is found by bisection: to meet an end, each takes the fewest vEUs
that do (its canonical allotment), and it can be met if these are no more than there are (J. Turek, J. L.
Wolf, P. S. Yu, Approximate Algorithms for Scheduling Parallelizable Tasks, SPAA 1992).
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from irkit.schedule.footprint import batched
from irkit.schedule.model import Buffer, Launch, VDevice


@dataclass(frozen=True)
class Allotment:
    """A launch run by its option number `option` on `veus` vEUs, which takes `time` ns."""

    option: int
    veus: int
    time: float


class Speedup:
    """What a launch takes on ever more vEUs, each time by the option that is fastest there.

    `steps` are the allotments worth having: vEUs rise, times fall. Cutting a launch costs a wait between
    vEUs, since what reads its result must then wait for more than one, unless each part can be where all
    that it reads was made.
    """

    def __init__(self, steps: Sequence[Allotment]) -> None:
        self.steps = tuple(steps)
        self._veus = [step.veus for step in self.steps]
        self._times = [-step.time for step in self.steps]

    @staticmethod
    def of(
        tasks: Sequence[int],
        cost_ns: Sequence[float],
        device: VDevice,
        near: Sequence[bool] | None = None,
    ) -> Speedup:
        """Of options with so many rTasks that cost so many ns each, none of them empty. Those that are `near`
        what they read cost no wait."""
        waits = np.array(tasks) > 1
        if near is not None:
            waits &= ~np.array(near)
        times = _times(np.array(tasks), np.array(cost_ns), waits, device)
        # Of equal times, those of fewer rTasks: fewer have to be waited for.
        order = np.argsort(tasks, kind="stable")
        best = order[np.argmin(times[order], axis=0)]
        steps: list[Allotment] = []
        for column, option in enumerate(best):
            time = float(times[option, column])
            if not steps or time < steps[-1].time:
                steps.append(Allotment(int(option), column + 1, time))
        return Speedup(steps)

    @property
    def alone(self) -> Allotment:
        """What is fastest, with the device to itself."""
        return self.steps[-1]

    def within(self, limit: float) -> Allotment | None:
        """The fewest vEUs that take `limit` ns at most; None if no number of them does."""
        at = bisect.bisect_left(self._times, -limit)
        return self.steps[at] if at < len(self.steps) else None

    def on(self, veus: int) -> Allotment:
        """The fastest on `veus` vEUs, at least one."""
        return self.steps[bisect.bisect_right(self._veus, veus) - 1]


def _times(
    tasks: NDArray[np.int64],
    cost_ns: NDArray[np.float64],
    waits: NDArray[np.bool_],
    device: VDevice,
) -> NDArray[np.float64]:
    """[options, vEUs]: times on 1, 2, ... vEUs, the rTasks of an option in turn where they are more."""
    veus = np.arange(1, device.veus + 1)
    turns = -(-tasks[:, None] // veus[None, :])
    return turns * cost_ns[:, None] + (waits * device.wait_ns)[:, None]


def speedups(
    buffers: Sequence[Buffer],
    launches: Sequence[Launch],
    device: VDevice,
    near: Callable[[int], Sequence[bool]] | None = None,
) -> list[Speedup]:
    """Of each launch; equal ones are one object. `near(n)` says which options of launch n need no wait.

    What works on a batch keeps all the vEUs that it can use, one share on each: then one share of all
    launches is on one vEU, and none has to wait.
    """
    known: dict[object, Speedup] = {}
    result: list[Speedup] = []
    for number, launch in enumerate(launches):
        ways = launch.options or (launch,)
        shares = any(batched(buffers[access.buffer]) for access in launch.writes)
        beside = near(number) if near is not None else (False,) * len(ways)
        each = zip(ways, beside, strict=True)
        key = shares, tuple((way.tasks, way.cost_ns, stays) for way, stays in each)
        if key not in known:
            tasks, costs, stays = zip(*key[1], strict=True)
            found = Speedup.of(tasks, costs, device, stays)
            known[key] = Speedup([found.alone]) if shares else found
        result.append(known[key])
    return result


def side_by_side(members: Sequence[Speedup], veus: int) -> list[Allotment]:
    """What each of `members` gets of `veus` vEUs, of which they are no more, so that the last ends soonest.

    A launch that would not end later on fewer vEUs gets these; what is left over goes to the first members,
    to equal ones alike: chains of launches that run side by side then keep their vEUs, and wait for no other.
    """
    if sum(m.alone.veus for m in members) <= veus:
        return [m.alone for m in members]
    ends = sorted({step.time for m in members for step in m.steps})
    low, high = 0, len(ends) - 1
    while low < high:
        middle = (low + high) // 2
        if _needed(members, ends[middle]) <= veus:
            high = middle
        else:
            low = middle + 1
    found = [m.within(ends[low]) or m.alone for m in members]
    left = veus - sum(a.veus for a in found)
    for member, numbers in equal_members(members).items():
        has = found[numbers[0]]
        more = member.on(has.veus + left // len(numbers))
        left -= (more.veus - has.veus) * len(numbers)
        found = [more if n in numbers else a for n, a in enumerate(found)]
    return found


def equal_members(members: Sequence[Speedup]) -> dict[Speedup, list[int]]:
    """Numbers of the members that are one object, in the order of the first of each."""
    found: dict[Speedup, list[int]] = {}
    for number, member in enumerate(members):
        found.setdefault(member, []).append(number)
    return found


def _needed(members: Sequence[Speedup], limit: float) -> float:
    """vEUs with which all end within `limit`; infinity where none do."""
    found = [m.within(limit) for m in members]
    return float(sum(a.veus if a is not None else float("inf") for a in found))
