"""State through the levels: what is in place is proved, whatever the program."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from stateful_graphs import StatefulGraph, runs_of

from irkit.context import IrkitContext
from irkit.dialects.task import ROperatorOp
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.frontends.module import ImportedModel
from irkit.interp import run_module
from irkit.passes.task import state_in_place
from irkit.passes.task.program_text import program_of
from irkit.schedule.modes import Mode

LEVELS = ("graph", "tensor", "task", "schedule")
RUNS = 3


def lowered(model: ImportedModel, device: str = "test4") -> ImportedModel:
    copy = ImportedModel(model.module.clone(), model.weights, model.info)
    ctx = IrkitContext(weights=copy.weights)
    register_dialects(ctx)
    for level in LEVELS:
        run_level(ctx, copy.module, level, device)
    return copy


def check_runs(program: StatefulGraph, device: str = "test4") -> ImportedModel:
    """Run after run, in every mode that is proved and several orders, the schedule leaves what the function
    returns."""
    model = program.model()
    inputs = [program.arrays() for _ in range(RUNS)]
    wanted = runs_of(model, program.pairs, inputs)
    found = lowered(model, device)
    modes = [Mode(m.data) for m in program_of(found.module).modes or ()]
    assert Mode.PERSISTENT in modes
    for mode in modes:
        for seed, (arrays, want) in enumerate(zip(inputs, wanted, strict=True)):
            got = run_module(found.module, found.weights, arrays, seed=seed, mode=mode)
            for g, w in zip(got, want, strict=True):
                np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-5)
    return found


@pytest.mark.parametrize("group", range(6))
def test_random_programs_keep_their_state(group: int) -> None:
    for seed in range(group * 20, group * 20 + 20):
        check_runs(StatefulGraph(seed, 1 + seed % 9))


def test_random_programs_on_a_gpu_are_proved() -> None:
    for seed in range(12):
        check_runs(StatefulGraph(seed, 1 + seed % 9), "h200")


def test_some_state_is_in_place_and_some_is_copied(monkeypatch) -> None:
    """Or the tests above would say little."""
    found: Counter[str] = Counter()
    monkeypatch.setattr(state_in_place, "applied", lambda *_: found.update(["applied"]))
    monkeypatch.setattr(state_in_place, "missed", lambda *_: found.update(["missed"]))
    for seed in range(40):
        module = lowered(StatefulGraph(seed, 1 + seed % 9).model()).module
        operators = [op for op in module.ops if isinstance(op, ROperatorOp)]
        found["in place"] += any(op.in_place is not None for op in operators)
    assert found["applied"] > 30
    assert found["missed"] > 5
    assert found["in place"] > 10
