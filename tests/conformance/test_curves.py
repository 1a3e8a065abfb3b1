"""Curves of columns against scikit-learn: powers, quantiles, splines, and means of targets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csc_array
from sklearn.preprocessing import (
    PowerTransformer,
    QuantileTransformer,
    SplineTransformer,
    TargetEncoder,
)

from irkit.errors import InvalidInputError, UnsupportedError
from irkit.frontends import import_model
from tests.conformance.interpreted import compare, interpreted, same
from tests.conformance.sklearn_models import data, with_gaps

pytestmark = pytest.mark.filterwarnings("ignore")


def check(model: Any, x: Any, tolerance: float = 1e-9) -> None:
    program = interpreted(model)
    compare(program, model, x, rtol=tolerance, atol=tolerance)
    compare(program, model, x.astype(np.float32), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("standardize", [True, False])
def test_powers(standardize: bool) -> None:
    x = data("wine")[0]
    model = PowerTransformer(standardize=standardize).fit(x - 2.0)
    check(model, with_gaps(x - 2.0))
    # Exponents at which a logarithm takes the power's place.
    model.lambdas_[:6] = [0.0, 2.0, 1.0, -3.0, 1e-15, 2 - 1e-15]
    check(model, with_gaps(x - 2.0))
    positive = PowerTransformer(method="box-cox", standardize=standardize).fit(x + 0.1)
    positive.lambdas_[0] = 0.0
    check(positive, with_gaps(x + 0.1))
    wrong = x + 0.1
    wrong[3, 2] = 0.0
    with pytest.raises(ValueError, match="strictly positive"):
        positive.transform(wrong)
    with pytest.raises(InvalidInputError, match="row 3: PowerTransformer found a number"):
        interpreted(positive).transform(wrong)


def test_powers_that_overflow_are_refused_where_they_are_standardised() -> None:
    x = data("wine")[0]
    large = x.copy()
    large[7, 0] = 1e300
    model = PowerTransformer().fit(x)
    model.lambdas_[0] = 3.0
    with pytest.raises(ValueError, match="infinity"):
        model.transform(large)
    with pytest.raises(InvalidInputError, match="row 7: infinity reaches the scaler"):
        interpreted(model).transform(large)
    plain = PowerTransformer(standardize=False).fit(x)
    plain.lambdas_[0] = 3.0
    compare(interpreted(plain), plain, large, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("count", [2, 7, 100])
def test_quantiles(count: int) -> None:
    # Columns of few values have knots that are equal.
    x = np.round(data("wine")[0][:100], 1)
    model = QuantileTransformer(n_quantiles=count).fit(x)
    ends = np.concatenate([model.quantiles_, model.quantiles_ + 0.01, 2 * x[:5], -x[:5]])
    check(model, with_gaps(np.concatenate([x, ends])))
    sparse = np.concatenate([x[:50] * 0, x])
    check(QuantileTransformer(n_quantiles=count).fit(sparse), sparse)


@pytest.mark.parametrize("count", [2, 30, 300])
def test_normal_quantiles(count: int) -> None:
    """They have SciPy's own bits, also next to the ends of what was fitted."""
    random = np.random.default_rng(count)
    x = random.normal(size=(300, 4)) * [1.0, 1e-8, 1e6, 1.0]
    x[:, 3] = np.round(x[:, 3], 1)
    model = QuantileTransformer(n_quantiles=count, output_distribution="normal").fit(x)
    knots = model.quantiles_
    near = [knots + step for step in (0, 5e-8, -5e-8, 1e-7, -1e-7, 2e-7, -2e-7)]
    rows = with_gaps(np.concatenate([x, *near, np.nextafter(knots, 1e9), 3 * x, -x]))
    program = interpreted(model)
    for given in (rows, rows.astype(np.float32)):
        same(program.transform(given), model.transform(given))


def test_quantiles_take_no_sparse_rows() -> None:
    """scikit-learn leaves at 0 what is not there."""
    x = np.abs(np.round(data("iris")[0] - 3.0))
    model = QuantileTransformer(n_quantiles=20, ignore_implicit_zeros=True).fit(csc_array(x))
    with pytest.raises(UnsupportedError, match="leaves what is absent at 0"):
        interpreted(model).transform(csc_array(x))


@pytest.mark.parametrize(
    ("degree", "extrapolation"),
    [
        *((degree, "linear") for degree in (2, 3)),
        *(
            (degree, how)
            for degree in (1, 2, 3)
            for how in ("constant", "continue", "periodic", "error")
        ),
    ],
)
def test_splines(degree: int, extrapolation: Any) -> None:
    x = data("iris")[0]
    model = SplineTransformer(degree=degree, n_knots=5, extrapolation=extrapolation).fit(x)
    knots = np.stack([s.t[degree : len(s.t) - degree] for s in model.bsplines_], axis=1)
    beyond = [] if extrapolation == "error" else [x + 1.3, -2 * x]
    given = np.concatenate([x, knots, *beyond])
    if extrapolation == "error":
        # As float32, the last knot lies beyond itself.
        compare(interpreted(model), model, given, rtol=1e-8, atol=1e-8)
    else:
        check(model, given, 1e-8)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("extrapolation", ["constant", "linear", "continue"])
def test_splines_that_end_are_0_at_the_last_knot(extrapolation: Any, dtype: str) -> None:
    """Not nearly 0: what asks whether a number is above 0 is told that it is not."""
    x = data("iris")[0].astype(dtype)
    model = SplineTransformer(n_knots=3, extrapolation=extrapolation).fit(x)
    ends = x[x.argmax(axis=0)]
    found, want = interpreted(model).transform(ends), model.transform(ends)
    np.testing.assert_array_equal(found == 0, want == 0)


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_splines_whose_ends_stand_twice(degree: int) -> None:
    """SciPy goes on with what it makes of the empty interval between two equal knots."""
    x = np.concatenate([np.zeros(30), np.arange(10.0), np.full(30, 10.0)])[:, None]
    model = SplineTransformer(5, degree=degree, knots="quantile", extrapolation="continue").fit(x)
    check(model, np.concatenate([x, x * 2 - 5, -x]), 1e-8)


@pytest.mark.parametrize("extrapolation", ["periodic", "continue", "constant", "linear"])
@pytest.mark.parametrize("value", [0.0, 5.0])
def test_a_constant_column(value: float, extrapolation: Any) -> None:
    """It has no period: scikit-learn takes all numbers for 0 then."""
    x = data("iris")[0].copy()
    x[:, 1] = value
    model = SplineTransformer(degree=2, n_knots=3, extrapolation=extrapolation).fit(x)
    check(model, np.concatenate([x, x + 1.3]), 1e-8)


def test_other_splines() -> None:
    x = data("iris")[0]
    check(SplineTransformer(knots="quantile", include_bias=False).fit(x), x)
    check(SplineTransformer(degree=0, extrapolation="continue").fit(x), x)
    gaps = with_gaps(x)
    check(SplineTransformer(handle_missing="zeros", n_knots=2).fit(gaps), gaps)
    model = SplineTransformer(extrapolation="error").fit(x)
    with pytest.raises(ValueError, match="beyond the limits"):
        model.transform(x + 9)
    with pytest.raises(InvalidInputError, match="row 0: SplineTransformer found a value beyond"):
        interpreted(model).transform(x + 9)


def test_means_of_targets() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 5, (150, 3)).astype(np.float64)
    other = np.concatenate([x, x + 0.5, np.full((1, 3), np.nan)])
    for y in (
        rng.random(150),
        rng.integers(0, 2, 150),
        np.array(["a", "b", "ü"])[x[:, 0].astype(int) % 3],
    ):
        check(TargetEncoder(random_state=0).fit(x, y), other)
        gaps = with_gaps(x)
        check(TargetEncoder(random_state=0).fit(gaps, y), np.concatenate([gaps, other]))


def test_refused_by_name() -> None:
    x = data("iris")[0]
    for model, reason in (
        (QuantileTransformer(n_quantiles=1).fit(x), "one quantile"),
        (SplineTransformer(degree=0).fit(x), "parameter degree=0 with extrapolation='constant'"),
        (TargetEncoder().fit([[b"a"], [b"b"]] * 9, np.arange(18.0)), "categories of "),
    ):
        with pytest.raises(UnsupportedError) as caught:
            import_model(model, "float64")
        assert reason in caught.value.missing[0]


def test_compiled(compiled: Any) -> None:
    x = data("iris")[0]
    model = SplineTransformer(n_knots=4).fit(x)
    compare(compiled(model, mode="serial", dtype="float64"), model, x + 0.1, rtol=1e-9, atol=1e-9)
