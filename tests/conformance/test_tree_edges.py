"""Trees at their edges, for scikit-learn, LightGBM and XGBoost: wide, deep and large ones, of one leaf, of
many classes; rows at thresholds and next to them, of zeros of both signs, denormals, NaN and infinity."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

from functools import cache
from typing import Any

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from irkit.errors import InvalidInputError
from tests.conformance.interpreted import compare, interpreted

pytestmark = pytest.mark.filterwarnings("ignore")
TINY = float(np.finfo(np.float32).smallest_subnormal)


def light(kind: Any = lgb.LGBMRegressor, **more: Any) -> Any:
    few = {"min_child_samples": 1, "min_data_in_bin": 1, "min_child_weight": 0.0, "n_jobs": 1}
    return kind(verbose=-1, **{**few, **more})


def extreme(kind: Any = xgb.XGBRegressor, **more: Any) -> Any:
    return kind(n_jobs=1, **{"min_child_weight": 0, **more})


def check(model: Any, x: Any, rtol: float = 1e-6) -> None:
    program = interpreted(model)
    compare(program, model, x, rtol=rtol, atol=1e-7)
    compare(program, model, x.astype(np.float32), rtol=rtol, atol=1e-7)


# Sizes

SIZES: dict[str, Any] = {
    "forest": lambda: RandomForestClassifier(3, random_state=0),
    "histogram": lambda: HistGradientBoostingRegressor(max_iter=2),
    "lightgbm": lambda: light(n_estimators=3),
    "tree": lambda: DecisionTreeClassifier(random_state=0),
    "xgboost": lambda: extreme(n_estimators=3),
}


@pytest.mark.parametrize("name", SIZES)
def test_two_thousand_features(name: str) -> None:
    x = np.random.default_rng(0).normal(size=(60, 2000))
    check(SIZES[name]().fit(x, (x[:, 1999] + x[:, 0] > 0).astype(int)), x)


@pytest.mark.parametrize("name", ["forest", "tree", "lightgbm", "xgboost"])
def test_a_thousand_classes(name: str) -> None:
    random = np.random.default_rng(0)
    y = np.repeat(np.arange(1000), 2)
    x = np.column_stack([y + random.random(2000) / 4, random.random(2000)])
    model = {
        "forest": RandomForestClassifier(3, random_state=0),
        "lightgbm": light(lgb.LGBMClassifier, n_estimators=1),
        "tree": DecisionTreeClassifier(),
        "xgboost": extreme(xgb.XGBClassifier, n_estimators=1, max_depth=2),
    }[name]
    check(model.fit(x, y), x[::37])


def peeled(count: int) -> tuple[Any, Any]:
    """Rows of which each split cuts off one: each has a feature of its own."""
    return np.eye(count), np.arange(float(count))


def depth_of(model: Any) -> int:
    found: Any = getattr(model, "tree_", None)
    if found is not None:
        return int(found.max_depth)
    if isinstance(model, lgb.LGBMModel):
        return int(model.booster_.trees_to_dataframe()["node_depth"].max()) - 1
    return max(text.count("\t") for text in model.get_booster().get_dump()[0].split("\n"))


@pytest.mark.parametrize("name", ["tree", "lightgbm", "xgboost"])
def test_sixty_levels(name: str) -> None:
    x, y = peeled(96)
    model = {
        "lightgbm": light(n_estimators=1, num_leaves=96, learning_rate=1.0, enable_bundle=False),
        "tree": DecisionTreeRegressor(),
        "xgboost": extreme(
            n_estimators=1, max_depth=95, learning_rate=1.0, reg_lambda=0, tree_method="exact"
        ),
    }[name].fit(x, y)
    assert depth_of(model) >= 60
    check(model, np.concatenate([x, x / 2, -x, np.eye(96)[::-1] + x]))


def test_more_than_65536_nodes() -> None:
    random = np.random.default_rng(0)
    x, y = random.normal(size=(36000, 2)), random.random(36000)
    model = DecisionTreeRegressor(random_state=0).fit(x, y)
    assert model.tree_.node_count > 65536
    compare(interpreted(model), model, x[::9], exact=["predict"])


def test_sizes_compiled(compiled: Any) -> None:
    """The largest of these through the whole compiler."""
    x, y = peeled(64)
    deep = DecisionTreeRegressor().fit(x, y)
    compare(compiled(deep, mode="serial"), deep, np.concatenate([x, x / 2]), exact=["predict"])
    random = np.random.default_rng(0)
    x, y = random.normal(size=(36000, 2)), random.random(36000)
    large = DecisionTreeRegressor(random_state=0).fit(x, y)
    compare(compiled(large, mode="serial"), large, x[::9], exact=["predict"])


# One leaf; few rows

ALONE: dict[str, Any] = {
    "boosted": lambda: GradientBoostingRegressor(n_estimators=3),
    "extra": lambda: ExtraTreesRegressor(3),
    "forest": lambda: RandomForestRegressor(3),
    "histogram": lambda: HistGradientBoostingRegressor(max_iter=3),
    "lightgbm": lambda: light(n_estimators=3),
    "tree": DecisionTreeRegressor,
    "xgboost": lambda: extreme(n_estimators=3),
}


@pytest.mark.parametrize("name", ALONE)
def test_trees_of_one_leaf(name: str) -> None:
    """All targets, or all rows, are alike."""
    x = np.random.default_rng(0).normal(size=(30, 3))
    check(ALONE[name]().fit(x, np.full(30, 7.5)), x)
    check(ALONE[name]().fit(np.ones((30, 3)), x[:, 0]), x)


@pytest.mark.parametrize("name", ALONE)
def test_one_row(name: str) -> None:
    x = np.random.default_rng(0).normal(size=(30, 3))
    check(ALONE[name]().fit(x, x[:, 0] * x[:, 1]), x[:1])


@pytest.mark.parametrize("name", ["forest", "lightgbm"])
def test_no_rows(compiled: Any, name: str) -> None:
    x = np.random.default_rng(0).normal(size=(30, 3))
    model = ALONE[name]().fit(x, x[:, 0])
    program = compiled(model, mode="serial")
    for rows in (x[:0], x[:0].astype(np.float32)):
        with pytest.raises(ValueError, match="0 sample"):
            model.predict(rows)
        with pytest.raises(InvalidInputError, match="expected 1 or more rows, got 0"):
            program.predict(rows)


# Rows


@cache
def fitted(name: str) -> tuple[Any, Any, Any]:
    """A model of four features around zero, its program, and the thresholds of its training rows."""
    random = np.random.default_rng(0)
    x = np.round(random.normal(size=(300, 4)), 1)
    # One feature of numbers that are one float32, one of denormals.
    x[:, 2] = 1.0 + random.integers(0, 99, 300) * 1e-10
    x[:, 3] = random.integers(-9, 9, 300) * TINY
    y = x[:, 0] + (x[:, 1] > 0) + (x[:, 2] > 1.0 + 5e-9) + (x[:, 3] > 0)
    classes = np.digitize(y, [0.5, 1.5])
    model = {
        "boosted": GradientBoostingClassifier(n_estimators=5, random_state=0),
        "forest": RandomForestClassifier(7, random_state=0),
        "histogram": HistGradientBoostingRegressor(max_iter=9, min_samples_leaf=2),
        "isolation": IsolationForest(n_estimators=9, random_state=0),
        "lightgbm": light(n_estimators=9),
        "lightgbm_zero": light(n_estimators=9, zero_as_missing=True),
        "regressor": RandomForestRegressor(7, random_state=0),
        "xgboost": extreme(n_estimators=9),
        "xgboost_classes": extreme(xgb.XGBClassifier, n_estimators=5),
    }[name]
    classify = name in ("boosted", "forest", "xgboost_classes")
    model = model.fit(x, classes if classify else y)
    return model, interpreted(model), x


TAKES_NAN = (
    "forest",
    "histogram",
    "isolation",
    "lightgbm",
    "lightgbm_zero",
    "regressor",
    "xgboost",
)
TAKES_INFINITY = ("histogram", "lightgbm", "lightgbm_zero")
ODD = [0.0, -0.0, TINY, -TINY, 5e-324, -5e-324, 1e-35, -1e-35, 1e-38, 1e30, -1e30, 1.0, 2.0**24 + 1]


def cells(name: str) -> st.SearchStrategy[float]:
    """Trained values, points between them, what is next to these as either float, and odd numbers."""
    _, _, x = fitted(name)
    known = np.unique(x)
    between = (known[1:] + known[:-1]) / 2
    near = np.concatenate([known, between, between.astype(np.float32)])
    narrow = near.astype(np.float32)
    around = [np.nextafter(near, w) for w in (-np.inf, np.inf)]
    around += [np.nextafter(narrow, np.float32(w)).astype(np.float64) for w in (-np.inf, np.inf)]
    odd = [*ODD, *([np.nan] if name in TAKES_NAN else [])]
    odd += [np.inf, -np.inf] if name in TAKES_INFINITY else []
    every = [near, *around, np.array(odd)]
    return st.sampled_from(every).flatmap(lambda part: st.sampled_from(part.tolist()))


NAMES = (*TAKES_NAN, "boosted", "xgboost_classes")


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(choice=st.data(), narrow=st.booleans())
def test_rows_at_the_edges(name: str, choice: st.DataObject, narrow: bool) -> None:
    model, program, _ = fitted(name)
    rows = choice.draw(st.lists(st.tuples(*[cells(name)] * 4), min_size=1, max_size=8))
    x = np.array(rows, np.float32 if narrow else np.float64)
    compare(program, model, x, rtol=1e-6, atol=1e-7)


def test_rows_at_the_edges_compiled(compiled: Any) -> None:
    random = np.random.default_rng(1)
    for name in ("regressor", "lightgbm_zero", "xgboost"):
        model, _, x = fitted(name)
        known = np.concatenate([np.unique(x), ODD, [np.nan]])
        rows = random.choice(known, (400, 4))
        rows[::2] = np.nextafter(rows[::2], random.choice([-1e3, 1e3], (200, 4)))
        compare(compiled(model, mode="serial"), model, rows, exact=["predict"])
