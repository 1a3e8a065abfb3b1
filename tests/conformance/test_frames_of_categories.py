"""Data frames with columns of categories, which LightGBM and XGBoost number themselves."""

# pyright: basic

from __future__ import annotations

from typing import Any

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import irkit
from irkit.errors import InvalidInputError, InvalidModelError, UnsupportedError
from irkit.frontends.lightgbm_text import parse_text
from tests.conformance.interpreted import interpreted, same

RNG = np.random.default_rng(0)
ROWS = 200


def category(values: Any, known: Any = None) -> Any:
    return pd.Categorical(values, categories=known)


FRAME = pd.DataFrame(
    {
        "size": RNG.normal(size=ROWS),
        "kind": category(RNG.choice(["x", "yy", "z", "w"], ROWS)),
        "grade": category(RNG.choice([5, 7, 9], ROWS)),
        "new": RNG.random(ROWS) < 0.5,
        "count": RNG.integers(0, 9, ROWS),
    }
)
Y = np.asarray(FRAME["size"] + 2 * (FRAME["kind"] == "x") + (FRAME["grade"].astype(int) == 7))
Y = Y + FRAME["count"].to_numpy() % 3
pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")
LABELS = np.where(Y > 1, "few", "many")
LGB: dict[str, Any] = {"n_estimators": 4, "verbose": -1, "min_child_samples": 3, "n_jobs": 1}
LGB |= {"min_data_per_group": 1, "cat_smooth": 1}
XGB: dict[str, Any] = {"n_estimators": 4, "enable_categorical": True, "n_jobs": 1}
SOME = FRAME.iloc[:40]
KINDS = list(SOME["kind"])
FORMS = {
    "all": FRAME,
    "one": SOME.iloc[:1],
    "another order": SOME.assign(kind=category(KINDS, ["z", "yy", "w", "x"])),
    "some": SOME.assign(kind=category([*KINDS[:39], None])),
    "none": SOME.assign(kind=category([None] * 40, ["x", "yy", "z", "w"])),
    "narrow": SOME.assign(size=SOME["size"].astype("f4")),
}
UNKNOWN = {
    "unknown": SOME.assign(kind=category(["q", *KINDS[1:]])),
    "strings for numbers": SOME.assign(grade=category([str(v) for v in SOME["grade"]])),
    "numbers of another type": SOME.assign(grade=category([float(v) for v in SOME["grade"]])),
}
MOVED = {"other places": FRAME[["kind", "size", "grade", "new", "count"]]}
NO_FRAMES = {
    "codes": SOME.assign(kind=SOME["kind"].cat.codes),
    "strings": SOME.assign(kind=np.array(KINDS, object)),
    "one more": SOME.assign(size=category(SOME["size"])),
}


def agree(program: Any, model: Any, forms: dict[str, Any], rtol: float = 0.0) -> None:
    for given in forms.values():
        same(program.predict(given), model.predict(given), rtol)
        if "predict_proba" in program.methods:
            same(program.predict_proba(given), model.predict_proba(given), max(rtol, 1e-13))


@pytest.mark.parametrize("sets", [1, 9])
@pytest.mark.parametrize("kind", [lgb.LGBMRegressor, lgb.LGBMClassifier])
def test_lightgbm(kind: Any, sets: int) -> None:
    """What it was not trained on is missing, and columns go by the order of those of categories."""
    model = kind(**LGB, max_cat_to_onehot=sets)
    model.fit(FRAME, Y if kind is lgb.LGBMRegressor else LABELS)
    agree(interpreted(model), model, FORMS | UNKNOWN | MOVED)
    numbers = FRAME.assign(kind=FRAME["kind"].cat.codes, grade=FRAME["grade"].cat.codes)
    agree(interpreted(model), model, {"numbers": numbers.to_numpy(np.float64)})


@pytest.mark.parametrize("sets", [1, 9])
@pytest.mark.parametrize("kind", [xgb.XGBRegressor, xgb.XGBClassifier])
def test_xgboost(kind: Any, sets: int) -> None:
    model = kind(**XGB, max_cat_to_onehot=sets)
    model.fit(FRAME, Y if kind is xgb.XGBRegressor else Y > 1)
    program = interpreted(model)
    agree(program, model, FORMS, 0.0 if kind is xgb.XGBRegressor else 1e-6)
    with pytest.raises(InvalidInputError, match="column 'kind': category 'q' was not trained"):
        program.predict(UNKNOWN["unknown"])
    for name in ("strings for numbers", "numbers of another type"):
        with pytest.raises(InvalidInputError, match="column 'grade': categories of dtype"):
            program.predict(UNKNOWN[name])


def test_strings_that_xgboost_cuts_off() -> None:
    frame = FRAME.assign(kind=category(np.where(FRAME["new"], "ü", "a")))
    with pytest.raises(UnsupportedError, match="categories of column 1 that are no ASCII"):
        interpreted(xgb.XGBRegressor(**XGB).fit(frame, Y))


@pytest.mark.parametrize("form", NO_FRAMES)
def test_frames_of_other_columns(form: str) -> None:
    models = (lgb.LGBMRegressor(**LGB), xgb.XGBRegressor(**XGB))
    for model in models:
        program = interpreted(model.fit(FRAME, Y))
        with pytest.raises((ValueError, xgb.core.XGBoostError)):
            model.predict(NO_FRAMES[form])
        with pytest.raises(InvalidInputError, match="as columns of categories; the model was"):
            program.predict(NO_FRAMES[form])


def test_a_model_of_numbers_has_none() -> None:
    """LightGBM would number them anew."""
    numbers = FRAME[["size", "count"]]
    model: Any = lgb.LGBMRegressor(**LGB)
    program = interpreted(model.fit(numbers.to_numpy(np.float64), Y))
    with pytest.raises(InvalidInputError, match="has 'count' as columns of categories"):
        program.predict(numbers.assign(count=category(numbers["count"])))


def test_files(tmp_path: Any) -> None:
    trees: Any = lgb.LGBMRegressor(**LGB).fit(FRAME, Y)
    trees.booster_.save_model(tmp_path / "model.txt")
    agree(irkit.compile(tmp_path / "model.txt", "cpu", mode="serial"), trees, FORMS | UNKNOWN)
    boosted = xgb.XGBRegressor(**XGB).fit(FRAME, Y)
    for name in ("model.json", "model.ubj"):
        boosted.save_model(tmp_path / name)
        program = irkit.compile(tmp_path / name, "cpu", mode="serial", dtype="float32")
        agree(program, boosted, FORMS)


def test_saved(compiled: Any, tmp_path: Any) -> None:
    model: Any = lgb.LGBMRegressor(**LGB).fit(FRAME, Y)
    program = compiled(model, mode="serial", dtype="float64")
    agree(program, model, FORMS)
    program.save(tmp_path / "p")
    agree(irkit.load(tmp_path / "p"), model, FORMS)


def test_within_others_they_are_refused() -> None:
    model = make_pipeline("passthrough", lgb.LGBMRegressor(**LGB)).fit(FRAME, Y)
    with pytest.raises(UnsupportedError, match="categories of a data frame"):
        interpreted(model)
    scaled = make_pipeline(StandardScaler(), lgb.LGBMRegressor(**LGB))
    interpreted(scaled.fit(FRAME[["size", "count"]], Y))


@pytest.mark.parametrize("found", ["[[1, null]]", "[3]", "{", "[[[1]]]"])
def test_lists_that_are_none(found: str) -> None:
    text = lgb.LGBMRegressor(**LGB).fit(FRAME, Y).booster_.model_to_string()
    head, named, _ = text.rpartition("pandas_categorical:")
    with pytest.raises(InvalidModelError, match="the LightGBM model has"):
        parse_text(f"{head}{named}{found}\n")
