"""Random programs: what the passes make is accepted and right; mutants that go wrong are rejected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from schedule_toys import RandomProgram, goes_wrong, sequential

from irkit.errors import ScheduleError
from irkit.schedule.devices import device
from irkit.schedule.model import Access, Append, Schedule
from irkit.schedule.planner import plan_memory
from irkit.schedule.residents import pin_residents
from irkit.schedule.verifier import verify_schedule
from irkit.schedule.waits import derive_waits
from irkit.schedule.wavefront import schedule_wavefront


def compiled(seed: int, launches: int) -> Schedule:
    program = RandomProgram(seed, launches)
    placed = schedule_wavefront(program.buffers, program.launches, device("test4"))
    return plan_memory(pin_residents(placed))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 8))
def test_random_programs_are_proved_and_right(seed: int, launches: int) -> None:
    schedule = compiled(seed, launches)
    verify_schedule(schedule)
    assert not goes_wrong(schedule, sequential(schedule), tries=6)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.randoms(use_true_random=False))
def test_any_placement_becomes_right_with_derived_waits(seed: int, random) -> None:
    """The waits do not rely on the policy: vEU ranges here are arbitrary."""
    program = RandomProgram(seed, 5)
    appends = []
    for number in range(len(program.launches)):
        first = random.randrange(4)
        appends.append(Append(number, first, random.randint(1, 4 - first)))
    placed = Schedule(device("test4"), program.buffers, program.launches, appends)
    schedule = plan_memory(derive_waits(placed))
    verify_schedule(schedule)
    assert not goes_wrong(schedule, sequential(schedule), tries=6)


def without_a_wait(schedule: Schedule) -> Iterator[Schedule]:
    for number, append in enumerate(schedule.appends):
        for wait in append.waits:
            waits = tuple(w for w in append.waits if w != wait)
            yield edited(schedule, {number: replace(append, waits=waits)})


def swapped(schedule: Schedule, follow: bool) -> Iterator[Schedule]:
    """Neighbours swapped; with `follow`, waits still name the same launches as before."""
    for number in range(len(schedule.appends) - 1):
        appends = list(schedule.appends)
        appends[number : number + 2] = reversed(appends[number : number + 2])
        moved = {number: number + 1, number + 1: number}
        if follow:
            appends = [
                replace(a, waits=tuple(sorted(moved.get(w, w) for w in a.waits))) for a in appends
            ]
        yield replace(schedule, appends=appends)


def overlapped(schedule: Schedule) -> Iterator[Schedule]:
    planned = [
        i for i, b in enumerate(schedule.buffers) if b.offset is not None and b.parent is None
    ]
    for i in planned:
        for j in planned:
            one, other = schedule.buffers[i], schedule.buffers[j]
            if one.space != other.space or one.offset == other.offset:
                continue
            buffers = list(schedule.buffers)
            buffers[i] = replace(one, offset=other.offset)
            size = buffers[i].offset + one.nbytes
            for k, view in enumerate(buffers):
                if view.parent == i:
                    buffers[k] = replace(view, offset=None)
            grown = max(schedule.arena_bytes, size), max(schedule.row_bytes, size)
            yield replace(schedule, buffers=buffers, arena_bytes=grown[0], row_bytes=grown[1])


def moved(schedule: Schedule) -> Iterator[Schedule]:
    for number, append in enumerate(schedule.appends):
        for first in range(schedule.device.veus - append.veus + 1):
            if first != append.first_veu:
                yield edited(schedule, {number: replace(append, first_veu=first)})


def reordered_waits(schedule: Schedule) -> Iterator[Schedule]:
    """A wait on a later append in place of an earlier one."""
    for number, append in enumerate(schedule.appends):
        if append.waits and number + 1 < len(schedule.appends):
            yield edited(schedule, {number: replace(append, waits=(number + 1,))})


def edited(schedule: Schedule, changes: dict[int, Append]) -> Schedule:
    return replace(schedule, appends=[changes.get(n, a) for n, a in enumerate(schedule.appends)])


def shrunk(schedule: Schedule) -> Iterator[Schedule]:
    """One rTask writes a row or column less than it did: a wrong program rather than a wrong order."""
    for number, launch in enumerate(schedule.launches):
        access = launch.writes[0]
        for task in range(launch.tasks):
            for axis in range(access.boxes.shape[1]):
                boxes = access.boxes.copy()
                boxes[task, axis, 1] = max(boxes[task, axis, 0], boxes[task, axis, 1] - 1)
                launches = list(schedule.launches)
                launches[number] = replace(launch, writes=(Access(access.buffer, boxes),))
                yield replace(schedule, launches=launches)


MUTATIONS = {
    "wait removed": without_a_wait,
    "appends swapped": lambda s: swapped(s, follow=False),
    "appends swapped, waits following": lambda s: swapped(s, follow=True),
    "offsets overlapped": overlapped,
    "append moved": moved,
    "wait reversed": reordered_waits,
    "write shrunk": shrunk,
}


@pytest.mark.parametrize("kind", MUTATIONS)
def test_no_mutant_that_goes_wrong_is_accepted(kind: str) -> None:
    """The judge runs each accepted mutant; and a fair part of the mutants must not be accepted."""
    count: Counter[str] = Counter()
    for seed in range(24 if kind in ("wait removed", "offsets overlapped") else 12):
        schedule = compiled(seed, launches=1 + seed % 6)
        for mutant in MUTATIONS[kind](schedule):
            try:
                verify_schedule(mutant)
            except ScheduleError:
                count["rejected"] += 1
                continue
            count["accepted"] += 1
            assert not goes_wrong(mutant, sequential(mutant), tries=8), (seed, mutant.appends)
    assert count["rejected"] >= 5
    if kind == "wait removed":  # derived waits are all needed
        assert count["accepted"] == 0


def test_the_judge_finds_what_a_missing_wait_breaks() -> None:
    """The judge itself must be able to fail: most removed waits change some interleaving's answer."""
    wrong = total = 0
    for seed in range(10):
        schedule = compiled(seed, launches=4)
        expected = sequential(schedule)
        for mutant in without_a_wait(schedule):
            total += 1
            wrong += goes_wrong(mutant, expected, tries=12)
    assert total > 20
    assert wrong > 0.7 * total


def test_lower_bound_is_a_bound() -> None:
    for seed in range(25):
        notes = compiled(seed, launches=8).notes
        assert notes["arena_lower_bound"] <= notes["arena_bytes"]
        assert notes["row_lower_bound"] <= notes["row_bytes"]
        assert np.isfinite(notes["arena_ratio"])
