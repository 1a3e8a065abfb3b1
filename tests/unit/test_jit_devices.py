"""`irkit.jit` with a GPU to choose, named or at hand: the plan is told, and results are NumPy's where it runs
here."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import irkit
from irkit.dialects.program.builder import BuiltProgram
from irkit.driver.programs import placing
from irkit.driver.programs.hosted import Hosted
from irkit.driver.programs.placed import Placed
from irkit.errors import DeviceError
from irkit.runtime.cuda import availability

needs_no_gpu = pytest.mark.skipif(availability.why_not() is None, reason="a GPU is at hand")


def mixed(a: Any, b: Any, v: Any) -> Any:
    v += 1
    return a @ b, v * 2


def arrays(side: int) -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.random((side, side)), rng.random((side, side)), rng.random(5)]


def check(function: Any, args: list[Any]) -> None:
    ours, theirs = [a.copy() for a in args], [a.copy() for a in args]
    for got, want in zip(function(*ours), mixed(*theirs), strict=True):
        np.testing.assert_allclose(got, want, 1e-10)
    np.testing.assert_array_equal(ours[2], theirs[2])


@needs_no_gpu
def test_the_plan_for_a_gpu_that_is_not_there_is_told_and_the_cpu_runs():
    function = irkit.jit(device="h200")(mixed)
    check(function, arrays(256))
    text, told = function.ir("program"), function.explain()
    assert 'irkit.device = "cuda"' in text
    assert text.count('"memref.copy"') == 3, "two matrices in, their product back"
    assert "@main_region0 on the CPU" in told or "@main_region1 on the CPU" in told
    assert "on h200: " in told
    assert "1 MiB to h200, 512 KiB back" in told
    assert "as scheduled on the host and " in told
    assert " one after another (the host " in told or "one after another (copies in " in told
    assert "the link to h200 was not measured on this machine" in told
    assert "it runs on the CPU alone" in told
    assert function.report()["target"] == "cpu"


@needs_no_gpu
def test_small_arrays_stay_on_the_cpu():
    function = irkit.jit(device="h200")(mixed)
    check(function, arrays(8))
    assert "memref.copy" not in function.ir("program")


@needs_no_gpu
def test_without_a_gpu_nothing_is_planned():
    function = irkit.jit(mixed)
    check(function, arrays(8))
    assert "irkit.device" not in function.ir("program")


@needs_no_gpu
def test_a_gpu_that_is_asked_for_has_to_be_there_when_it_runs():
    function = irkit.jit(target="cuda", device="h200")(mixed).compile(*arrays(8))
    assert "all that may be is on h200, as asked for" in function.explain()
    with pytest.raises(DeviceError):
        function(*arrays(8))


def test_a_program_on_both_sides_runs_region_by_region(monkeypatch: pytest.MonkeyPatch):
    """Regions of the GPU are compiled for the CPU here."""
    made: list[Any] = []
    planned = placing.placement_of

    def on_both(built: BuiltProgram, options: Any) -> Any:
        found = planned(built, options)
        assert found is not None
        return replace(found, absent="for a test")

    def lower(built: BuiltProgram, options: Any) -> Any:
        placement = on_both(built, options)
        made.append(Placed(Hosted(built, options, placement), placement))
        return made[-1]

    monkeypatch.setattr("irkit.driver.programs.jitted.lowered", lower)
    check(irkit.jit(device="h200")(mixed), arrays(256))
    assert len(made[0].report()["regions"]) == 2
