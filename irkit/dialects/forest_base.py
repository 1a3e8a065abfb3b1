"""Tree ensembles as arrays: what their ops share. Trees are never nested regions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, IntegerType, StringAttr, TensorType, i1, i32
from xdsl.irdl import operand_def, prop_def, result_def

from irkit.dialects.element_sets import BOOLEANS, FLOATS, NODES, Elements
from irkit.dialects.inference import InferredOp, Props, check_rank, fail
from irkit.dialects.types import Tensor, tensor
from irkit.weights import Array

COMPARISONS = ("le", "lt")
STRATEGIES = ("auto", "walk", "gemm", "traversal", "perfect_traversal")
DEEPEST_PERFECT = 30
"""Leaves of one tree are counted in 32 bits."""


class ForestBase(InferredOp):
    """Operands, types and verifier of a tree ensemble."""

    ELEMENTS: ClassVar[tuple[Elements, ...]] = (
        *(FLOATS, NODES, FLOATS, NODES, NODES, BOOLEANS),
        *(FLOATS, NODES, NODES, FLOATS),
    )

    x = operand_def(TensorType)
    feature = operand_def(TensorType)
    threshold = operand_def(TensorType)
    left = operand_def(TensorType)
    right = operand_def(TensorType)
    nan_left = operand_def(TensorType)
    value = operand_def(TensorType)
    root = operand_def(TensorType)
    output = operand_def(TensorType)
    base = operand_def(TensorType)
    comparison = prop_def(StringAttr)
    depth = prop_def(IntegerAttr[IntegerType])
    strategy = prop_def(StringAttr)
    y = result_def(TensorType)
    assembly_format = (
        "$x `,` $feature `,` $threshold `,` $left `,` $right `,` $nan_left `,` $value `,` $root `,` "
        "$output `,` $base attr-dict `:` functional-type(operands, results)"
    )

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        x, feature, threshold, left, right, nan_left, value, root, output, base = operands
        check_ranks(cls, (("x", x, 2), ("value", value, 2), ("feature", feature, 1)))
        check_ranks(cls, (("root", root, 1), ("base", base, 1)))
        check_walk(cls, props)
        check_choice(cls, props, "strategy", STRATEGIES)
        nodes, trees, columns = (t.get_shape()[0] for t in (feature, root, base))
        check_types(
            cls,
            (
                ("feature", feature, tensor(i32, (nodes,))),
                ("threshold", threshold, tensor(x.element_type, (nodes,))),
                ("left", left, tensor(i32, (nodes,))),
                ("right", right, tensor(i32, (nodes,))),
                ("nan_left", nan_left, tensor(i1, (nodes,))),
                ("root", root, tensor(i32, (trees,))),
                ("output", output, tensor(i32, (trees,))),
            ),
        )
        width = value.get_shape()[1]
        if width not in (1, columns) or value != tensor(base.element_type, (nodes, width)):
            raise fail(cls, f"value of {nodes}x1 or {nodes}x{columns} {base.element_type}", value)
        return [tensor(base.element_type, (x.get_shape()[0], columns))]


class Walked(Protocol):
    """What an op that walks trees says of them."""

    @property
    def comparison(self) -> StringAttr: ...
    @property
    def depth(self) -> IntegerAttr[IntegerType]: ...


def forest_sums(
    op: Walked, x: Array, feature: Array, threshold: Array, left: Array, right: Array,
    nan_left: Array, value: Array, root: Array, output: Array, base: Array,
) -> Array:  # fmt: skip
    """Per row, `base` and what the leaves add, tree by tree: the meaning of all these ops."""
    compare = np.less if op.comparison.data == "lt" else np.less_equal
    rows = np.arange(len(x))
    total = np.tile(base, (len(x), 1))
    # A leaf may carry any feature number; it goes back to itself whatever is compared.
    feature = np.where(left == right, 0, feature)
    for start, column in zip(root, output, strict=True):
        node = np.full(len(x), start)
        for _ in range(op.depth.value.data):
            cell = x[rows, feature[node]]
            goes_left = compare(cell, threshold[node]) | (np.isnan(cell) & nan_left[node])
            node = np.where(goes_left, left[node], right[node])
        if value.shape[1] == 1:
            total[:, column] += value[node, 0]
        else:
            total += value[node]
    return total


def check_ranks(op: type[InferredOp], wanted: Sequence[tuple[str, Tensor, int]]) -> None:
    """Operands, by name, must have so many dimensions."""
    for what, t, rank in wanted:
        check_rank(op, what, t, rank)


def check_types(op: type[InferredOp], wanted: Sequence[tuple[str, Tensor, Tensor]]) -> None:
    """Operands, by name, must be of the types behind them."""
    for what, t, want in wanted:
        if t != want:
            raise fail(op, f"{what} of type {want}", t)


def check_choice(op: type[InferredOp], props: Props, name: str, choices: Sequence[str]) -> None:
    """A property must be one of some words."""
    choice = props[name]
    assert isinstance(choice, StringAttr)
    if choice.data not in choices:
        raise fail(op, f"a {name} among {', '.join(choices)}", f"'{choice.data}'")


def check_walk(op: type[InferredOp], props: Props) -> int:
    """How deep trees are; what nodes compare by must be known, and numbers of nodes fit 32 bits."""
    check_choice(op, props, "comparison", COMPARISONS)
    depth = props["depth"]
    assert isinstance(depth, IntegerAttr)
    if not 0 <= (deep := depth.value.data) < 2**31:
        raise fail(op, "0 <= depth < 2147483648", f"depth = {deep}")
    return deep


def perfect_trees_and_leaves(
    op: type[InferredOp], props: Props, x: Tensor, value: Tensor, output: Tensor, base: Tensor
) -> tuple[int, int]:
    """How many trees there are, and how many leaves each has that is of one depth. Ranks are checked."""
    check_ranks(op, (("x", x, 2), ("value", value, 3), ("output", output, 1), ("base", base, 1)))
    depth = check_walk(op, props)
    if depth > DEEPEST_PERFECT:
        raise fail(op, f"0 <= depth <= {DEEPEST_PERFECT}", f"depth = {depth}")
    return output.get_shape()[0], 1 << depth


def sums_of_leaves(
    op: type[InferredOp], x: Tensor, value: Tensor, base: Tensor, shape: tuple[int, int]
) -> Tensor:
    """The type of a perfect forest's result, of `shape` trees and leaves of each; `value` is checked."""
    trees, leaves = shape
    width, columns = value.get_shape()[2], base.get_shape()[0]
    want = tensor(base.element_type, (trees, leaves, width))
    if width not in (1, columns) or value != want:
        raise fail(op, f"value of {trees}x{leaves}x(1 or {columns}) {base.element_type}", value)
    return tensor(base.element_type, (x.get_shape()[0], columns))
