"""Picking elements by indices: what the gathers of `graph` and of `te` share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, IntegerType, TensorType
from xdsl.irdl import operand_def, prop_def, result_def

from irkit.dialects.element_sets import ALL, INDICES, Elements
from irkit.dialects.inference import InferredOp, Props, check_axis, fail, with_shape
from irkit.dialects.types import Tensor
from irkit.weights import Array


class GatherBase(InferredOp):
    """Operands, types and verifier of gather."""

    ELEMENTS: ClassVar[tuple[Elements, ...]] = (ALL, INDICES)

    data = operand_def(TensorType)
    indices = operand_def(TensorType)
    axis = prop_def(IntegerAttr[IntegerType])
    y = result_def(TensorType)
    assembly_format = "$data `,` $indices attr-dict `:` functional-type(operands, results)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        data, indices = operands
        axis_attr = props["axis"]
        assert isinstance(axis_attr, IntegerAttr)
        axis = check_axis(cls, axis_attr.value.data, data)
        if data.get_shape()[axis] == 0:
            raise fail(cls, "an axis of one element or more", data)
        shape = data.get_shape()
        return [with_shape(data, (*shape[:axis], *indices.get_shape(), *shape[axis + 1 :]))]


class GatherElementsBase(InferredOp):
    """Operands, types and verifier of gather elements."""

    ELEMENTS: ClassVar[tuple[Elements, ...]] = (ALL, INDICES)

    data = operand_def(TensorType)
    indices = operand_def(TensorType)
    axis = prop_def(IntegerAttr[IntegerType])
    y = result_def(TensorType)
    assembly_format = "$data `,` $indices attr-dict `:` functional-type(operands, results)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        data, indices = operands
        axis_attr = props["axis"]
        assert isinstance(axis_attr, IntegerAttr)
        axis = check_axis(cls, axis_attr.value.data, data)
        if data.get_shape()[axis] == 0:
            raise fail(cls, "an axis of one element or more", data)
        pairs = zip(data.get_shape(), indices.get_shape(), strict=False)
        if data.get_num_dims() != indices.get_num_dims() or any(
            p != q for d, (p, q) in enumerate(pairs) if d != axis
        ):
            raise fail(cls, f"indices that agree with {data} outside axis {axis}", indices)
        return [with_shape(data, indices.get_shape())]


def _inside(op: GatherBase | GatherElementsBase, data: Array, indices: Array) -> Array:
    """`indices`, and the nearest where one lies outside."""
    return np.clip(indices.astype(np.int64), 0, data.shape[op.axis.value.data] - 1)


def gathered(op: GatherBase, data: Array, indices: Array) -> Array:
    """The meaning of both gathers."""
    return np.take(data, _inside(op, data, indices), axis=op.axis.value.data)


def gathered_elements(op: GatherElementsBase, data: Array, indices: Array) -> Array:
    """The meaning of both gathers of elements."""
    return np.take_along_axis(data, _inside(op, data, indices), axis=op.axis.value.data)
