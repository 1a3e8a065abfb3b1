"""A tree ensemble as arrays: what `graph.forest` and `te.forest` share. Trees are never nested regions."""

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
        check_rank(cls, "x", x, 2)
        check_rank(cls, "value", value, 2)
        for what, t in (("feature", feature), ("root", root), ("base", base)):
            check_rank(cls, what, t, 1)
        nodes, trees, columns = (t.get_shape()[0] for t in (feature, root, base))
        for what, t, want in (
            ("feature", feature, tensor(i32, (nodes,))),
            ("threshold", threshold, tensor(x.element_type, (nodes,))),
            ("left", left, tensor(i32, (nodes,))),
            ("right", right, tensor(i32, (nodes,))),
            ("nan_left", nan_left, tensor(i1, (nodes,))),
            ("root", root, tensor(i32, (trees,))),
            ("output", output, tensor(i32, (trees,))),
        ):
            if t != want:
                raise fail(cls, f"{what} of type {want}", t)
        width = value.get_shape()[1]
        if width not in (1, columns) or value != tensor(base.element_type, (nodes, width)):
            raise fail(cls, f"value of {nodes}x1 or {nodes}x{columns} {base.element_type}", value)
        _check_choice(cls, props, "comparison", COMPARISONS)
        _check_choice(cls, props, "strategy", STRATEGIES)
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


def _check_choice(op: type[InferredOp], props: Props, name: str, choices: Sequence[str]) -> None:
    choice = props[name]
    assert isinstance(choice, StringAttr)
    if choice.data not in choices:
        raise fail(op, f"a {name} among {', '.join(choices)}", f"'{choice.data}'")
