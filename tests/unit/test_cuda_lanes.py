"""Which launches may run side by side when every rOperator is a kernel of its own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from irkit.runtime.cuda import lanes as module
from irkit.runtime.cuda.lanes import MAX_LANES, Fork, lanes
from irkit.schedule.tables import Appended


def append(first_veu: int, veus: int, wave: int) -> Appended:
    return Appended(0, veus, first_veu, veus, wave, (), ())


def test_appends_that_share_no_veu_of_a_wave_run_side_by_side() -> None:
    assert lanes([append(0, 2, 0), append(2, 2, 0), append(4, 1, 0)]) == [[[0], [1], [2]]]


def test_appends_that_share_a_veu_stay_in_order() -> None:
    found = lanes([append(0, 2, 0), append(3, 2, 0), append(1, 3, 0), append(6, 1, 0)])
    assert found == [[[0, 1, 2], [3]]]


def test_waves_follow_one_another() -> None:
    assert lanes([append(0, 4, 0), append(0, 1, 1), append(2, 1, 1)]) == [[[0]], [[1], [2]]]


def test_more_than_can_be_are_dealt_out_in_order() -> None:
    (wave,) = lanes([append(v, 1, 0) for v in range(2 * MAX_LANES + 1)])
    assert len(wave) == MAX_LANES
    assert wave[0] == [0, MAX_LANES, 2 * MAX_LANES]
    assert sorted(n for lane in wave for n in lane) == list(range(2 * MAX_LANES + 1))


def test_a_fork_joins_what_it_started(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[tuple[Any, ...]] = []

    class Recorded:
        made = 0

        def __init__(self) -> None:
            Recorded.made += 1
            self.handle = f"e{Recorded.made}"

        def record(self, stream: Any) -> None:
            log.append(("record", self.handle, stream))

    def call(name: str, *arguments: Any) -> None:
        log.append(("wait", arguments[1], arguments[0]))

    monkeypatch.setattr(module, "Event", Recorded)
    monkeypatch.setattr(module, "call", call)
    monkeypatch.setattr(module, "Stream", lambda device: SimpleNamespace(handle="side"))
    device: Any = None
    fork = Fork(device)
    fork.run("main", [lambda s: log.append(("a", s)), lambda s: log.append(("b", s))])
    assert log == [
        ("record", "e1", "main"),
        ("wait", "e1", "side"),
        ("a", "main"),
        ("b", "side"),
        ("record", "e2", "side"),
        ("wait", "e2", "main"),
    ]
    log.clear()
    fork.run("main", [lambda s: log.append(("alone", s))])
    assert log == [("alone", "main")]


def test_only_what_is_right_behind_another_kernel_begins_early(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not the first, nor where lanes part or meet, nor behind what does not wait itself."""
    early: list[tuple[int, bool]] = []

    def launch(number: int, stream: Any, soon: bool) -> bool:
        early.append((number, soon))
        return number != 7

    monkeypatch.setattr(Fork, "run", lambda self, stream, work: [part(stream) for part in work])
    device: Any = None
    waves = [[[0]], [[1, 2]], [[3, 4], [5]], [[6]], [[7]], [[8]], [[9]]]
    Fork(device).run_lanes("main", waves, launch)
    assert [n for n, soon in early if soon] == [1, 2, 4, 7, 9]
    assert [n for n, _ in early] == list(range(10))
