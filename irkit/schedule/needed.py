"""Which appends each output of a program hangs on: a call that wants one output runs these alone."""

from __future__ import annotations

from collections.abc import Sequence

from irkit.schedule.model import Buffer, Schedule

MOST_OUTPUTS = 64
"""A program of more says nothing: nobody asks for one of a thousand gradients, and what each of them hangs on
grows with the square of the layers."""


def needed_appends(schedule: Schedule) -> tuple[tuple[int, ...], ...]:
    """Per output, the numbers of the appends that it hangs on; nothing where each hangs on all of them, or
    where there are more than `MOST_OUTPUTS`.

    An append that writes to a buffer, in part or in place, hangs on what was there. What lasts from run to
    run hangs on every append that changes it, so a program with state says nothing.
    """
    buffers = schedule.buffers
    if any(b.space == "state" for b in buffers):
        return ()
    ports = {
        b.port or 0: n for n, b in enumerate(buffers) if b.space == "output" and b.parent is None
    }
    if len(ports) > MOST_OUTPUTS:
        return ()
    found = tuple(_behind(schedule, ports[port]) for port in sorted(ports))
    return () if all(len(f) == len(schedule.appends) for f in found) else found


def _behind(schedule: Schedule, output: int) -> tuple[int, ...]:
    wanted, found = {output}, list[int]()
    for number in reversed(range(len(schedule.appends))):
        launch = schedule.launches[schedule.appends[number].launch]
        writes = {_root(schedule.buffers, a.buffer) for a in launch.writes}
        if writes.isdisjoint(wanted):
            continue
        wanted |= writes
        wanted.update(_root(schedule.buffers, a.buffer) for a in launch.reads)
        found.append(number)
    return tuple(reversed(found))


def _root(buffers: Sequence[Buffer], number: int) -> int:
    """The buffer whose bytes a view shares."""
    while (parent := buffers[number].parent) is not None:
        number = parent
    return number
