"""Arrays of integers that LightGBM rounds to float32, and what of them other parts of a model see."""

# pyright: basic

from __future__ import annotations

from typing import Any

import lightgbm as lgb
import numpy as np
import pandas
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import ensemble, linear_model, pipeline, preprocessing

from irkit.errors import InvalidInputError
from tests.conformance.interpreted import interpreted

pytestmark = pytest.mark.filterwarnings("ignore")
pd: Any = pandas


@pytest.fixture(scope="module")
def odd_and_even() -> tuple[Any, Any]:
    """A model that tells integers apart that are one float32, and rows of them."""
    x = 2**24 + np.random.default_rng(0).integers(0, 64, (200, 2))
    model = lgb.LGBMRegressor(n_estimators=3, min_child_samples=2, max_bin=1023, verbose=-1)
    return model.fit(x.astype(np.float64), x[:, 0] % 2 + x[:, 1] % 3), x


INTEGERS: dict[str, Any] = {
    "bool": lambda x: x % 2 == 0,
    "frame": pd.DataFrame,
    "frame_of_int32": lambda x: pd.DataFrame(x.astype(np.int32)),
    "int16": lambda x: (x % 999).astype(np.int16),
    "int32": lambda x: x.astype(np.int32),
    "int64": lambda x: x,
    "list": lambda x: x.tolist(),
    "list_of_floats": lambda x: x.astype(float).tolist(),
    "uint64": lambda x: x.astype(np.uint64),
}


@pytest.mark.parametrize("kind", INTEGERS)
def test_integers_are_rounded_as_lightgbm_does(odd_and_even: Any, kind: str) -> None:
    model, x = odd_and_even
    given = INTEGERS[kind](x)
    for source in (model, model.booster_):
        assert_array_equal(interpreted(source).predict(given), source.predict(given))


def test_integers_that_parts_of_a_model_round(odd_and_even: Any) -> None:
    model, x = odd_and_even
    both: Any = ensemble.VotingRegressor([("l", model), ("r", linear_model.Ridge())]).fit(
        x, x[:, 0] % 2
    )
    program = interpreted(both)
    with pytest.raises(InvalidInputError, match="integers beyond 2\\^24, which LightGBM within"):
        program.predict(x)
    small = x % 4096
    assert_allclose(program.predict(small), both.predict(small), rtol=1e-6)
    steps: Any = pipeline
    scaled = steps.make_pipeline(preprocessing.StandardScaler(), model).fit(x, x[:, 0] % 2)
    assert_array_equal(interpreted(scaled).predict(x), scaled.predict(x))
