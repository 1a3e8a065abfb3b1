"""How `auto` chooses among modes."""

from irkit.runtime.cpu import Auto


def run(auto, calls, times, rows=1):
    """`calls` calls that take `times[mode]`; the modes that were used."""
    used = []
    for _ in range(calls):
        mode, timed = auto.pick(rows)
        used.append(mode)
        if timed:
            auto.report(rows, mode, times[mode])
    return used


def test_the_fastest_is_kept():
    auto = Auto(("a", "b"))
    assert run(auto, 6, {"a": 2.0, "b": 1.0}) == ["a", "b"] * 3
    assert set(run(auto, 40, {"a": 2.0, "b": 1.0})) == {"b"}
    assert auto.chosen == {1: "b"}


def test_a_choice_is_looked_at_again():
    auto = Auto(("a", "b"))
    run(auto, 6, {"a": 1.0, "b": 2.0})
    assert auto.chosen == {1: "a"}
    used = run(auto, 100, {"a": 2.0, "b": 1.0})
    assert used.index("b") == 8 * 6 - 6
    assert auto.chosen == {1: "b"}
    assert used[-1] == "b"


def test_sizes_are_apart_and_one_mode_needs_no_choice():
    auto = Auto(("a", "b"))
    run(auto, 6, {"a": 1.0, "b": 2.0}, rows=1)
    assert run(auto, 2, {"a": 1.0, "b": 2.0}, rows=1000) == ["a", "b"]
    alone = Auto(("a",))
    run(alone, 500, {"a": 1.0})
    assert [alone.pick(1) for _ in range(3)] == [("a", False)] * 3
