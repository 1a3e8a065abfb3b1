"""Where XGBoost's sums start: base scores estimated and given, at the ends of their range, bit for bit."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost as xgb
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.func import FuncOp, ReturnOp

from irkit.dialects.graph import ForestOp
from irkit.frontends.xgboost import import_xgboost
from irkit.interp.graph import run_graph

# Objective → labels that it takes.
LABELS = {
    "binary:hinge": "bits",
    "binary:logistic": "bits",
    "binary:logitraw": "bits",
    "count:poisson": "counts",
    "reg:absoluteerror": "numbers",
    "reg:gamma": "positive",
    "reg:logistic": "bits",
    "reg:pseudohubererror": "numbers",
    "reg:squarederror": "numbers",
    "reg:squaredlogerror": "positive",
    "reg:tweedie": "counts",
    "survival:cox": "positive",
}
SEVERAL = ("binary:logistic", "reg:logistic", "reg:squarederror", "binary:logitraw")
LOGISTIC = ("binary:logistic", "reg:logistic")
ENDS = (0.0, 1e-45, 1e-38, 9.9e-7, 1e-6, 1.1e-6, 0.3, 0.5, 0.999998, 0.999999, 0.99999994, 1.0)


def labels(kind: str, rows: int, rng: Any) -> Any:
    match kind:
        case "bits":
            return rng.integers(0, 2, rows).astype(np.float32)
        case "counts":
            return rng.poisson(2.0, rows).astype(np.float32)
        case "positive":
            return rng.gamma(2.0, size=rows).astype(np.float32) + np.float32(0.01)
        case _:
            return (10 * rng.normal(size=rows)).astype(np.float32)


def constant(kind: str, rows: int, high: bool) -> Any:
    low = 0.5 if kind == "positive" else 0.0
    return np.full(rows, 1.0 if high else low, np.float32)


def train(objective: str, x: Any, y: Any, rounds: int = 2, **parameters: Any) -> Any:
    settings = {"objective": objective, "max_depth": 2, "nthread": 1, **parameters}
    return xgb.train(settings, xgb.DMatrix(x, y), rounds)


def margins(model: Any, x: Any) -> Any:
    """What the imported forest sums, before the objective's own function."""
    imported = import_xgboost(model)
    (main,) = (op for op in imported.module.body.block.ops if isinstance(op, FuncOp))
    (forest,) = (op for op in main.body.block.ops if isinstance(op, ForestOp))
    ends = main.body.block.last_op
    assert isinstance(ends, ReturnOp)
    ends.operands = [forest.results[0]]
    return run_graph(imported.module, imported.weights, [x])[0]


def check_margins(model: Any, x: Any) -> None:
    want = model.predict(xgb.DMatrix(x), output_margin=True)
    np.testing.assert_array_equal(margins(model, x), want.reshape(len(x), -1))


@settings(max_examples=60, deadline=None)
@given(
    objective=st.sampled_from(sorted(LABELS)),
    varied=st.sampled_from(["varied", "low", "high"]),
    rounds=st.integers(0, 3),
    booster=st.sampled_from(["gbtree", "dart"]),
    seed=st.integers(0, 1 << 16),
)
def test_estimated(objective: str, varied: str, rounds: int, booster: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(30, 3)).astype(np.float32)
    kind = LABELS[objective]
    y = labels(kind, 30, rng) if varied == "varied" else constant(kind, 30, varied == "high")
    check_margins(train(objective, x, y, rounds, booster=booster), x[:5])


@settings(max_examples=60, deadline=None)
@given(
    objective=st.sampled_from(SEVERAL),
    columns=st.lists(st.sampled_from(["varied", "low", "high"]), min_size=2, max_size=4),
    strategy=st.sampled_from(["one_output_per_tree", "multi_output_tree"]),
    rounds=st.integers(0, 3),
    seed=st.integers(0, 1 << 16),
)
def test_several_labels(
    objective: str, columns: list[str], strategy: str, rounds: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(30, 3)).astype(np.float32)
    kind = LABELS[objective]
    y = np.stack(
        [labels(kind, 30, rng) if c == "varied" else constant(kind, 30, c == "high")
         for c in columns],
        axis=1,
    )  # fmt: skip
    check_margins(train(objective, x, y, rounds, multi_strategy=strategy), x[:5])


@settings(max_examples=60, deadline=None)
@given(
    objective=st.sampled_from(LOGISTIC),
    score=st.sampled_from(ENDS) | st.floats(0, 1, width=32),
    seed=st.integers(0, 1 << 16),
)
def test_given_probability(objective: str, score: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(30, 3)).astype(np.float32)
    check_margins(train(objective, x, labels("bits", 30, rng), base_score=score), x[:5])


@settings(max_examples=40, deadline=None)
@given(
    objective=st.sampled_from(sorted(set(LABELS) - set(LOGISTIC))),
    score=st.floats(2.0**-10, 1024, width=32),
    seed=st.integers(0, 1 << 16),
)
def test_given_number(objective: str, score: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(30, 3)).astype(np.float32)
    y = labels(LABELS[objective], 30, rng)
    check_margins(train(objective, x, y, base_score=score), x[:5])


@pytest.mark.parametrize("score", [-1.0, -0.0, 0.0, 1e-45])
@pytest.mark.parametrize("objective", ["count:poisson", "reg:tweedie", "survival:cox"])
def test_scores_without_a_logarithm(objective: str, score: float) -> None:
    x = np.arange(12, dtype=np.float32).reshape(6, 2)
    y = np.arange(1, 7, dtype=np.float32)
    check_margins(train(objective, x, y, base_score=score), x)


def test_a_vector_of_scores() -> None:
    x = np.arange(24, dtype=np.float32).reshape(12, 2)
    y = np.stack([np.arange(12) % 2, np.arange(12) % 3 == 0], axis=1)
    check_margins(train("reg:logistic", x, y, base_score="[0.0,0.25]"), x)


# Compiled programs: the objective's own function too


def classifiers() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3)).astype(np.float32)
    y = (x[:, 0] > 0).astype(int)
    both = np.stack([np.zeros(60, int), y, np.ones(60, int)], axis=1)
    small: dict[str, Any] = {"n_estimators": 2, "max_depth": 2, "n_jobs": 1}
    return {
        "zeros": xgb.XGBClassifier(**small).fit(x, np.zeros(60, int)),
        "zeros, said to be ones": xgb.XGBClassifier(**small, base_score=1.0, eta=1e-9).fit(
            x, np.zeros(60, int)
        ),
        "several labels": xgb.XGBClassifier(**small).fit(x, both),
        "several labels in one tree": xgb.XGBClassifier(
            **small, multi_strategy="multi_output_tree"
        ).fit(x, both),
        "no trees": xgb.XGBClassifier(n_estimators=0).fit(x, y),
        "far below zero": xgb.XGBClassifier(**small, eta=60.0).fit(x, y),
    }


@pytest.mark.parametrize("name", classifiers())
def test_compiled_classifier(compiled: Any, name: str) -> None:
    model = classifiers()[name]
    x = np.random.default_rng(1).normal(size=(40, 3)).astype(np.float32)
    program = compiled(model, mode="serial")
    want = model.predict_proba(x)
    if name == "far below zero":
        # Where exp(-x) would be infinite.
        assert 0 < want[:, 1].min() < 1e-38
    np.testing.assert_array_equal(program.predict_proba(x), want)
    found, want = program.predict(x), model.predict(x)
    assert found.dtype == want.dtype
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("objective", ["binary:logitraw", "reg:logistic", "count:poisson"])
def test_compiled_regressor(compiled: Any, objective: str) -> None:
    x = np.random.default_rng(1).normal(size=(40, 3)).astype(np.float32)
    y = np.ones(40, np.float32)
    model = xgb.XGBRegressor(n_estimators=2, objective=objective, n_jobs=1).fit(x, y)
    np.testing.assert_array_equal(compiled(model, mode="serial").predict(x), model.predict(x))


def test_reloaded_models(tmp_path: Path) -> None:
    x = np.random.default_rng(1).normal(size=(40, 3)).astype(np.float32)
    model = train("binary:logistic", x, np.ones(40), booster="dart")
    want = margins(model, x)
    for name in ("model.json", "model.ubj"):
        model.save_model(tmp_path / name)
        np.testing.assert_array_equal(margins(xgb.Booster(model_file=tmp_path / name), x), want)
    np.testing.assert_array_equal(margins(pickle.loads(pickle.dumps(model)), x), want)
