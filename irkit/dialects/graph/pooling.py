"""Pooling: a window slides over the 1 to 3 spatial dimensions behind N and C.

`pads` is all that come before, then all after. Where `ceil_mode` is true, a last window may reach
behind the padded input, but each must begin before the padding at the end. What lies outside counts
for nothing there, padding or not. A window is taken in row-major order, but for large ones on a GPU: sums
then differ by rounding, and of several zeros any may be the maximum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import (
    BoolAttr,
    DenseArrayBase,
    IntegerAttr,
    IntegerType,
    TensorType,
    i64,
)
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def

from irkit.dialects.element_sets import FLOATS, NUMBERS, Elements
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.convolution import check_output, check_sizes, spatial_rank
from irkit.dialects.inference import Props, fail, with_shape
from irkit.dialects.types import DYNAMIC, Tensor, ints, tensor, tensor_type
from irkit.weights import Array


@dataclass(frozen=True)
class Windows:
    """The windows of a pool, one entry per spatial dimension."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    outputs: tuple[int, ...]
    reach: tuple[int, ...]
    """Padding at the end that the last windows need; what is more than `after` is ceil mode's."""

    def counts(self, sizes: Sequence[int], *, padding: bool) -> Array:
        """How many elements of each window lie in the input, whose spatial extents are `sizes`, or in
        it and its `padding`: one entry per position of the window."""
        count: Array = np.ones((), np.int64)
        for d, size in enumerate(sizes):
            first = np.arange(self.outputs[d]) * self.strides[d] - self.before[d]
            low, high = (-self.before[d], size + self.after[d]) if padding else (0, size)
            # Of elements `first + i * dilation`, how many lie before each limit.
            until_low, until_high = (
                np.clip(-((first - limit) // self.dilations[d]), 0, self.kernel[d])
                for limit in (low, high)
            )
            count = count[..., None] * (until_high - until_low)
        return count


def windows_of(shape: Sequence[int], props: Props) -> Windows:
    """The windows over an input of `shape` (N×C×spatial; DYNAMIC extents stay so)."""
    kernel, strides, pads = (ints(props[n]) for n in ("kernel_shape", "strides", "pads"))
    rank = len(kernel)
    dilations = ints(props.get("dilations")) or [1] * rank
    ceil = props.get("ceil_mode") == BoolAttr.from_bool(True)
    outputs: list[int] = []
    reach: list[int] = []
    for d, size in enumerate(shape[2:]):
        before, after = pads[d], pads[rank + d]
        extent = dilations[d] * (kernel[d] - 1) + 1
        if size == DYNAMIC:
            outputs.append(DYNAMIC)
            reach.append(after)
            continue
        room = size + before + after - extent
        count = (-(-room // strides[d]) if ceil else room // strides[d]) + 1
        if ceil and (count - 1) * strides[d] >= size + before:
            count -= 1
        outputs.append(count)
        reach.append(max((count - 1) * strides[d] + extent - size - before, after))
    return Windows(
        tuple(kernel), tuple(strides), tuple(dilations), tuple(pads[:rank]), tuple(pads[rank:]),
        tuple(outputs), tuple(reach),
    )  # fmt: skip


class PoolOp(GraphOp):
    """A window slides over the spatial dimensions."""

    x = operand_def(TensorType)
    kernel_shape = prop_def(DenseArrayBase)
    strides = prop_def(DenseArrayBase)
    pads = prop_def(DenseArrayBase)
    dilations = opt_prop_def(DenseArrayBase)
    ceil_mode = opt_prop_def(BoolAttr)
    y = result_def(TensorType)
    assembly_format = "$x attr-dict `:` functional-type(operands, results)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        (x,) = operands
        rank = spatial_rank(cls, x)
        kernel = check_sizes(cls, "kernel sizes", ints(props["kernel_shape"]), rank)
        check_sizes(cls, "strides", ints(props["strides"]), rank)
        dilations = ints(props.get("dilations")) or [1] * rank
        check_sizes(cls, "dilations", dilations, rank)
        pads = check_sizes(cls, "pads", ints(props["pads"]), 2 * rank, 0)
        for d in range(rank):
            if max(pads[d], pads[rank + d]) > dilations[d] * (kernel[d] - 1):
                raise fail(cls, "pads smaller than the window", pads)
        outputs = windows_of(x.get_shape(), props).outputs
        check_output(cls, outputs)
        return [tensor(cls.element(x), (*x.get_shape()[:2], *outputs))]

    @classmethod
    def element(cls, x: Tensor) -> Attribute:
        """Element type of the result."""
        return x.element_type

    def windows(self) -> Windows:
        """Where its windows lie."""
        return windows_of(tensor_type(self.x).get_shape(), self.properties)


@irdl_op_definition
class AveragePoolOp(PoolOp):
    """Mean over each window, summed in index order; padding counts only with `count_include_pad`.

    A mean is never -0.0 but for a sum that underflows. A window of nothing that counts gives NaN.

    ```mlir
    %y = graph.average_pool %x {kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>,
        pads = array<i64: 0, 0, 0, 0>, count_include_pad = false}
      : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32>
    ```
    """

    name = "graph.average_pool"
    ELEMENTS: ClassVar[tuple[Elements, ...]] = (FLOATS,)
    count_include_pad = prop_def(BoolAttr)


@irdl_op_definition
class GlobalAveragePoolOp(GraphOp):
    """Mean over all spatial dimensions, which stay as 1, summed in index order.

    ```mlir
    %y = graph.global_average_pool %x : (tensor<1x4x8x8xf32>) -> tensor<1x4x1x1xf32>
    ```
    """

    name = "graph.global_average_pool"
    ELEMENTS: ClassVar[tuple[Elements, ...]] = (FLOATS,)
    x = operand_def(TensorType)
    y = result_def(TensorType)
    assembly_format = "$x attr-dict `:` functional-type(operands, results)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        (x,) = operands
        rank = spatial_rank(cls, x)
        return [with_shape(x, (*x.get_shape()[:2], *(1,) * rank))]


@irdl_op_definition
class LpPoolOp(PoolOp):
    """(sum of |x|^p)^(1/p) over each window, summed in index order; padding is 0.

    ```mlir
    %y = graph.lp_pool %x {kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>,
        pads = array<i64: 0, 0, 0, 0>, p = 2 : i64} : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32>
    ```
    """

    name = "graph.lp_pool"
    ELEMENTS: ClassVar[tuple[Elements, ...]] = (FLOATS,)
    p = prop_def(IntegerAttr[IntegerType])

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        p = props["p"]
        assert isinstance(p, IntegerAttr)
        if p.value.data < 1:
            raise fail(cls, "p of 1 or more", p.value.data)
        return super().infer(operands, props)


@irdl_op_definition
class MaxPoolOp(PoolOp):
    """Maximum over each window; NaN if any element is, and of zeros the last. Padding never wins.

    A window of padding alone gives the least number of the type, which is -inf for floats.

    ```mlir
    %y = graph.max_pool %x {kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>,
        pads = array<i64: 0, 0, 0, 0>} : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xf32>
    ```
    """

    name = "graph.max_pool"
    ELEMENTS: ClassVar[tuple[Elements, ...]] = (NUMBERS,)


@irdl_op_definition
class MaxPoolIndicesOp(PoolOp):
    """Where `graph.max_pool` finds its maximum: the row-major position in x, as i64.

    Of equal elements the first in row-major order counts, and a NaN is larger than all else. With
    `column_major`, the position of that element is counted column by column within the spatial
    dimensions. No window may lie in padding alone.

    ```mlir
    %y = graph.max_pool_indices %x {kernel_shape = array<i64: 2, 2>, strides = array<i64: 2, 2>,
        pads = array<i64: 0, 0, 0, 0>, column_major = false}
      : (tensor<1x4x8x8xf32>) -> tensor<1x4x4x4xi64>
    ```
    """

    name = "graph.max_pool_indices"
    ELEMENTS: ClassVar[tuple[Elements, ...]] = (NUMBERS,)
    column_major = prop_def(BoolAttr)

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        results = super().infer(operands, props)
        shape = operands[0].get_shape()
        if not windows_of(shape, props).counts(shape[2:], padding=False).all():
            raise fail(cls, "windows with an element each", "one in padding alone")
        return results

    @classmethod
    def element(cls, x: Tensor) -> Attribute:
        if DYNAMIC in x.get_shape()[1:]:
            raise fail(cls, "static channels and spatial dimensions", x)
        return i64


OPS: list[type[GraphOp]] = [
    AveragePoolOp,
    GlobalAveragePoolOp,
    LpPoolOp,
    MaxPoolIndicesOp,
    MaxPoolOp,
]
