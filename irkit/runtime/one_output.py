"""The records of a CPU program that a call walks: all, or those that one output hangs on."""

from __future__ import annotations

import itertools

import numpy as np

from irkit.runtime.mode_choice import Auto
from irkit.runtime.veu_team import Ranges, ranges_of
from irkit.schedule.tables import Program, Table

_APPEND = 5
"""The word of a record that is the number of its append."""


class Walked:
    """Records in the order of the program, those with work for one row, and those of each vEU without waits,
    of which `wave_begin` says where each wave begins. `waves` are their ranges, but for waves of none."""

    def __init__(self, serial: Table, one_row: Table, unwaited: Table, wave_begin: Table) -> None:
        self.auto: Auto | None = None
        self.serial, self.one_row, self.unwaited = serial, one_row, unwaited
        self._wave_begin = wave_begin
        cut = itertools.pairwise(wave_begin.tolist())
        found = [ranges_of(list(zip(*wave, strict=True))) for wave in cut]
        self.waves: list[Ranges] = [ranges for ranges in found if ranges.total]

    def of(self, appends: tuple[int, ...]) -> Walked:
        """Those of some appends."""
        kept = np.isin(self.unwaited[:, _APPEND], appends)
        before = np.concatenate([[0], np.cumsum(kept)])
        serial, one_row = (t[np.isin(t[:, _APPEND], appends)] for t in (self.serial, self.one_row))
        return Walked(serial, one_row, self.unwaited[kept], before[self._wave_begin])


def parts_of(everything: Walked, program: Program, auto: Auto) -> dict[int | None, Walked]:
    """What each output hangs on, of those that do not hang on all."""
    found: dict[int | None, Walked] = {}
    for number, appends in enumerate(() if program.steps else program.needed):
        if len(appends) < len(program.appends):
            found[number] = everything.of(appends)
            found[number].auto = auto.of_part()
    return found


def with_addresses(records: Table, addresses: Table) -> Table:
    """`records` with each rKernel's number replaced by its address."""
    found = records.copy()
    found[:, 0] = addresses[records[:, 0]]
    return found
