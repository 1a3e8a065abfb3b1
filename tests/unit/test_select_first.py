"""select-first: what it leaves out changes no number, and pipelines compute fewer columns by it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.feature_selection import SelectKBest, SelectPercentile, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Lasso, LogisticRegression
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from xdsl.dialects.builtin import f32

from irkit.context import IrkitContext
from irkit.dialects.graph import GatherOp
from irkit.dialects.types import DYNAMIC, tensor
from irkit.frontends import import_model
from irkit.frontends.module import GraphBuilder
from irkit.interp.graph import run_graph
from irkit.model_info import ModelInfo
from irkit.passes.graph.select_first import SelectFirst

RANDOM = np.random.default_rng(0)
NUMBERS = RANDOM.normal(size=(80, 6))
X = np.concatenate([NUMBERS, RANDOM.integers(0, 5, (80, 2)).astype(np.float64)], axis=1)
Y = (NUMBERS[:, 1] + NUMBERS[:, 4] > 0).astype(np.int64)


def both(imported: Any, x: Any) -> tuple[list[Any], list[Any]]:
    """The outputs before and after the pass."""
    before = run_graph(imported.module, imported.weights, [x])
    SelectFirst().apply(IrkitContext(weights=imported.weights), imported.module)
    imported.module.verify()
    return before, run_graph(imported.module, imported.weights, [x])


def columns(random: np.random.Generator) -> Any:
    """Some transformers side by side."""
    scalers = [StandardScaler(), MinMaxScaler(), MaxAbsScaler(), RobustScaler()]
    of_numbers = [
        scalers[int(random.integers(4))],
        make_pipeline(SimpleImputer(), PolynomialFeatures(2), StandardScaler()),
        KBinsDiscretizer(3, encode="ordinal", quantile_method="averaged_inverted_cdf"),
        make_union(MinMaxScaler(), VarianceThreshold()),
        Normalizer(),
    ]
    of_classes = [
        OneHotEncoder(handle_unknown="ignore"),
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
        OneHotEncoder(min_frequency=17, handle_unknown="infrequent_if_exist"),
    ]
    own = random.permutation(6)[: int(random.integers(2, 6))]
    return ColumnTransformer(
        [
            ("numbers", of_numbers[int(random.integers(5))], own),
            ("classes", of_classes[int(random.integers(3))], [7, 6]),
            ("more", of_numbers[int(random.integers(5))], [0, 3]),
        ],
        sparse_threshold=0,
    )


# Of constant columns, and of bins that are next to nothing.
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", range(30))
def test_random_pipelines(seed: int) -> None:
    random = np.random.default_rng(seed)
    last = [
        LogisticRegression(l1_ratio=1, C=0.05, solver="liblinear"),
        Lasso(0.05),
        ExtraTreesRegressor(2, max_depth=2, random_state=seed),
    ][seed % 3]
    parts = [columns(random), SelectKBest(k=int(random.integers(1, 6))), last]
    model = make_pipeline(*(p for i, p in enumerate(parts) if i != 1 or seed % 2)).fit(X, Y)
    x = X.copy()
    x[::7, 6] = 9.0
    before, after = both(import_model(model, "float64"), x)
    for one, other in zip(before, after, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-13, atol=1e-15)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_trees_leave_columns_out() -> None:
    """Bins of every column and a stump: one column is cut into bins, bit for bit."""
    bins = KBinsDiscretizer(6, encode="ordinal", quantile_method="averaged_inverted_cdf")
    stump = ExtraTreesRegressor(1, max_depth=1, random_state=0)
    imported = import_model(make_pipeline(bins, stump).fit(X, Y), "float64")
    before, after = both(imported, X)
    np.testing.assert_array_equal(before[0], after[0])
    assert "graph.matmul" in str(imported.module)
    assert "-> tensor<?x1xf64>" in str(imported.module)


def test_a_scaler_computes_what_is_selected() -> None:
    model = make_pipeline(StandardScaler(), SelectPercentile(percentile=25), LogisticRegression())
    imported = import_model(model.fit(X, Y), "float64")
    assert str(imported.module).count("tensor<?x8xf64>") > 3
    before, after = both(imported, X)
    np.testing.assert_array_equal(before[1], after[1])
    # The argument and the one selection of it.
    assert str(imported.module).count("tensor<?x8xf64>") == 2


def test_infinity_is_refused_where_it_is_left_out() -> None:
    """No bound of the host stands for what a selection, or trees, take."""
    few = SelectPercentile(percentile=25)
    for parts in (
        (StandardScaler(), VarianceThreshold(), LogisticRegression()),
        (StandardScaler(), few, ExtraTreesRegressor(2, random_state=0)),
    ):
        info = import_model(make_pipeline(*parts).fit(X, Y), "float64").info
        assert info.checks
        assert info.largest is None


def test_coefficients_of_zero() -> None:
    model = make_pipeline(
        StandardScaler(), LogisticRegression(l1_ratio=1, C=0.1, solver="liblinear")
    )
    model.fit(X, Y)
    kept = np.flatnonzero(model[-1].coef_[0])
    assert 0 < len(kept) < 8
    imported = import_model(model, "float64")
    both(imported, X)
    assert f"graph.sub %1, %2 : (tensor<?x{len(kept)}xf64>" in str(imported.module)


def test_a_column_alone_many_times() -> None:
    """A selection of a selection of one column is as wide as it says."""
    builder = GraphBuilder([("x", tensor(f32, (DYNAMIC, 1)))])
    many = builder(
        GatherOp, builder.inputs[0], builder.constant(np.zeros(4, np.int64), "i"), axis=1
    )
    some = builder(GatherOp, many, builder.constant(np.array([0, 2, 1]), "j"), axis=1)
    info = ModelInfo("network", ("x",), ("y",))
    before, after = both(builder.finish([("y", some)], info), X[:, :1].astype(np.float32))
    np.testing.assert_array_equal(before[0], after[0])
    assert after[0].shape == (80, 3)
