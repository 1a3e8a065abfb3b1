"""The script that checks and times loops on a GPU, with an emulated one."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import Any

import pytest
from emulated_loops import register_gpu4
from grid_emulator import EmulatedDriver

from benchmarks import gpu_loops
from irkit.runtime.cuda import driver, streams
from irkit.schedule.modes import Mode


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> EmulatedDriver:
    """A GPU of four multiprocessors; its code is the emitted text."""
    register_gpu4(monkeypatch)
    gc.collect()
    made = EmulatedDriver(3)
    for module in (driver, streams):
        monkeypatch.setattr(module, "api", lambda: made)
    driver.device.cache_clear()
    plain = gpu_loops.compiled

    def as_text(*given: Any) -> Any:
        artifact = plain(*given)
        artifact.cubin = artifact.source.encode()
        return artifact

    monkeypatch.setattr(gpu_loops, "compiled", as_text)
    return made


def test_loops_are_checked_and_timed(
    emulated: EmulatedDriver,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(gpu_loops, "MODES", {"cuda": (Mode.PERSISTENT,)})
    given = [
        "jacobi_1d",
        "--preset",
        "tiny",
        "--device",
        "gpu4",
        "--repeats",
        "1",
        "--out",
        str(tmp_path),
    ]
    assert gpu_loops.main(given) == 0
    (record,) = json.loads((tmp_path / "gpu_loops.json").read_text())["suites"].values()
    assert set(record["irkit"]) == {"persistent"}
    assert all(of["error"] < 1e-12 for of in record["irkit"].values())
    assert emulated.launches.count("persistent") == 6
    assert capsys.readouterr().out.count("jacobi_1d tiny") == 2


def test_a_wrong_answer_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"persistent": {"error": 0.5, "host_ms": 1.0, "device_ms": 1.0}}
    monkeypatch.setattr(gpu_loops, "compiled", lambda *_: None)
    monkeypatch.setattr(gpu_loops, "of_irkit", lambda *_: found)
    assert gpu_loops.main(["jacobi_1d", "--preset", "tiny"]) == 1
    found["persistent"]["error"] = 1e-13
    assert gpu_loops.main(["jacobi_1d", "--preset", "tiny"]) == 0


def test_programs_are_built_for_gpus_that_are_not_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu_loops.main(["jacobi_1d", "--preset", "S", "--build", "h200"]) == 0
    assert "in modes serial, per-op, per-wave, persistent" in capsys.readouterr().out
