"""One row: the short way answers as the long one does, and what it must not take goes the long way."""

from __future__ import annotations

import copy
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import irkit
from irkit.errors import InvalidInputError
from irkit.runtime.row_call import RowCall

RNG = np.random.default_rng(8)
X = RNG.normal(size=(80, 6))
Y = np.where(X[:, 0] + X[:, 1] > 0, "up", "down")
WIDE = 1e300


def compiled(model: Any, dtype: str = "float32", **options: Any) -> Any:
    return irkit.compile(model, "cpu", dtype=dtype, **options)


def rows(x: Any) -> list[Any]:
    return [np.ascontiguousarray(x[i : i + 1]) for i in range(len(x))]


@pytest.fixture(scope="module")
def forest() -> Any:
    return RandomForestClassifier(9, max_depth=4, random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def program(forest: Any) -> Any:
    return compiled(forest)


def short(program: Any, method: str, x: Any) -> Any:
    """What the short way says; None where it leaves the row to the long one."""
    program._row_calls(method)
    found = [made for call in program._rows[method] if (made := call(x)) is not None]
    return found[0] if found else None


@pytest.mark.parametrize(
    ("model", "methods"),
    [
        (RandomForestClassifier(9, random_state=0), ("predict", "predict_proba")),
        (RandomForestRegressor(5, max_depth=3, random_state=0), ("predict",)),
        (
            IsolationForest(n_estimators=5, random_state=0),
            ("predict", "decision_function", "score_samples"),
        ),
        (
            make_pipeline(StandardScaler(), LogisticRegression()),
            ("predict", "predict_proba", "predict_log_proba", "decision_function"),
        ),
        (make_pipeline(StandardScaler()), ("transform",)),
        (GaussianNB(), ("predict", "predict_proba")),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_methods_of_one_row_are_the_models(model: Any, methods: Any, dtype: str) -> None:
    y = Y if hasattr(model, "predict_proba") else X[:, 2]
    model = copy.deepcopy(model).fit(X, y)
    made, x = compiled(model, dtype), X.astype(dtype)
    for method in methods:
        want = getattr(model, method)(x)
        for i, row in enumerate(rows(x)[:20]):
            got = getattr(made, method)(row)
            assert got.dtype == want.dtype or want.dtype.kind == "f"
            if want.dtype.kind == "f":
                np.testing.assert_allclose(got, want[i : i + 1], rtol=3e-5, atol=1e-6)
            else:
                np.testing.assert_array_equal(got, want[i : i + 1])


def test_the_short_way_is_taken(program: Any, forest: Any) -> None:
    """Of float32, and of float64, which scikit-learn rounds: with the bits of all rows at once."""
    want = forest.predict_proba(X)
    for i, row in enumerate(rows(X)):
        kept = row.astype(np.float32)
        kept.flags.writeable = False
        for x in (row, row.astype(np.float32), kept):
            np.testing.assert_array_equal(short(program, "predict_proba", x), want[i : i + 1])
            assert program.predict(x)[0] == forest.predict(row)[0]


@pytest.mark.parametrize(
    "odd",
    [
        X[:2],
        X[0],
        X[:1, :5],
        X[:0],
        X[:1].tolist(),
        X[:1].astype(">f4"),
        X[:1].astype(">f8"),
        X[:1].astype(np.float16),
        X[:1].astype(np.int64),
        np.asfortranarray(X[:2])[:1],
        X[:1, ::-1],
        np.frombuffer(b"\0" + X[:1].tobytes(), np.float64, 6, 1).reshape(1, 6),
        np.ma.masked_array(X[:1]),
        np.full((1, 6), np.inf),
        np.full((1, 6), WIDE),
        np.full((1, 6), np.inf, np.float32),
        [],
        None,
    ],
)
def test_what_is_not_plain_goes_the_long_way(program: Any, odd: Any) -> None:
    assert short(program, "predict_proba", odd) is None


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("wrong", [np.inf, -np.inf, WIDE])
def test_refused_values_are_refused_by_name(program: Any, dtype: str, wrong: float) -> None:
    with np.errstate(over="ignore"):
        row = np.full((1, 6), wrong).astype(dtype)
    for method in ("predict", "predict_proba"):
        with (
            warnings.catch_warnings(action="error"),
            pytest.raises(InvalidInputError, match="infinity"),
        ):
            getattr(program, method)(row)


def test_nan_is_refused_where_the_library_refuses_it() -> None:
    model = LogisticRegression().fit(X, Y)
    made, row = compiled(model, "float64"), X[:1].copy()
    row[0, 3] = np.nan
    with pytest.raises(InvalidInputError, match="NaN"):
        made.predict_proba(row)
    assert short(made, "predict_proba", row) is None
    assert short(made, "predict_proba", X[:1].copy()) is not None


def test_nan_is_taken_where_the_library_takes_it(program: Any, forest: Any) -> None:
    row = X[:1].copy()
    row[0, :3] = np.nan
    want = forest.predict_proba(row)
    np.testing.assert_array_equal(short(program, "predict_proba", row), want)
    np.testing.assert_array_equal(program.predict_proba(row.astype(np.float32)), want)


def test_each_dtype_has_its_own_program() -> None:
    """float64 is rounded by no program where there is another that computes in it."""
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
    made = irkit.compile(model, "cpu")
    for x in (X, X.astype(np.float32)):
        want = model.predict_proba(x)
        for i in range(4):
            got = made.predict_proba(np.ascontiguousarray(x[i : i + 1]))
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got, want[i : i + 1], rtol=1e-5 if x is not X else 1e-12)


def test_a_call_of_one_output_is_short() -> None:
    """As that of a method; of several outputs there is none."""
    model = RandomForestRegressor(5, max_depth=3, random_state=0).fit(X, X[:, 2])
    made = compiled(model)
    for i, row in enumerate(rows(X)[:9]):
        np.testing.assert_array_equal(made(row), model.predict(X[i : i + 1]))
        np.testing.assert_array_equal(short(made, "", row), model.predict(X[i : i + 1]))
    np.testing.assert_array_equal(made(X), model.predict(X))
    with pytest.raises(InvalidInputError, match="expected 1 inputs"):
        made(X[:1], X[:1])


def test_a_call_of_several_outputs_has_all(program: Any, forest: Any) -> None:
    label, probabilities = program(np.ascontiguousarray(X[:1]))
    np.testing.assert_array_equal(probabilities, forest.predict_proba(X[:1]))
    assert label.shape == (1,)


def test_answers_are_the_callers_own(program: Any, forest: Any) -> None:
    found = [program.predict_proba(row) for row in rows(X)]
    np.testing.assert_array_equal(np.concatenate(found), forest.predict_proba(X))
    assert all(f.flags.writeable and f.base is None for f in found)


def test_threads_have_workspaces_of_their_own(program: Any, forest: Any) -> None:
    want, wanted = forest.predict_proba(X), forest.predict(X)

    def one(i: int) -> bool:
        row = X[i % 80 : i % 80 + 1].copy()
        same = np.array_equal(program.predict_proba(row), want[i % 80 : i % 80 + 1])
        return same and program.predict(row)[0] == wanted[i % 80]

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(one, range(2000)))


def test_a_mode_that_is_asked_for_is_kept_to(forest: Any) -> None:
    """Then there is no short way, whenever the mode is set."""
    made, row = compiled(forest), np.ascontiguousarray(X[:1])
    assert short(made, "predict_proba", row) is not None
    executor = made._first.executor
    if "per-wave" not in map(str, executor.choice.allowed):
        pytest.skip("a program of one vEU")
    executor.mode = "per-wave"
    assert short(made, "predict_proba", row) is None
    np.testing.assert_array_equal(made.predict_proba(row), forest.predict_proba(row))
    executor.mode = "auto"
    assert short(made, "predict_proba", row) is not None


def test_large_outputs_are_not_kept() -> None:
    executor = compiled(RandomForestRegressor(2, random_state=0).fit(X, X[:, 0]))._first.executor
    assert RowCall.of(executor, 0, casts=True) is not None
    executor.row_outputs = [((1, 1 << 20), np.dtype(np.float64))]
    assert RowCall.of(executor, 0, casts=True) is None
