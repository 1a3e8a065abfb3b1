"""Random CatBoost models against CatBoost's own answers, where it is installed."""

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
from irkit.errors import InvalidInputError, InvalidModelError, UnsupportedError
from irkit.frontends import import_model
from tests.conformance.catboost_models import answers, rows_at_borders, training_rows
from tests.conformance.interpreted import interpreted, same

cb = pytest.importorskip("catboost")
pytestmark = pytest.mark.filterwarnings("ignore")
SMALL: dict[str, Any] = {
    "iterations": 4, "depth": 3, "verbose": 0, "allow_writing_files": False, "thread_count": 1
}  # fmt: skip
SEEDS, COMPILED = 60, 4
REGRESSIONS = (
    "RMSE", "MAE", "Quantile:alpha=0.3", "LogLinQuantile", "Poisson", "MAPE", "Lq:q=3", "Huber:delta=1",
    "Expectile:alpha=0.3", "Tweedie:variance_power=1.5", "LogCosh", "RMSPE", "RMSEWithUncertainty", "Cox",
    "MultiQuantile:alpha=0.1,0.5,0.8",
)  # fmt: skip


class Draw:
    """A random model, and rows for it."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        scale = self.one_of(1e-6, 1, 1e6)
        x = self.rng.normal(size=(150, int(self.rng.integers(1, 6)))) * scale
        x = np.round(x / scale) if self.often(0.2) else x
        y = np.nan_to_num(x[:, 0] / x.std()) + self.rng.normal(size=150)
        self.gaps = self.often(0.5)
        if self.gaps:
            missing = self.rng.random(x.shape) < 0.15
            x, y = np.where(missing, np.nan, x), y + 2 * missing[:, -1]
        self.x, self.y = x, y
        self.three = np.digitize(y, np.quantile(y, [0.3, 0.7]))

    def one_of(self, *given: Any) -> Any:
        return given[self.rng.integers(len(given))]

    def often(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def training(self) -> dict[str, Any]:
        policy = self.one_of("SymmetricTree", "SymmetricTree", "Lossguide", "Depthwise")
        return SMALL | {
            "iterations": int(self.rng.integers(1, 9)),
            "depth": int(self.rng.integers(1, 7)),
            "grow_policy": policy,
            "nan_mode": self.one_of("Min", "Max") if self.gaps else self.one_of("Min", "Forbidden"),
            "learning_rate": self.one_of(0.03, 0.5, 1.0),
            "random_seed": int(self.rng.integers(1000)),
        }

    def model(self) -> Any:
        """Fitted; of symmetric trees it may have a scale and a bias of its own."""
        training, y = self.training(), self.y
        kind = self.one_of("regressor", "regressor", "classifier", "several", "ranker")
        if kind == "regressor":
            loss = self.one_of(*REGRESSIONS)
            if loss == "Cox":
                training["grow_policy"] = "SymmetricTree"
            found = cb.CatBoostRegressor(**training, loss_function=loss).fit(self.x, np.abs(y))
        elif kind == "ranker":
            ranks = cb.CatBoostRanker(
                **training, loss_function=self.one_of("YetiRank", "QueryRMSE")
            )
            found = ranks.fit(self.x, self.three, group_id=np.repeat(np.arange(15), 10))
        elif kind == "several":
            training["grow_policy"] = "SymmetricTree"
            if self.often(0.5):
                made = cb.CatBoostRegressor(**training, loss_function="MultiRMSE")
                return made.fit(self.x, np.c_[y, -y])
            loss = self.one_of("MultiLogloss", "MultiCrossEntropy")
            made = cb.CatBoostClassifier(**training, loss_function=loss)
            return made.fit(self.x, np.c_[y > 0, y > 1].astype(int))
        else:
            return self.classifier(training)
        if self.often(0.3):
            bias = np.atleast_1d(found.get_scale_and_bias()[1]) + 0.1
            found.set_scale_and_bias(self.one_of(0.7, -3.0), bias.tolist())
        return found

    def classifier(self, training: Any) -> Any:
        of = self.one_of(self.three, (self.three > 1).astype(int))
        names = self.one_of(
            np.array([0, 1, 2]),
            np.array([3, 5, 8]),
            np.array(["b", "c", "d"]),
            np.array([0.5, 1, 2]),
        )
        several = len(np.unique(of)) > 2
        losses = ("MultiClass", "MultiClassOneVsAll") if several else ("Logloss", "MultiClass")
        found = cb.CatBoostClassifier(**training, loss_function=self.one_of(*losses))
        found.fit(self.x, names[of])
        if not several and self.often(0.3):
            found.set_probability_threshold(self.one_of(0.1, 0.9))
        return found

    def rows(self, model: Any, path: Path) -> Any:
        model.save_model(path, format="json")
        return rows_at_borders(json.loads(path.read_text()), self.x[:40])


def agree(program: Any, model: Any, rows: Any) -> None:
    wanted = answers(model, rows)
    assert {*program._methods} == {*wanted}
    raw = (
        model.predict(rows, "RawFormulaVal")
        if hasattr(model, "_get_default_prediction_type")
        else None
    )
    for method, values in wanted.items():
        found = getattr(program, method)(rows)
        kept = method == "predict" and (raw is None or np.array_equal(raw, values))
        exact = kept or method == "decision_function"
        same(found, values, *((0.0, 0.0) if exact else (1e-12, 1e-300)))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_models(seed: int, tmp_path: Path) -> None:
    draw = Draw(seed)
    model = draw.model()
    rows = draw.rows(model, tmp_path / "model.json")
    program = interpreted(model)
    for given in (rows, rows.astype(np.float32), rows[:1], np.asfortranarray(rows)):
        agree(program, model, given)
    if not isinstance(model, cb.CatBoostRanker):
        # CatBoost's own reader of JSON rounds leaves; irkit's does not, and agrees with what was saved.
        agree(interpreted(tmp_path / "model.json"), model, rows)


@pytest.mark.parametrize("seed", range(SEEDS, SEEDS + COMPILED))
def test_random_models_are_compiled(seed: int, tmp_path: Path) -> None:
    draw = Draw(seed)
    model = draw.model()
    rows = draw.rows(model, tmp_path / "model.json")
    program = irkit.compile(model, "cpu", mode="serial", cache=False)
    program.save(tmp_path / "model.irkit")
    for made in (program, irkit.load(tmp_path / "model.irkit")):
        for given in (rows, rows[:1], rows.astype(np.float32)):
            agree(made, model, given)


def regressor(**more: Any) -> Any:
    return cb.CatBoostRegressor(**SMALL | more)


@pytest.mark.parametrize("loss", REGRESSIONS)
def test_every_loss_of_a_regressor(loss: str, tmp_path: Path) -> None:
    x, y = training_rows()
    model = regressor(loss_function=loss).fit(x, np.abs(y))
    agree(interpreted(model), model, x)
    model.save_model(tmp_path / "model.json", format="json")
    agree(interpreted(tmp_path / "model.json"), model, x)


def test_no_rows() -> None:
    x, y = training_rows()
    for model in (
        regressor().fit(x, y),
        cb.CatBoostClassifier(**SMALL).fit(x, np.digitize(y, [-1, 1])),
    ):
        agree(interpreted(model), model, x[:0])


def test_the_base_class_predicts_raw_values() -> None:
    x, y = training_rows()
    model = cb.CatBoost(SMALL | {"loss_function": "Logloss"}).fit(x, y > 0)
    program = interpreted(model)
    assert {*program._methods} == {"predict"}
    same(program.predict(x), model.predict(x))


def test_sums_of_models() -> None:
    """They have a scale, biases, and no loss."""
    x, y = training_rows()
    parts = [regressor().fit(x, y), regressor(depth=2).fit(x, -y)]
    model = cb.sum_models(parts, weights=[0.3, 2.0])
    for each in (model, cb.to_regressor(model)):
        same(interpreted(each).predict(x), each.predict(x))


def test_fewer_trees_and_one_column_of_several() -> None:
    x, y = training_rows()
    model = regressor(iterations=20).fit(x, y, eval_set=(x[:30], -y[:30]), use_best_model=True)
    assert model.tree_count_ < 20
    same(interpreted(model).predict(x), model.predict(x))
    apart = cb.CatBoostClassifier(**SMALL, loss_function="MultiLogloss").fit(
        x, (y > 0)[:, None].astype(int)
    )
    agree(interpreted(apart), apart, x)


def test_a_constant_and_a_tree_of_one_leaf() -> None:
    x, y = training_rows()
    constant = regressor(allow_const_label=True, bootstrap_type="No").fit(x, np.ones(len(x)))
    leaf = regressor(grow_policy="Depthwise", min_data_in_leaf=1000).fit(x, y)
    for model in (constant, leaf):
        same(interpreted(model).predict(x), model.predict(x))


def test_probabilities_at_the_ends() -> None:
    x, y = training_rows()
    model = cb.CatBoostClassifier(**SMALL).fit(x, y > 0)
    # exp(720) is beyond float64, and exp(-720) is not 0.
    for bias in (0.0, 20.0, -20.0, 40.0, -40.0, 720.0, -720.0, 800.0):
        model.set_scale_and_bias(0.0, [bias])
        agree(interpreted(model), model, x[:3])
    several = cb.CatBoostClassifier(**SMALL).fit(x, np.digitize(y, [-1, 1]))
    for biases in ([-800.0, 1.0, 800.0], [2.0, 2.0, 1.0]):
        several.set_scale_and_bias(0.0, biases)
        agree(interpreted(several), several, x[:3])


def test_integers_sparse_rows_and_lists() -> None:
    x, y = training_rows()
    x = np.round(np.nan_to_num(x) * 3)
    model = regressor(iterations=20).fit(x, y)
    program = interpreted(model)
    same(program.predict(x.astype(np.int64)), model.predict(x.astype(np.int64)))
    same(program.predict(x > 0), model.predict(x > 0))
    same(program.predict(x.tolist()), model.predict(x.tolist()))
    rows = sparse.csr_matrix(np.where(np.abs(x) > 2, x, 0))
    same(program.predict(rows), model.predict(rows))
    wide = np.full((1, 3), 2**60 + 2**36 + 1)
    same(program.predict(wide), model.predict(wide))


@pytest.mark.parametrize("names", [list("abc"), [0, 1, 2], [5, 4, 3], ["2", "1", "0"]])
def test_frames_go_by_name(names: list[Any]) -> None:
    """CatBoost spells names that are no strings."""
    x, y = training_rows()
    frame = pd.DataFrame(x, columns=names)
    model = regressor().fit(frame, y)
    program = interpreted(model)
    for given in (frame, frame[names[::-1]], frame.assign(more=1)[["more", *names[::-1]]], x):
        same(program.predict(given), model.predict(given))
    spelled = frame[names[::-1]].set_axis([str(n) for n in names[::-1]], axis=1)
    same(program.predict(spelled), model.predict(spelled))
    for wrong in (frame.rename(columns={names[0]: "other"}), frame[names[:2]]):
        with pytest.raises(
            InvalidInputError, match=f"lacks columns '{names[0]}'|lacks columns '{names[2]}'"
        ):
            program.predict(wrong)


def test_frames_of_a_model_without_names_go_by_place() -> None:
    x, y = training_rows()
    model = regressor().fit(x, y)
    program = interpreted(model)
    for names in (list("abc"), [2, 1, 0]):
        frame = pd.DataFrame(x, columns=names)
        same(program.predict(frame), model.predict(frame))


def test_columns_of_categories_are_refused_as_by_catboost() -> None:
    x, y = training_rows()
    frame = pd.DataFrame(x, columns=list("abc"))
    model = regressor().fit(frame, y)
    coded = frame.assign(b=pd.Categorical([1] * len(x)))
    with pytest.raises(cb.CatBoostError, match="has dtype 'category'"):
        model.predict(coded)
    with pytest.raises(InvalidInputError, match="'b' as columns of categories"):
        interpreted(model).predict(coded)


def test_what_is_refused() -> None:
    x, y = training_rows()
    frame = pd.DataFrame({"a": x[:, 0]})
    words = cb.CatBoostClassifier(**SMALL)
    words.fit(frame[["a"]].assign(t=np.where(y > 0, "u v", "w v")), y > 0, text_features=["t"])
    with pytest.raises(
        UnsupportedError, match=r"no JSON of the model: .*text features only in cbm"
    ):
        import_model(words)
    with pytest.raises(InvalidModelError, match="CatBoostRegressor is not fitted: call fit first"):
        import_model(regressor())
    with pytest.raises(
        UnsupportedError, match="CatBoost model Pool; supported: CatBoost, CatBoost"
    ):
        import_model(cb.Pool(x, y))


def test_a_classifier_of_no_classes(tmp_path: Path) -> None:
    x, y = training_rows()
    regressor().fit(x, y).save_model(tmp_path / "m.json", format="json")
    model = cb.CatBoostClassifier()
    model.load_model(str(tmp_path / "m.json"), format="json")
    with pytest.raises(
        UnsupportedError, match=r"a classifier with loss 'RMSE' \(supported: CrossEntropy"
    ):
        import_model(model)
