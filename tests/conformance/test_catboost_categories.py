"""CatBoost models with categorical features against CatBoost's own answers, where it is installed."""

# pyright: basic

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import irkit
from irkit.errors import InvalidInputError, UnsupportedError
from irkit.frontends import import_model
from tests.conformance.catboost_models import answers
from tests.conformance.interpreted import interpreted, same

cb = pytest.importorskip("catboost")
pytestmark = pytest.mark.filterwarnings("ignore")
SMALL: dict[str, Any] = {
    "iterations": 12, "depth": 4, "verbose": 0, "allow_writing_files": False, "thread_count": 1,
}  # fmt: skip
SEEDS, COMPILED = 40, 5
STATISTICS = ("Borders:TargetBorderCount=3", "Buckets", "BinarizedTargetMeanValue", "Counter")


class Draw:
    """A random model of numbers, strings and integers, and rows for it that have others too."""

    def __init__(self, seed: int) -> None:
        rng = self.rng = np.random.default_rng(seed)
        count = 240
        town = rng.choice(
            ["", "Bern", "Łódź", "a name of more than thirty-two letters", "x" * 90], count
        )
        code, day = rng.integers(-9, 30, count), rng.choice(["mo", "tu", "we"], count)
        size, age = rng.normal(size=count), rng.normal(size=count)
        self.gaps = bool(seed % 2)
        if self.gaps:
            size[rng.random(count) < 0.2] = np.nan
        self.frame = pd.DataFrame(
            {"size": size, "town": town, "age": age, "code": code, "day": day}
        )
        self.frame["day"] = self.frame["day"].astype("category")
        near = np.nan_to_num(size, nan=2.0) + (code % 4) + 2.0 * (town == "Bern") * (age > 0)
        self.y = near + (self.frame["day"] == "mo") * (age < 0.5) + 0.1 * rng.normal(size=count)

    def one_of(self, *given: Any) -> Any:
        return given[self.rng.integers(len(given))]

    def model(self) -> Any:
        policy = self.one_of("SymmetricTree", "SymmetricTree", "Lossguide", "Depthwise")
        training = SMALL | {
            "cat_features": ["town", "code", "day"],
            "depth": int(self.rng.integers(1, 7)),
            "grow_policy": policy,
            "nan_mode": self.one_of("Min", "Max") if self.gaps else "Min",
            "one_hot_max_size": self.one_of(1, 3, 8, 60),
            "max_ctr_complexity": self.one_of(1, 2, 4),
            "simple_ctr": list(self.rng.choice(STATISTICS, self.rng.integers(1, 4), replace=False)),
            "combinations_ctr": list(self.rng.choice(STATISTICS, 2, replace=False)),
            "random_seed": int(self.rng.integers(1000)),
            "learning_rate": 0.5,
        }
        if self.rng.random() < 0.6:
            return cb.CatBoostRegressor(**training).fit(self.frame, self.y)
        # Of classes there are borders enough.
        for key in ("simple_ctr", "combinations_ctr"):
            training[key] = [kind.partition(":")[0] for kind in training[key]]
        borders = self.one_of([0.5], [0.3, 0.7])
        labels = np.digitize(self.y, np.quantile(self.y, borders))
        return cb.CatBoostClassifier(**training).fit(
            self.frame, np.array(["no", "yes", "so"])[labels]
        )

    def rows(self, path: Path) -> pd.DataFrame:
        """Those of training, and others: on borders, and with categories that training had not."""
        made = self.frame.copy()
        made["day"] = made["day"].astype(object)
        count = len(made)
        for column, others in (
            ("town", ["bern", "x" * 91, "7"]),
            ("code", [77, -77, 2**62]),
            ("day", ["su"]),
        ):
            at = self.rng.random(count) < 0.15
            made.loc[at, column] = [others[i % len(others)] for i in range(int(at.sum()))]
        for feature in json.loads(path.read_text())["features_info"]["float_features"]:
            for border in feature["borders"]:
                column = "age" if feature["flat_feature_index"] else "size"
                single = np.float32(border)
                places = self.rng.integers(0, count, 3)
                made.loc[places, column] = [
                    np.nextafter(single, np.float32(s)) for s in (-9, 9)
                ] + [border]
        return made


def agree(program: Any, model: Any, rows: Any) -> None:
    for method, values in answers(model, rows).items():
        raw = method == "decision_function" or values.dtype.kind != "f"
        raw |= isinstance(model, cb.CatBoostRegressor)
        same(getattr(program, method)(rows), values, *((0.0, 0.0) if raw else (1e-12, 1e-300)))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_models(seed: int, tmp_path: Path) -> None:
    draw = Draw(seed)
    model = draw.model()
    model.save_model(tmp_path / "m.json", format="json")
    agree(interpreted(model), model, draw.rows(tmp_path / "m.json"))


@pytest.mark.parametrize("seed", range(SEEDS, SEEDS + COMPILED))
def test_random_models_are_compiled(seed: int, tmp_path: Path) -> None:
    draw = Draw(seed)
    model = draw.model()
    model.save_model(tmp_path / "m.json", format="json")
    program = irkit.compile(model, target="cpu")
    rows = draw.rows(tmp_path / "m.json")
    agree(program, model, rows)
    agree(program, model, rows[:1])
    program.save(tmp_path / "m.irkit")
    agree(irkit.load(tmp_path / "m.irkit"), model, rows[:30])


def simple() -> tuple[Any, Any]:
    """A model of a category and a number, whose answers tell the categories, and its program."""
    rng = np.random.default_rng(2)
    kinds = ["1", "2", "-3", "0", "True", "nan", "None", "1.0", "18446744073709551615", "é", ""]
    kind = rng.choice(kinds, 400)
    frame = pd.DataFrame({"kind": kind, "size": rng.normal(size=400)})
    number = np.array([kinds.index(k) for k in kind]) + 0.01 * frame["size"]
    more = {"iterations": 60, "one_hot_max_size": 30, "learning_rate": 0.5}
    model = cb.CatBoostRegressor(**SMALL | more, cat_features=["kind"]).fit(frame, number)
    return model, interpreted(model)


CELLS = (
    "1", b"1", np.str_("1"), np.bytes_(b"1"), 1, np.int8(1), True, np.bool_(False), -3, 0, 2**63 - 1,
    -(2**63), "é", "", "1\0", "unseen",
)  # fmt: skip
NO_CELLS = (
    1.0, np.float32(1), np.nan, None, pd.NA, pd.NaT, np.inf, 2**63, "\ud800", 3 + 0j, [1],
)  # fmt: skip


@pytest.mark.parametrize("cell", CELLS, ids=repr)
def test_what_is_a_category(cell: Any) -> None:
    model, program = simple()
    rows = np.array([[cell, 0.5]], object)
    same(program.predict(rows), model.predict(rows), 0.0, 0.0)
    frame = pd.DataFrame({"size": [0.5], "kind": pd.Series([cell], dtype=object)})
    same(program.predict(frame), model.predict(frame[["kind", "size"]]), 0.0, 0.0)


@pytest.mark.parametrize("cell", NO_CELLS, ids=repr)
def test_what_is_no_category(cell: Any) -> None:
    model, program = simple()
    frame = pd.DataFrame({"kind": pd.Series([cell], dtype=object), "size": [0.5]})
    with pytest.raises((cb.CatBoostError, OverflowError, SystemError, TypeError)):
        model.predict(frame)
    with pytest.raises(InvalidInputError, match=r"column 'kind': .*categor"):
        program.predict(frame)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([1, 2]),
        pd.Series([1, 0], dtype="uint8"),
        pd.Series([True, False]),
        pd.Series(["1", "2"], dtype="category"),
        pd.Series([1, 2], dtype="category"),
        pd.Series(["1", "2"], dtype="string"),
        pd.Series([1, 2], dtype="Int64"),
        pd.Series([True, False], dtype="boolean"),
    ],
    ids=lambda c: str(c.dtype),
)
def test_types_of_columns(column: Any) -> None:
    model, program = simple()
    frame = pd.DataFrame({"kind": column, "size": [0.5, np.nan]})
    same(program.predict(frame), model.predict(frame), 0.0, 0.0)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([1.0, 2.0]),
        pd.Series([1.0, 2.0], dtype="category"),
        pd.Series(["1", None], dtype="category"),
        pd.Series(["1", None], dtype="string"),
        pd.Series([1, None], dtype="Int64"),
        pd.Series(pd.to_datetime(["2020-01-01"] * 2)),
    ],
    ids=lambda c: str(c.dtype),
)
def test_types_of_columns_that_are_refused(column: Any) -> None:
    model, program = simple()
    frame = pd.DataFrame({"kind": column, "size": [0.5, np.nan]})
    with pytest.raises((cb.CatBoostError, TypeError)):
        model.predict(frame)
    with pytest.raises(InvalidInputError, match="column 'kind': expected categories"):
        program.predict(frame)


def test_arrays_and_lists() -> None:
    model, program = simple()
    for rows in (
        [["1", 0.5], [2, None]],
        np.array([[1, 0], [2, 1]]),
        np.array([[True, False]]),
        np.empty((0, 2), object),
    ):
        same(program.predict(rows), np.asarray(model.predict(rows)), 0.0, 0.0)
    for rows, message in (
        (np.array([[1.0, 0.5]]), "strings or integers: expected rows of objects"),
        (np.array(["1", "0"]), r"got <U1 of shape \(2,\)"),
        ([["1", 0.5], ["1"]], r"got object of shape \(2,\)"),
        ([["1", 0.5], ["1", [2]]], "column 1: expected numbers"),
        (np.array([["1"]], object), "expected shape rowsx2"),
        (np.array([["1", "x"]], object), "column 1: expected numbers"),
        (np.array([["1", "0.5"]]), "column 1: expected numbers, got strings"),
        (np.empty((2, 0), object), "more than 0 columns, got 0"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            program.predict(rows)
    with pytest.raises(UnsupportedError, match="with categorical features"):
        program.predict(sparse.csr_matrix(np.array([[1, 0]])))


def test_frames_go_by_name() -> None:
    model, program = simple()
    frame = pd.DataFrame({"more": [1], "size": [0.5], "kind": ["2"]})
    same(program.predict(frame), model.predict(frame[["kind", "size"]]), 0.0, 0.0)
    with pytest.raises(InvalidInputError, match="lacks columns 'kind'"):
        program.predict(frame[["size"]])
    with pytest.raises(InvalidInputError, match="'size' holds categories"):
        program.predict(frame.assign(size=pd.Categorical([1])))


def test_numbers_are_rounded_once() -> None:
    """Of an integer float64 would be the middle of two float32."""
    rng = np.random.default_rng(0)
    large = 2**60 + rng.integers(0, 2, 200) * 2**37
    frame = pd.DataFrame({"kind": rng.choice(["a", "b"], 200), "large": large})
    y = (large > 2**60) + 3.0 * (frame["kind"] == "a")
    model = cb.CatBoostRegressor(**SMALL, cat_features=["kind"], learning_rate=1.0).fit(frame, y)
    program = interpreted(model)
    near = 2**60 + 2**36
    rows = pd.DataFrame({"kind": ["a"] * 3, "large": [near - 1, near, near + 1]})
    same(program.predict(rows), model.predict(rows), 0.0, 0.0)


def test_all_lengths_of_text() -> None:
    """Their hashes are those of CatBoost: each has an answer of its own."""
    texts = ["é"[:0] + "aé漢"[n % 3] * n for n in range(150)]
    rows = [[text] for text in texts for _ in range(3)]
    more = {"iterations": 150, "one_hot_max_size": 200, "learning_rate": 0.9}
    model = cb.CatBoostRegressor(**SMALL | more, cat_features=[0])
    model.fit(rows, np.repeat(np.arange(150.0), 3))
    assert len(np.unique(model.predict(rows))) > 100
    same(interpreted(model).predict(rows), model.predict(rows), 0.0, 0.0)


def test_texts_and_vectors_are_refused() -> None:
    draw = Draw(0)
    words = cb.CatBoostClassifier(**SMALL)
    words.fit(draw.frame[["age", "town"]], draw.y > 0, text_features=["town"])
    with pytest.raises(UnsupportedError, match="text features only in cbm"):
        import_model(words)
