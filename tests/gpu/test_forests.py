"""Forests of random shapes on a GPU, at numbers of rows around those where another plan serves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irkit
from benchmarks.forest_shapes import Shape, forest_text

lgb = pytest.importorskip("lightgbm")
torch = pytest.importorskip("torch")


def random_shape(rng: np.random.Generator) -> Shape:
    """Shallow and deep, few and many, narrow and wide."""
    depth = int(rng.integers(1, 13))
    trees = int(rng.integers(1, 300 if depth < 9 else 40))
    return Shape(trees, depth, int(rng.integers(1, 400)))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("mode", ["per-op", "persistent"])
def test_a_forest_of_any_shape_has_lightgbms_answers(seed: int, mode: str) -> None:
    rng = np.random.default_rng(seed)
    shape = random_shape(rng)
    model: Any = lgb.Booster(model_str=forest_text(shape, seed))
    program = irkit.compile(model, target="cuda", dtype="float32", mode=mode)
    for rows in (1, 31, 33, 1000, int(rng.integers(2, 40_000))):
        x = rng.standard_normal((rows, shape.features), dtype=np.float32)
        x[rng.random(x.shape) < 0.05] = np.nan
        got = program(torch.from_numpy(x).cuda()).cpu().numpy()
        np.testing.assert_allclose(got, model.predict(x), rtol=0, atol=1e-14)
