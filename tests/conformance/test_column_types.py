"""Data frames whose columns have several types: a step computes in that of the columns that it is given."""

# pyright: basic, reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
from sklearn import ensemble, impute, linear_model, preprocessing, tree
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.pipeline import FeatureUnion, make_pipeline

import irkit
from irkit.errors import InvalidInputError
from irkit.frontends.sklearn import import_sklearn
from irkit.model_info import ModelInfo
from irkit.row_forms import RowForm
from tests.conformance.interpreted import METHODS, interpreted, same

pytestmark = pytest.mark.filterwarnings("ignore")
RNG = np.random.default_rng(3)
ROWS = 60
FRAME = pd.DataFrame(
    {
        "narrow": RNG.normal(size=ROWS).astype(np.float32),
        "wide": RNG.normal(size=ROWS),
        "long": RNG.integers(-9, 9, ROWS),
        "small": RNG.integers(0, 5, ROWS).astype(np.int8),
        "also": (1e3 * RNG.normal(size=ROWS)).astype(np.float32),
        "short": RNG.integers(0, 700, ROWS).astype(np.uint16),
        "truth": RNG.random(ROWS) < 0.5,
        "word": np.array(["a", "b", "cc"], object)[RNG.integers(0, 3, ROWS)],
    }
)
Y = (FRAME["wide"] + FRAME["narrow"] > 0).to_numpy().astype(int)
SCALE = preprocessing.StandardScaler()
ONE_HOT = preprocessing.OneHotEncoder(handle_unknown="ignore")


def agree(model: Any, frame: Any = FRAME) -> None:
    """To the last bit."""
    program: Any = interpreted(model)
    for rows in (frame, frame[:1], frame[::-1]):
        for method in (m for m in METHODS if m in program._methods):
            same(getattr(program, method)(rows), getattr(model, method)(rows))


@pytest.mark.parametrize(
    "parts",
    [
        [("n", SCALE, ["narrow", "also"]), ("w", SCALE, ["wide", "long"])],
        [("all", SCALE, ["narrow", "wide", "small"])],
        [("n", SCALE, ["narrow", "small"]), ("s", SCALE, ["small"])],
        [("n", SCALE, ["narrow"]), ("l", SCALE, ["long"])],
        [("n", preprocessing.MinMaxScaler(), ["narrow", "short"]), ("t", SCALE, ["truth"])],
        [("n", "passthrough", ["narrow", "small"]), ("s", SCALE, ["also"])],
        [("n", "passthrough", ["narrow", "wide"]), ("s", SCALE, ["also"])],
        [("n", "passthrough", ["narrow"]), ("s", "passthrough", ["small"]), ("a", SCALE, ["also"])],
        [("n", ONE_HOT, ["small", "narrow"]), ("w", SCALE, ["also"]), ("t", ONE_HOT, ["word"])],
        [
            (
                "u",
                FeatureUnion([("a", SCALE), ("b", preprocessing.RobustScaler())]),
                ["narrow", "wide"],
            )
        ],
        [("c", ColumnTransformer([("a", SCALE, ["narrow"])], remainder=SCALE), ["wide", "narrow"])],
        [("p", make_pipeline("passthrough", SCALE), ["narrow"]), ("w", SCALE, ["wide"])],
        [
            ("k", make_pipeline(VarianceThreshold(), SCALE), ["narrow", "wide"]),
            ("a", SCALE, ["also"]),
        ],
        [("f", preprocessing.FunctionTransformer(np.sqrt), ["also", "wide"])],
        [
            ("i", impute.SimpleImputer(add_indicator=True), ["narrow", "long"]),
            ("a", SCALE, ["also"]),
        ],
    ],
    ids=lambda parts: "-".join(str(columns) for _, _, columns in parts),
)
def test_each_step_has_its_type(parts: Any) -> None:
    agree(ColumnTransformer(parts, sparse_threshold=0).fit(FRAME))
    weights = {parts[0][0]: 0.3}
    agree(ColumnTransformer(parts, sparse_threshold=0, transformer_weights=weights).fit(FRAME))


NUMBERS = FRAME[["narrow", "wide", "long", "also", "short"]]
PICKED = ColumnTransformer([("n", SCALE, ["narrow", "also"])], remainder=SCALE)


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(PICKED, tree.DecisionTreeClassifier(random_state=0)),
        make_pipeline(PICKED, SelectKBest(k=2), ensemble.RandomForestClassifier(3, random_state=0)),
        make_pipeline(PICKED, ensemble.HistGradientBoostingClassifier(max_iter=3)),
        make_pipeline(PICKED, lgb.LGBMClassifier(n_estimators=3, min_child_samples=3, verbose=-1)),
        FeatureUnion([("one", PICKED), ("two", "passthrough")]),
        FeatureUnion([("one", PICKED), ("two", SCALE)]),
        ensemble.VotingClassifier(
            [
                ("one", make_pipeline(PICKED, tree.DecisionTreeClassifier(random_state=0))),
                ("two", tree.DecisionTreeClassifier(random_state=1)),
            ],
            voting="soft",
        ),
    ],
)
def test_models(model: Any) -> None:
    agree(model.fit(NUMBERS, Y), NUMBERS)


def test_functions_of_frames() -> None:
    """NumPy computes each column of a frame in its own type."""
    model = make_pipeline(preprocessing.FunctionTransformer(np.square), SCALE)
    frame = NUMBERS[["narrow", "wide", "also"]]
    agree(model.fit(frame), frame)
    agree(preprocessing.FunctionTransformer(np.abs).fit(frame), frame)


def test_frames_for_what_was_fitted_on_arrays() -> None:
    model = ColumnTransformer([("a", SCALE, [0]), ("b", SCALE, [1, 2])]).fit(NUMBERS.to_numpy())
    agree(model, NUMBERS)


def test_saved(tmp_path: Path) -> None:
    """With the programs that have been asked for, and no others."""
    model = ColumnTransformer([("n", SCALE, ["narrow"])], remainder=SCALE).fit(NUMBERS)
    program = irkit.compile(model, "cpu", mode="serial", dtype="float64")
    same(program.transform(NUMBERS), model.transform(NUMBERS))
    program.save(tmp_path / "model")
    loaded = irkit.load(tmp_path / "model")
    same(loaded.transform(NUMBERS), model.transform(NUMBERS))
    whole = NUMBERS.astype(np.float64)
    same(loaded.transform(whole), model.transform(whole))
    other = NUMBERS.assign(wide=NUMBERS["wide"].astype(np.float32))
    same(program.transform(other), model.transform(other))
    with pytest.raises(InvalidInputError, match="has met no such columns"):
        loaded.transform(other)
    form = RowForm(types=("float32", *["float64"] * 4))
    info = import_sklearn(model, rows=form).info
    assert info.types == form.types
    assert ModelInfo.from_json(info.to_json()) == info


def test_documents_beside_columns_of_several_types() -> None:
    frame = NUMBERS.assign(text=["one two", "two", "three one"] * 20)
    parts = [("n", SCALE, ["narrow"]), ("w", SCALE, ["wide"]), ("t", CountVectorizer(), "text")]
    model = make_pipeline(ColumnTransformer(parts), linear_model.LogisticRegression())
    program: Any = interpreted(model.fit(frame, Y))
    same(program.predict_proba(frame), model.predict_proba(frame), 1e-12)


def test_halves_are_refused() -> None:
    model = ColumnTransformer([("n", SCALE, ["narrow"])], remainder=SCALE).fit(NUMBERS)
    frame = NUMBERS.assign(wide=NUMBERS["wide"].astype(np.float16))
    with pytest.raises(InvalidInputError, match="wide are float16"):
        interpreted(model).transform(frame)
