"""Rule 'shared' of schedules in loops: what a block keeps beside the rTasks fits, and no run finds another's
residents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from irkit.schedule.block_memory import BlockMemory
from irkit.schedule.composite import Composite, Run, Step, While, runs_of
from irkit.schedule.model import Schedule, VDevice
from irkit.schedule.step_tables import Shape, places_of_steps
from irkit.schedule.tables import FIRST_INPUT
from irkit.schedule.wellformed import reject


def check_blocks(composite: Composite, schedules: Mapping[str, Schedule], device: VDevice) -> None:
    """Raises ScheduleError unless the programs of a composite can take turns on the vEUs of `device`.

    `schedules` are the programs, by name, each proved by itself.
    """
    ran = {run.program: schedules[run.program] for run in runs_of(composite.steps)}
    for name, schedule in ran.items():
        if any(append.residents for append in schedule.appends):
            reject("shared", f"@{name} keeps operands in memory in which other programs run too")
        # A run's number is that of the call, not of the turn.
        if any(append.carried for append in schedule.appends):
            reject("carried", f"@{name} runs in turns, and carries operands")
    if device.kind != "cuda":
        return
    if _asks(composite.steps):
        reject(
            "device", f"a loop whose turns data decide, on '{device.name}': blocks ask for nothing"
        )
    needed = block_memory(composite, list(ran.values())).nbytes
    if needed > device.shared_bytes:
        reject(
            "shared",
            f"a block needs {needed} bytes for rTasks and the tables of all steps, a vEU of "
            f"'{device.name}' has {device.shared_bytes}",
        )


def block_memory(composite: Composite, schedules: Sequence[Schedule]) -> BlockMemory:
    """Where things lie in the shared memory of a block that runs a composite of these programs."""
    ports = sum(buffer.space != "arena" for buffer in composite.buffers)
    moving = sum(
        any(window.steps)
        for run in runs_of(composite.steps)
        for window in (*run.reads, *run.writes, *run.state)
    )
    waits = (len(append.waits) for s in schedules for append in s.appends)
    operands = (len(launch.reads) + len(launch.writes) for s in schedules for launch in s.launches)
    return BlockMemory(
        FIRST_INPUT + ports + moving,
        max(waits, default=0),
        max(operands, default=0),
        max((s.shared_bytes for s in schedules), default=0),
        places_of_steps([_shape(step) for step in composite.steps], moving).words,
    )


def _asks(steps: Sequence[Step]) -> bool:
    loops = [step for step in steps if not isinstance(step, Run)]
    return any(isinstance(loop, While) or _asks(loop.steps) for loop in loops)


def _shape(step: Step) -> Shape:
    assert not isinstance(step, While)
    return None if isinstance(step, Run) else (step.trips, tuple(map(_shape, step.steps)))
