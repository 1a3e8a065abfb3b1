"""When each rTask of a program runs, on which vEU: planned from costs, or measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from irkit.row_ranges import ALL_ROWS, NO_END, Rows, called, cost_at
from irkit.schedule.tables import Program

Times = NDArray[np.float64]
Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class Kernel:
    """One rOperator: its symbol, its rKernel, and the source ops it came from."""

    symbol: str
    rkernel: str
    sources: str


@dataclass(frozen=True)
class Step:
    """One append: number of its rOperator, its wave, and the appends that it waits for."""

    kernel: int
    wave: int
    waits: tuple[int, ...]


@dataclass(frozen=True)
class Timeline:
    """Spans of rTasks, one element of each array per rTask.

    An rTask's vEU is ready for it at `arrived`, the waits are over at `start`, and it is done at `end`;
    all in nanoseconds from the start of the program.
    """

    title: str
    veus: int
    kernels: tuple[Kernel, ...]
    steps: tuple[Step, ...]
    append: Numbers
    task: Numbers
    veu: Numbers
    arrived: Times
    start: Times
    end: Times
    queues: tuple[str, ...] = ()
    """Names of rows that are no vEUs: queues of a plan, and their tasks no rTasks."""

    @property
    def bars(self) -> str:
        """What bars are."""
        return "tasks" if self.queues else "rTasks"

    def row_name(self, row: int) -> str:
        """What a row is."""
        return self.queues[row] if self.queues else f"vEU {row}"

    @property
    def duration(self) -> float:
        """Nanoseconds until the last rTask is done."""
        return float(self.end.max(initial=0.0))

    @property
    def kernel(self) -> Numbers:
        """Number of each rTask's rOperator."""
        return np.array([s.kernel for s in self.steps], dtype=np.int64)[self.append]

    def numbers(self, column: Numbers) -> list[int]:
        """One of the arrays of whole numbers as a list."""
        return [int(n) for n in column]

    def totals(self) -> dict[str, float]:
        """Shares of vEU time: working, waiting, idle."""
        whole = max(self.duration * self.veus, 1e-9)
        working = float((self.end - self.start).sum()) / whole
        waiting = float((self.start - self.arrived).sum()) / whole
        return {"working": working, "waiting": waiting, "idle": max(1 - working - waiting, 0.0)}


def facts_of(
    program: Program, roperators: Mapping[str, Mapping[str, object]]
) -> tuple[tuple[Kernel, ...], tuple[Step, ...]]:
    """Kernels and steps of a program; `roperators` is that part of its report."""
    kernels = tuple(
        Kernel(symbol, str(known.get("rkernel", "")), str(known.get("from", "")))
        for symbol in program.kernels
        for known in [roperators.get(symbol, {})]
    )
    carried = _carried_from(program)
    return kernels, tuple(
        Step(a.kernel, a.wave, (*a.waits, *carried.get(number, ())))
        for number, a in enumerate(program.appends)
    )


def _carried_from(program: Program) -> dict[int, list[int]]:
    """By append, those whose results come to it with their flag: as good as waited for."""
    found: dict[int, list[int]] = {}
    for carried in program.mail.carried:
        found.setdefault(carried.append, []).append(program.mail.published[carried.source].append)
    return found


def ranged(rows: Rows) -> str:
    """What a title says of the rows that a plan is for: nothing where it is for all."""
    return "" if rows == ALL_ROWS else f", {called(rows)}"


def _cost_ns(known: Mapping[str, Any], rows: Rows) -> float:
    """Of an rTask of an rOperator; where it hangs on the rows, for the geometric mean of their range."""
    costs = {int(n): float(ns) for n, ns in known.get("costs_ns", {}).items()}
    first, last = max(rows[0], 1), max(rows[1], *costs) if rows[1] == NO_END and costs else rows[1]
    return cost_at(costs, round((first * max(last, first)) ** 0.5), float(known["cost_ns"]))


def planned(
    program: Program, roperators: Mapping[str, Mapping[str, Any]], wait_ns: float
) -> Timeline:
    """What the schedule expects: an rTask of an rOperator takes the time that the report has of it, and a
    wait for another vEU `wait_ns` more."""
    costs = [_cost_ns(roperators[symbol], program.rows) for symbol in program.kernels]
    free = np.zeros(program.veus)
    done: list[tuple[Times, Numbers]] = []
    rows: list[tuple[float, ...]] = []
    carried = _carried_from(program)
    for number, append in enumerate(program.appends):
        tasks = np.arange(append.tasks)
        veus = append.first_veu + tasks % append.veus
        ends = np.empty(append.tasks)
        for task, veu in enumerate(veus.tolist()):
            arrived = start = float(free[veu])
            for source in (*append.waits, *carried.get(number, ())):
                ended, where = done[source]
                start = max(start, float((ended + wait_ns * (where != veu)).max()))
            free[veu] = ends[task] = start + costs[append.kernel]
            rows.append((number, task, veu, arrived, start, ends[task]))
        done.append((ends, veus))
    title = "planned" + ranged(program.rows)
    return timeline(title, program, roperators, np.array(rows).reshape(-1, 6))


def timeline(
    title: str,
    program: Program,
    roperators: Mapping[str, Mapping[str, object]],
    rows: Times,
) -> Timeline:
    """From rows of append, rTask, vEU, arrived, start, end (ns; the earliest becomes 0)."""
    kernels, steps = facts_of(program, roperators)
    origin = float(rows[:, 3].min(initial=np.inf)) if len(rows) else 0.0
    append, task, veu = (rows[:, i].astype(np.int64) for i in range(3))
    arrived, start, end = (rows[:, i] - origin for i in range(3, 6))
    return Timeline(title, program.veus, kernels, steps, append, task, veu, arrived, start, end)
