"""Programs with calls and loops on a CPU: a call is one job of each vEU, which walks all steps itself."""

from __future__ import annotations

import numpy as np

from irkit.errors import DeviceError
from irkit.runtime.intrinsics.cpu_team import CALL, JOB, JOB_WORDS, STEPS
from irkit.runtime.veu_team import numbers_of, veu_team
from irkit.runtime.workspace import Jobs, Workspace
from irkit.schedule.modes import Mode
from irkit.schedule.step_tables import StepTables, step_tables
from irkit.schedule.tables import HEADER, ProgramTables
from irkit.weights import Array

_LINE = 8
"""Words of a cache line: counters of several vEUs are so far apart."""


class StepJobs:
    """The jobs of one workspace in one mode, with all that they point to."""

    def __init__(
        self, space: Workspace, tables: ProgramTables, steps: StepTables, records: Array
    ) -> None:
        self.steps, self.epoch = steps, 0
        self.busy = numbers_of(steps.busy)
        self._space = space
        self._words = np.zeros((len(space.addresses), JOB_WORDS), dtype=np.int64)
        # Bases move, and each vEU moves its own.
        self._bases = np.zeros((len(space.addresses), len(space.bases)), dtype=np.int64)
        self._meeting = np.zeros(_LINE, dtype=np.int64)
        self._counters = np.zeros_like(space.counters)
        self._own: list[Array] = []
        for veu, address in enumerate(space.addresses):
            ranges = np.ascontiguousarray(steps.ranges[:, veu])
            local = np.zeros(steps.depth + len(steps.code) + 1, dtype=np.int64)
            own = np.array(
                [
                    *(steps.code.ctypes.data, len(steps.code), ranges.ctypes.data),
                    *(steps.moves.ctypes.data, steps.depth, len(self.busy.values)),
                    *(self._meeting.ctypes.data, local.ctypes.data),
                ],
                dtype=np.int64,
            )
            assert len(own) == len(STEPS)
            self._own += [ranges, local, own]
            self._words[veu, : len(JOB)] = [
                *(records.ctypes.data, records.shape[1], HEADER + 2 * tables.max_waits, 0, 0),
                *(self._bases[veu].ctypes.data, self._counters.ctypes.data, 0, 0, 0),
                *(address.ctypes.data, address.size - 1, 0, own.ctypes.data),
            ]
        values = self._words.reshape(-1).data
        self.jobs = Jobs(self._words, self._words.ctypes.data, values)

    def begin(self, rows: int, padded: int) -> Jobs:
        """The jobs of the next call, on the arrays that are bound to the workspace."""
        self.epoch += 1
        self._bases[:] = self._space.bases
        self._words[:, CALL] = self.epoch, rows, padded
        return self.jobs


class StepRunner:
    """What a program with steps needs beside its tables: those of its steps, by mode."""

    def __init__(
        self, tables: ProgramTables, records: Array, unwaited: Array, serial: Array
    ) -> None:
        self._tables = tables
        self._records = {
            Mode.SERIAL: serial,
            Mode.PER_OP: serial,
            Mode.PER_WAVE: unwaited,
            Mode.PERSISTENT: records,
        }
        self._steps: dict[Mode, StepTables] = {}

    def run(self, space: Workspace, mode: Mode, rows: int, padded: int) -> None:
        """All runs and loops of a call, on the arrays that are bound to its workspace. Raises DeviceError
        where they did not come to their end."""
        jobs, team = self._jobs(space, mode), veu_team()
        words, busy = jobs.begin(rows, padded), jobs.busy
        alone = len(busy.values) == 1
        done = team.run_alone(words, busy.values[0]) if alone else team.run(words, busy)
        total = jobs.steps.total
        if done < 0 or (total is not None and done != total):
            raise DeviceError("a vEU gave up waiting: the program did not finish")

    def _jobs(self, space: Workspace, mode: Mode) -> StepJobs:
        """The jobs of a workspace in a mode."""
        found = space.step_jobs.get(mode)
        if found is None:
            if mode not in self._steps:
                self._steps[mode] = step_tables(space.program, mode)
            found = StepJobs(space, self._tables, self._steps[mode], self._records[mode])
            space.step_jobs[mode] = found
        assert isinstance(found, StepJobs)
        return found
