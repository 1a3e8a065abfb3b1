"""Derivatives of random tensor expressions: forward against reverse mode, and both against differences."""

from __future__ import annotations

import numpy as np
import pytest
from gradient_cases import Case
from test_expression_programs import Drawn
from test_gradients import built, derived, ran

from irkit.dialects import graph
from irkit.expressions.binding import program_of
from irkit.passes.graph.differentiation import Differentiation

STEP = 1e-6


@pytest.mark.parametrize("seed", range(60))
def test_modes_and_differences_agree(seed):
    drawn = Drawn(seed)
    arrays = [drawn.arrays[p.name].astype(np.float64) for p in program_of(drawn.text).parameters]
    if not arrays:
        return
    model = built(Case(graph.ExpressionOp, tuple(arrays), {"text": drawn.text}))
    rng, wrt = np.random.default_rng(seed), tuple(range(len(arrays)))
    tangents = [rng.standard_normal(a.shape) for a in arrays]
    cotangent = rng.standard_normal(ran(model, arrays)[0].shape)
    forward = derived(model, Differentiation("forward", wrt, (0,), allow_unused=True))
    reverse = derived(model, Differentiation("reverse", wrt, (0,), allow_unused=True))
    along = (ran(forward, [*arrays, *tangents])[-1] * cotangent).sum()
    gradients = ran(reverse, [*arrays, cotangent])[-len(arrays) :]
    back = sum((g * t).sum() for g, t in zip(gradients, tangents, strict=True))
    ends = [
        ran(model, [a + sign * STEP * t for a, t in zip(arrays, tangents, strict=True)])[0]
        for sign in (1, -1)
    ]
    differences = ((ends[0] - ends[1]) / 2 / STEP * cotangent).sum()
    np.testing.assert_allclose(back, along, rtol=1e-9, atol=1e-9, err_msg=drawn.text)
    np.testing.assert_allclose(differences, along, rtol=1e-4, atol=1e-4, err_msg=drawn.text)
