"""Ten recurrent layers, 100 steps, 13 rTasks per cell, on an H200: the case for a static schedule.

Nothing in the scheduler knows of recurrence. It must find that a layer's 13 rTasks read the same
weights at each step, keep them on the same 13 vEUs, and keep the weights there.
"""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from schedule_toys import cut, whole

from irkit.errors import ScheduleError
from irkit.schedule.devices import device
from irkit.schedule.model import Access, Buffer, Launch, Resident, Schedule
from irkit.schedule.planner import plan_memory
from irkit.schedule.residents import pin_residents
from irkit.schedule.verifier import verify_schedule
from irkit.schedule.wavefront import schedule_wavefront

LAYERS, STEPS, HIDDEN, TASKS = 10, 100, 256, 13


class Recurrent:
    """Cells c(layer, step) that read two weights, the layer below and their own last state."""

    def __init__(self) -> None:
        self.buffers = [Buffer("x", "input", (STEPS, HIDDEN), 4)]
        self.launches: list[Launch] = []
        parts = cut(HIDDEN, TASKS)
        self._own = np.array([[(0, 1), part] for part in parts], np.int64)
        self._rows = np.array([[part, (0, 4), (0, 256)] for part in parts], np.int64)
        weights = [self._add(f"w{n}", "constant", (HIDDEN, 4, 256)) for n in range(2 * LAYERS)]
        hidden: dict[tuple[int, int], int] = {}
        state: dict[int, int] = {}
        for step in range(STEPS):
            for layer in range(LAYERS):
                reads = [Access(w, self._rows) for w in weights[2 * layer : 2 * layer + 2]]
                reads.append(self._below(hidden, layer, step))
                if step:
                    reads.append(Access(hidden[layer, step - 1], whole((1, HIDDEN), TASKS)))
                    reads.append(Access(state[layer], self._own))
                last = (layer, step) == (LAYERS - 1, STEPS - 1)
                hidden[layer, step] = self._add("h", "output" if last else "arena", (1, HIDDEN))
                state[layer] = self._add("c", "arena", (1, HIDDEN))
                writes = (Access(hidden[layer, step], self._own), Access(state[layer], self._own))
                self.launches.append(
                    Launch(f"{layer}.{step}", "cell", TASKS, tuple(reads), writes, 3000.0, 4096)
                )

    def _add(self, name: str, space: str, shape: tuple[int, ...]) -> int:
        self.buffers.append(Buffer(f"{name}{len(self.buffers)}", space, shape, 4))
        return len(self.buffers) - 1

    def _below(self, hidden: dict[tuple[int, int], int], layer: int, step: int) -> Access:
        if layer:
            return Access(hidden[layer - 1, step], whole((1, HIDDEN), TASKS))
        return Access(0, np.array([[(step, step + 1), (0, HIDDEN)]] * TASKS, np.int64))


@pytest.fixture(scope="module")
def compiled() -> tuple[Schedule, dict[str, float]]:
    program, seconds = Recurrent(), {}

    def timed(name, function, *arguments):
        start = time.process_time()
        result = function(*arguments)
        seconds[name] = time.process_time() - start
        return result

    args = (program.buffers, program.launches, device("h200"))
    schedule = timed("schedule-wavefront", schedule_wavefront, *args)
    schedule = timed("pin-residents", pin_residents, schedule)
    schedule = timed("plan-memory", plan_memory, schedule)
    timed("verify-schedule", verify_schedule, schedule)
    print({name: f"{value:.2f} s" for name, value in seconds.items()}, schedule.notes)
    return schedule, seconds


def test_each_layer_keeps_its_veus(compiled) -> None:
    schedule, _ = compiled
    used: dict[str, set[tuple[int, int]]] = {}
    for append in schedule.appends:
        layer = schedule.launches[append.launch].name.split(".")[0]
        used.setdefault(layer, set()).add((append.first_veu, append.veus))
    assert [used[str(layer)] for layer in range(LAYERS)] == [
        {(13 * layer, 13)} for layer in range(LAYERS)
    ]
    assert schedule.notes["waves"] == LAYERS + STEPS - 1


def test_each_cell_waits_for_the_two_it_reads(compiled) -> None:
    schedule, _ = compiled
    for append in schedule.appends:
        layer, step = map(int, schedule.launches[append.launch].name.split("."))
        names = {schedule.launches[schedule.appends[w].launch].name for w in append.waits}
        wanted = {(layer - 1, step), (layer, step - 1)}
        assert names == {f"{a}.{b}" for a, b in wanted if a >= 0 and b >= 0}


def test_all_weights_are_resident(compiled) -> None:
    """Two constants of 80 KB per vEU, 160 KB of the 224 there."""
    schedule, _ = compiled
    wanted = (Resident(0, 0), Resident(1, 80 * 1024))
    assert {append.residents for append in schedule.appends} == {wanted}
    assert schedule.notes["resident_bytes"] == 160 * 1024


def test_the_arena_is_as_small_as_the_order_allows(compiled) -> None:
    schedule, _ = compiled
    assert schedule.notes["arena_ratio"] == 1.0
    assert schedule.arena_bytes < sum(b.nbytes for b in schedule.buffers if b.space == "arena") / 12


def test_it_is_quick(compiled) -> None:
    _, seconds = compiled
    assert seconds["verify-schedule"] < 5.0
    assert seconds["plan-memory"] < 5.0
    assert seconds["schedule-wavefront"] < 5.0


def test_a_missing_wait_is_found(compiled) -> None:
    schedule, _ = compiled
    append = schedule.appends[777]
    for wait in append.waits:
        appends = list(schedule.appends)
        appends[777] = replace(append, waits=tuple(w for w in append.waits if w != wait))
        with pytest.raises(ScheduleError, match="rule 'race'"):
            verify_schedule(replace(schedule, appends=appends))
