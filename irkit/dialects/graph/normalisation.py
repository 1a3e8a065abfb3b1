"""Normalisation ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import Float64Type, FloatAttr, IntegerAttr, IntegerType, TensorType
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from irkit.dialects.element_sets import FLOATS, Elements
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.inference import Props, check_axis, fail, same_element
from irkit.dialects.types import DYNAMIC, Tensor


@irdl_op_definition
class BatchNormOp(GraphOp):
    """Inference-time batch normalisation over axis 1 (ONNX BatchNormalization).

    (x - mean) / sqrt(variance + epsilon) * scale + bias, in this order; the four are one value per
    channel. Where variance + epsilon is negative, the result is NaN.

    ```mlir
    %y = graph.batch_norm %x, %scale, %bias, %mean, %variance {epsilon = 1.0e-5 : f64}
      : (tensor<1x4x8x8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
        -> tensor<1x4x8x8xf32>
    ```
    """

    name = "graph.batch_norm"
    ELEMENTS: ClassVar[tuple[Elements, ...]] = (FLOATS,)
    x = operand_def(TensorType)
    scale = operand_def(TensorType)
    bias = operand_def(TensorType)
    mean = operand_def(TensorType)
    variance = operand_def(TensorType)
    epsilon = prop_def(FloatAttr[Float64Type])
    y = result_def(TensorType)
    assembly_format = (
        "$x `,` $scale `,` $bias `,` $mean `,` $variance attr-dict "
        "`:` functional-type(operands, results)"
    )

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        x, *parameters = operands
        same_element(cls, operands)
        if x.get_num_dims() < 2:
            raise fail(cls, "x of rank 2 or more", x)
        for t in parameters:
            if t.get_shape() != (x.get_shape()[1],):
                raise fail(cls, f"parameters of {x.get_shape()[1]} elements", t)
        return [x]


@irdl_op_definition
class LrnOp(GraphOp):
    """Local response normalisation over axis 1 (ONNX LRN): x / (bias + alpha / size * sum)^beta.

    The sum is of the squares of `size` neighbouring channels, (size - 1) // 2 of them before.

    ```mlir
    %y = graph.lrn %x {size = 5 : i64, alpha = 1.0e-4 : f64, beta = 0.75 : f64, bias = 1.0 : f64}
      : (tensor<1x8x4x4xf32>) -> tensor<1x8x4x4xf32>
    ```
    """

    name = "graph.lrn"
    ELEMENTS: ClassVar[tuple[Elements, ...]] = (FLOATS,)
    x = operand_def(TensorType)
    size = prop_def(IntegerAttr[IntegerType])
    alpha = prop_def(FloatAttr[Float64Type])
    beta = prop_def(FloatAttr[Float64Type])
    bias = prop_def(FloatAttr[Float64Type])
    y = result_def(TensorType)
    assembly_format = "$x attr-dict `:` functional-type(operands, results)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        (x,) = operands
        size = props["size"]
        assert isinstance(size, IntegerAttr)
        if size.value.data < 1:
            raise fail(cls, "a size of 1 or more", size.value.data)
        if x.get_num_dims() < 2 or x.get_shape()[1] == DYNAMIC:
            raise fail(cls, "x of rank 2 or more with static channels", x)
        return [x]


@irdl_op_definition
class SoftmaxOp(GraphOp):
    """exp(x - max) / sum(exp(x - max)) along one axis.

    All NaN where the largest element is NaN or infinite of either sign, as the formula says.

    ```mlir
    %y = graph.softmax %x {axis = 1 : i64} : (tensor<?x10xf32>) -> tensor<?x10xf32>
    ```
    """

    name = "graph.softmax"
    ELEMENTS: ClassVar[tuple[Elements, ...]] = (FLOATS,)
    x = operand_def(TensorType)
    axis = prop_def(IntegerAttr[IntegerType])
    y = result_def(TensorType)
    assembly_format = "$x attr-dict `:` functional-type(operands, results)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        (x,) = operands
        axis = props["axis"]
        assert isinstance(axis, IntegerAttr)
        if x.get_shape()[check_axis(cls, axis.value.data, x)] == 0:
            raise fail(cls, "an axis of one element or more", x)
        return [x]


OPS: list[type[GraphOp]] = [BatchNormOp, LrnOp, SoftmaxOp]
