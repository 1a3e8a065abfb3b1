"""Some of the mutation campaign; `python -m tools.fuzz schedules` runs it for longer."""

from __future__ import annotations

import random

import pytest

from tools.fuzz import schedules
from tools.fuzz.schedule_mutants import MUTATIONS, Text

# The same on every machine.
TRIES = 150


def test_no_mutant_that_is_accepted_is_wrong() -> None:
    """Each kind of change is refused now and then, or right; none is accepted and wrong."""
    schedules.counts.clear()
    for number in range(TRIES):
        finding = schedules.attempt(random.Random(f"ci/{number}"))
        assert finding is None, f"{finding.what}\n{finding.data.decode()}"
    refused = sum(n for (_, outcome), n in schedules.counts.items() if outcome != "accepted")
    accepted = sum(schedules.counts.values()) - refused
    assert refused > accepted > 0


@pytest.mark.parametrize("kind", MUTATIONS)
def test_every_kind_of_mutation_changes_something(kind: str) -> None:
    changed = 0
    for name in ("lstm", "cnn", "dense", "random 1", "state 5"):
        text, _ = schedules.scheduled(name, "h200" if "resident" in kind else "test4")
        for seed in range(6):
            made = MUTATIONS[kind](Text(text), random.Random(seed))
            changed += made is not None and made != text
    assert changed or kind == "parameter"


def test_the_judge_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a prover that believes everything, wrong mutants are found."""
    from irkit.passes.task import verify_schedule
    from irkit.schedule.modes import Mode
    from irkit.schedule.verifier import Proof

    monkeypatch.setattr(verify_schedule, "prove", lambda schedule, function: Proof(list(Mode)))
    found = 0
    for number in range(25):
        rng = random.Random(number)
        text, weights = schedules.scheduled("lstm", "test4")
        changed = MUTATIONS[rng.choice(["waits", "operand", "append dropped", "wave"])](
            Text(text), rng
        )
        if changed is not None:
            found += schedules.judge(changed, weights)[1] is not None
    assert found > 3
