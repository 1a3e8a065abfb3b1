"""Histogram boosting on data frames: categories by their types, and floats of several types."""

# pyright: basic

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.preprocessing import StandardScaler

from tests.conformance.interpreted import interpreted, same

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "wide": RNG.normal(size=200),
        "narrow": RNG.normal(size=200).astype("f4"),
        "kind": pd.Categorical(RNG.choice(["a", "b", "c"], 200)),
        "grade": pd.Categorical(RNG.choice([3, 5, 8], 200)),
        "count": RNG.integers(0, 9, 200),
        "new": RNG.random(200) < 0.5,
    }
)
Y = FRAME["wide"] + FRAME["narrow"] + 2 * (FRAME["kind"] == "b") + FRAME["count"] % 2


@pytest.mark.parametrize("categories", ["from_dtype", ["kind", "grade"]])
def test_categories_and_floats_of_several_types(categories):
    model = HistGradientBoostingRegressor(max_iter=6, categorical_features=categories)
    program = interpreted(model.fit(FRAME, Y))
    gaps = FRAME.assign(narrow=FRAME["narrow"].where(FRAME["new"]), kind=["b", "zz"] * 100)
    for given in (FRAME, FRAME[:1], FRAME[FRAME.columns[::-1]], gaps):
        same(program.predict(given), model.predict(given))


def test_columns_that_are_transformed_keep_their_types():
    """A scaler computes in what all of its columns are: alone, in float32."""
    some = ["narrow"]
    parts = [("scaled", StandardScaler(), some), ("both", StandardScaler(), ["wide", "narrow"])]
    model = ColumnTransformer(parts).fit(FRAME)
    same(interpreted(model).transform(FRAME), model.transform(FRAME))
