"""How `auto` chooses among modes."""

import json

import pytest

from irkit.errors import DeviceError
from irkit.runtime.mode_choice import Auto, ModeChoice, not_proved
from irkit.schedule.modes import Mode

A, B = Mode.SERIAL, Mode.PERSISTENT


def run(auto, calls, times, rows=1):
    """`calls` calls that take `times[mode]`; the modes that were used."""
    used = []
    for _ in range(calls):
        mode, timed = auto.pick(rows)
        used.append(mode)
        if timed:
            getattr(auto, "auto", auto).report(rows, mode, times[mode])
    return used


def test_the_fastest_is_kept():
    auto = Auto((A, B))
    assert run(auto, 6, {A: 2.0, B: 1.0}) == [A] * 3 + [B] * 3
    assert set(run(auto, 40, {A: 2.0, B: 1.0})) == {B}
    assert auto.chosen == {1: B}


def test_short_calls_are_tried_until_threads_are_awake():
    auto, took = Auto((A, B)), {A: 60e-6, B: 40e-6}
    asleep = dict.fromkeys(took, 100e-6)
    assert run(auto, 3, asleep) == [A] * 3
    assert run(auto, 4, took) == [A] * 4  # 0.54 ms
    assert run(auto, 3, asleep) + run(auto, 5, took) == [B] * 8
    assert auto.chosen == {1: B}
    shortest = Auto((A, B))
    assert run(shortest, 16, {A: 5e-6, B: 6e-6}) == [A] * 8 + [B] * 8
    assert shortest.chosen == {1: A}


def test_a_choice_is_looked_at_again():
    auto = Auto((A, B))
    run(auto, 6, {A: 1.0, B: 2.0})
    assert auto.chosen == {1: A}
    used = run(auto, 100, {A: 2.0, B: 1.0})
    assert used.index(B) == 8 * 6 - 6 + 2  # `a` is measured first
    assert auto.chosen == {1: B}
    assert used[-1] == B


# A watched choice of two modes is looked at again behind six calls more, and then not before this one; where
# one is far behind, it is called once.
SETTLED, FAR_SETTLED = 6 + 5 + 6, 6 + 5 + 4
LOOK, FAR_LOOK = 8 * SETTLED, 8 * FAR_SETTLED


def test_noise_in_the_first_calls_is_not_kept_for_long():
    auto = Auto((A, B), watched=True)
    run(auto, 6, {A: 2.5, B: 2.0})
    assert auto.chosen == {1: B}
    assert run(auto, SETTLED - 6, {A: 1.0, B: 2.0}) == [B] * 5 + [A] * 3 + [B] * 3
    assert auto.chosen == {1: A}


def test_a_choice_whose_figures_move_is_doubted_at_once():
    auto = Auto((A, B), watched=True)
    run(auto, SETTLED, {A: 1.0, B: 2.0})
    assert set(run(auto, 20, {A: 1.5, B: 2.0})) == {A}  # slower, and still the fastest
    used = run(auto, 30, {A: 3.0, B: 2.0})
    assert used.index(B) == 8 + 3
    assert auto.chosen == {1: B}


def test_modes_of_several_threads_are_no_doubt_of_each_other():
    auto = Auto((B, Mode.PER_WAVE), watched=True)
    run(auto, SETTLED, {B: 1.0, Mode.PER_WAVE: 1.1})
    assert set(run(auto, 30, {B: 1.5, Mode.PER_WAVE: 1.1})) == {B}


def test_what_was_chosen_in_doubt_is_looked_at_again_soon():
    quiet, busy = {A: 2.0, B: 1.0}, {A: 2.0, B: 3.0}
    auto = Auto((A, B), watched=True)
    run(auto, SETTLED, quiet)
    run(auto, 20, busy)
    assert auto.chosen == {1: A}
    used = run(auto, 40, busy)
    assert used.count(B) == 1
    assert auto.chosen == {1: A}
    # The next look comes after twice as many.
    assert run(auto, 100, quiet).index(B) > 32
    assert auto.chosen == {1: B}


def test_a_look_in_a_noisy_moment_changes_nothing_by_itself():
    quiet, noisy = {A: 1.0, B: 2.0}, {A: 2.5, B: 2.0}
    auto = Auto((A, B), watched=True)
    run(auto, FAR_LOOK - 1, quiet)
    assert run(auto, 6, noisy) == [A] * 3 + [B] + [A] * 2
    assert auto.chosen == {1: A}
    # What was noise when both were first compared is found out by the next look.
    auto = Auto((A, B), watched=True)
    run(auto, LOOK - 1, noisy)
    assert auto.chosen == {1: B}
    run(auto, 6, quiet)
    assert auto.chosen == {1: A}


def test_a_look_calls_once_what_is_far_behind():
    """Long calls: of short ones the first few are of threads that were asleep."""
    for behind, expected in ((1.2, 3), (1.3, 1)):
        auto = Auto((A, B), watched=True)
        assert run(auto, 6, {A: 1.0, B: behind}) == [A] * 3 + [B] * 3
        assert run(auto, 20, {A: 1.0, B: behind}).count(B) == expected
    auto, took = Auto((A, B), watched=True), {A: 1e-4, B: 3e-4}
    first = run(auto, 9, took).count(B)
    assert run(auto, 20, took).count(B) == first
    # A first call that is fast is followed by others.
    auto = Auto((A, B), watched=True)
    run(auto, 6, {A: 1.0, B: 2.0})
    assert run(auto, 11, {A: 1.0, B: 0.5}) == [A] * 5 + [A] * 3 + [B] * 3
    assert auto.chosen == {1: B}


def test_what_was_least_is_forgotten_in_doubt():
    auto = Auto((A, B), watched=True)
    run(auto, 60, {A: 1.0, B: 2.0})
    assert set(run(auto, 30, {A: 3.0, B: 2.0})[-10:]) == {B}


def test_doubts_that_change_nothing_become_rare():
    auto = Auto((A, B), watched=True)
    run(auto, 6, {A: 1.0, B: 2.0})
    # Whenever both are measured again, `a` is faster; by itself it is slow.
    used, calls = [], 400
    for _ in range(calls):
        mode, timed = auto.pick(1)
        assert timed
        auto.report(1, mode, 3.0 if auto.chosen else {A: 1.0, B: 2.0}[mode])
        used.append(mode)
    assert used.count(B) <= 3 * 6


def test_one_slow_call_is_no_doubt():
    auto = Auto((A, B), watched=True)
    run(auto, SETTLED, {A: 1.0, B: 2.0})
    used = [run(auto, 1, {A: 9.0 if n % 4 else 1.0, B: 2.0})[0] for n in range(40)]
    assert set(used) == {A}


def test_sizes_are_apart_and_one_mode_needs_no_choice():
    auto = Auto((A, B))
    run(auto, 6, {A: 1.0, B: 2.0}, rows=1)
    assert run(auto, 4, {A: 1.0, B: 2.0}, rows=1000) == [A, A, A, B]
    alone = Auto((A,))
    run(alone, 500, {A: 1.0})
    assert [alone.pick(1) for _ in range(3)] == [(A, False)] * 3


def test_a_fixed_mode_is_never_measured():
    choice = ModeChoice("cpu", "per-op", (Mode.SERIAL, Mode.PERSISTENT))
    assert [choice.pick(3) for _ in range(9)] == [(Mode.PER_OP, False)] * 9
    choice.mode = "auto"
    assert run(choice, 4, {Mode.SERIAL: 1.0, Mode.PERSISTENT: 2.0}) == ["serial"] * 3 + [
        "persistent"
    ]


def test_modes_that_are_not_proved_are_refused_by_name():
    proved = ("serial", "persistent")
    refused = not_proved("cpu", proved)
    choice = ModeChoice("cpu", "auto", (Mode.SERIAL, Mode.PER_WAVE, Mode.PERSISTENT), refused)
    assert choice.allowed == proved
    assert set(run(choice, 40, dict.fromkeys(Mode, 1.0))) == set(proved)
    with pytest.raises(DeviceError) as error:
        choice.mode = "per-wave"
    words = "mode 'per-wave': the schedule is not proved for it; allowed: auto, serial, persistent"
    assert str(error.value) == words
    assert choice.mode == "auto"
    with pytest.raises(DeviceError, match="mode 'fast' for cpu: expected auto, serial, per-op"):
        choice.mode = "fast"
    with pytest.raises(DeviceError, match="mode 'serial' for cuda"):
        ModeChoice("cuda", "serial", ())


def test_what_is_left_runs_though_it_is_never_fastest():
    choice = ModeChoice("cpu", "auto", (Mode.SERIAL,), not_proved("cpu", ["per-op"]))
    assert choice.pick(1)[0] is Mode.PER_OP
    with pytest.raises(DeviceError, match=r"no mode is left.*serial: the schedule is not proved"):
        ModeChoice("cpu", "auto", (Mode.SERIAL,), not_proved("cpu", []))


def test_decisions_are_text():
    auto = Auto((Mode.SERIAL, Mode.PERSISTENT))
    run(auto, 6, {Mode.SERIAL: 2.0, Mode.PERSISTENT: 1.0}, rows=5)
    found = auto.decisions()
    assert found == {
        "rows < 8": {"mode": "persistent", "microseconds": {"serial": 2e6, "persistent": 1e6}}
    }
    assert json.loads(json.dumps(found)) == found
