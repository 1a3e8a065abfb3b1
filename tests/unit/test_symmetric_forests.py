"""Symmetric trees on a CPU: they are seen in the arrays of any forest, and have the bits of its walk."""

# pyright: basic

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_tree_programs import FEATURES, NUMBERS

from irkit.dialects.forests import symmetric_trees
from irkit.dialects.types import DYNAMIC, element_type, tensor
from irkit.driver.compiler.artifacts import build_artifact
from irkit.frontends.module import GraphBuilder, ImportedModel
from irkit.frontends.trees import Trees, join
from irkit.interp.graph import run_graph
from irkit.model_info import ModelInfo
from irkit.rkernels import registry
from irkit.runtime.variant import Variant

ROWS = (0, 1, 2, 7, 8, 9, 127, 128, 129, 300)

# Trees, depth, output columns, whether a leaf has a value for each, comparison, element type.
SHAPES = [
    (1, 1, 1, False, "le", "float32"),
    (3, 2, 2, False, "lt", "float64"),
    (130, 3, 1, False, "lt", "float32"),
    (5, 5, 3, True, "le", "float64"),
    (9, 6, 1, False, "le", "float32"),
    (4, 8, 2, True, "lt", "float32"),
    (6, 10, 4, False, "le", "float64"),
]


def symmetric_tree(
    rng: np.random.Generator, depth: int, width: int, column: int, base: Any
) -> Trees:
    """A tree of `depth` levels, in the order of a heap."""
    inner, level = (1 << depth) - 1, np.repeat(np.arange(depth), 1 << np.arange(depth))
    nodes = np.arange(2 * inner + 1)
    left, right = nodes.copy(), nodes.copy()
    left[:inner], right[:inner] = 2 * nodes[:inner] + 1, 2 * nodes[:inner] + 2

    def of_levels(values: Any) -> Any:
        return np.concatenate([values[level], np.zeros(inner + 1, values.dtype)])

    return Trees(
        of_levels(rng.integers(0, FEATURES, depth)),
        of_levels(rng.choice(NUMBERS, depth)),
        left,
        right,
        of_levels(rng.random(depth) < 0.5),
        rng.normal(size=(len(nodes), width)) * 10.0 ** rng.integers(-6, 6, (len(nodes), width)),
        np.zeros(1, np.int64),
        np.array([column]),
        base,
    )


def forest(
    seed: int, trees: int, depth: int, columns: int, vector: bool, comparison: str, dtype: str,
    break_one: bool = False,
) -> tuple[ImportedModel, np.random.Generator]:  # fmt: skip
    """Trees of at most `depth` levels, of which one is a lone leaf where there are several; with `break_one`
    one node of the last is of another threshold."""
    rng = np.random.default_rng(seed)
    base, width = rng.normal(size=columns).astype(dtype), columns if vector else 1
    depths = [depth, *(int(rng.integers(0, depth + 1)) for _ in range(trees - 1))]
    parts = [
        symmetric_tree(rng, d, width, 0 if vector else int(rng.integers(columns)), base)
        for d in depths
    ]
    if break_one:
        parts[0].threshold[2] += 1
    whole = join(parts)
    whole.threshold, whole.value = whole.threshold.astype(dtype), whole.value.astype(dtype)
    whole.comparison = comparison
    builder = GraphBuilder([("x", tensor(element_type(np.dtype(dtype)), (DYNAMIC, FEATURES)))])
    y = whole.build(builder, builder.inputs[0])
    info = ModelInfo("regressor", ("x",), ("y",), allow_empty=True)
    return builder.finish([("y", y)], info), rng


@pytest.mark.parametrize("shape", SHAPES)
def test_same_bits_as_the_walk(shape: tuple, monkeypatch: pytest.MonkeyPatch) -> None:
    registry.find("cpu", "perfect_forest.symmetric")
    known = registry._REGISTERED["cpu", "perfect_forest"]
    alone = [k for k in known if k.variant == "symmetric"]
    monkeypatch.setitem(registry._REGISTERED, ("cpu", "perfect_forest"), alone)
    imported, rng = forest(SHAPES.index(shape), *shape)
    artifact = build_artifact(forest(SHAPES.index(shape), *shape)[0], "cpu1", cache=False)
    assert "rKernel perfect_forest.symmetric," in artifact.source
    program = Variant(artifact, "auto")
    for rows in ROWS:
        x = rng.choice(NUMBERS, (rows, FEATURES)).astype(shape[-1])
        for gaps in range(2 if rows else 1):
            if gaps:
                # A block with one NaN goes another way than the others.
                x[rng.integers(rows), rng.integers(FEATURES)] = np.nan
            (want,) = run_graph(imported.module, imported.weights, [x])
            assert program.run([x])[0].tobytes() == want.tobytes()


def _tensor_level(imported: ImportedModel) -> str:
    return build_artifact(imported, "cpu1", cache=False).ir["tensor"]


def test_they_are_seen_in_the_arrays() -> None:
    shape = (4, 3, 1, False, "le", "float32")
    assert "symmetric" in _tensor_level(forest(1, *shape)[0])
    assert "symmetric" not in _tensor_level(forest(1, *shape, break_one=True)[0])


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1), depth=st.integers(1, 5), trees=st.integers(1, 4), what=st.integers(0, 3)
)  # fmt: skip
def test_one_other_node_makes_them_others(seed: int, depth: int, trees: int, what: int) -> None:
    rng = np.random.default_rng(seed)
    level = np.repeat(np.arange(depth), 1 << np.arange(depth))
    arrays = [
        rng.integers(0, 9, (trees, depth))[:, level],
        rng.choice(NUMBERS, (trees, depth))[:, level],
        (rng.random((trees, depth)) < 0.5)[:, level],
    ]
    assert symmetric_trees(*arrays)
    if what == 3 or depth == 1:
        return
    # Of the root's level there is no other node.
    place = int(rng.integers(trees)), int(rng.integers(1, (1 << depth) - 1))
    old = arrays[what][place]
    arrays[what][place] = (old + 1, np.nan, not old)[what]
    assert not symmetric_trees(*arrays)


@pytest.mark.parametrize(
    ("features", "trees", "chosen"), [(8, 60, "symmetric"), (3000, 2, "blocks")]
)
def test_the_choice_hangs_on_what_they_cost(features: int, trees: int, chosen: str) -> None:
    """Of wide rows few trees look at little, and columns are not worth laying out."""
    rng = np.random.default_rng(0)
    whole = join([symmetric_tree(rng, 4, 1, 0, np.zeros(1)) for _ in range(trees)])
    whole.threshold = whole.threshold.astype(np.float32)
    builder = GraphBuilder([("x", tensor(element_type(np.dtype("float32")), (DYNAMIC, features)))])
    y = whole.build(builder, builder.inputs[0])
    imported = builder.finish([("y", y)], ModelInfo("regressor", ("x",), ("y",)))
    assert (
        f"rKernel perfect_forest.{chosen}," in build_artifact(imported, "cpu1", cache=False).source
    )
