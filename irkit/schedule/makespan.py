"""How long a schedule is expected to take, by what its rTasks and waits cost."""

from __future__ import annotations

import numpy as np

from irkit.schedule.model import Launch, Schedule


def rtask_ns(launch: Launch, rows: int) -> float:
    """What an rTask of a launch takes where the batch is so many rows."""
    return launch.options[launch.option].at(rows).cost_ns if launch.options else launch.cost_ns


def _signals(schedule: Schedule, append: int) -> int:
    return schedule.launches[schedule.appends[append].launch].tasks


def makespan(schedule: Schedule, rows: int) -> float:
    """Nanoseconds until the last rTask has ended, in mode persistent, the batch being `rows`.

    Every vEU does its appends in list order; an append begins where those that it waits for have ended, and
    the device's wait has passed, and the signals of all their rTasks. On a CPU each vEU beside the first is
    woken.
    """
    device = schedule.device
    signal, wake = (device.rates.get(name, 0.0) for name in ("signal", "wake"))
    used = max((append.first_veu + append.veus for append in schedule.appends), default=1)
    free = np.full(device.veus, wake * (used - 1))
    ended: list[float] = []
    for append in schedule.appends:
        launch = schedule.launches[append.launch]
        lanes = slice(append.first_veu, append.first_veu + append.veus)
        waited = (ended[w] + signal * _signals(schedule, w) for w in append.waits)
        start = max(waited, default=-device.wait_ns) + device.wait_ns
        turns = -(-(launch.tasks - np.arange(append.veus)) // append.veus)
        free[lanes] = np.maximum(free[lanes], start) + turns * rtask_ns(launch, rows)
        ended.append(float(free[lanes].max()))
    return max(ended, default=0.0)
