"""The six programs of the DAG benchmarks: schedules by hand are proved, and all modes give the answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import irkit
from benchmarks.dag_programs import WORKLOADS, Workload
from benchmarks.dags import TINY, Bench, main, verdicts
from benchmarks.program_targets import DAGS
from irkit.dags.mock import MockDevice
from irkit.schedule.host.expected import cost
from irkit.schedule.host.model import HostPlan, Place
from irkit.schedule.host.planning import assign_streams
from irkit.schedule.host.verifier import verify

pytestmark = pytest.mark.filterwarnings("ignore:Grid size:Warning")
# Kernels, streams: the reference's, but one less for IMG: its minimum waits in line for its maximum.
EXPECTED = {
    "VEC": (3, 2),
    # Ten that are short: a branch of a graph takes the host as long as one of them takes.
    "B&S": (10, 5),
    "ML": (10, 2),
    "HITS": (40, 2),
    "IMG": (11, 3),
    "DL": (8, 2),
}

IMAGES = ("IMG", "DL")
"""Programs of squares."""


def resident(work: Workload) -> Any:
    """The plan of a program whose arrays are all on the device, with the times of its smallest size."""
    device = MockDevice()
    arrays = {
        name: device.array(a)
        for name, a in work.make(TINY[work.name], np.random.default_rng(0)).items()
    }
    with irkit.dag(device) as d:
        for launch in work.launches:
            grid, block = ((2, 2), (8, 8)) if launch.plane else (2, 32)
            names = (a.partition(":") for a in launch.arguments)
            launch.kernel[grid, block](
                *(arrays[n].reshape(-1) if flat else arrays[n] for n, _, flat in names)
            )
    plan = d.plan().plan
    # As long as it takes at the size of the benchmark, which grows with all arrays.
    more = (work.sizes[0] / TINY[work.name]) ** (2 if work.name in IMAGES else 1)
    tasks = [replace(t, cost_ns=t.cost_ns + more * (t.cost_ns - 2000)) for t in plan.tasks]
    return assign_streams(plan.buffers, tasks)


@pytest.mark.parametrize("work", WORKLOADS, ids=lambda w: w.name)
def test_schedules_by_hand_are_proved(work: Workload) -> None:
    """What irkit infers of kernels agrees with who wrote the events, and irkit needs no more of them
    on the same streams."""
    plan = resident(work)
    assert (len(plan.tasks), plan.queues - 1) == EXPECTED[work.name]
    by_hand = [Place(1 + launch.stream, launch.waits) for launch in work.launches]
    verify(HostPlan(plan.buffers, plan.tasks, by_hand))
    assert sum(len(p.waits) for p in plan.places) <= sum(len(p.waits) for p in by_hand)
    assert cost(plan) <= cost(HostPlan(plan.buffers, plan.tasks, by_hand))


def test_an_event_less_is_refused() -> None:
    for work in WORKLOADS:
        plan = resident(work)
        by_hand = [Place(1 + launch.stream, launch.waits) for launch in work.launches]
        for number, place in enumerate(by_hand):
            if place.waits:
                fewer = [*by_hand]
                fewer[number] = Place(place.queue, place.waits[1:])
                with pytest.raises(irkit.ScheduleError, match="'race'"):
                    verify(HostPlan(plan.buffers, plan.tasks, fewer))


def test_all_modes_are_right(capsys: pytest.CaptureFixture[str]) -> None:
    """VEC, in each mode on both clocks, by emulation."""
    assert main(["--device", "mock", "--tiny", "--only", "VEC"]) == 0
    assert capsys.readouterr().out.count("all modes right") == 2


def test_verdicts_name_the_least() -> None:
    def row(work: str, irkit: float) -> dict[str, Any]:
        times = {"serial": 4.0, "streams": 2.0, "graph": 1.0, "irkit": irkit}
        found = {mode: {"median_us": t} for mode, t in times.items()}
        return {"work": work, "n": 5, "blocks": 64, "clock": "e2e", "times": found}

    lines = verdicts([row("VEC", 1.0), row("HITS", 4.0)])
    assert lines == [
        "e2e    64 blocks: 2.000 x serial (1.24 reached), least HITS 5 1.000",
        "e2e    64 blocks: 1.000 x streams (0.98 reached), least HITS 5 0.500",
        "e2e    64 blocks: 0.500 x graph (1.0 NOT reached), least HITS 5 0.250",
    ]


def test_wrong_answers_are_seen() -> None:
    from benchmarks import dags

    bench = dags.Bench(WORKLOADS[0], 50, MockDevice(), (1, 32))
    with pytest.raises(AssertionError, match="VEC: an error of"):
        bench.check(True)


@pytest.mark.parametrize("name", ["B&S", "ML", "IMG"])
def test_launches_as_they_come(name: str) -> None:
    """Each launch started when it is made, by emulation, in an order that is drawn."""
    work = next(w for w in WORKLOADS if w.name == name)
    bench = Bench(work, TINY[name], MockDevice(seed=3), (2, 32))
    bench.reset()
    with bench.opened("eager"):
        bench.modes(True)["eager"]()
    assert bench.check(True) <= work.tolerance
    bench.close()


def test_the_page_names_programs_that_there_are() -> None:
    assert tuple((w.name, w.sizes[0]) for w in WORKLOADS) == DAGS
