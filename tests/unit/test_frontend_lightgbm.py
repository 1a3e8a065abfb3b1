"""The LightGBM front end: what it refuses, what it says about a model, and how fast it is."""

from __future__ import annotations

from typing import Any

import lightgbm as lgb
import numpy as np
import pytest

from irkit.dialects.graph import ForestOp, IsNanOp
from irkit.errors import InvalidModelError, UnsupportedError
from irkit.frontends import import_model
from irkit.frontends.lightgbm import import_lightgbm, parse_text, text_of, why_not

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
Y = X[:, 0] + 0.1 * RNG.normal(size=200)
LABELS = (Y > 0).astype(int)
SMALL: dict[str, Any] = {"n_estimators": 3, "num_leaves": 5, "verbose": -1, "n_jobs": 1}


def regressor(**parameters: Any) -> Any:
    return lgb.LGBMRegressor(**SMALL | parameters).fit(X, Y)


def classifier(**parameters: Any) -> Any:
    return lgb.LGBMClassifier(**SMALL | parameters).fit(X, LABELS)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: regressor(pred_early_stop=True), "parameter pred_early_stop=True"),
        (lambda: classifier(pred_early_stop=True), "parameter pred_early_stop=True"),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_refused(make: Any, reason: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        import_lightgbm(make(), "float64")
    assert len(caught.value.missing) == 1
    assert caught.value.missing[0].startswith(reason)


def test_everything_missing_is_listed() -> None:
    model = regressor(objective=lambda y, z: (z - y, 1 + 0 * y), pred_early_stop=True)
    text = text_of(model)
    text.trees.clear()
    assert why_not(text, model) == ["a model without trees", "parameter pred_early_stop=True"]
    with pytest.raises(UnsupportedError, match="parameter pred_early_stop=True"):
        import_lightgbm(model, "float64")


def test_not_fitted() -> None:
    with pytest.raises(InvalidModelError, match="LGBMClassifier is not fitted"):
        import_lightgbm(lgb.LGBMClassifier(), "float64")


def test_no_lightgbm_text() -> None:
    with pytest.raises(InvalidModelError, match="no readable header"):
        parse_text("tree\nversion=v4\n")


def test_dtype() -> None:
    with pytest.raises(UnsupportedError, match="dtype float16; accepted: float32, float64"):
        import_lightgbm(regressor(), "float16")


def test_other_objects() -> None:
    with pytest.raises(UnsupportedError, match=r"model of type builtins\.dict; accepted: a fitted"):
        import_model({})
    with pytest.raises(UnsupportedError, match="LightGBM model Dataset; supported: Booster"):
        import_lightgbm(lgb.Dataset(X, Y), "float64")


def test_information() -> None:
    info = import_model(classifier(), "float32").info
    assert (info.kind, info.inputs, info.outputs) == (
        "classifier",
        ("x",),
        ("label", "probabilities", "margin"),
    )
    assert info.methods == {
        "predict": "label",
        "predict_proba": "probabilities",
        "decision_function": "margin",
    }
    assert (info.classes, info.casts) == ((0, 1), ())
    assert (info.allow_nan, info.allow_infinity) == (True, True)
    info = import_model(regressor().booster_, "float64").info
    assert (info.kind, info.methods) == ("regressor", {"predict": "prediction"})


def test_one_forest_without_questions_where_nothing_is_missing() -> None:
    """Training saw NaN everywhere, so that the walk alone handles it."""
    x = np.where(RNG.random(X.shape) < 0.2, np.nan, X)
    model = lgb.LGBMRegressor(**SMALL).fit(x, Y)
    ops = list(next(iter(import_lightgbm(model, "float32").module.ops)).body.block.ops)
    assert sum(isinstance(op, ForestOp) for op in ops) == 1
    assert not any(isinstance(op, IsNanOp) for op in ops)


def test_500_trees_of_depth_8_are_read() -> None:
    x = RNG.random((4000, 28))
    y = x[:, :8].sum(axis=1) + RNG.random(4000)
    trained = lgb.LGBMRegressor(
        n_estimators=50, max_depth=8, num_leaves=255, min_child_samples=1, verbose=-1
    ).fit(x, y)
    # The same trees ten times over: training 500 takes longer than all the rest.
    text = trained.booster_.model_to_string()
    head, _, rest = text.partition("\nTree=0")
    body, _, tail = rest.partition("\nend of trees")
    trees = ("\nTree=0" + body) * 10
    head = "\n".join(line for line in head.splitlines() if not line.startswith("tree_sizes"))
    model = lgb.Booster(model_str=head + "\n" + trees + "\nend of trees" + tail)
    assert model.num_trees() == 500
    imported = import_lightgbm(model, "float32")
    nodes = max(len(array) for array in imported.weights.values())
    assert nodes > 500 * 300
