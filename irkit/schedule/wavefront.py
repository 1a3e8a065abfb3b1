"""Rammer's wavefront policy: layer, choose and split, lay side by side on contiguous vEU ranges, go on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irkit.schedule.allotments import Allotment, Speedup, speedups
from irkit.schedule.dependences import Dependences, critical_path, dependences
from irkit.schedule.few_options import with_few_options
from irkit.schedule.footprint import Footprints
from irkit.schedule.model import Append, Buffer, Launch, Schedule, VDevice
from irkit.schedule.nearness import Nearness
from irkit.schedule.placement import Placer
from irkit.schedule.stationary import keep_still
from irkit.schedule.waits import derive_waits
from irkit.schedule.waves import Company, duration, fill_waves, layers


def schedule_wavefront(
    buffers: Sequence[Buffer], launches: Sequence[Launch], device: VDevice
) -> Schedule:
    """A schedule of `launches`, given in program order, with its waits; memory is not planned yet.

    Raises ScheduleError for a program that is not well formed.
    """
    return derive_waits(place_wavefront(buffers, launches, device))


def place_wavefront(
    buffers: Sequence[Buffer], launches: Sequence[Launch], device: VDevice
) -> Schedule:
    """The appends of `launches`, given in program order, without their waits.

    Launches of one wave do not depend on each other. Each is run by the option, and on as many vEUs, with
    which its layer ends soonest: what is fastest alone is often not the best in company (L. Ma et al.,
    Rammer: Enabling Holistic Deep Learning Compiler Optimizations with rTasks, OSDI 2020, figure 17).
    Launches that read the same constants keep one option and their vEUs, so that the constants can stay.

    `notes`: "waves", and "estimate_ns", the policy's own estimate of the run time.
    Raises ScheduleError for a program that is not well formed.
    """
    launches = list(launches)
    feet = Footprints(buffers, [launch.as_one() for launch in launches])
    graph = dependences(feet)
    found = in_layers(graph, feet, launches, device)
    allotments = with_few_options(launches, found.allotments)
    waves = fill_waves(graph, found.layers, allotments, device.veus)
    if any(launch.options for launch in launches):
        launches = chosen(launches, allotments)
        feet = Footprints(buffers, launches)
        graph = dependences(feet)
    placer = Placer(feet, graph, device)
    appends: list[Append] = []
    for wave, members in enumerate(waves.members):
        # Those with a home first: the others then see which vEUs are left.
        for launch in sorted(members, key=lambda n: not placer.has_home(n)):
            where = placer.place(launch, waves.allotments[launch].veus)
            appends.append(Append(launch, where.first, where.veus, wave))
    notes = {"waves": len(waves.members), "estimate_ns": placer.makespan()}
    return Schedule(device, list(buffers), launches, appends, notes=notes)


@dataclass(frozen=True)
class Layered:
    """A program in layers, each of the most urgent launches first; what each launch takes on ever more vEUs,
    how long the chain is that it heads, in ns, and what it gets in the company of its layer."""

    layers: list[list[int]]
    speedups: list[Speedup]
    urgency: list[float]
    allotments: list[Allotment]


def in_layers(
    graph: Dependences, feet: Footprints, launches: list[Launch], device: VDevice
) -> Layered:
    """Layer the program once, and choose in each layer; what reads the same constants is kept alike."""
    layered = layers(graph)
    depth = {n: level for level, members in enumerate(layered) for n in members}
    nearness = Nearness(launches, graph, [depth[n] for n in range(len(launches))])
    # On a CPU a wait is short, and each vEU more is a thread to be woken.
    near = None if device.kind == "cpu" else nearness.near
    found = speedups(feet.buffers, launches, device, near)
    alone = [_alone(launch, speedup) for launch, speedup in zip(launches, found, strict=True)]
    urgency = critical_path(graph, alone)
    layered = [sorted(layer, key=lambda n: (-urgency[n], n)) for layer in layered]
    company = Company(device)

    def allot(found: list[Speedup]) -> list[Allotment]:
        made = dict[int, Allotment]()
        for layer in layered:
            made.update(zip(layer, company.allot([found[n] for n in layer]), strict=True))
        return [made[n] for n in range(len(found))]

    fixed = keep_still(feet, launches, found, allot(found), device)
    return Layered(layered, fixed, urgency, allot(fixed))


def chosen(launches: Sequence[Launch], allotments: Sequence[Allotment]) -> list[Launch]:
    """Launches as the options that they are allotted."""
    return [
        launch.choose(found.option) if launch.options else launch
        for launch, found in zip(launches, allotments, strict=True)
    ]


def _alone(launch: Launch, speedup: Speedup) -> float:
    """Time of a launch that has the device to itself, in ns; what has to wait for it does not count."""
    best = speedup.alone
    return duration(launch.options[best.option] if launch.options else launch, best.veus)
