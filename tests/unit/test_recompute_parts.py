"""Parts of parts of an array, with strides and offsets of their own."""

from __future__ import annotations

import numpy as np
import pytest

import irkit
from irkit.passes.graph import recompute_parts


@pytest.mark.parametrize(
    ("start", "step"), [(0, 1), (1, 1), (0, 2), (3, 2), (2, 3), (29, -1), (28, -2)]
)
def test_parts_of_parts_are_found(start: int, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recompute_parts, "LARGE", 1)

    def stencil(x):
        whole = x[start::step, 1::2]
        made = whole * 2 + whole
        return made[:-1, 3:] - made[1:, :-3], made[2::2, 1:] + made[2::2, :-1]

    x = np.random.default_rng(1).random((30, 40))
    for got, want in zip(irkit.jit(target="cpu")(stencil)(x), stencil(x), strict=True):
        np.testing.assert_array_equal(got, want)
