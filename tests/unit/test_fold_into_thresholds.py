"""Scalers, imputers and casts folded into thresholds of random trees: the same leaves, to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_tree_programs import random_tree
from xdsl.dialects.builtin import IntegerAttr, i64

import irkit
from irkit.context import IrkitContext
from irkit.dialects import graph
from irkit.dialects.constants import constant_array
from irkit.dialects.graph import Graph
from irkit.dialects.types import DYNAMIC, element_type, tensor
from irkit.frontends.module import GraphBuilder, ImportedModel
from irkit.frontends.trees import join
from irkit.interp.graph import run_graph
from irkit.model_info import ModelInfo
from irkit.passes.graph.fold_into_thresholds import FoldIntoThresholds

WIDTH = 4
EDGES = [-np.inf, np.inf, np.nan, 0.0, -0.0, 5e-324, -5e-324, 1e-300, 1.7e308, -1.7e308]


def model(rng: np.random.Generator, dtype: str, of: str, comparison: str) -> ImportedModel:
    """Trees of columns of dtype `of`, behind a step or several of an input of `dtype`."""
    b = GraphBuilder([("x", tensor(element_type(np.dtype(dtype)), (DYNAMIC, WIDTH)))])
    x = b.inputs[0]

    def row(low: float, high: float) -> Any:
        return b.constant(rng.uniform(low, high, WIDTH).astype(dtype))

    if rng.random() < 0.5:
        x = b(graph.WhereOp, b(graph.IsNanOp, x), row(-2, 2), x)
    if rng.random() < 0.7:
        x = b(graph.DivOp, b(graph.SubOp, x, row(-3, 3)), row(0.01, 9))
    if rng.random() < 0.5:
        x = b(graph.AddOp, b(graph.MulOp, x, row(1e-3, 1e3)), row(-1, 1))
    if of != dtype:
        x = b(graph.CastOp, x, to=element_type(np.dtype(of)))
    if rng.random() < 0.5:
        columns = rng.integers(0, WIDTH, WIDTH)
        x = b(graph.GatherOp, x, b.constant(columns), axis=IntegerAttr(1, i64))
    base = np.zeros(2, of)
    trees = join([random_tree(rng, 4, 1, int(rng.integers(2)), base) for _ in range(5)])
    # Thresholds close to columns' own values, some of them met exactly.
    steps = rng.choice(np.linspace(-2, 2, 17), len(trees.threshold))
    trees.threshold = steps.astype(of)
    trees.value, trees.comparison = trees.value.astype(of), comparison
    return b.finish([("y", trees.build(b, x))], ModelInfo("regressor", ("x",), ("y",)))


@pytest.mark.parametrize("comparison", ["le", "lt"])
@pytest.mark.parametrize(
    ("dtype", "of"), [("float64", "float64"), ("float64", "float32"), ("float32", "float32")]
)
@pytest.mark.parametrize("seed", range(12))
def test_every_row_comes_to_its_leaves(
    seed: int, dtype: str, of: str, comparison: str, monkeypatch: Any
) -> None:
    monkeypatch.setattr("irkit.passes.graph.fold_into_thresholds.NODES_PER_COLUMN", 1000)
    rng = np.random.default_rng(seed)
    imported = model(rng, dtype, of, comparison)
    folded = imported.module.clone()
    ctx = IrkitContext(weights=imported.weights)
    ctx.load_dialect(Graph)
    FoldIntoThresholds().apply(ctx, folded)
    folded.verify()
    (forest,) = [op for op in folded.walk() if isinstance(op, graph.ForestOp)]
    if forest.x is not folded.body.block.first_op.body.block.args[0]:
        pytest.skip("nothing stands between the input and the trees")
    limits = thresholds(forest, imported)
    x = rng.uniform(-4, 4, (400, WIDTH)).astype(dtype)
    near = rng.choice(
        np.concatenate([limits, np.nextafter(limits, -np.inf), np.nextafter(limits, np.inf)]),
        x.shape,
    )
    x = np.where(rng.random(x.shape) < 0.5, near, x)
    with np.errstate(over="ignore"):
        x = np.where(rng.random(x.shape) < 0.1, rng.choice(EDGES, x.shape).astype(dtype), x).astype(
            dtype
        )
        (want,) = run_graph(imported.module, imported.weights, [x])
        (got,) = run_graph(folded, imported.weights, [x])
    assert got.tobytes() == want.tobytes()


def thresholds(forest: graph.ForestOp, imported: ImportedModel) -> Any:
    found = constant_array(forest.threshold, imported.weights)
    assert found is not None
    return found[np.isfinite(found)]


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_trees_of_bins_compare_what_was_binned(strategy: str) -> None:
    """At every knot and on both sides of it."""
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    trees, pipeline = pytest.importorskip("sklearn.tree"), pytest.importorskip("sklearn.pipeline")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, WIDTH))
    parameters = {} if strategy == "uniform" else {"quantile_method": "averaged_inverted_cdf"}
    bins = preprocessing.KBinsDiscretizer(9, encode="ordinal", strategy=strategy, **parameters)
    tree = trees.DecisionTreeRegressor(max_leaf_nodes=60, random_state=0)
    model = pipeline.make_pipeline(bins, tree).fit(x, x @ rng.normal(size=WIDTH))
    program = irkit.compile(model, "cpu", dtype="float64", cache=False)
    assert "graph.matmul" not in program.ir("graph")
    knots = np.concatenate(bins.bin_edges_)
    near = np.concatenate([knots, np.nextafter(knots, -np.inf), np.nextafter(knots, np.inf)])
    rows = np.where(
        rng.random((2000, WIDTH)) < 0.7,
        rng.choice(near, (2000, WIDTH)),
        rng.normal(size=(2000, WIDTH)),
    )
    np.testing.assert_array_equal(program.predict(rows), model.predict(rows))
