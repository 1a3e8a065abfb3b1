"""What the schedules of one function for ranges of rows must agree on, which no proof of one of them sees."""

from __future__ import annotations

from collections.abc import Sequence

from irkit.row_ranges import ALL_ROWS, Rows, called, why_not_all
from irkit.schedule.block_memory import walker_bytes
from irkit.schedule.footprint import batched
from irkit.schedule.model import Schedule
from irkit.schedule.wellformed import reject


def check_together(function: str, plans: Sequence[tuple[Rows, Schedule]]) -> None:
    """Raise ScheduleError unless the schedules of a function are one program between them.

    Rule 'rows': in the order of the schedules, their ranges are for every number of rows, each once; a
    function without an open batch has one schedule, for any. Rule 'constant': every schedule has the same
    constants in the same places, so that they are there once. Rule 'shared': what the schedules plan fits
    beside the tables of one walker.
    """
    ranges = [rows for rows, _ in plans]
    schedules = [schedule for _, schedule in plans]
    reason = why_not_all(ranges)
    if reason is not None:
        reject("rows", f"of the schedules of @{function}, {reason}")
    if ranges != [ALL_ROWS] and not any(map(batched, schedules[0].buffers)):
        reject("rows", f"@{function} has no open batch, but schedules for ranges of rows")
    for rows, schedule in plans[1:]:
        if _constants(schedule) != _constants(schedules[0]):
            reject(
                "constant",
                f"the schedule of @{function} for {called(rows)} has other constants, or has them in other "
                f"places, than that for {called(ranges[0])}",
            )
    device = schedules[0].device
    planned = max(schedule.shared_bytes for schedule in schedules)
    needed = planned + walker_bytes(*schedules)
    if device.kind == "cuda" and needed > device.shared_bytes:
        reject(
            "shared",
            f"the schedules of @{function} need {needed} bytes with one walker, a vEU has "
            f"{device.shared_bytes} bytes on '{device.name}'",
        )


def _constants(schedule: Schedule) -> tuple[int, set[tuple[str | None, int | None, int]]]:
    """Bytes of all constants; name, place and size of each."""
    found = (b for b in schedule.buffers if b.space == "constant" and b.parent is None)
    return schedule.constant_bytes, {(b.source, b.offset, b.nbytes) for b in found}
