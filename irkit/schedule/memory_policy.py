"""One launch after another, in the order that needs the fewest bytes at once."""

from __future__ import annotations

from collections.abc import Sequence

from irkit.schedule.allotments import speedups
from irkit.schedule.dependences import dependences
from irkit.schedule.few_options import with_few_options
from irkit.schedule.footprint import Footprints
from irkit.schedule.memory_order import order_for_memory
from irkit.schedule.model import Append, Buffer, Launch, Schedule, VDevice
from irkit.schedule.wavefront import chosen
from irkit.schedule.waves import duration


def place_for_memory(
    buffers: Sequence[Buffer], launches: Sequence[Launch], device: VDevice
) -> Schedule:
    """The appends of `launches`, given in program order, without their waits: each a wave of its own, by the
    option and on as many vEUs as are fastest alone. `wait_in_line` gives them their waits.

    `notes`: "waves"; "estimate_ns", the policy's own estimate of the run time; "live_bytes", in use at once
    in this order, "given_live_bytes", in the one given, and whether it is shown that no order needs less,
    "live_bytes_least". Raises ScheduleError for a program that is not well formed.
    """
    launches = list(launches)
    feet = Footprints(buffers, [launch.as_one() for launch in launches])
    graph = dependences(feet)
    order = order_for_memory(buffers, launches, graph)
    alone = [speedup.alone for speedup in speedups(feet.buffers, launches, device)]
    allotments = with_few_options(launches, alone)
    if any(launch.options for launch in launches):
        launches = chosen(launches, allotments)
    appends = [
        Append(launch, 0, allotments[launch].veus, wave)
        for wave, launch in enumerate(order.launches)
    ]
    notes = {
        "waves": len(appends),
        "estimate_ns": sum(duration(launches[a.launch], a.veus) + device.wait_ns for a in appends),
        "live_bytes": order.peak,
        "given_live_bytes": order.given,
        "live_bytes_least": order.exact,
    }
    return Schedule(device, list(buffers), launches, appends, notes=notes)
