"""Rammer's wavefront policy: layer, split, lay side by side on contiguous vEU ranges, go on."""

from __future__ import annotations

from collections.abc import Sequence

from irkit.schedule.dependences import critical_path, dependences
from irkit.schedule.footprint import Footprints
from irkit.schedule.model import Append, Buffer, Launch, Schedule, VDevice
from irkit.schedule.placement import Placer
from irkit.schedule.waits import derive_waits
from irkit.schedule.waves import duration, form_waves


def schedule_wavefront(
    buffers: Sequence[Buffer], launches: Sequence[Launch], device: VDevice
) -> Schedule:
    """A schedule of `launches`, given in program order, with its waits; memory is not planned yet.

    Launches of one wave do not depend on each other. Each takes min(tasks, vEUs) vEUs, or a share of
    the device when a layer is wider than the device and sharing ends it sooner. Launches that read the
    same constants by equal boxes keep their vEUs, so that the constants can stay there.

    `notes`: "waves", and "estimate_ns", the policy's own estimate of the run time.
    Raises ScheduleError for a program that is not well formed.
    """
    launches = list(launches)
    feet = Footprints(buffers, launches)
    graph = dependences(feet)
    durations = [duration(n, min(n.tasks, device.veus)) for n in launches]
    urgency = critical_path(graph, durations)
    waves = form_waves(graph, launches, urgency, device)
    placer = Placer(feet, graph, device)
    appends: list[Append] = []
    for wave, members in enumerate(waves.members):
        # Those with a home first: the others then see which vEUs are left.
        for launch in sorted(members, key=lambda n: not placer.has_home(n)):
            where = placer.place(launch, waves.widths[launch])
            appends.append(Append(launch, where.first, where.veus, wave))
    notes = {"waves": len(waves.members), "estimate_ns": placer.makespan()}
    return derive_waits(Schedule(device, list(buffers), launches, appends, notes=notes), feet)
