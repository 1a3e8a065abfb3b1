"""Operators of the domain com.microsoft on weights of 2, 4 or 8 bits, of which each block has a scale.

Semantics: `docs/ContribOperators.md` of ONNX Runtime. An element is (integer - zero point) * scale of its
block, in float32 and rounded once; integers lie in bytes, the first in the lowest bits. A zero point that is
not given is the middle of the range.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import bf16, f16, f32, i32, i64
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.nibbles import in_panels, packed_nibbles
from irkit.dialects.types import tensor_type
from irkit.frontends.onnx.handlers.arithmetic import cast, element_of, scalar
from irkit.frontends.onnx.handlers.gather import in_range
from irkit.frontends.onnx.handlers.linear import product
from irkit.frontends.onnx.node import Handler, Node, Value
from irkit.narrow_integers import narrow_of
from irkit.weights import Array

_BITS = (2, 4, 8)
_FLOATS = (f32, f16, bf16)


def unpacked(packed: Array, bits: int, count: int) -> Array:
    """The first `count` integers of each row of bytes, as uint8."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    every = (packed[..., None] >> shifts) & np.uint8((1 << bits) - 1)
    return every.reshape(*packed.shape[:-1], -1)[..., :count]


def _packed(integers: Array, bits: int) -> Array:
    """The inverse of `unpacked`: rows of uint8 as bytes, the last one filled up with zeros."""
    each = 8 // bits
    short = -integers.shape[-1] % each
    rows = np.pad(integers, [(0, 0)] * (integers.ndim - 1) + [(0, short)])
    groups = rows.reshape(*rows.shape[:-1], -1, each)
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return np.bitwise_or.reduce(groups << shifts, axis=-1).astype(np.uint8)


def _size(node: Node, name: str, default: int) -> int:
    value = int(node.attribute(name, default))
    if value < 1:
        node.refuse(f"{name} = {value}", "1 or more is needed")
    return value


def _bits(node: Node) -> int:
    bits = int(node.attribute("bits", 4))
    if bits not in _BITS:
        node.refuse(f"bits = {bits}", "only 2, 4 and 8 are supported")
    return bits


def _block(node: Node, default: int) -> int:
    block = int(node.attribute("block_size", default))
    if block < 16 or block & (block - 1):
        node.refuse(f"block_size = {block}", "a power of 2, of 16 or more, is needed")
    return block


def _shaped(node: Node, index: int, shape: Sequence[int]) -> Array:
    """Input `index`, known at import, of this shape, or in one dimension, as early models have it."""
    array = node.array(index)
    if array.shape not in (tuple(shape), (int(np.prod(shape)),)):
        node.refuse(
            node.name_of(index), f"a shape of {list(shape)} is needed, got {list(array.shape)}"
        )
    return array.reshape(shape)


def _floats(node: Node, index: int) -> SSAValue:
    value = node.operand(index)
    if element_of(value) not in _FLOATS:
        node.refuse(node.name_of(index), f"elements of {element_of(value)} are not supported")
    return value


# Products


def _zero_points(node: Node, bits: int, rows: int, blocks: int) -> Array:
    """What is taken off the integers of each block, rows×blocks, as float32."""
    zero = node.given(3)
    if zero is None:
        return np.full((rows, blocks), 1 << (bits - 1), np.float32)
    if isinstance(zero, SSAValue) or zero.dtype == np.uint8:
        width = -(-blocks * bits // 8)
        return unpacked(_shaped(node, 3, (rows, width)), bits, blocks).astype(np.float32)
    if zero.dtype != node.array(2).dtype:
        node.refuse(node.name_of(3), f"elements of {zero.dtype} beside scales of another type")
    return _shaped(node, 3, (rows, blocks)).astype(np.float32)


def _groups(node: Node, depth: int, block: int, blocks: int) -> Array:
    """Which block each term belongs to: by its place, or as `g_idx` says."""
    if node.given(4) is None:
        return np.arange(depth) // block
    groups = node.array(4)
    if groups.shape not in ((depth,), (blocks * block,)):
        node.refuse(node.name_of(4), f"{depth} elements are needed, got {list(groups.shape)}")
    if groups.min() < 0 or groups.max() >= blocks:
        node.refuse(node.name_of(4), f"some groups are not among the {blocks}")
    return groups[:depth]


def _in_nibbles(
    node: Node, x: SSAValue, integers: Array, scales: Array, zeros: Array, block: int
) -> SSAValue:
    """The product with a matrix that stays in 4 bits: `integers` are rows×terms from 0 to 15."""
    middle = np.float32(8)
    operands = [packed_nibbles((integers.astype(np.int8) - np.int8(8)).T), in_panels(scales.T)]
    if (zeros != middle).any():
        operands.append(in_panels(zeros.T - middle))
    shape = list(tensor_type(x).get_shape())
    if len(shape) == 1:
        x = node.emit(graph.ReshapeOp, x, shape=[1, *shape])
    matrix = [node.tensor(a) for a in operands]
    columns = len(integers)
    y = node.emit(graph.NibbleMatmulOp, x, *matrix, block=block, columns=columns)
    return node.emit(graph.ReshapeOp, y, shape=[columns]) if len(shape) == 1 else y


def _matmul_nbits(node: Node) -> Sequence[Value]:
    """Inputs A (…×K), B (N×blocks×bytes), scales, zero points, groups of terms, and a bias of N.

    `accuracy_level` lets a runtime compute in less than float32, which is not done here.
    """
    node.ignore("accuracy_level")
    depth, rows = _size(node, "K", 0), _size(node, "N", 0)
    bits, block = _bits(node), _block(node, 32)
    blocks = -(-depth // block)
    x = _floats(node, 0)
    if tensor_type(x).get_shape()[-1:] != (depth,):
        node.refuse(node.name_of(0), f"rows of K = {depth} elements are needed, got {x.type}")
    packed = _shaped(node, 1, (rows, blocks, block * bits // 8))
    if packed.dtype != np.uint8:
        node.refuse(node.name_of(1), f"bytes are needed, got elements of {packed.dtype}")
    integers = unpacked(packed.reshape(rows, -1), bits, depth)
    scales = _shaped(node, 2, (rows, blocks)).astype(np.float32)
    zeros = _zero_points(node, bits, rows, blocks)
    wide = cast(node, x, f32)
    if bits == 4 and depth % 2 == 0 and node.given(4) is None:
        y = _in_nibbles(node, wide, integers, scales, zeros, block)
    else:
        groups = _groups(node, depth, block, blocks)
        weights = (integers.astype(np.float32) - zeros[:, groups]) * scales[:, groups]
        y = product(node, wide, node.tensor(np.ascontiguousarray(weights.T)))
    if node.given(5) is not None:
        if node.type_of(5).get_shape() != (rows,):
            node.refuse(node.name_of(5), f"N = {rows} elements are needed, got {node.type_of(5)}")
        y = node.emit(graph.AddOp, y, cast(node, _floats(node, 5), f32))
    return [cast(node, y, element_of(x))]


# Rows of a table


def _table(node: Node, bits: int) -> tuple[Array, int]:
    """Input 0 as integers from 0 on, and what was added for that."""
    data = node.array(0)
    if (kind := narrow_of(data.dtype)) is not None:
        if (kind.bits, bits) != (4, 4):
            node.refuse(node.name_of(0), f"elements of {kind.name} with bits = {bits}")
        return (data.astype(np.int8) - np.int8(kind.low)).astype(np.uint8), -kind.low
    if data.dtype != np.uint8:
        node.refuse(node.name_of(0), f"elements of {data.dtype} are not supported")
    return unpacked(data, bits, data.shape[-1] * (8 // bits)), 0


def _zeros_of_table(node: Node, bits: int, added: int, shape: Sequence[int]) -> Array:
    """The zero points of all blocks, in the shape of the scales."""
    zero, kind = node.given(3), node.narrow.of(node.given(0))
    if zero is None:
        middle = 1 << (bits - 1) if kind is None else added
        return np.full(shape, middle, np.uint8)
    if kind is not None:
        return (_shaped(node, 3, shape).astype(np.int8) + np.int8(added)).astype(np.uint8)
    width = -(-shape[-1] * bits // 8)
    return unpacked(_shaped(node, 3, (*shape[:-1], width)), bits, shape[-1])


def _rows_of(node: Node, table: Array, indices: SSAValue, axis: int, bits: int) -> SSAValue:
    """Rows of a table of integers as i32. In memory it is packed where whole rows are asked for."""
    if bits == 8 or axis == table.ndim - 1:
        found = node.emit(graph.GatherOp, node.tensor(table), indices, axis=axis)
        return cast(node, found, i32)
    found = node.emit(graph.GatherOp, node.tensor(_packed(table, bits)), indices, axis=axis)
    shape = list(tensor_type(found).get_shape())
    column = node.emit(graph.ReshapeOp, found, shape=[*shape, 1])
    shifts = node.tensor(np.arange(0, 8, bits, dtype=np.uint8))
    every = node.emit(graph.ShiftRightOp, column, shifts)
    every = node.emit(graph.AndOp, every, scalar(node, (1 << bits) - 1, every))
    count = table.shape[-1]
    whole = [*shape[:-1], shape[-1] * (8 // bits)]
    rows = node.emit(graph.ReshapeOp, every, shape=whole)
    if whole[-1] != count:
        sizes = [*whole[:-1], count]
        zeros, ones = [0] * len(whole), [1] * len(whole)
        rows = node.emit(graph.SliceOp, rows, offsets=zeros, sizes=sizes, strides=ones)
    return cast(node, rows, i32)


def _gather_block_quantized(node: Node) -> Sequence[Value]:
    """Inputs the table, indices, scales and zero points."""
    bits, block = _bits(node), _block(node, 128)
    table, added = _table(node, bits)
    rank = table.ndim
    axis = node.axis(int(node.attribute("gather_axis", 0)), rank)
    along = node.axis(int(node.attribute("quantize_axis", 1)), rank)
    if not (0 <= axis < rank and 0 <= along < rank):
        node.refuse("gather_axis, quantize_axis", f"they are no axes of {rank} dimensions")
    if node.array(0).dtype == np.uint8 and (axis, along) != (0, rank - 1):
        node.refuse(
            f"gather_axis = {axis}, quantize_axis = {along}",
            "of bytes they are the first and the last",
        )
    shape = [-(-n // block) if d == along else n for d, n in enumerate(table.shape)]
    scales = _shaped(node, 2, shape)
    zeros = _zeros_of_table(node, bits, added, shape)
    _floats(node, 2)
    indices = in_range(node, 1, table.shape[axis])
    x = _rows_of(node, table, indices, axis, bits)
    if axis == along:
        # Of each index that of its block.
        indices = cast(node, indices, i64)
        indices = node.emit(graph.DivOp, indices, scalar(node, block, indices))
    found = [
        node.emit(graph.GatherOp, node.tensor(a), indices, axis=axis)
        for a in (scales.astype(np.float32), zeros)
    ]
    if axis != along:
        place = along + tensor_type(indices).get_num_dims() - 1 if along > axis else along
        of_block = node.tensor(np.arange(table.shape[along], dtype=np.int64) // block)
        found = [node.emit(graph.GatherOp, a, of_block, axis=place) for a in found]
    x = node.emit(graph.SubOp, x, cast(node, found[1], i32))
    y = node.emit(graph.MulOp, cast(node, x, f32), found[0])
    return [cast(node, y, element_of(node.operand(2)))]


MICROSOFT: dict[str, Handler] = {
    "GatherBlockQuantized": _gather_block_quantized,
    "MatMulNBits": _matmul_nbits,
}
