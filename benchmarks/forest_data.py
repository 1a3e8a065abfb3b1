"""The forest that irkit and nvForest are measured on, in calls of their own."""

from __future__ import annotations

from typing import Any

import numpy as np


def forest_model(rows: int = 100_000) -> tuple[Any, Any]:
    """LightGBM binary classifier, 500 trees of depth 8 on 28 features, trained on made data."""
    import lightgbm

    rng = np.random.default_rng(0)
    x = rng.standard_normal((rows, 28), dtype=np.float32)
    score = x[:, :10] @ rng.standard_normal(10) + np.sin(3 * x[:, 10]) * 2 + x[:, 11] * x[:, 12]
    y = (score + rng.standard_normal(rows) > 0).astype(np.int32)
    settings: dict[str, Any] = {
        "num_leaves": 256,
        "max_depth": 8,
        "learning_rate": 0.1,
        "verbose": -1,
    }
    return lightgbm.LGBMClassifier(n_estimators=500, **settings).fit(x, y), rng
