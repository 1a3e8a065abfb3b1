"""Reductions along axes."""

from __future__ import annotations

from collections.abc import Sequence

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

from irkit.dialects.graph.base import GraphOp, Props, check_axis, fail
from irkit.dialects.types import Tensor, ints, tensor

KINDS = ("sum", "mean", "max", "min", "prod")


def _reduced(x: Tensor, axes: Sequence[int], keepdims: object) -> list[int]:
    keep = keepdims == BoolAttr.from_bool(True)
    shape = [1 if d in axes else s for d, s in enumerate(x.get_shape())]
    return shape if keep else [s for d, s in enumerate(shape) if d not in axes]


@irdl_op_definition
class ArgmaxOp(GraphOp):
    """Index of the first largest element along one axis, as i64.

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
        return [tensor(i64, _reduced(x, axes, props["keepdims"]))]


@irdl_op_definition
class ReduceOp(GraphOp):
    """Sum, mean, max, min or product over `axes`, in index order.

    ```mlir
    %y = graph.reduce %x {kind = "sum", axes = array<i64: 1>, keepdims = false}
      : (tensor<?x10xf32>) -> tensor<?xf32>
    ```
    """

    name = "graph.reduce"
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
        return [tensor(x.element_type, _reduced(x, axes, props["keepdims"]))]


OPS: list[type[GraphOp]] = [ArgmaxOp, ReduceOp]
