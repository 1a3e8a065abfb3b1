"""Convolution over N×C×(1 to 3 spatial dimensions). `pads` is all that come before, then all after.

Integers wrap; sums of floats have no fixed order, nor has the sign of a sum that is zero. Whether padding,
which is zero, meets a weight that is infinite or NaN is open: weights are finite.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    DenseArrayBase,
    IntegerAttr,
    IntegerType,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
)

from irkit.dialects.element_sets import NUMBERS, Elements
from irkit.dialects.graph.base import GraphOp, window_output
from irkit.dialects.inference import Props, check_rank, fail, same_element
from irkit.dialects.types import DYNAMIC, Tensor, ints, tensor

PRODUCT = "product"
"""The form of a transposed convolution that is one matrix product, and sums of its results."""
SPATIAL = (1, 2, 3)
"""How many spatial dimensions a window may have."""


def spatial_rank(op: type[GraphOp], x: Tensor) -> int:
    """Number of spatial dimensions of `x`: what is left of its rank behind N and C."""
    rank = x.get_num_dims() - 2
    if rank not in SPATIAL:
        raise fail(op, "x of rank 3 to 5", x)
    return rank


def check_sizes(
    op: type[GraphOp], what: str, values: Sequence[int], count: int, least: int = 1
) -> list[int]:
    """`count` values of `least` or more."""
    if len(values) != count or min(values) < least:
        raise fail(op, f"{count} {what} of {least} or more", list(values))
    return list(values)


def check_output(op: type[GraphOp], sizes: Sequence[int]) -> None:
    """Every window must fit."""
    if any(s < 1 for s in sizes if s != DYNAMIC):
        raise fail(op, "a window that fits the padded input", f"output {'x'.join(map(str, sizes))}")


class ConvBase(GraphOp):
    """What both convolutions share: x is N×C×spatial, w is filters, b is one value per output channel."""

    ELEMENTS: ClassVar[tuple[Elements, ...]] = (NUMBERS,)
    CONTRACTS: ClassVar[bool] = True

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
    def check(cls, x: Tensor, w: Tensor, props: Props) -> tuple[int, int]:
        """(number of spatial dimensions, groups), of windows that make sense."""
        rank = spatial_rank(cls, x)
        check_rank(cls, "w", w, rank + 2)
        group = props["group"]
        assert isinstance(group, IntegerAttr)
        if group.value.data < 1:
            raise fail(cls, "group of 1 or more", group.value.data)
        check_sizes(cls, "strides", ints(props["strides"]), rank)
        check_sizes(cls, "pads", ints(props["pads"]), 2 * rank, 0)
        check_sizes(cls, "dilations", ints(props["dilations"]), rank)
        check_sizes(cls, "kernel sizes", w.get_shape()[2:], rank)
        return rank, group.value.data

    @classmethod
    def check_bias(cls, bias: Sequence[Tensor], channels: int) -> None:
        """One value per output channel."""
        if bias and bias[0].get_shape() != (channels,):
            raise fail(cls, f"a bias of {channels} elements", bias[0])


@irdl_op_definition
class ConvOp(ConvBase):
    """Convolution (ONNX Conv): x is N×C×(1 to 3 dimensions), w is O×(C/group)×kernel, b is O.

    ```mlir
    %y = graph.conv %x, %w, %b {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>,
        dilations = array<i64: 1, 1>, group = 1 : i64}
      : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>, tensor<4xf32>) -> tensor<1x4x8x8xf32>
    ```
    """

    name = "graph.conv"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        x, w, *b = operands
        element = same_element(cls, operands)
        rank, group = cls.check(x, w, props)
        outputs, channels, *kernel = w.get_shape()
        if x.get_shape()[1] != channels * group:
            raise fail(cls, f"x with {channels * group} channels", x.get_shape()[1])
        if outputs % group:
            raise fail(cls, f"output channels divisible by {group}", outputs)
        cls.check_bias(b, outputs)
        strides, pads, dilations = (ints(props[n]) for n in ("strides", "pads", "dilations"))
        sizes = [
            window_output(size, kernel[d], strides[d], dilations[d], pads[d], pads[rank + d])
            for d, size in enumerate(x.get_shape()[2:])
        ]
        check_output(cls, sizes)
        return [tensor(element, (x.get_shape()[0], outputs, *sizes))]


@irdl_op_definition
class ConvTransposeOp(ConvBase):
    """Transposed convolution (ONNX ConvTranspose): x is N×C×spatial, w is C×(O/group)×kernel, b is O.

    Input element i adds x[i] * w[k] to output element i * stride + k * dilation - pad. Every spatial
    extent is (input - 1) * stride + dilation * (kernel - 1) + 1 + output_padding - both pads;
    `output_padding` only makes the output longer. `form` says how it is computed: "product" each element times
    all filters as one matrix product, whose results are then added where they meet (dilations are 1); left out,
    what the lowering chooses.

    ```mlir
    %y = graph.conv_transpose %x, %w {strides = array<i64: 2>, pads = array<i64: 0, 0>,
        dilations = array<i64: 1>, group = 1 : i64, output_padding = array<i64: 1>}
      : (tensor<1x3x8xf32>, tensor<3x4x3xf32>) -> tensor<1x4x18xf32>
    ```
    """

    name = "graph.conv_transpose"
    output_padding = prop_def(DenseArrayBase)
    form = opt_prop_def(StringAttr)

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        x, w, *b = operands
        element = same_element(cls, operands)
        rank, group = cls.check(x, w, props)
        channels, outputs, *kernel = w.get_shape()
        if x.get_shape()[1] != channels or channels % group:
            raise fail(cls, f"x with {channels} channels in {group} groups", x)
        if DYNAMIC in x.get_shape()[1:]:
            raise fail(cls, "static spatial dimensions", x)
        cls.check_bias(b, outputs * group)
        longer = check_sizes(cls, "output paddings", ints(props["output_padding"]), rank, 0)
        strides, pads, dilations = (ints(props[n]) for n in ("strides", "pads", "dilations"))
        cls.check_form(props.get("form"), dilations)
        sizes = [
            (size - 1) * strides[d] + dilations[d] * (kernel[d] - 1) + 1 + longer[d]
            - pads[d] - pads[rank + d]
            for d, size in enumerate(x.get_shape()[2:])
        ]  # fmt: skip
        check_output(cls, sizes)
        return [tensor(element, (x.get_shape()[0], outputs * group, *sizes))]

    @classmethod
    def check_form(cls, form: Attribute | None, dilations: Sequence[int]) -> None:
        """A form that there is, of taps that stand side by side."""
        if form is None:
            return
        if form != StringAttr(PRODUCT):
            raise fail(cls, f'"{PRODUCT}" as form, or none', form)
        if any(d != 1 for d in dilations):
            raise fail(cls, f'dilations of 1 in the form "{PRODUCT}"', list(dilations))


OPS: list[type[GraphOp]] = [ConvOp, ConvTransposeOp]
