"""How `auto` chooses among modes."""

import json

import pytest

from irkit.errors import DeviceError
from irkit.runtime.mode_choice import Auto, ModeChoice, not_proved
from irkit.schedule.modes import Mode


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
    auto = Auto(("a", "b"))
    assert run(auto, 6, {"a": 2.0, "b": 1.0}) == ["a"] * 3 + ["b"] * 3
    assert set(run(auto, 40, {"a": 2.0, "b": 1.0})) == {"b"}
    assert auto.chosen == {1: "b"}


def test_short_calls_are_tried_until_threads_are_awake():
    auto, took = Auto(("a", "b")), {"a": 60e-6, "b": 40e-6}
    asleep = dict.fromkeys(took, 100e-6)
    assert run(auto, 3, asleep) == ["a"] * 3
    assert run(auto, 4, took) == ["a"] * 4  # 0.54 ms
    assert run(auto, 3, asleep) + run(auto, 5, took) == ["b"] * 8
    assert auto.chosen == {1: "b"}
    shortest = Auto(("a", "b"))
    assert run(shortest, 16, {"a": 5e-6, "b": 6e-6}) == ["a"] * 8 + ["b"] * 8
    assert shortest.chosen == {1: "a"}


def test_a_choice_is_looked_at_again():
    auto = Auto(("a", "b"))
    run(auto, 6, {"a": 1.0, "b": 2.0})
    assert auto.chosen == {1: "a"}
    used = run(auto, 100, {"a": 2.0, "b": 1.0})
    assert used.index("b") == 8 * 6 - 6 + 2  # `a` is measured first
    assert auto.chosen == {1: "b"}
    assert used[-1] == "b"


# A watched choice of two modes is looked at again behind six calls more, and then not before this one.
SETTLED = 6 + 5 + 6
LOOK = 8 * SETTLED


def test_noise_in_the_first_calls_is_not_kept_for_long():
    auto = Auto(("a", "b"), watched=True)
    run(auto, 6, {"a": 2.5, "b": 2.0})
    assert auto.chosen == {1: "b"}
    assert run(auto, SETTLED - 6, {"a": 1.0, "b": 2.0}) == ["b"] * 5 + ["a"] * 3 + ["b"] * 3
    assert auto.chosen == {1: "a"}


def test_a_choice_whose_figures_move_is_doubted_at_once():
    auto = Auto(("a", "b"), watched=True)
    run(auto, SETTLED, {"a": 1.0, "b": 2.0})
    assert set(run(auto, 20, {"a": 1.5, "b": 2.0})) == {"a"}  # slower, and still the fastest
    used = run(auto, 30, {"a": 3.0, "b": 2.0})
    assert used.index("b") == 8 + 3
    assert auto.chosen == {1: "b"}


def test_a_look_in_a_noisy_moment_changes_nothing_by_itself():
    quiet, noisy = {"a": 1.0, "b": 2.0}, {"a": 2.5, "b": 2.0}
    auto = Auto(("a", "b"), watched=True)
    run(auto, LOOK - 1, quiet)
    assert run(auto, 6, noisy) == ["a"] * 3 + ["b"] * 3
    assert auto.chosen == {1: "a"}
    # What was noise when both were first compared is found out by the next look.
    auto = Auto(("a", "b"), watched=True)
    run(auto, LOOK - 1, noisy)
    assert auto.chosen == {1: "b"}
    run(auto, 6, quiet)
    assert auto.chosen == {1: "a"}


def test_what_was_least_is_forgotten_in_doubt():
    auto = Auto(("a", "b"), watched=True)
    run(auto, 60, {"a": 1.0, "b": 2.0})
    assert set(run(auto, 30, {"a": 3.0, "b": 2.0})[-10:]) == {"b"}


def test_doubts_that_change_nothing_become_rare():
    auto = Auto(("a", "b"), watched=True)
    run(auto, 6, {"a": 1.0, "b": 2.0})
    # Whenever both are measured again, `a` is faster; by itself it is slow.
    used, calls = [], 400
    for _ in range(calls):
        mode, timed = auto.pick(1)
        assert timed
        auto.report(1, mode, 3.0 if auto.chosen else {"a": 1.0, "b": 2.0}[mode])
        used.append(mode)
    assert used.count("b") <= 3 * 6


def test_one_slow_call_is_no_doubt():
    auto = Auto(("a", "b"), watched=True)
    run(auto, SETTLED, {"a": 1.0, "b": 2.0})
    used = [run(auto, 1, {"a": 9.0 if n % 4 else 1.0, "b": 2.0})[0] for n in range(40)]
    assert set(used) == {"a"}


def test_sizes_are_apart_and_one_mode_needs_no_choice():
    auto = Auto(("a", "b"))
    run(auto, 6, {"a": 1.0, "b": 2.0}, rows=1)
    assert run(auto, 4, {"a": 1.0, "b": 2.0}, rows=1000) == ["a", "a", "a", "b"]
    alone = Auto(("a",))
    run(alone, 500, {"a": 1.0})
    assert [alone.pick(1) for _ in range(3)] == [("a", False)] * 3


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
