"""Convolution and pooling over NCHW tensors. `pads` is [top, left, bottom, right]."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    BoolAttr,
    DenseArrayBase,
    IntegerAttr,
    IntegerType,
    TensorType,
)
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, prop_def, result_def

from irkit.dialects.graph.base import (
    GraphOp,
    Props,
    check_rank,
    fail,
    same_element,
    window_output,
)
from irkit.dialects.types import DYNAMIC, Tensor, ints, tensor


def _spatial(
    op: type[GraphOp], x: Tensor, kernel: Sequence[int], props: Props, dilations: Sequence[int]
) -> tuple[int, int]:
    strides, pads = ints(props["strides"]), ints(props["pads"])
    if len(strides) != 2 or min(strides) < 1:
        raise fail(op, "two strides of 1 or more", strides)
    if len(pads) != 4 or min(pads) < 0:
        raise fail(op, "four pads of 0 or more", pads)
    if len(dilations) != 2 or min(dilations) < 1:
        raise fail(op, "two dilations of 1 or more", list(dilations))
    if len(kernel) != 2 or min(kernel) < 1:
        raise fail(op, "a kernel of two sizes of 1 or more", list(kernel))
    out = [
        window_output(
            x.get_shape()[2 + i], kernel[i], strides[i], dilations[i], pads[i], pads[2 + i]
        )
        for i in range(2)
    ]
    if any(o < 1 for o in out if o != DYNAMIC):
        raise fail(op, "a window that fits the padded input", f"output {out[0]}x{out[1]}")
    return out[0], out[1]


@irdl_op_definition
class ConvOp(GraphOp):
    """Two-dimensional convolution (ONNX Conv): x is N×C×H×W, w is O×(C/group)×kH×kW, b is O.

    ```mlir
    %y = graph.conv %x, %w, %b {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>,
        dilations = array<i64: 1, 1>, group = 1 : i64}
      : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
    ```
    """

    name = "graph.conv"
    x = operand_def(TensorType)
    w = operand_def(TensorType)
    b = opt_operand_def(TensorType)
    strides = prop_def(DenseArrayBase)
    pads = prop_def(DenseArrayBase)
    dilations = prop_def(DenseArrayBase)
    group = prop_def(IntegerAttr[IntegerType])
    y = result_def(TensorType)
    assembly_format = "$x `,` $w (`,` $b^)? attr-dict `:` functional-type(operands, results)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        x, w, *b = operands
        element = same_element(cls, operands)
        check_rank(cls, "x", x, 4)
        check_rank(cls, "w", w, 4)
        group, dilations = props["group"], ints(props["dilations"])
        assert isinstance(group, IntegerAttr)
        if group.value.data < 1:
            raise fail(cls, "group of 1 or more", group.value.data)
        out_channels, channels, *kernel = w.get_shape()
        if x.get_shape()[1] != channels * group.value.data:
            raise fail(cls, f"x with {channels * group.value.data} channels", x.get_shape()[1])
        if out_channels % group.value.data:
            raise fail(cls, f"output channels divisible by {group.value.data}", out_channels)
        if b and b[0].get_shape() != (out_channels,):
            raise fail(cls, f"a bias of {out_channels} elements", b[0])
        height, width = _spatial(cls, x, kernel, props, dilations)
        return [tensor(element, (x.get_shape()[0], out_channels, height, width))]


class PoolOp(GraphOp):
    """A window slides over the last two dimensions."""

    x = operand_def(TensorType)
    kernel_shape = prop_def(DenseArrayBase)
    strides = prop_def(DenseArrayBase)
    pads = prop_def(DenseArrayBase)
    y = result_def(TensorType)
    assembly_format = "$x attr-dict `:` functional-type(operands, results)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        (x,) = operands
        check_rank(cls, "x", x, 4)
        height, width = _spatial(cls, x, ints(props["kernel_shape"]), props, (1, 1))
        return [tensor(x.element_type, (*x.get_shape()[:2], height, width))]


@irdl_op_definition
class AveragePoolOp(PoolOp):
    """Mean over each window; padding counts only with `count_include_pad`.

    ```mlir
    %y = graph.average_pool %x {kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>,
        pads = array<i64: 0, 0, 0, 0>, count_include_pad = false}
      : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32>
    ```
    """

    name = "graph.average_pool"
    count_include_pad = prop_def(BoolAttr)


@irdl_op_definition
class GlobalAveragePoolOp(GraphOp):
    """Mean over both spatial dimensions, which stay as 1.

    ```mlir
    %y = graph.global_average_pool %x : (tensor<1x4x8x8xf32>) -> tensor<1x4x1x1xf32>
    ```
    """

    name = "graph.global_average_pool"
    x = operand_def(TensorType)
    y = result_def(TensorType)
    assembly_format = "$x attr-dict `:` functional-type(operands, results)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        (x,) = operands
        check_rank(cls, "x", x, 4)
        return [tensor(x.element_type, (*x.get_shape()[:2], 1, 1))]


@irdl_op_definition
class MaxPoolOp(PoolOp):
    """Maximum over each window; padding never wins.

    ```mlir
    %y = graph.max_pool %x {kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>,
        pads = array<i64: 0, 0, 0, 0>} : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32>
    ```
    """

    name = "graph.max_pool"


OPS: list[type[GraphOp]] = [AveragePoolOp, ConvOp, GlobalAveragePoolOp, MaxPoolOp]
