"""Whether the numbers in a schedule name things that exist; every other analysis relies on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from irkit.errors import ScheduleError
from irkit.schedule.model import Launch, Schedule


def reject(rule: str, message: str) -> NoReturn:
    """Raise the ScheduleError of `rule`; all analyses report through here."""
    raise ScheduleError(f"schedule violates rule '{rule}': {message}")


def describe(schedule: Schedule, append: int, task: int | None = None) -> str:
    """How messages call an append or one of its rTasks: number, launch, rTask, vEU."""
    entry = schedule.appends[append]
    name = f"append {append} ('{schedule.launches[entry.launch].name}')"
    if task is None:
        return name
    return f"{name} rTask {task} on vEU {entry.veu_of(task)}"


def check_launches(launches: Sequence[Launch]) -> None:
    """Every launch has at least one rTask and no negative figures."""
    for launch in launches:
        if launch.tasks < 1:
            reject("launch", f"'{launch.name}' has {launch.tasks} rTasks, expected at least 1")
        if launch.scratch_bytes < 0 or launch.cost_ns < 0:
            reject("launch", f"'{launch.name}' has a negative cost or scratch size")


def check_appends(schedule: Schedule) -> None:
    """Every append names a launch, vEUs of the device, and appends that exist."""
    check_launches(schedule.launches)
    veus, count = schedule.device.veus, len(schedule.appends)
    for number, append in enumerate(schedule.appends):
        if not 0 <= append.launch < len(schedule.launches):
            reject("launch", f"append {number} names launch {append.launch}, which does not exist")
        last = append.first_veu + append.veus - 1
        if append.veus < 1 or append.first_veu < 0 or last >= veus:
            reject(
                "placement",
                f"{describe(schedule, number)} is placed on vEUs {append.first_veu}..{last}, "
                f"but '{schedule.device.name}' has vEUs 0..{veus - 1}",
            )
        strange = [wait for wait in append.waits if not 0 <= wait < count]
        if strange:
            reject("wait", f"{describe(schedule, number)} waits for append {strange[0]}, not there")


def check_device(schedule: Schedule) -> None:
    """On a GPU, a vEU is a block of whole warps, two or more, and a multiprocessor of its own."""
    device = schedule.device
    if device.kind != "cuda":
        return
    if device.threads % 32 or not 64 <= device.threads <= 1024:
        reject(
            "device",
            f"blocks of {device.threads} threads on '{device.name}': the walkers need whole warps, 2 to 32",
        )
    if device.shared_bytes > device.architecture.shared_bytes:
        reject(
            "device",
            f"{device.shared_bytes} bytes of shared memory on '{device.name}': a block of {device.arch} "
            f"has {device.architecture.shared_bytes} or fewer",
        )
    if device.veus > device.multiprocessors:
        reject(
            "device",
            f"{device.veus} vEUs on '{device.name}', whose {device.multiprocessors} multiprocessors "
            "hold one block each",
        )


def check_once(schedule: Schedule) -> None:
    """Every launch is appended exactly once."""
    seen: dict[int, int] = {}
    for number, append in enumerate(schedule.appends):
        if append.launch in seen:
            reject(
                "once",
                f"launch '{schedule.launches[append.launch].name}' is appended twice, "
                f"as appends {seen[append.launch]} and {number}",
            )
        seen[append.launch] = number
    for index, launch in enumerate(schedule.launches):
        if index not in seen:
            reject("once", f"launch '{launch.name}' is never appended")
