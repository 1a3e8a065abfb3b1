"""Normalisations of rows that are written as statements: one op, and the numbers of the statements."""

from __future__ import annotations

import numpy as np
import pytest

import irkit

SOFTMAX = (
    "M(a, i) max=! X(a, i, k); E(a, i, k) = exp(X(a, i, k) - M(a, i)); S(a, i) +=! E(a, i, k);"
    " O(a, i, k) = E(a, i, k) / S(a, i)"
)
LAYER_NORM = (
    "U(a, i) +=! X(a, i, k); D(a, i, k) = X(a, i, k) - U(a, i) / 37.0;"
    " V(a, i) +=! D(a, i, k) * D(a, i, k); O(a, i, k) = D(a, i, k) / sqrt(1e-3 + V(a, i) / 37.0)"
)


@pytest.mark.parametrize("rule", [False, True])
@pytest.mark.parametrize(("text", "op"), [(SOFTMAX, "softmax"), (LAYER_NORM, "layer_norm")])
def test_statements_are_one_roperator(text: str, op: str, rule: bool) -> None:
    x = np.random.default_rng(0).standard_normal((3, 5, 37)) * 4
    x[0, 0, 3] = np.nan if op == "softmax" else 100.0
    x[1, 1, :] = 2.0
    sums = ("M", "S") if op == "softmax" else ("U", "V")
    made = irkit.te.op(text, dict.fromkeys(sums, "rule") if rule else None, target="cpu")
    if op == "softmax":
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        want = e / e.sum(axis=-1, keepdims=True)
    else:
        d = x - x.mean(axis=-1, keepdims=True)
        want = d / np.sqrt((d * d).mean(axis=-1, keepdims=True) + 1e-3)
    np.testing.assert_allclose(made(x), want, rtol=1e-12, atol=1e-12)
    scheduled = made.jitted.ir("schedule")
    assert scheduled.count("task.roperator") == 1
    assert f'rkernel = "{op}.' in scheduled


def test_a_statement_with_a_schedule_stays() -> None:
    made = irkit.te.op(SOFTMAX, {"S": "split k by 8"}, target="cpu")
    x = np.random.default_rng(0).standard_normal((2, 3, 20))
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    np.testing.assert_allclose(made(x), e / e.sum(axis=-1, keepdims=True), rtol=1e-12)
    assert "softmax" not in made.jitted.ir("task")
