"""List scheduling by critical path: proved, right, never behind one vEU alone; the better of two policies."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from schedule_toys import RandomProgram, goes_wrong, sequential
from test_choices import Program as Choices
from test_schedule_policy import Program
from test_schedule_random import MUTATIONS
from test_schedule_w6 import LAYERS, Recurrent

import irkit
from irkit.errors import ScheduleError
from irkit.schedule.allotments import Speedup
from irkit.schedule.critical_path import (
    estimate,
    in_company,
    on_one_veu,
    place_best,
    place_list,
)
from irkit.schedule.dependences import Dependences
from irkit.schedule.devices import device
from irkit.schedule.model import Resident, Schedule, VDevice
from irkit.schedule.planner import plan_memory
from irkit.schedule.residents import pin_residents
from irkit.schedule.verifier import verify_schedule
from irkit.schedule.waits import derive_waits
from irkit.schedule.wavefront import place_wavefront

TEST4 = device("test4")


def planned(program: Program | Choices | RandomProgram, target: VDevice = TEST4) -> Schedule:
    placed = place_list(program.buffers, program.launches, target)
    return plan_memory(pin_residents(derive_waits(placed)))


def random_choices(seed: int, launches: int, target: VDevice = TEST4) -> Choices:
    """A random graph of launches with options: cut in more parts they take less time, but more work."""
    rng, program = np.random.default_rng(seed), Choices(target)
    weight = program.constant(480)
    made = [0]
    for n in range(launches):
        whole = float(rng.integers(1, 80)) * 100
        counts = rng.choice([1, 2, 3, 4], size=rng.integers(1, 5), replace=False)
        costs = {int(t): whole / t ** rng.uniform(0.3, 1.0) for t in counts}
        costs = dict(sorted(costs.items(), key=lambda item: item[1]))
        constant = weight if rng.random() < 0.2 else None
        made.append(program.launch(int(rng.choice(made[-5:])), costs, constant, f"op{n}"))
    return program


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 8))
def test_random_programs_are_proved_and_right(seed: int, launches: int) -> None:
    schedule = planned(RandomProgram(seed, launches))
    verify_schedule(schedule)
    assert not goes_wrong(schedule, sequential(schedule), tries=6)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 30))
def test_random_choices_are_proved_and_never_behind_one_veu(seed: int, launches: int) -> None:
    program = random_choices(seed, launches)
    verify_schedule(planned(program))
    alone = on_one_veu(program.buffers, program.launches, TEST4)
    listed = place_list(program.buffers, program.launches, TEST4)
    waves = place_wavefront(program.buffers, program.launches, TEST4)
    best = place_best(program.buffers, program.launches, TEST4)
    assert estimate(listed) <= estimate(alone)
    assert estimate(best) == min(estimate(listed), estimate(waves))
    assert best.notes["policy"] == ("list" if estimate(listed) < estimate(waves) else "wavefront")


def test_one_veu_alone_is_right() -> None:
    for seed in range(10):
        program = RandomProgram(seed, 6)
        placed = on_one_veu(program.buffers, program.launches, TEST4)
        schedule = plan_memory(derive_waits(placed))
        verify_schedule(schedule)
        assert all(append.waits == () for append in schedule.appends)
        assert not goes_wrong(schedule, sequential(schedule), tries=4)


@pytest.mark.parametrize("kind", MUTATIONS)
def test_no_mutant_that_goes_wrong_is_accepted(kind: str) -> None:
    count: Counter[str] = Counter()
    for seed in range(12 if kind in ("wait removed", "offsets overlapped") else 6):
        schedule = planned(RandomProgram(100 + seed, 1 + seed % 6))
        for mutant in MUTATIONS[kind](schedule):
            try:
                verify_schedule(mutant)
            except ScheduleError:
                count["rejected"] += 1
                continue
            count["accepted"] += 1
            assert not goes_wrong(mutant, sequential(mutant), tries=6), (seed, mutant.appends)
    assert count["rejected"] >= 3
    if kind == "wait removed":
        assert count["accepted"] == 0


def test_a_chain_does_not_wait_for_a_wave() -> None:
    """A chain of four beside three launches that each take as long as all of it."""
    program = Program()
    for _ in range(3):
        program.launch(0, cost=4000.0)
    last = program.launch(0, cost=1000.0)
    for _ in range(3):
        last = program.launch(last, cost=1000.0, local=True)
    listed = place_list(program.buffers, program.launches, TEST4)
    assert estimate(listed) == 4000.0
    assert len({a.first_veu for a in listed.appends}) == 4
    verify_schedule(plan_memory(derive_waits(listed)))


def test_the_most_urgent_goes_first() -> None:
    program = Program()
    for _ in range(8):
        program.launch(0, cost=500.0)
    program.launch(program.launch(0, cost=400.0), cost=3000.0)
    listed = place_list(program.buffers, program.launches, TEST4)
    assert listed.appends[0].launch == 8


def test_company_shares_the_device() -> None:
    """Two launches that are ready together share the device; one that is alone has all of it."""
    program = Choices()
    costs = {4: 3000.0, 2: 4000.0, 1: 9000.0}
    first = program.launch(0, costs)
    program.launch(first, costs)
    program.launch(first, costs)
    listed = place_list(program.buffers, program.launches, TEST4)
    assert [launch.tasks for launch in listed.launches] == [4, 2, 2]


def test_a_launch_waits_for_more_veus() -> None:
    """Three vEUs are busy for a moment: on all four a launch ends sooner than at once on the free one."""
    program = Choices()
    for _ in range(3):
        program.launch(0, {1: 500.0}, symbol="short")
    program.launch(0, {4: 2000.0, 1: 8000.0})
    listed = place_list(program.buffers, program.launches, TEST4)
    assert estimate(listed) <= 2700.0
    assert listed.launches[3].tasks == 4


def test_where_waits_cost_more_than_they_save_one_veu_does_all() -> None:
    program, slow = Program(), replace(TEST4, wait_ns=5000.0)
    program.launch(program.launch(0), program.launch(0))
    listed = place_list(program.buffers, program.launches, slow)
    assert estimate(listed) == 3000.0
    assert {(a.first_veu, a.veus) for a in listed.appends} == {(0, 1)}
    assert estimate(place_wavefront(program.buffers, program.launches, slow)) > 3000.0


def test_veus_that_are_free_soon_are_waited_for() -> None:
    """Behind the last of four launches that run side by side, and which ends first, comes a long one."""
    costs = {1: 500.0}, {1: 100.0}, {4: 2000.0, 1: 8000.0}
    short, tiny, long = (Speedup.of(list(c), list(c.values()), TEST4) for c in costs)
    graph = Dependences([{}, {}, {}, {}, {3: []}], [[], [], [], [4], []])
    found = in_company(graph, [short, short, short, tiny, long], [500.0] * 3 + [2100.0, 2000.0], 4)
    assert [a.veus for a in found] == [1, 1, 1, 1, 4]


def test_weights_of_a_recurrent_network_stay() -> None:
    program, start = Recurrent(), time.process_time()
    placed = place_list(program.buffers, program.launches, device("h200"))
    assert time.process_time() - start < 10.0
    schedule = pin_residents(derive_waits(placed))
    used = {layer: set[tuple[int, int]]() for layer in range(LAYERS)}
    for append in schedule.appends:
        layer = int(schedule.launches[append.launch].name.split(".")[0])
        used[layer].add((append.first_veu, append.veus))
    assert all(len(ranges) == 1 for ranges in used.values())
    wanted = (Resident(0, 0), Resident(1, 80 * 1024))
    assert {append.residents for append in schedule.appends} == {wanted}


def test_no_launches() -> None:
    for policy in (place_list, place_best):
        schedule = policy([], [], TEST4)
        assert (schedule.appends, estimate(schedule)) == ([], 0.0)


@pytest.mark.parametrize("policy", ["list", "auto"])
def test_compiled_programs_are_right(policy: str, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("IRKIT_CACHE_DIR", str(tmp_path))
    text = """
func.func @main(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %a = graph.exp %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %s = graph.reduce %a {axes = array<i64: 1>, kind = "sum", keepdims = true}
      : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %d = graph.div %y, %s : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  func.return %d : tensor<4x8xf32>
}
"""
    program = irkit.compile(irkit.parse(text), device="cpu2", policy=policy)
    x, y = np.random.default_rng(0).random((2, 4, 8), dtype=np.float32)
    want = y / np.exp(x).sum(1, keepdims=True)
    for mode in program.report()["modes"]:
        if mode == "per-op":
            continue
        program.mode = mode
        np.testing.assert_allclose(program.run([x, y])[0], want, rtol=1e-5)
