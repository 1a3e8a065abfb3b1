"""The three tree strategies and irkit's own walk: the same bits, whatever the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier

import irkit
from irkit.context import IrkitContext
from irkit.dialects.graph import Graph
from irkit.frontends import import_model
from irkit.frontends.module import ImportedModel
from irkit.passes.graph.select_tree_strategy import SelectTreeStrategy
from irkit.passes.graph.tree_to_gemm import TreeToGemm
from irkit.passes.graph.tree_to_perfect_traversal import TreeToPerfectTraversal
from irkit.passes.graph.tree_to_traversal import TreeToTraversal
from tests.conformance.sklearn_models import CLASSIFICATION, data, with_gaps

REWRITES = {
    "gemm": TreeToGemm,
    "perfect_traversal": TreeToPerfectTraversal,
    "traversal": TreeToTraversal,
}
DTYPES = ("float32", "float64")
CLASSIFIERS: dict[str, Any] = {
    "decision_tree": lambda: DecisionTreeClassifier(max_depth=8, random_state=0),
    "random_forest": lambda: RandomForestClassifier(10, max_depth=7, random_state=0),
    "extra_trees": lambda: ExtraTreesClassifier(10, max_depth=6, random_state=0),
    "gradient_boosting": lambda: GradientBoostingClassifier(
        n_estimators=4, max_features=8, random_state=0
    ),
    "lightgbm": lambda: lgb.LGBMClassifier(n_estimators=4, max_depth=7, verbose=-1, n_jobs=1),
    "xgboost": lambda: xgb.XGBClassifier(n_estimators=4, max_depth=5, n_jobs=1),
}
REGRESSORS: dict[str, Any] = {
    "random_forest": lambda: RandomForestRegressor(10, max_depth=9, random_state=0),
    "gradient_boosting": lambda: GradientBoostingRegressor(n_estimators=10, random_state=0),
    "lightgbm": lambda: lgb.LGBMRegressor(n_estimators=10, max_depth=8, verbose=-1, n_jobs=1),
    "xgboost": lambda: xgb.XGBRegressor(n_estimators=10, max_depth=6, n_jobs=1),
}
NO_NAN = ("gradient_boosting",)


def with_strategy(imported: ImportedModel, strategy: str) -> ImportedModel:
    """A copy of the model with its forests as `strategy` has them."""
    module = imported.module.clone()
    ctx = IrkitContext(weights=imported.weights)
    ctx.load_dialect(Graph)
    SelectTreeStrategy(strategy).apply(ctx, module)
    for rewrite in REWRITES.values():
        rewrite().apply(ctx, module)
    module.verify()
    assert ("graph.forest" in str(module)) == (strategy == "walk")
    return ImportedModel(module, imported.weights, imported.info)


def check(execute: Any, model: Any, x: Any) -> None:
    imported = import_model(model, str(x.dtype))
    walk = with_strategy(imported, "walk")
    others = [with_strategy(imported, strategy) for strategy in REWRITES]
    for rows in (1, 2, 7, 60):
        want = execute(walk, [x[-rows:]])
        for other in others:
            found = execute(other, [x[-rows:]])
            for name, array in want.items():
                assert found[name].dtype == array.dtype
                np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dataset", CLASSIFICATION)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifier(execute: Any, name: str, dataset: str, dtype: str) -> None:
    x, y = data(dataset)
    x = x if name in NO_NAN else with_gaps(x)
    check(execute, CLASSIFIERS[name]().fit(x, y), x.astype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", REGRESSORS)
def test_regressor(execute: Any, name: str, dtype: str) -> None:
    x, y = data("diabetes")
    x = x if name in NO_NAN else with_gaps(x)
    check(execute, REGRESSORS[name]().fit(x, y), x.astype(dtype))


@pytest.mark.parametrize("strategy", REWRITES)
def test_compiled_strategy_equals_the_library(tmp_path: Path, strategy: str) -> None:
    x, y = data("diabetes")
    x = with_gaps(x)
    model = lgb.LGBMRegressor(n_estimators=3, max_depth=3, verbose=-1, n_jobs=1).fit(x, y)
    rewritten = with_strategy(import_model(model, "float64"), strategy)
    rewritten.weights.save(tmp_path / "model.safetensors")
    (tmp_path / "model.mlir").write_text(str(rewritten.module))
    program = irkit.compile(tmp_path / "model.mlir", target="cpu", mode="serial", cache=False)
    for rows in (1, 2, 7, None):
        np.testing.assert_array_equal(program.predict(x[:rows]), model.predict(x[:rows]))
