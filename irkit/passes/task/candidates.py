"""Ways to cut an rOperator into rTasks that are worth a look, of all that there are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from irkit.dialects.loop import ScheduleAttr
from irkit.dialects.roperator_root import Root
from irkit.dialects.task import AlternativeAttr
from irkit.rkernels.rkernel import RKernel
from irkit.rkernels.scheduled.layouts import layout_of
from irkit.schedule.allotments import Speedup
from irkit.schedule.model import VDevice
from irkit.schedule.row_plans import AS_GOOD

FAR = 5.0
"""rKernels that are estimated to take so many times as long as another, in any grid, are not measured."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """An rKernel in a grid, and the estimated time of an rTask; on a batch also that for several numbers of
    rows, of which there is then one or more. A generated rKernel has a schedule."""

    rkernel: RKernel
    grid: tuple[int, ...]
    cost_ns: float
    by_batch: tuple[float, ...] = ()
    schedule: ScheduleAttr | None = None

    @property
    def tasks(self) -> int:
        """How many rTasks the grid has."""
        return math.prod(self.grid)

    def alternative(self, root: Root, costs: Mapping[int, float] | None = None) -> AlternativeAttr:
        """What an rOperator with this root would say of it, and that it has these costs by rows."""
        rkernel, literals = self.rkernel, self.rkernel.literals(root)
        parameters = {name: literals[name] for name in sorted(literals)}
        scratch = rkernel.scratch(root, literals)
        if self.schedule is not None:
            scratch = layout_of(rkernel.target, root, self.schedule).scratch
        return AlternativeAttr.of(
            rkernel.name, self.grid, self.cost_ns, parameters, scratch, rkernel.fastmath, costs,
            self.schedule,
        )  # fmt: skip


def alone_ns(one: Candidate, device: VDevice) -> float:
    """The estimated time of all its rTasks, in ns, where they have the device to themselves."""
    return math.ceil(one.tasks / device.veus) * one.cost_ns


def front(candidates: Sequence[Candidate], device: VDevice) -> list[Candidate]:
    """The Pareto front of vEUs and time, the fastest alone first; on a batch the one for all its sizes, and
    behind it those that are much faster for some."""
    if candidates[0].by_batch:
        return _for_batches(candidates)
    tasks, costs = [c.tasks for c in candidates], [c.cost_ns for c in candidates]
    # What keeps all that its rTasks share is made to be where its rows were made.
    near = [c.rkernel.keeps is not None for c in candidates]
    return [candidates[n] for n in pareto(tasks, costs, device, near)]


def pareto(
    tasks: Sequence[int],
    cost_ns: Sequence[float],
    device: VDevice,
    near: Sequence[bool] | None = None,
) -> list[int]:
    """Numbers of those that are the fastest on some number of vEUs, the fastest alone first; those that are
    `near` need no wait."""
    steps = Speedup.of(tasks, cost_ns, device, near).steps
    return list(dict.fromkeys(step.option for step in reversed(steps)))


def _for_batches(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Few: each is an rKernel to compile, and perhaps a schedule."""
    offered = [candidates[n] for n in by_rows([c.by_batch for c in candidates])]
    return sorted(offered, key=lambda c: c.cost_ns)


def by_rows(costs: Sequence[Sequence[float]]) -> list[int]:
    """Numbers of those to offer, by `costs[number][n]` for several numbers of rows: the one that takes least
    for all together, then for each number of rows at which it is not nearly as good as another, this one."""
    offered = [min(range(len(costs)), key=lambda c: sum(costs[c]))]
    for n in range(len(costs[0])):
        best = min(range(len(costs)), key=lambda c: costs[c][n])
        if AS_GOOD * costs[best][n] < min(costs[c][n] for c in offered):
            offered.append(best)
    return offered


def shortlist(candidates: Sequence[Candidate], device: VDevice, most: int) -> list[Candidate]:
    """At most `most` to choose from by measurement: first the front of all, spread over the numbers of vEUs,
    then that of every other rKernel by turns, the best first. Estimates are rough: another rKernel may well
    be faster than the one that is estimated to be, and tells more than one more grid of that."""
    best = front(candidates, device)
    near = _near(candidates)
    ranked: list[tuple[int, float, Candidate]] = []
    for of_one in near:
        own = [c for c in front(of_one, device) if c not in best]
        ranked += [(rank, alone_ns(c, device), c) for rank, c in enumerate(own)]
    ranked.sort(key=lambda found: found[:2])
    room = max(most - len(ranked), 2 * most // 3, 1)
    chosen = _spread(best, room)
    return (chosen + [c for _, _, c in ranked])[:most]


def _near(candidates: Sequence[Candidate]) -> list[list[Candidate]]:
    """Candidates by rKernel, without those that are far behind in time and in work."""
    by_rkernel: dict[str, list[Candidate]] = {}
    for one in candidates:
        by_rkernel.setdefault(one.rkernel.name, []).append(one)
    time = {name: min(c.cost_ns for c in found) for name, found in by_rkernel.items()}
    work = {name: min(c.cost_ns * c.tasks for c in found) for name, found in by_rkernel.items()}
    limits = FAR * min(time.values()), FAR * min(work.values())
    return [
        found
        for name, found in by_rkernel.items()
        if time[name] <= limits[0] or work[name] <= limits[1]
    ]


def _spread(found: Sequence[Candidate], most: int) -> list[Candidate]:
    """At most `most`, evenly, the first and the last among them."""
    if len(found) <= most:
        return list(found)
    steps = max(most - 1, 1)
    return [found[round(n * (len(found) - 1) / steps)] for n in range(most)]
