"""Schedules of one function for ranges of rows: few of them, each about as good as the best in its range."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from irkit.row_ranges import ALL_ROWS, NO_END, Rows
from irkit.schedule.makespan import makespan
from irkit.schedule.model import Launch, Schedule

AS_GOOD = 1.1
"""How many times as long as the best a schedule may take, and still serve."""

RowPlan = tuple[Rows, Schedule]


def plans_by_rows(
    launches: Sequence[Launch], place: Callable[[Sequence[Launch], int], Schedule]
) -> list[RowPlan]:
    """Schedules of `launches` by ranges of rows, which are for every number of them; one where one will do.

    `place` makes a schedule of launches by what their options cost at a number of rows; it is asked for all
    numbers that options have costs for, and for one row where there are none. Of its schedules the fewest are
    taken of which, at each of these numbers, one takes at most a tenth longer than the best; where the range
    of one ends and that of the next begins is where the next is estimated to be no slower.
    """
    sizes = sorted({rows for launch in launches for o in launch.options for rows in o.costs})
    if not sizes:
        return [(ALL_ROWS, place(launches, 1))]
    found = _distinct([place([launch.at(rows) for launch in launches], rows) for rows in sizes])
    times = [[makespan(schedule, rows) for rows in sizes] for schedule in found]
    serves = _fewest(times)
    return _ranges([found[plan] for plan in serves], sizes)


def _distinct(schedules: Sequence[Schedule]) -> list[Schedule]:
    """Those that differ in what they choose or in where it goes."""
    known: dict[object, Schedule] = {}
    for schedule in schedules:
        options = tuple(launch.option for launch in schedule.launches)
        known.setdefault((options, tuple(schedule.appends)), schedule)
    return list(known.values())


def _fewest(times: Sequence[Sequence[float]]) -> list[int]:
    """Number of the schedule to take at each size, by `times[schedule][size]`: contiguous runs of sizes share
    one, as few schedules as serve all sizes, and of these the least time in all, by dynamic programming."""
    sizes = range(len(times[0]))
    least = [min(of_one[n] for of_one in times) or 1.0 for n in sizes]
    shares = [[of_one[n] / least[n] for n in sizes] for of_one in times]
    best: list[tuple[int, float, list[int]]] = [(0, 0.0, [])]
    for end in sizes:
        options: list[tuple[int, float, list[int]]] = []
        for start in range(end + 1):
            count, total, taken = best[start]
            for plan, of_one in enumerate(shares):
                run = of_one[start : end + 1]
                if max(run) <= AS_GOOD:
                    new = [*taken, *[plan] * len(run)]
                    options.append((count + 1, total + sum(run), new))
        best.append(min(options))
    return best[-1][2]


def _ranges(chosen: Sequence[Schedule], sizes: Sequence[int]) -> list[RowPlan]:
    """The schedule for each of `sizes` with the range of rows around it that it serves."""
    starts = [0]
    kept = [chosen[0]]
    for (size, schedule), (next_size, following) in pairwise(zip(sizes, chosen, strict=True)):
        if following is not schedule:
            starts.append(_border(schedule, following, size, next_size))
            kept.append(following)
    ends = [start - 1 for start in starts[1:]] + [NO_END]
    return list(zip(zip(starts, ends, strict=True), kept, strict=True))


def _border(few: Schedule, many: Schedule, low: int, high: int) -> int:
    """The fewest rows above `low`, and `high` at most, at which `many` takes no longer than `few`."""
    low += 1
    while low < high:
        middle = (low + high) // 2
        if makespan(many, middle) <= makespan(few, middle):
            high = middle
        else:
            low = middle + 1
    return low
