"""What is done, and said, when a device fails while launches are under way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from irkit.dags.device import DagDevice
from irkit.dags.steps import Step
from irkit.dags.works import Copy
from irkit.errors import DeviceError
from irkit.schedule.host.model import HostTask

TOLD = 6
"""So many tasks are named where nobody knows which one failed."""


def drain(device: DagDevice, streams: Sequence[Any]) -> None:
    """Wait for what is in streams: memory that it uses may be given back then. A stream that cannot be waited
    for does nothing more, and others may."""
    for stream in streams:
        try:
            device.synchronize(device.record(stream))
        except DeviceError:
            continue


def failed(
    error: DeviceError,
    doing: Step | None,
    steps: Sequence[Step],
    begun: Sequence[Step],
    whole: bool = True,
) -> DeviceError:
    """The error that is raised: it names what was being started, else `steps`, which were to be done; and
    what may be written by `begun`, which were started, and if `whole` are all that were."""
    where = (
        named(doing.task) if doing is not None else f"a run of {names_of([s.task for s in steps])}"
    )
    return DeviceError(f"{where}: {error}; {in_part(begun, whole)}")


def in_part(begun: Sequence[Step], whole: bool = True) -> str:
    """What may have happened to arrays of the user's by steps that were started."""
    written = sorted(set(_written(begun)))
    if not written:
        return "no array was written" if whole else "no array is written in part"
    return f"these arrays may be written in part: {', '.join(written)}"


def _written(begun: Sequence[Step]) -> Iterator[str]:
    # A kernel writes the device's part of a host array; the array itself, a copy home does.
    home = {span: step for step in begun if (span := _home(step)) is not None}
    told: set[tuple[int, int]] = set()
    for step in begun:
        direct = step.task.on_host or isinstance(step.work, Copy)
        if not (step.used or direct):
            # Of a launch whose like came before no more is kept than what it touches.
            yield from (f"{u.name} of {named(step.task)}" for u in step.task.uses if u.writes)
        for use in step.used:
            low, high = use.located.region().hull
            copied = {(a, b) for a, b in home if a < high and low < b}
            if use.writes and (direct or use.located.space == "device" or copied):
                told |= copied
                yield f"{use.name} of {named(step.task)}"
    for span in home.keys() - told:
        # Of a kernel that has ended.
        yield f"the array of {named(home[span].task)}"


def _home(step: Step) -> tuple[int, int] | None:
    """The bytes of a host array that a step copies home."""
    work = step.work
    if not isinstance(work, Copy) or work.kind != "to_host" or work.keeps:
        return None
    return work.target, work.target + work.nbytes


def named(task: HostTask) -> str:
    """A task, and the user's line."""
    return f"'{task.name}'" + (f" ({task.origin})" if task.origin else "")


def names_of(tasks: Sequence[HostTask]) -> str:
    """What was to be done: copies go without saying."""
    found = [t for t in tasks if t.kind not in ("to_device", "to_host")] or tasks
    names = list(dict.fromkeys(map(named, found)))
    more = [f"{len(names) - TOLD} more"] if len(names) > TOLD else []
    return ", ".join(names[:TOLD] + more) or "nothing"
