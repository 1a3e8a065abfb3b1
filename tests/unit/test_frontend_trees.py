"""Ensembles as arrays: rounding of thresholds, the checks, and graph.forest against a plain walk."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import f32

from irkit.dialects.types import DYNAMIC, tensor
from irkit.errors import InvalidModelError
from irkit.frontends.module import GraphBuilder, ImportedModel
from irkit.frontends.trees import Trees, floor32, join
from irkit.interp.graph import run_graph
from irkit.model_info import ModelInfo

WIDE = st.floats(allow_nan=False, width=64)
NARROW = st.floats(allow_nan=False, width=32)


def build(trees: Trees, features: int = 3) -> ImportedModel:
    builder = GraphBuilder([("x", tensor(f32, (DYNAMIC, features)))])
    y = trees.build(builder, builder.inputs[0])
    return builder.finish([("y", y)], ModelInfo("regressor", ("x",), ("y",)))


def stump(feature: int = 1, threshold: float = 0.5, column: int = 0, columns: int = 1) -> Trees:
    """x[feature] <= threshold ? 1 : 2"""
    return Trees(
        feature=np.array([feature, 0, 0]),
        threshold=np.array([threshold, 0, 0], np.float32),
        left=np.array([1, 1, 2]),
        right=np.array([2, 1, 2]),
        nan_left=np.array([True, False, False]),
        value=np.array([[0.0], [1.0], [2.0]]),
        root=np.array([0]),
        output=np.array([column]),
        base=np.full(columns, 0.5),
    )


def walk(trees: Trees, x: Any) -> Any:
    """Row by row, tree by tree, in plain Python."""
    y = np.tile(trees.base, (len(x), 1))
    for row, total in zip(x, y, strict=True):
        for root, column in zip(trees.root, trees.output, strict=True):
            node = root
            while trees.left[node] != node:
                cell, threshold = row[trees.feature[node]], trees.threshold[node]
                below = cell <= threshold if trees.comparison == "le" else cell < threshold
                left = trees.nan_left[node] if np.isnan(cell) else below
                node = trees.left[node] if left else trees.right[node]
            total[column] += trees.value[node, 0]
    return y


@given(WIDE, NARROW)
@settings(max_examples=500, deadline=None)
def test_floor32_decides_as_the_wide_threshold_does(threshold: float, x: float) -> None:
    (cut,) = floor32(np.array([threshold]))
    assert (np.float32(x) <= cut) == (x <= threshold)


@given(WIDE)
@settings(max_examples=500, deadline=None)
def test_floor32_is_the_largest_below(threshold: float) -> None:
    (cut,) = floor32(np.array([threshold]))
    assert float(cut) <= threshold
    with np.errstate(over="ignore"):
        above = np.nextafter(cut, np.float32(np.inf))
    assert cut == np.inf or float(above) > threshold


@given(NARROW)
@settings(deadline=None)
def test_floor32_keeps_what_fits(x: float) -> None:
    assert floor32(np.array([x]))[0] == np.float32(x)


def test_forest_of_two_columns_against_a_plain_walk() -> None:
    trees = join([stump(1, 0.5, 0, 2), stump(2, -0.25, 1, 2), stump(0, 0.0, 0, 2)])
    rng = np.random.default_rng(0)
    x = rng.choice(np.array([-0.25, 0.0, 0.5, 0.75, np.nan], np.float32), (50, 3))
    for comparison in ("le", "lt"):
        chosen = replace(trees, comparison=comparison)
        imported = build(chosen)
        (found,) = run_graph(imported.module, imported.weights, [x])
        np.testing.assert_array_equal(found, walk(chosen, x))


def test_joined_trees_keep_their_order() -> None:
    trees = join([stump(column=1, columns=2), stump(column=0, columns=2)])
    np.testing.assert_array_equal(trees.root, [0, 3])
    np.testing.assert_array_equal(trees.left, [1, 1, 2, 4, 4, 5])
    np.testing.assert_array_equal(trees.output, [1, 0])


def test_what_a_leaf_would_compare_leaves_no_trace() -> None:
    plain, odd = stump(), stump()
    odd.feature[1:], odd.threshold[1:], odd.nan_left[1:] = 2, 7.0, True
    odd.value[0] = 9.0
    assert str(build(plain).module) == str(build(odd).module)


def test_depth_counts_comparisons() -> None:
    lone = replace(stump(), root=np.array([2]))
    assert (stump().depth(), lone.depth()) == (1, 0)


@pytest.mark.parametrize(
    ("name", "index", "value", "message"),
    [
        ("left", 0, 3, "name child 3; expected 0 to 2"),
        ("right", 0, -1, "name child -1; expected 0 to 2"),
        ("root", 0, 5, "name root 5; expected 0 to 2"),
        ("feature", 0, 3, "name feature 3; expected 0 to 2"),
        ("output", 0, 1, "name output 1; expected 0 to 0"),
        ("left", 1, 0, "a tree of the ensemble has a cycle"),
    ],
)
def test_what_is_no_tree_is_refused(name: str, index: int, value: int, message: str) -> None:
    trees = stump()
    getattr(trees, name)[index] = value
    with pytest.raises(InvalidModelError, match=message):
        build(trees)
