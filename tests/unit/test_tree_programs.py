"""Random forests of any shape: each strategy's tensor program has the bits of the forest's own walk."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from irkit.context import IrkitContext
from irkit.dialects.graph import ForestOp, Graph
from irkit.dialects.types import DYNAMIC, element_type, tensor
from irkit.frontends.module import GraphBuilder, ImportedModel
from irkit.frontends.trees import Trees, join
from irkit.interp.graph import run_graph
from irkit.model_info import ModelInfo
from irkit.passes.graph.select_tree_strategy import SelectTreeStrategy
from irkit.passes.graph.tree_to_gemm import TreeToGemm
from irkit.passes.graph.tree_to_perfect_traversal import TreeToPerfectTraversal
from irkit.passes.graph.tree_to_traversal import TreeToTraversal

FEATURES = 4
# Thresholds and cells come from the same few numbers, so that they often meet.
NUMBERS = np.array([-np.inf, -1.5, -0.0, 0.0, 0.1, 2.0, np.inf])
REWRITES: dict[str, Any] = {
    "gemm": TreeToGemm,
    "perfect_traversal": TreeToPerfectTraversal,
    "traversal": TreeToTraversal,
}


def random_tree(rng: np.random.Generator, depth: int, width: int, column: int, base: Any) -> Trees:
    """A tree of at most `depth` levels: from one leaf to a perfect tree, nodes in random order."""
    left, right = [0], [0]
    level = [0]
    for _ in range(depth):
        split = [node for node in level if rng.random() < 0.7]
        level = list[int]()
        for node in split:
            left[node], right[node] = len(left), len(left) + 1
            level += [left[node], right[node]]
            left += [left[node], right[node]]
            right += [left[node], right[node]]
    nodes = len(left)
    place = rng.permutation(nodes)
    order = np.argsort(place)
    return Trees(
        feature=rng.integers(0, FEATURES, nodes),
        threshold=rng.choice(NUMBERS, nodes),
        left=place[np.array(left)[order]],
        right=place[np.array(right)[order]],
        nan_left=rng.random(nodes) < 0.5,
        # Of very different sizes: another order of summing gives other bits.
        value=rng.normal(size=(nodes, width)) * 10.0 ** rng.integers(-6, 6, (nodes, width)),
        root=place[:1],
        output=np.array([column]),
        base=base,
    )


def forest(
    seed: int, trees: int, depth: int, columns: int, vector: bool, comparison: str, dtype: str
) -> tuple[ImportedModel, np.random.Generator]:
    """A random ensemble whose cells, thresholds, leaves and sums are of `dtype`."""
    rng = np.random.default_rng(seed)
    base = rng.normal(size=columns).astype(dtype)
    width = columns if vector else 1
    parts = [
        random_tree(rng, depth, width, 0 if vector else int(rng.integers(columns)), base)
        for _ in range(trees)
    ]
    whole = join(parts)
    whole.threshold, whole.value = whole.threshold.astype(dtype), whole.value.astype(dtype)
    whole.comparison = comparison
    x = tensor(element_type(np.dtype(dtype)), (DYNAMIC, FEATURES))
    builder = GraphBuilder([("x", x)])
    y = whole.build(builder, builder.inputs[0])
    return builder.finish([("y", y)], ModelInfo("regressor", ("x",), ("y",))), rng


def rewritten(imported: ImportedModel, strategy: str) -> ModuleOp:
    """A copy whose forest is a tensor program."""
    module = imported.module.clone()
    ctx = IrkitContext(weights=imported.weights)
    ctx.load_dialect(Graph)
    SelectTreeStrategy(strategy).apply(ctx, module)
    for other in REWRITES.values():
        other().apply(ctx, module)
    module.verify()
    assert not any(isinstance(op, ForestOp) for op in module.walk())
    return module


@pytest.mark.parametrize("strategy", REWRITES)
@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    trees=st.integers(1, 6),
    depth=st.integers(0, 5),
    columns=st.integers(1, 4),
    vector=st.booleans(),
    comparison=st.sampled_from(["le", "lt"]),
    dtype=st.sampled_from(["float32", "float64"]),
)
def test_same_bits_as_the_walk(strategy: str, seed: int, **shape: Any) -> None:
    imported, rng = forest(seed, **shape)
    module = rewritten(imported, strategy)
    for rows in (1, 2, 7, 33):
        x = rng.choice([*NUMBERS, np.nan], (rows, FEATURES)).astype(shape["dtype"])
        (want,) = run_graph(imported.module, imported.weights, [x])
        (found,) = run_graph(module, imported.weights, [x])
        assert (found.dtype, found.shape) == (want.dtype, want.shape)
        assert found.tobytes() == want.tobytes()


@pytest.mark.parametrize("strategy", REWRITES)
def test_forests_of_other_strategies_are_left_alone(strategy: str) -> None:
    imported, _ = forest(0, 2, 2, 1, False, "le", "float32")
    before = str(imported.module)
    ctx = IrkitContext(weights=imported.weights)
    ctx.load_dialect(Graph)
    REWRITES[strategy]().apply(ctx, imported.module)
    assert str(imported.module) == before
    REWRITES[strategy](force=True).apply(ctx, imported.module)
    assert not any(isinstance(op, ForestOp) for op in imported.module.walk())


def test_an_unknown_strategy_is_named() -> None:
    imported, _ = forest(0, 1, 1, 1, False, "le", "float32")
    with pytest.raises(PassFailedException, match=r"'strategy'.*got 'bitvector'"):
        SelectTreeStrategy("bitvector").apply(IrkitContext(), imported.module)


def broken_forest(**changes: Any) -> ImportedModel:
    """One inner node with two leaves, with some arrays as `changes` have them."""
    arrays = {
        "feature": np.array([1, 0, 0], np.int32),
        "threshold": np.zeros(3, np.float32),
        "left": np.array([1, 1, 2], np.int32),
        "right": np.array([2, 1, 2], np.int32),
        "nan_left": np.zeros(3, np.bool_),
        "value": np.ones((3, 1), np.float32),
        "root": np.zeros(1, np.int32),
        "output": np.zeros(1, np.int32),
        "base": np.zeros(1, np.float32),
    }
    arrays |= {name: np.array(numbers, np.int32) for name, numbers in changes.items()}
    builder = GraphBuilder([("x", tensor(element_type(np.dtype("float32")), (DYNAMIC, FEATURES)))])
    operands = [builder.constant(array, name) for name, array in arrays.items()]
    given = {"comparison": "le", "depth": 1, "strategy": "auto"}
    y = builder(ForestOp, builder.inputs[0], *operands, **given)
    return builder.finish([("y", y)], ModelInfo("regressor", ("x",), ("y",)))


@pytest.mark.parametrize("strategy", REWRITES)
@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"left": [1, 0, 2]}, "leaves after 1 comparisons"),  # a cycle
        ({"left": [1, 1, 1]}, "leaves after 1 comparisons"),  # a leaf that names another node
        ({"right": [9, 1, 2]}, "child 0 to 2, got 9"),
        ({"left": [-1, 1, 2]}, "child 0 to 2, got -1"),
        ({"root": [3]}, "root 0 to 2, got 3"),
        ({"feature": [4, 0, 0]}, "feature 0 to 3, got 4"),
        ({"output": [1]}, "output 0 to 0, got 1"),
    ],
    ids=str,
)
def test_arrays_that_are_no_trees(strategy: str, changes: dict[str, Any], fault: str) -> None:
    imported = broken_forest(**changes)
    with pytest.raises(PassFailedException, match=f"no trees: expected {fault}"):
        rewritten(imported, strategy)
