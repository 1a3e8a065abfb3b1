"""Ops that move elements: upstream `tensor` ops where there are some."""

from __future__ import annotations

import math

import numpy as np
from xdsl.dialects import tensor
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import SSAValue

from irkit.dialects import graph, te
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.types import DYNAMIC, ints, tensor_type
from irkit.errors import UnsupportedError
from irkit.lower.graph_to_tensor.builder import TensorBuilder
from irkit.lower.graph_to_tensor.elementwise import Rule
from irkit.lower.graph_to_tensor.nests import broadcast_index


def _concat(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    assert isinstance(op, graph.ConcatOp)
    axis = op.axis.value.data
    if DYNAMIC in [tensor_type(v).get_shape()[axis] for v in op.inputs]:
        raise UnsupportedError(f"'{op.name}' along a dynamic dimension")
    return [b.insert(tensor.ConcatOp(list(op.inputs), axis, tensor_type(op.y)))]


def _expand(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    assert isinstance(op, graph.ExpandOp)
    shape = tensor_type(op.y).get_shape()
    return [b.broadcast(op.x, broadcast_index(tensor_type(op.x), shape), shape, [op.like or op.x])]


def _gather(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    return [b.insert(te.GatherOp.make(op.operands, op.properties))]


def _gather_elements(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    return [b.insert(te.GatherElementsOp.make(op.operands, op.properties))]


def _pad(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    assert isinstance(op, graph.PadOp)
    return [b.pad(op.x, ints(op.low), ints(op.high), op.value.value.data)]


def _reshape(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    assert isinstance(op, graph.ReshapeOp)
    return [b.reshape(op.x, tensor_type(op.y).get_shape())]


def _scatter_add(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    """Of rows: what is behind the first dimension is one."""
    assert isinstance(op, graph.ScatterAddOp)
    places, *rest = tensor_type(op.x).get_shape()
    count, width = math.prod(tensor_type(op.indices).get_shape()), math.prod(rest)
    if 0 in (count, width):
        return [op.x]
    shapes = ([places, width], [count], [count, width])
    flat = [b.reshape(v, shape) for v, shape in zip(op.operands, shapes, strict=True)]
    return [b.reshape(b.insert(te.ScatterAddOp.make(flat, {})), [places, *rest])]


def _slice(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    """A slice that runs forward; an axis that runs backward is gathered."""
    assert isinstance(op, graph.SliceOp)
    x, offsets, sizes, strides = op.x, ints(op.offsets), ints(op.sizes), ints(op.strides)
    for axis, step in enumerate(strides):
        if step < 0:
            picked = offsets[axis] + step * np.arange(sizes[axis])
            indices = b.constant(picked.astype(np.int64), "indices")
            x = b.insert(te.GatherOp.make([x, indices], {"axis": IntegerAttr(axis, i64)}))
            offsets[axis], strides[axis] = 0, 1
    if tensor_type(x) == tensor_type(op.y):
        return [x]
    runtime = [b.batch([x]) if s == DYNAMIC else s for s in sizes]
    return [b.insert(tensor.ExtractSliceOp(x, offsets, runtime, strides, tensor_type(op.y)))]


def _transpose(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    assert isinstance(op, graph.TransposeOp)
    return [b.transpose(op.x, ints(op.permutation))]


RULES: dict[type[GraphOp], Rule] = {
    graph.ConcatOp: _concat,
    graph.ExpandOp: _expand,
    graph.GatherElementsOp: _gather_elements,
    graph.GatherOp: _gather,
    graph.PadOp: _pad,
    graph.ReshapeOp: _reshape,
    graph.ScatterAddOp: _scatter_add,
    graph.SliceOp: _slice,
    graph.TransposeOp: _transpose,
}
