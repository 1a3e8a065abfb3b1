"""Ops that move elements without computing, and the one that adds them up where they arrive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import (
    DenseArrayBase,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    TensorType,
)
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    var_operand_def,
)

from irkit.dialects.element_sets import holds
from irkit.dialects.gather_base import GatherBase, GatherElementsBase
from irkit.dialects.graph.base import GraphOp, product
from irkit.dialects.inference import Props, check_axis, fail, same_element, with_shape
from irkit.dialects.scatter_base import ScatterAddBase
from irkit.dialects.types import DYNAMIC, Tensor, ints


@irdl_op_definition
class ConcatOp(GraphOp):
    """Join along an axis, of static extents or, of all operands, the dynamic one.

    ```mlir
    %y = graph.concat(%a, %b) {axis = 1 : i64} : (tensor<?x4xf32>, tensor<?x8xf32>) -> tensor<?x12xf32>
    ```
    """

    name = "graph.concat"
    inputs = var_operand_def(TensorType)
    axis = prop_def(IntegerAttr[IntegerType])
    y = result_def(TensorType)
    assembly_format = "`(` $inputs `)` attr-dict `:` functional-type(operands, results)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        if not operands:
            raise fail(cls, "at least one operand", "none")
        same_element(cls, operands)
        axis_attr = props["axis"]
        assert isinstance(axis_attr, IntegerAttr)
        first, axis = operands[0], check_axis(cls, axis_attr.value.data, operands[0])
        rest = [s for d, s in enumerate(first.get_shape()) if d != axis]
        for t in operands[1:]:
            if [s for d, s in enumerate(t.get_shape()) if d != axis] != rest:
                raise fail(cls, f"operands that agree with {first} outside axis {axis}", t)
        shape, joined = list(first.get_shape()), [t.get_shape()[axis] for t in operands]
        if DYNAMIC in joined and set(joined) != {DYNAMIC}:
            raise fail(cls, f"extents of axis {axis} that are all static or all dynamic", joined)
        shape[axis] = DYNAMIC if DYNAMIC in joined else sum(joined)
        return [with_shape(first, shape)]


@irdl_op_definition
class ExpandOp(GraphOp):
    """Broadcast to `shape` by NumPy's rules.

    A dimension that becomes dynamic is as long as the dynamic one of `like`, of which nothing else matters.

    ```mlir
    %y = graph.expand %x {shape = array<i64: 4, 8>} : (tensor<8xf32>) -> tensor<4x8xf32>
    ```
    ```mlir
    func.func @class_token(%token: tensor<8xf32>, %x: tensor<?x3xf32>) -> tensor<?x8xf32> {
      %y = graph.expand %token like %x {shape = array<i64: -9223372036854775808, 8>}
        : (tensor<8xf32>, tensor<?x3xf32>) -> tensor<?x8xf32>
      func.return %y : tensor<?x8xf32>
    }
    ```
    """

    name = "graph.expand"
    x = operand_def(TensorType)
    like = opt_operand_def(TensorType)
    shape = prop_def(DenseArrayBase)
    y = result_def(TensorType)
    assembly_format = "$x (`like` $like^)? attr-dict `:` functional-type(operands, results)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        x, *like = operands
        shape = ints(props["shape"])
        have = [1] * (len(shape) - x.get_num_dims()) + list(x.get_shape())
        if len(have) != len(shape) or any(
            s not in (1, t) for s, t in zip(have, shape, strict=True)
        ):
            raise fail(cls, f"an operand that broadcasts to {shape}", x)
        new = shape.count(DYNAMIC) - have.count(DYNAMIC)
        if not like and new:
            raise fail(
                cls, "an operand to be as long as, where a dimension becomes dynamic", "none"
            )
        if like and (new != 1 or list(like[0].get_shape()).count(DYNAMIC) != 1):
            raise fail(cls, "one dimension that becomes dynamic as the one of 'like'", like[0])
        return [with_shape(x, shape)]


@irdl_op_definition
class GatherOp(GatherBase, GraphOp):
    """Slices of `data` along `axis` picked by `indices` (ONNX Gather, NumPy take).

    Below 0 and beyond the end, an index picks the nearest element.

    ```mlir
    %y = graph.gather %data, %indices {axis = 1 : i64}
      : (tensor<?x64xf32>, tensor<10xi64>) -> tensor<?x10xf32>
    ```
    """

    name = "graph.gather"


@irdl_op_definition
class GatherElementsOp(GatherElementsBase, GraphOp):
    """Element picked along `axis` at each position of `indices` (ONNX GatherElements).

    `data` and `indices` agree outside the axis. Below 0 and beyond the end, an index picks the nearest
    element.

    ```mlir
    %y = graph.gather_elements %data, %indices {axis = 1 : i64}
      : (tensor<?x64xf32>, tensor<?x10xi64>) -> tensor<?x10xf32>
    ```
    """

    name = "graph.gather_elements"


@irdl_op_definition
class PadOp(GraphOp):
    """`low` elements before and `high` after the operand along each axis, all `value`.

    A dynamic dimension is not padded. `value` is rounded to a float, or is a number of the element type.

    ```mlir
    %y = graph.pad %x {low = array<i64: 0, 1>, high = array<i64: 0, 2>, value = 0.0 : f64}
      : (tensor<?x8xf32>) -> tensor<?x11xf32>
    ```
    """

    name = "graph.pad"
    x = operand_def(TensorType)
    low = prop_def(DenseArrayBase)
    high = prop_def(DenseArrayBase)
    value = prop_def(FloatAttr[Float64Type])
    y = result_def(TensorType)
    assembly_format = "$x attr-dict `:` functional-type(operands, results)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        (x,) = operands
        low, high = ints(props["low"]), ints(props["high"])
        if not len(low) == len(high) == x.get_num_dims() or min([*low, *high, 0]) < 0:
            raise fail(cls, f"{x.get_num_dims()} sizes of 0 or more", f"{low} and {high}")
        value = cast(FloatAttr[Float64Type], props["value"]).value.data
        if not holds(x.element_type, value):
            raise fail(cls, f"a value of {x.element_type}", value)
        shape: list[int] = []
        for size, before, after in zip(x.get_shape(), low, high, strict=True):
            if size == DYNAMIC and (before or after):
                raise fail(cls, "no padding of a dynamic dimension", x)
            shape.append(size if size == DYNAMIC else size + before + after)
        return [with_shape(x, shape)]


@irdl_op_definition
class ReshapeOp(GraphOp):
    """The same elements in row-major order under another shape.

    One dimension may be dynamic, then one of the result is too: all elements that are left. Where there are
    none it is as large as it was.

    ```mlir
    %y = graph.reshape %x {shape = array<i64: 4, 2>} : (tensor<8xf32>) -> tensor<4x2xf32>
    ```
    """

    name = "graph.reshape"
    x = operand_def(TensorType)
    shape = prop_def(DenseArrayBase)
    y = result_def(TensorType)
    assembly_format = "$x attr-dict `:` functional-type(operands, results)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        (x,) = operands
        have, want = list(x.get_shape()), ints(props["shape"])
        if have.count(DYNAMIC) != want.count(DYNAMIC) or not same_elements(have, want):
            raise fail(cls, f"a shape with the elements of {x}", want)
        return [with_shape(x, want)]


def same_elements(have: Sequence[int], want: Sequence[int]) -> bool:
    """Whether two shapes may have equally many elements. A dynamic dimension may be any multiple of the
    batch, so that only the analysis of the batch knows; of two that lead, the one's row makes up the other's."""
    known = [product([s for s in shape if s != DYNAMIC]) for shape in (have, want)]
    few, many = sorted(known)
    if DYNAMIC not in have or few == many:
        return few == many
    both_lead = have[0] == want[0] == DYNAMIC
    return have.count(DYNAMIC) == 1 and few > 0 and (not both_lead or many % few == 0)


@irdl_op_definition
class ScatterAddOp(ScatterAddBase, GraphOp):
    """`x` with row n of `updates` added to its row `indices[n]`, one after another (`np.add.at`).

    Each element is summed in the order of the indices, and has one rounding an update, whatever computes it.
    Below 0 and beyond the end, an index names the nearest row: it is the transpose of `graph.gather` of rows.

    ```mlir
    %y = graph.scatter_add %x, %indices, %updates
      : (tensor<50x64xf32>, tensor<8x16xi64>, tensor<8x16x64xf32>) -> tensor<50x64xf32>
    ```
    """

    name = "graph.scatter_add"


@irdl_op_definition
class SliceOp(GraphOp):
    """`size` elements along each axis from `offset`, `stride` apart.

    A dynamic dimension is taken whole: offset 0, size -9223372036854775808, stride 1.

    ```mlir
    %y = graph.slice %x {offsets = array<i64: 2>, sizes = array<i64: 3>, strides = array<i64: 2>}
      : (tensor<8xf32>) -> tensor<3xf32>
    ```
    """

    name = "graph.slice"
    x = operand_def(TensorType)
    offsets = prop_def(DenseArrayBase)
    sizes = prop_def(DenseArrayBase)
    strides = prop_def(DenseArrayBase)
    y = result_def(TensorType)
    assembly_format = "$x attr-dict `:` functional-type(operands, results)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        (x,) = operands
        offsets, sizes = ints(props["offsets"]), ints(props["sizes"])
        strides = ints(props["strides"])
        if not len(offsets) == len(sizes) == len(strides) == x.get_num_dims():
            raise fail(cls, f"{x.get_num_dims()} offsets, sizes and strides", f"{sizes}")
        for have, start, size, step in zip(x.get_shape(), offsets, sizes, strides, strict=True):
            if have == DYNAMIC:
                inside = (start, size, step) == (0, DYNAMIC, 1)
            else:
                last = start + (size - 1) * step
                inside = size >= 1 and 0 <= start < have and 0 <= last < have
            if not inside:
                raise fail(
                    cls, f"a slice inside {x}", f"offset {start}, size {size}, stride {step}"
                )
        return [with_shape(x, sizes)]


@irdl_op_definition
class TransposeOp(GraphOp):
    """Axis `i` of the result is axis `permutation[i]` of the operand.

    ```mlir
    %y = graph.transpose %x {permutation = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
    ```
    """

    name = "graph.transpose"
    x = operand_def(TensorType)
    permutation = prop_def(DenseArrayBase)
    y = result_def(TensorType)
    assembly_format = "$x attr-dict `:` functional-type(operands, results)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        (x,) = operands
        permutation = ints(props["permutation"])
        if sorted(permutation) != list(range(x.get_num_dims())):
            raise fail(cls, f"a permutation of 0..{x.get_num_dims() - 1}", permutation)
        return [with_shape(x, [x.get_shape()[p] for p in permutation])]


OPS: list[type[GraphOp]] = [
    ConcatOp,
    ExpandOp,
    GatherElementsOp,
    GatherOp,
    PadOp,
    ReshapeOp,
    ScatterAddOp,
    SliceOp,
    TransposeOp,
]
