"""The curve of budgets against time: less memory takes more time, and all of it is drawn."""

from __future__ import annotations

from pathlib import Path

from benchmarks import memory_curve


def test_less_memory_takes_more_time(tmp_path: Path) -> None:
    found = memory_curve.curve(memory_curve.task_level(8, 16, 16))
    peaks = [one["peak_bytes"] for one in found]
    times = [one["time_over_naive"] for one in found]
    assert peaks == sorted(peaks, reverse=True)
    assert times == sorted(times)
    assert peaks[-1] < peaks[0] / 2
    assert times[0] == 1
    assert all(one["peak_bytes"] <= one["budget"] for one in found)
    memory_curve.picture(found, tmp_path / "curve.svg")
    assert (tmp_path / "curve.svg").read_text().count("<circle") == len(found)
