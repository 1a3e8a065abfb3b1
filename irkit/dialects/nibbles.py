"""Matrices of 4-bit integers as products read them: what the ops of `graph` and of `te` on them share.

An element of a matrix of K terms by N columns is (integer - zero point) * scale, in float32 and rounded once;
every BLOCK terms of a column share both. Integers are from -8 to 7. They lie in panels of WIDTH columns: byte
(p, t, i) of panels×pairs×WIDTH has terms 2t, in its low bits, and 2t + 1 of column WIDTH * p + i, in two's
complement. Scales and zero points are panels×blocks×WIDTH. Columns beyond the last are zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, IntegerType, TensorType, f32
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
)

from irkit.dialects.element_sets import Elements
from irkit.dialects.inference import InferredOp, Props, check_rank, fail
from irkit.dialects.types import DYNAMIC, Tensor, tensor, tensor_type, ui8
from irkit.weights import Array

WIDTH = 64
"""Columns of a panel: four vectors of 16 lanes, a line of a cache for each pair of terms."""
FLOATS = Elements("f32", frozenset((f32,)))
BYTES = Elements("ui8", frozenset((ui8,)))


class NibbleMatmulBase(InferredOp):
    """Operands, types and verifier of a product with such a matrix."""

    ELEMENTS: ClassVar[tuple[Elements, ...]] = (FLOATS, BYTES, FLOATS, FLOATS)
    x = operand_def(TensorType)
    packed = operand_def(TensorType)
    scales = operand_def(TensorType)
    zeros = opt_operand_def(TensorType)
    block = prop_def(IntegerAttr[IntegerType])
    columns = prop_def(IntegerAttr[IntegerType])
    y = result_def(TensorType)
    assembly_format = (
        "$x `,` $packed `,` $scales (`,` $zeros^)? attr-dict `:` functional-type(operands, results)"
    )

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        x, packed, *of_blocks = operands
        block, columns = (_number(props, name) for name in ("block", "columns"))
        if x.get_num_dims() < 2 or x.get_shape()[-1] == DYNAMIC:
            raise fail(cls, "x of rank 2 or more, its rows of known length", x)
        depth = x.get_shape()[-1]
        if depth % 2 or depth == 0:
            raise fail(cls, "rows of x of an even number of elements", depth)
        if block < 2 or block % 2:
            raise fail(cls, "a block of an even number of terms", f"block = {block}")
        if columns < 1:
            raise fail(cls, "1 column or more", f"columns = {columns}")
        panels = -(-columns // WIDTH)
        if packed.get_shape() != (panels, depth // 2, WIDTH):
            raise fail(cls, f"packed of {panels}x{depth // 2}x{WIDTH}", packed)
        for t in of_blocks:
            if t.get_shape() != (panels, -(-depth // block), WIDTH):
                shape = f"{panels}x{-(-depth // block)}x{WIDTH}"
                raise fail(cls, f"scales and zeros of {shape}", t)
        return [tensor(x.element_type, (*x.get_shape()[:-1], columns))]

    @property
    def depth(self) -> int:
        """Terms of a sum."""
        return tensor_type(self.x).get_shape()[-1]

    @property
    def terms(self) -> int:
        """Terms of a block."""
        return self.block.value.data

    @property
    def width(self) -> int:
        """Columns of the result."""
        return self.columns.value.data

    @property
    def blocks(self) -> int:
        """Blocks of a column."""
        return -(-self.depth // self.terms)


@irdl_op_definition
class NibbleMatmulOp(NibbleMatmulBase):
    """`graph.nibble_matmul`, of rows.

    ```mlir
    %y = te.nibble_matmul %x, %q, %s {block = 32 : i64, columns = 100 : i64}
      : (tensor<3x80xf32>, tensor<2x40x64xui8>, tensor<2x3x64xf32>) -> tensor<3x100xf32>
    ```
    """

    name = "te.nibble_matmul"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        check_rank(cls, "x", operands[0], 2)
        if DYNAMIC in operands[0].get_shape():
            raise fail(cls, "x of known extents", operands[0])
        return super().infer(operands, props)


def _number(props: Props, name: str) -> int:
    found = props[name]
    assert isinstance(found, IntegerAttr)
    return found.value.data


def packed_nibbles(integers: Array) -> Array:
    """K×N integers from -8 to 7, K even, as panels of bytes."""
    panels = in_panels(integers.astype(np.int8))
    low, high = (panels[:, h::2].view(np.uint8) & np.uint8(15) for h in (0, 1))
    return low | (high << np.uint8(4))


def in_panels(values: Array) -> Array:
    """Rows of N values as panels×rows×WIDTH."""
    rows, columns = values.shape
    whole = np.pad(values, ((0, 0), (0, -columns % WIDTH)))
    return np.ascontiguousarray(whole.reshape(rows, -1, WIDTH).transpose(1, 0, 2))


def _rows(panels: Array, columns: int) -> Array:
    """The inverse of `in_panels`."""
    count, rows, width = panels.shape
    return panels.transpose(1, 0, 2).reshape(rows, count * width)[:, :columns]


def unpacked_matrix(
    packed: Array, scales: Array, zeros: Array | None, block: int, columns: int
) -> Array:
    """The matrix, K×N of float32."""
    panels, pairs, width = packed.shape
    signed = packed.view(np.int8)
    both = np.stack([(signed << 4) >> 4, signed >> 4], axis=2)
    integers = _rows(both.reshape(panels, 2 * pairs, width), columns).astype(np.float32)
    of_term = np.arange(2 * int(pairs), dtype=np.int64) // block
    if zeros is not None:
        integers = integers - _rows(zeros, columns)[of_term]
    return integers * _rows(scales, columns)[of_term]


def nibble_matmul(op: NibbleMatmulBase, x: Array, *matrix: Array) -> Array:
    """The product, row by row: sums are the same whatever dimensions the rows are in."""
    rows = x.reshape(-1, op.depth) @ matrix_of(op, *matrix)
    return rows.reshape(*x.shape[:-1], op.width)


def matrix_of(op: NibbleMatmulBase, packed: Array, scales: Array, *zeros: Array) -> Array:
    """The matrix that an op multiplies by."""
    return unpacked_matrix(packed, scales, zeros[0] if zeros else None, op.terms, op.width)
