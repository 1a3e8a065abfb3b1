"""How many of a device's vEUs a schedule uses: no more than help.

On a GPU the vEUs of a program start together, at no cost. On a CPU each is a thread that has to be woken, and
what many of them signal to one another goes through one cache line: a network of microseconds is faster on
few cores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from irkit.schedule.makespan import makespan
from irkit.schedule.model import Schedule, VDevice

FEWEST = 2
"""What runs on one vEU needs no schedule of its own: any does in mode serial."""


def of_best_width(device: VDevice, place: Callable[[VDevice], Schedule], rows: int = 1) -> Schedule:
    """The schedule that `place` makes on all vEUs of `device`, or on half of them, a quarter, and so on: the
    last before it takes longer (`makespan`, the batch being `rows`)."""
    best = place(device)
    if device.kind != "cpu":
        return best
    veus, least = device.veus, makespan(best, rows)
    while veus > FEWEST:
        veus = -(-veus // 2)
        made = replace(place(replace(device, veus=veus)), device=device)
        time = makespan(made, rows)
        if time > least:
            break
        best, least = made, time
    return best
