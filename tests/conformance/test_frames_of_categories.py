"""Data frames with columns of categories, which LightGBM and XGBoost number themselves."""

# pyright: basic

from __future__ import annotations

from typing import Any

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import StackingRegressor, VotingClassifier, VotingRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor
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


def lgb_r() -> Any:
    return lgb.LGBMRegressor(**LGB)


def xgb_r(**more: Any) -> Any:
    return xgb.XGBRegressor(**XGB, **more)


def both() -> Any:
    return [("l", lgb_r()), ("x", xgb_r())]


WITHIN: dict[str, Any] = {
    "alone in a pipeline": lambda: make_pipeline("passthrough", lgb_r()),
    "voting": lambda: VotingRegressor(both()),
    "voting of one kind": lambda: VotingRegressor([("a", lgb_r()), ("b", make_pipeline(lgb_r()))]),
    "stacked": lambda: StackingRegressor(both(), final_estimator=Ridge(), cv=2),
    "stacked, and boosted": lambda: StackingRegressor(both(), final_estimator=lgb_r(), cv=2),
    "logarithms": lambda: TransformedTargetRegressor(
        lgb_r(), func=np.arcsinh, inverse_func=np.sinh
    ),
    "searched": lambda: GridSearchCV(xgb_r(), {"max_depth": [2, 3]}, cv=2),
    "nested": lambda: VotingRegressor([("v", VotingRegressor(both())), ("l", lgb_r())]),
}
THRESHOLD: dict[str, Any] = {"threshold": 0.3}
OF_CLASSES: dict[str, Any] = {
    "voting": lambda: VotingClassifier([("l", lgb.LGBMClassifier(**LGB))], voting="soft"),
    "calibrated": lambda: CalibratedClassifierCV(lgb.LGBMClassifier(**LGB), cv=2),
    "cut": lambda: FixedThresholdClassifier(xgb.XGBClassifier(**XGB), **THRESHOLD),
    "one by one": lambda: OneVsRestClassifier(xgb.XGBClassifier(**XGB)),
}


@pytest.mark.parametrize("name", WITHIN)
def test_within_what_hands_frames_on(name: str) -> None:
    model = WITHIN[name]().fit(FRAME, Y)
    program = interpreted(model)
    agree(program, model, FORMS, 1e-6)
    if "XGB" not in repr(model):
        return agree(program, model, UNKNOWN, 1e-6)
    with pytest.raises(InvalidInputError, match="column 'kind': category 'q' was not trained"):
        program.predict(UNKNOWN["unknown"])


@pytest.mark.parametrize("name", OF_CLASSES)
def test_classifiers_within_what_hands_frames_on(name: str) -> None:
    model = OF_CLASSES[name]().fit(FRAME, (Y > 1).astype(int))
    agree(interpreted(model), model, FORMS, 1e-5)


def test_several_outputs() -> None:
    model: Any = MultiOutputRegressor(xgb_r()).fit(FRAME, np.stack([Y, -Y], axis=1))
    agree(interpreted(model), model, FORMS)


def test_compiled_within(compiled: Any, tmp_path: Any) -> None:
    model = VotingRegressor(both()).fit(FRAME, Y)
    program = compiled(model, mode="serial", dtype="float64")
    program.save(tmp_path / "p")
    for each in (program, irkit.load(tmp_path / "p")):
        agree(each, model, FORMS, 1e-12)


def numbers() -> Any:
    return ColumnTransformer([("n", "passthrough", ["size", "count"])])


def kept() -> Any:
    """Hands columns of categories on, by another way."""
    kept = ColumnTransformer(
        [("all", "passthrough", list(FRAME.columns))], verbose_feature_names_out=False
    )
    return kept.set_output(transform="pandas")


BESIDE: dict[str, Any] = {
    "behind other steps": (lambda: make_pipeline(kept(), lgb_r()), "behind other steps"),
    "behind other steps, within": (
        lambda: VotingRegressor([("p", make_pipeline(kept(), xgb_r())), ("l", lgb_r())]),
        "behind other steps",
    ),
    "behind other steps, handed on": (
        lambda: make_pipeline(kept(), VotingRegressor([("l", lgb_r())])),
        "behind other steps",
    ),
    "beside another": (
        lambda: VotingRegressor([("l", lgb_r()), ("n", make_pipeline(numbers(), Ridge()))]),
        "ColumnTransformer beside what numbers categories",
    ),
}


@pytest.mark.parametrize("name", BESIDE)
def test_within_others_they_are_refused(name: str) -> None:
    make, reason = BESIDE[name]
    with pytest.raises(UnsupportedError, match=reason):
        interpreted(make().fit(FRAME, Y))


def test_other_categories_are_refused() -> None:
    model: Any = VotingRegressor([("a", lgb_r()), ("b", lgb_r())]).fit(FRAME, Y)
    model.estimators_[1].booster_.pandas_categorical = [["x", "y"], [5, 7, 9]]
    with pytest.raises(UnsupportedError, match="LGBMRegressor with other categories than"):
        interpreted(model)


def test_numbers_behind_other_steps() -> None:
    scaled = make_pipeline(StandardScaler(), lgb_r()).fit(FRAME[["size", "count"]], Y)
    assert interpreted(scaled)._first.info.categories is None


@pytest.mark.parametrize("found", ["[[1, null]]", "[3]", "{", "[[[1]]]"])
def test_lists_that_are_none(found: str) -> None:
    text = lgb.LGBMRegressor(**LGB).fit(FRAME, Y).booster_.model_to_string()
    head, named, _ = text.rpartition("pandas_categorical:")
    with pytest.raises(InvalidModelError, match="the LightGBM model has"):
        parse_text(f"{head}{named}{found}\n")
