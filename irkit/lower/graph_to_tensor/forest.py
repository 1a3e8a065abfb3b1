"""Tree ensembles: perfect trees where these are small, in order where leaves are few, else packed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, UnitAttr, f32, f64, i64
from xdsl.ir import Attribute, SSAValue

from irkit.dialects import graph, te
from irkit.dialects.forests import (
    OrderedTrees,
    forest_fault,
    ordered_trees,
    perfect_trees,
    symmetric_trees,
)
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.packed_nodes import packed_nodes
from irkit.dialects.types import tensor_type
from irkit.errors import InvalidModelError, UnsupportedError
from irkit.lower.graph_to_tensor.builder import TensorBuilder
from irkit.lower.graph_to_tensor.elementwise import Rule
from irkit.weights import Array

MAX_PERFECT_DEPTH = 10
MAX_PERFECT_LEAVES = 4 << 20
"""Of all trees together."""
MAX_LEAVES_ASKED = 256
"""Of a tree whose nodes are asked one after another, whichever way a row goes; larger ones are walked."""


def _forest(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    assert isinstance(op, graph.ForestOp)
    if op.strategy.data not in ("auto", "walk"):
        raise UnsupportedError(
            f"'{op.name}' with strategy = {op.strategy.data}: run the pass that carries it out first"
        )
    # A tree that is one leaf is walked too: the leaf goes to itself.
    depth = max(op.depth.value.data, 1)
    _check_trees(b, op, depth)
    trees = tensor_type(op.root).get_shape()[0]
    arrays = [b.array(v) for v in op.operands[1:8]]
    known = [a for a in arrays if a is not None]
    if not trees:
        raise UnsupportedError(f"'{op.name}' of no trees: its result is its base")
    small = depth <= MAX_PERFECT_DEPTH and trees << depth <= MAX_PERFECT_LEAVES
    if len(known) == len(arrays) and small:
        return [_perfect(b, op, known, depth)]
    properties = dict(op.properties) | {"depth": IntegerAttr(depth, i64)}
    operands = list(op.operands)
    ordered = _ordered(op, known) if len(known) == len(arrays) else None
    few = ordered is not None and ordered.leaves <= MAX_LEAVES_ASKED
    packed = None if few or len(known) < len(arrays) else _packed(b, op, known, depth)
    if packed is not None:
        return [packed]
    if ordered is None:
        operands[1] = _clean_features(b, op)
        return [b.insert(te.ForestOp.make(operands, properties))]
    for number, (array, before) in enumerate(zip(ordered.arrays, known, strict=True), 1):
        same = array.shape == before.shape and bool((array == before).all())
        if not same:
            operands[number] = b.constant(array, b.hint(op.operands[number]))
    properties["leaves"] = IntegerAttr(ordered.leaves, i64)
    return [b.insert(te.ForestOp.make(operands, properties))]


def _ordered(op: graph.ForestOp, arrays: Sequence[Array]) -> OrderedTrees | None:
    """Trees in the order that `leaves` of `te.forest` speaks of, if their thresholds are such as it says: a
    missing value is then left of every one, as -inf."""
    threshold = arrays[1]
    strict = op.comparison.data == "lt"
    if np.isnan(threshold).any() or (strict and bool((threshold == -np.inf).any())):
        return None
    return ordered_trees(*arrays)


def _check_trees(b: TensorBuilder, op: graph.ForestOp, depth: int) -> None:
    """Arrays that are known must be trees: a walk looks at nothing."""
    feature, left, right, root, output = (
        b.array(v) for v in (op.feature, op.left, op.right, op.root, op.output)
    )
    if feature is None or left is None or right is None or root is None or output is None:
        return
    columns, features = (tensor_type(v).get_shape()[-1] for v in (op.base, op.x))
    fault = forest_fault(
        feature, left, right, root, output, columns=columns, features=features, depth=depth
    )
    if fault:
        raise InvalidModelError(f"graph.forest whose arrays are no trees: {fault}")


def _clean_features(b: TensorBuilder, op: graph.ForestOp) -> SSAValue:
    """Feature numbers, 0 at leaves, which may carry any: a walk reads x there."""
    feature, left, right = (b.array(v) for v in (op.feature, op.left, op.right))
    if feature is None or left is None or right is None:
        return op.feature
    clean = np.where(left == right, 0, feature).astype(feature.dtype)
    return op.feature if (clean == feature).all() else b.constant(clean, b.hint(op.feature))


def _packed(
    b: TensorBuilder, op: graph.ForestOp, arrays: Sequence[Array], depth: int
) -> SSAValue | None:
    """None where trees share nodes, or x is of another type than thresholds of whole words."""
    if tensor_type(op.x).element_type not in (f32, f64):
        return None
    feature, threshold, left, right, nan_left, value, root = arrays
    packed = packed_nodes(feature, threshold, left, right, nan_left, root)
    if packed is None:
        return None
    operands = [
        op.x,
        b.constant(packed.nodes, b.hint(op.feature)),
        b.constant(value[packed.source], b.hint(op.value)),
        b.constant(packed.root, b.hint(op.root)),
        op.output,
        op.base,
    ]
    properties = {"comparison": op.comparison, "depth": IntegerAttr(depth, i64)}
    return b.insert(te.PackedForestOp.make(operands, properties))


def _perfect(b: TensorBuilder, op: graph.ForestOp, arrays: Sequence[Array], depth: int) -> SSAValue:
    packed = perfect_trees(*arrays, depth=depth)
    names = (op.feature, op.threshold, op.nan_left, op.value)
    constants = [b.constant(a, b.hint(v)) for a, v in zip(packed, names, strict=True)]
    properties: dict[str, Attribute] = {
        "comparison": op.comparison,
        "depth": IntegerAttr(depth, i64),
    }
    if symmetric_trees(*packed[:3]):
        properties["symmetric"] = UnitAttr()
    return b.insert(te.PerfectForestOp.make([op.x, *constants, op.output, op.base], properties))


RULES: dict[type[GraphOp], Rule] = {graph.ForestOp: _forest}
