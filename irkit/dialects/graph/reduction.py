"""Reductions along axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    BoolAttr,
    DenseArrayBase,
    IntegerAttr,
    IntegerType,
    StringAttr,
    TensorType,
    i64,
)
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from irkit.dialects.element_sets import NUMBERS, Elements
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.inference import Props, check_axis, fail
from irkit.dialects.types import DYNAMIC, Tensor, ints, is_float, tensor

KINDS = ("sum", "mean", "max", "min", "prod")


def _reduced(x: Tensor, axes: Sequence[int], keepdims: object) -> list[int]:
    keep = keepdims == BoolAttr.from_bool(True)
    shape = [1 if d in axes else s for d, s in enumerate(x.get_shape())]
    return shape if keep else [s for d, s in enumerate(shape) if d not in axes]


@irdl_op_definition
class ArgmaxOp(GraphOp):
    """Index of the first largest element along one axis, as i64; a NaN is larger than all else.

    ```mlir
    %y = graph.argmax %x {axis = 1 : i64, keepdims = false} : (tensor<?x10xf64>) -> tensor<?xi64>
    ```
    """

    name = "graph.argmax"
    x = operand_def(TensorType)
    axis = prop_def(IntegerAttr[IntegerType])
    keepdims = prop_def(BoolAttr)
    y = result_def(TensorType)
    assembly_format = "$x attr-dict `:` functional-type(operands, results)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        (x,) = operands
        axis = props["axis"]
        assert isinstance(axis, IntegerAttr)
        axes = [check_axis(cls, axis.value.data, x)]
        if x.get_shape()[axes[0]] == 0:
            raise fail(cls, "an axis of one element or more", x)
        return [tensor(i64, _reduced(x, axes, props["keepdims"]))]


@irdl_op_definition
class ReduceOp(GraphOp):
    """Sum, mean, max, min or product over `axes`, in index order.

    Of no elements: 0, NaN, the least or the greatest of the type (infinite for floats), 1. A sum starts
    at 0.0, so that it is never -0.0. Integers wrap, but the mean of integers has its sum in 64 bits and
    truncates towards zero. Max and min are NaN if any element is, and of zeros the last. A GPU takes
    many elements in another order: sums of floats then differ by rounding, and any of the zeros is taken.

    ```mlir
    %y = graph.reduce %x {kind = "sum", axes = array<i64: 1>, keepdims = false}
      : (tensor<?x10xf32>) -> tensor<?xf32>
    ```
    """

    name = "graph.reduce"
    ELEMENTS: ClassVar[tuple[Elements, ...]] = (NUMBERS,)
    x = operand_def(TensorType)
    kind = prop_def(StringAttr)
    axes = prop_def(DenseArrayBase)
    keepdims = prop_def(BoolAttr)
    y = result_def(TensorType)
    assembly_format = "$x attr-dict `:` functional-type(operands, results)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        (x,) = operands
        kind = props["kind"]
        assert isinstance(kind, StringAttr)
        if kind.data not in KINDS:
            raise fail(cls, f"a kind among {', '.join(KINDS)}", f"'{kind.data}'")
        axes = [check_axis(cls, a, x) for a in ints(props["axes"])]
        if len(set(axes)) < len(axes):
            raise fail(cls, "axes that differ", axes)
        empty = 0 in [x.get_shape()[a] for a in axes]
        if empty and kind.data == "mean" and not is_float(x.element_type):
            raise fail(cls, "one element or more for a mean of integers", x)
        return [tensor(x.element_type, _reduced(x, axes, props["keepdims"]))]


@irdl_op_definition
class CumSumOp(GraphOp):
    """Sum of all elements up to each one along an axis (ONNX CumSum); from the end with `reverse`,
    the element itself left out with `exclusive`, so that the first sum is 0. Integers wrap; sums of floats
    have no fixed order, and one of -0.0 alone is -0.0.

    ```mlir
    %y = graph.cumsum %x {axis = 1 : i64, exclusive = false, reverse = false}
      : (tensor<?x10xf32>) -> tensor<?x10xf32>
    ```
    """

    name = "graph.cumsum"
    ELEMENTS: ClassVar[tuple[Elements, ...]] = (NUMBERS,)
    x = operand_def(TensorType)
    axis = prop_def(IntegerAttr[IntegerType])
    exclusive = prop_def(BoolAttr)
    reverse = prop_def(BoolAttr)
    y = result_def(TensorType)
    assembly_format = "$x attr-dict `:` functional-type(operands, results)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        (x,) = operands
        _static_axis(cls, x, props)
        return [x]


@irdl_op_definition
class TopKOp(GraphOp):
    """The k largest (or smallest) elements along an axis in order, and where they were, as i64.

    Of equal elements (-0.0 and 0.0 are, and any two NaNs) the one with the lower index comes first; a
    NaN is larger than all else.

    ```mlir
    %y, %i = graph.top_k %x {k = 3 : i64, axis = 1 : i64, largest = true}
      : (tensor<?x10xf32>) -> (tensor<?x3xf32>, tensor<?x3xi64>)
    ```
    """

    name = "graph.top_k"
    ELEMENTS: ClassVar[tuple[Elements, ...]] = (NUMBERS,)
    x = operand_def(TensorType)
    k = prop_def(IntegerAttr[IntegerType])
    axis = prop_def(IntegerAttr[IntegerType])
    largest = prop_def(BoolAttr)
    y = result_def(TensorType)
    indices = result_def(TensorType)
    assembly_format = "$x attr-dict `:` functional-type(operands, results)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        (x,) = operands
        axis, k = _static_axis(cls, x, props), props["k"]
        assert isinstance(k, IntegerAttr)
        if not 0 < k.value.data <= x.get_shape()[axis]:
            raise fail(cls, f"0 < k <= {x.get_shape()[axis]}", f"k = {k.value.data}")
        shape = list(x.get_shape())
        shape[axis] = k.value.data
        return [tensor(x.element_type, shape), tensor(i64, shape)]


def _static_axis(op: type[GraphOp], x: Tensor, props: Props) -> int:
    """An axis whose extent is known."""
    axis = props["axis"]
    assert isinstance(axis, IntegerAttr)
    check_axis(op, axis.value.data, x)
    if x.get_shape()[axis.value.data] == DYNAMIC:
        raise fail(op, "an axis of static extent", x)
    return axis.value.data


OPS: list[type[GraphOp]] = [ArgmaxOp, CumSumOp, ReduceOp, TopKOp]
