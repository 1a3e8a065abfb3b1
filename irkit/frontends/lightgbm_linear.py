"""LightGBM's linear trees: each leaf is a constant and a product with some of the row's numbers.

A forest says which leaf of each tree a row comes to; what that leaf has is looked up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from xdsl.dialects.builtin import f64, i64
from xdsl.ir import SSAValue

from irkit.dialects.graph import (
    AbsOp,
    AddOp,
    CastOp,
    CompareOp,
    GatherElementsOp,
    GatherOp,
    IsNanOp,
    MulOp,
    OrOp,
    PadOp,
    ReduceOp,
    ReshapeOp,
    WhereOp,
)
from irkit.dialects.types import DYNAMIC
from irkit.errors import InvalidModelError
from irkit.frontends.lightgbm_text import TextModel, numbers
from irkit.frontends.module import GraphBuilder
from irkit.frontends.trees import Trees, join
from irkit.weights import Array


class Leaves(NamedTuple):
    """What the leaves of all trees have, a row each; `values` where a number is NaN.

    `features` and `coefficients` are leaves×terms; a term too many is 0 times a column behind the last.
    """

    constants: Array
    values: Array
    features: Array
    coefficients: Array


def is_linear(text: TextModel) -> bool:
    """Whether any tree has linear leaves."""
    return any(tree.get("is_linear", "0") != "0" for tree in text.trees)


def linear_sums(
    builder: GraphBuilder, x: SSAValue, compared: SSAValue, text: TextModel, trees: Sequence[Trees]
) -> SSAValue:
    """rows×columns of float64 of linear leaves of the rows `x`, which the trees look at as `compared`."""
    leaves = _leaves(text)
    sizes = [int(tree["num_leaves"]) for tree in text.trees]
    starts = np.cumsum([0, *sizes[:-1]])
    numbered = [
        _numbered(t, n, int(s), len(trees))
        for n, (t, s) in enumerate(zip(trees, starts, strict=True))
    ]
    leaf = builder(CastOp, join(numbered).build(builder, compared), to=i64)

    def of_leaf(table: Array, name: str) -> SSAValue:
        return builder(GatherOp, builder.constant(table, name), leaf, axis=0)

    row = _row(builder, x)
    total, missing = of_leaf(leaves.constants, "leaf_const"), None
    for term in range(leaves.features.shape[1]):
        place = of_leaf(np.ascontiguousarray(leaves.features[:, term]), "leaf_features")
        number = builder(GatherElementsOp, row, place, axis=1)
        factor = of_leaf(np.ascontiguousarray(leaves.coefficients[:, term]), "leaf_coeff")
        total = builder(AddOp, total, builder(MulOp, factor, number))
        nan = builder(IsNanOp, number)
        missing = nan if missing is None else builder(OrOp, missing, nan)
    if missing is not None:
        total = builder(WhereOp, missing, of_leaf(leaves.values, "leaf_value"), total)
    each = builder(ReshapeOp, total, shape=[DYNAMIC, len(trees) // text.columns, text.columns])
    return builder(ReduceOp, each, kind="sum", axes=[1], keepdims=False)


def _numbered(tree: Trees, number: int, start: int, count: int) -> Trees:
    """A tree whose leaves' values are their numbers, in a column of its own."""
    inner = np.count_nonzero(~tree.is_leaf)
    value = np.zeros(tree.value.shape)
    value[inner:, 0] = np.arange(start, start + len(value) - inner)
    return replace(tree, value=value, output=np.array([number]), base=np.zeros(count))


def _row(builder: GraphBuilder, x: SSAValue) -> SSAValue:
    """What leaves multiply: float64, tiny numbers dropped to 0 as LightGBM drops them, and a 0 behind."""
    wide = builder(CastOp, x, to=f64)
    limit = builder.constant(np.array([np.float32(1e-35)], np.float64), "tiny")
    zero = builder.constant(np.zeros(1), "zero")
    dropped = builder(CompareOp, builder(AbsOp, wide), limit, predicate="le")
    kept = builder(WhereOp, dropped, zero, wide)
    return builder(PadOp, kept, low=[0, 0], high=[0, 1], value=0.0)


def _leaves(text: TextModel) -> Leaves:
    """Raises InvalidModelError for lists that are no leaves'."""
    width, per_tree = text.features, [_terms(tree, text.features) for tree in text.trees]
    terms = max(len(f) for tree in per_tree for f, _ in tree)
    rows = [pair for tree in per_tree for pair in tree]
    features = np.full((len(rows), terms), width, np.int64)
    coefficients = np.zeros((len(rows), terms))
    for row, (names, factors) in enumerate(rows):
        features[row, : len(names)], coefficients[row, : len(names)] = names, factors
    constants = [_per_leaf(t, "leaf_const" if _linear(t) else "leaf_value") for t in text.trees]
    values = [_per_leaf(t, "leaf_value") for t in text.trees]
    return Leaves(np.concatenate(constants), np.concatenate(values), features, coefficients)


def _linear(tree: dict[str, str]) -> bool:
    return tree.get("is_linear", "0") != "0"


def _per_leaf(tree: dict[str, str], key: str) -> Array:
    found: Array = numbers(tree, key, np.float64)
    if len(found) != int(tree["num_leaves"]):
        raise InvalidModelError(f"a linear tree of the LightGBM model has {len(found)} of {key}")
    return found


def _terms(tree: dict[str, str], width: int) -> list[tuple[Array, Array]]:
    """Features and coefficients of each leaf of a tree."""
    leaves = int(tree["num_leaves"])
    if not _linear(tree):
        return [(np.zeros(0, np.int64), np.zeros(0))] * leaves
    counts: Array = numbers(tree, "num_features", np.int64)
    features: Array = numbers(tree, "leaf_features", np.int64)
    coefficients: Array = numbers(tree, "leaf_coeff", np.float64)
    sound = len(counts) == leaves and (counts >= 0).all() and (counts <= width).all()
    if not sound or not counts.sum() == len(features) == len(coefficients):
        raise InvalidModelError("a linear tree of the LightGBM model has no readable num_features")
    if len(features) and not 0 <= features.min() <= features.max() < width:
        raise InvalidModelError(
            f"a linear leaf of the LightGBM model names feature {features.max()}"
        )
    ends = np.cumsum(counts)[:-1]
    return list(zip(np.split(features, ends), np.split(coefficients, ends), strict=True))
