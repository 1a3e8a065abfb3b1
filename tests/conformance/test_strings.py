"""Columns of strings: categories and gaps in them, against scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler, TargetEncoder

import irkit
from irkit.errors import InvalidInputError, UnsupportedError

ROWS = 60
RANDOM = np.random.default_rng(0)
Y = RANDOM.choice(np.array(["no", "perhaps", "yes"]), ROWS)
GAPS: list[Any] = [np.nan, None]


def rows(*gaps: Any) -> Any:
    """Two columns of strings, with gaps, and one of numbers, as objects."""
    x = np.empty((ROWS, 3), object)
    x[:, 0] = RANDOM.choice(np.array(["red", "green", "", "ünï"], object), ROWS)
    x[:, 1] = RANDOM.choice(np.array(["u", "v", "w", *gaps], object), ROWS)
    x[:, 2] = RANDOM.normal(size=ROWS)
    return x


def unseen(x: Any, *more: Any) -> Any:
    """x with strings that were not there when the model was fitted."""
    y = x.copy()
    y[::4, 0], y[1::5, 1] = "blue", "no"
    for place, value in enumerate(more):
        y[place::9, 1] = value
    return y


def same(model: Any, *inputs: Any, methods: tuple[str, ...] = ("transform",)) -> None:
    program = irkit.compile(model, mode="serial")
    for x in inputs:
        for method in methods:
            found, want = getattr(program, method)(x), getattr(model, method)(x)
            if want.dtype.kind != "f":
                np.testing.assert_array_equal(found, want)
            else:
                np.testing.assert_allclose(found, want, rtol=1e-12, atol=1e-14)


def steps(string: Any, number: Any) -> Any:
    return ColumnTransformer([("s", string, [0, 1]), ("n", number, [2])], sparse_threshold=0)


@pytest.mark.parametrize("gap", [*GAPS, "both", "none"], ids=str)
@pytest.mark.parametrize(
    "encoder",
    [
        OneHotEncoder(handle_unknown="ignore", sparse_output=False),
        OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=12, sparse_output=False),
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
        OrdinalEncoder(
            handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2
        ),
    ],
    ids=["one-hot", "infrequent", "ordinal", "missing"],
)
def test_encoders(encoder: Any, gap: Any) -> None:
    gaps = {"both": GAPS, "none": []}.get(gap, [gap]) if isinstance(gap, str) else [gap]
    x = rows(*gaps)
    model = steps(encoder, StandardScaler()).fit(x)
    same(model, x, unseen(x, np.nan, None))


@pytest.mark.parametrize("drop", ["first", "if_binary"])
def test_an_encoder_alone_that_knows_all(drop: str) -> None:
    x = rows()[:, :2]
    model = OneHotEncoder(drop=drop, sparse_output=False).fit(x)
    same(model, x)
    # Arrays of one type of string too.
    same(OneHotEncoder(drop=drop, sparse_output=False).fit(x.astype(str)), x.astype(str))
    program = irkit.compile(model, mode="serial")
    with pytest.raises(InvalidInputError, match="row 0: OneHotEncoder found an unknown category"):
        program.transform(unseen(x))


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_targets() -> None:
    x = rows()
    model = steps(TargetEncoder(), StandardScaler()).fit(x, Y)
    same(model, x, unseen(x))


@pytest.mark.parametrize("strategy", ["most_frequent", "constant"])
@pytest.mark.parametrize("gap", ["nan", "None", "v"])
def test_gaps_are_filled(strategy: str, gap: str) -> None:
    missing: Any = {"nan": np.nan, "None": None}.get(gap, gap)
    x = rows(missing)
    imputer = SimpleImputer(missing_values=missing, strategy=strategy)
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    same(steps(make_pipeline(imputer, encoder), StandardScaler()).fit(x), x, unseen(x, missing))


def test_several_readers_of_a_column() -> None:
    """Each encoder has categories of its own of the same columns."""
    x = rows(None)
    few = OneHotEncoder(
        categories=[["red"], ["v", None]], handle_unknown="ignore", sparse_output=False
    )
    union = make_union(
        few, OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
    )
    model = ColumnTransformer(
        [("a", union, [0, 1]), ("n", StandardScaler(), [2]), ("b", few, [0, 1])], sparse_threshold=0
    )
    same(model.fit(x), x, unseen(x))


def test_a_classifier_of_them() -> None:
    x = rows(np.nan)
    encoder = OneHotEncoder(handle_unknown="ignore")
    model = make_pipeline(steps(encoder, StandardScaler()), LogisticRegression()).fit(x, Y)
    same(model, x, unseen(x), methods=("predict", "predict_proba", "decision_function"))


def test_it_is_saved(tmp_path: Any) -> None:
    x = rows(None)
    model = steps(OneHotEncoder(handle_unknown="ignore"), StandardScaler()).fit(x)
    irkit.compile(model, mode="serial").save(tmp_path / "model.irkit")
    program = irkit.load(tmp_path / "model.irkit")
    np.testing.assert_array_equal(program.transform(unseen(x)), model.transform(unseen(x)))


def test_frames() -> None:
    pandas = pytest.importorskip("pandas")
    x = rows(np.nan)
    frame = pandas.DataFrame({"kind": x[:, 0], "mark": x[:, 1], "size": x[:, 2].astype(float)})
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    parts = [("s", encoder, ["kind", "mark"]), ("n", StandardScaler(), ["size"])]
    model = make_pipeline(ColumnTransformer(parts), LogisticRegression()).fit(frame, Y)
    other = frame[["size", "mark", "kind"]].copy()
    other.loc[::3, "kind"] = "blue"
    same(model, frame, other, methods=("predict", "predict_proba"))
    typed = frame.astype({"kind": "category", "mark": "category"})
    boosted = HistGradientBoostingClassifier(max_iter=3, categorical_features="from_dtype")
    same(boosted.fit(typed, Y), typed, methods=("predict", "predict_proba"))


# What is refused


def test_strings_that_pass_by() -> None:
    x = rows()
    parts = [("s", OneHotEncoder(), [0, 1]), ("p", "passthrough", [1])]
    with pytest.raises(
        UnsupportedError, match="columns of strings that are no categories: column 1"
    ):
        irkit.compile(ColumnTransformer(parts).fit(x))


def test_other_objects() -> None:
    x = rows()[:, :2]
    x[:, 1] = [("a", "b")[i % 2].encode() for i in range(ROWS)]
    with pytest.raises(UnsupportedError, match="categories of type bytes among others in column 1"):
        irkit.compile(OneHotEncoder().fit(x))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.zeros((3, 3)), "expected rows of objects, got float64"),
        (np.array([["red", "u"]], object), "expected shape rowsx3, got 1x2"),
        (np.array([["red", "u", "many"]], object), "column 2: expected numbers: could not convert"),
        (np.array([["red", "u", "1"]]), "column 2: expected numbers, got strings"),
        (np.array([["red", b"u", 1.0]], object), "column 1: bytes is neither a string"),
        (np.array([[[], "u", 1.0]], object), "column 0: unhashable type"),
    ],
    ids=["numbers", "narrow", "words", "typed", "bytes", "lists"],
)
def test_inputs_that_are_none(given: Any, message: str) -> None:
    model = steps(OneHotEncoder(handle_unknown="ignore"), StandardScaler()).fit(rows())
    with pytest.raises(InvalidInputError, match=message):
        irkit.compile(model, mode="serial").transform(given)
