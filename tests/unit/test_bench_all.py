"""`irkit-bench all`: parts that end, fail, or hang, within a time."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest

from benchmarks import all as every
from benchmarks import cases
from benchmarks.workloads import CONTENDERS

_GOOD = """
import sys
from pathlib import Path
from benchmarks import harness
times = {"median_us": 2.0, "p10_us": 2.0, "p90_us": 2.0}
facts = {"device": "NVIDIA H200", "suites": {"W4": {"irkit auto": times}}}
harness.update("workloads", facts, Path(sys.argv[-1]))
"""
_HANGS = """
import subprocess, sys, time
from pathlib import Path
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
Path(sys.argv[-1], "child").write_text(str(child.pid))
time.sleep(600)
"""


def _part(text: str, least: float = 0.0, most: float = 60.0) -> every.Part:
    class Written(every.Part):
        def command(self, folder: Path) -> list[str]:
            return [sys.executable, "-c", text, str(folder)]

    return Written("written", least=least, most=most)


def _alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def test_parts_within_a_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    parts = {
        "good": _part(_GOOD),
        "fails": _part("raise SystemExit(3)"),
        "hangs": _part(_HANGS, most=10.0),
        "late": _part(_GOOD, least=1000.0),
    }
    monkeypatch.setattr(every, "PARTS", parts)
    found = every.run_all(list(parts), "NVIDIA H200", tmp_path, 100.0)
    assert {name: f["outcome"] for name, f in found.items()} == {
        "good": "finished",
        "fails": "failed with exit code 3",
        "hangs": "ended, its time was over",
        "late": "not run, no time was left",
    }
    child = int((tmp_path / "h200" / "child").read_text())
    until = time.monotonic() + 120
    while _alive(child) and time.monotonic() < until:
        time.sleep(0.05)
    assert not _alive(child)
    kept = json.loads((tmp_path / "h200" / "all.json").read_text())["suites"]
    assert set(kept) == set(parts)
    page = (tmp_path / "README.md").read_text()
    assert "| W4: irkit auto | 2.0 |" in page
    assert "| hangs: outcome |  |  |  | ended, its time was over |" in page


def test_parts_name_what_there_is():
    for part in every.PARTS.values():
        assert (Path(every.__file__).parent / f"{part.module}.py").exists()
        if part.module == "workloads":
            names = part.arguments[: part.arguments.index("--prepare")]
            assert cases.cases(names)
        assert part.least <= part.most
        command = part.command(Path("results", "h100"))
        assert ("--device" in command) is part.planned
        assert not part.planned or command[command.index("--device") + 1] == "h100"
    assert set(every.PARTS["compile"].arguments) & set(CONTENDERS) == {"compile"}
    everything = {c for p in every.PARTS.values() for c in _cases(p)}
    assert set(cases.cases(cases.SETS)) <= everything


def _cases(part: every.Part) -> list[cases.Case]:
    if part.module != "workloads":
        return []
    return cases.cases(part.arguments[: part.arguments.index("--prepare")])


@pytest.mark.skipif(os.path.exists("/dev/nvidia0"), reason="there is a GPU")
def test_without_a_gpu_there_is_one_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(sys, "argv", ["all", "gpu"])
    with pytest.raises(SystemExit) as stop:
        every.main()
    assert stop.value.code == 1
    assert capsys.readouterr().err.startswith("benchmarks.all: error: ")
