"""On a GPU: plans for ranges of rows compute their model in every mode, and timelines are of what ran."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import irkit
from irkit.runtime.cuda import availability

sys.path.insert(0, str(Path(__file__).parents[1] / "unit"))
from mlps import Mlp

pytestmark = pytest.mark.skipif(
    availability.why_not() is not None, reason=availability.why_not() or "a GPU is there"
)
MODEL = Mlp((64, 128, 128, 10))


@pytest.fixture(scope="module")
def program():
    return irkit.compile(MODEL.model(), target="cuda")


def sizes(program) -> list[int]:
    ranges = [plan.program.rows for plan in program._first.executor.plans]
    ends = {n for rows in ranges for n in rows if n > 0}
    return sorted({1, 33, *(n + d for n in ends for d in (-1, 0, 1) if n + d > 0)})


@pytest.mark.parametrize("mode", ["per-op", "per-wave", "persistent", "auto"])
def test_plans_compute_the_model_around_their_borders(program, mode: str) -> None:
    program._first.executor.mode = mode
    for rows in sizes(program):
        x = MODEL.inputs(rows)
        np.testing.assert_allclose(program(x), MODEL(x), rtol=2e-4, atol=2e-4)


def test_timelines_are_of_what_ran(program) -> None:
    program._first.executor.mode = "persistent"
    for rows in (1, 700, 5000):
        x = MODEL.inputs(rows)
        before = program(x)
        planned, measured = program.timelines([x])
        assert np.array_equal(program(x), before)
        assert len(measured.task) == len(planned.task)
        assert (measured.arrived <= measured.start).all()
        assert (measured.start < measured.end).all()
        for veu in np.unique(measured.veu):
            of_veu = measured.veu == veu
            # A vEU does one rTask after another.
            assert (measured.arrived[of_veu][1:] >= measured.end[of_veu][:-1] - 1).all()
        # The slowest multiprocessor's timer may be a step of it off.
        for append, step in enumerate(measured.steps):
            for source in step.waits:
                started = measured.start[measured.append == append].min()
                assert started >= measured.end[measured.append == source].max() - 2000
        assert 1_000 < measured.duration < 10_000_000
        print(
            f"{rows} rows: planned {planned.duration:.0f} ns, measured {measured.duration:.0f} ns"
        )
