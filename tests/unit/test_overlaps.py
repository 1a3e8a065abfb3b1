"""Which arrays of a call share memory."""

from __future__ import annotations

import numpy as np
import pytest

from irkit.driver.programs import memory
from irkit.driver.programs.memory import overlaps


def test_arrays_with_memory_of_their_own_share_none() -> None:
    assert overlaps([np.zeros(3), np.zeros((2, 4)), np.zeros(0)]) == ()


def test_an_array_that_is_there_twice() -> None:
    x = np.zeros(3)
    assert overlaps([x, np.zeros(3), x]) == (((0, 0), (2, 0)),)


def test_views_and_what_they_are_of() -> None:
    x = np.zeros(8)
    assert overlaps([x, x[2:]]) == (((0, 0), (1, 16)),)
    assert overlaps([x[4:], np.ones(8), x[:5]]) == (((0, 0), (2, -32)),)
    assert overlaps([x[:4], x[4:]]) == ()


def test_the_quick_answer_is_the_slow_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of random arrays, their parts, and the same again."""
    rng = np.random.default_rng(0)
    cases = []
    for _ in range(200):
        own = [np.zeros(rng.integers(1, 9)) for _ in range(4)]
        parts = [a[rng.integers(0, 3) :] for a in own]
        found = [(own, own, own, parts)[rng.integers(4)][rng.integers(4)] for _ in range(3)]
        cases.append((found, overlaps(found)))
    assert 20 < sum(answer == () for _, answer in cases) < 180
    monkeypatch.setattr(memory, "_own_each", lambda arrays: False)
    for found, answer in cases:
        assert overlaps(found) == answer
