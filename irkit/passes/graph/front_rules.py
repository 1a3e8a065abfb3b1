"""How each graph op is written once the batch is in front: the rules of `batch-to-front`.

A value of shape (p…, outer·batch·inner, q…) is carried as (batch, p…, outer·inner, q…): one dimension more,
and the order of a row's elements as it was. So most ops do the same one axis further on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Attribute, SSAValue

from irkit.dialects import graph
from irkit.dialects.graph import elementwise, functions, integer, logic
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.batch import BatchDim
from irkit.dialects.types import DYNAMIC, int_array, ints, numpy_dtype, tensor_type
from irkit.weights import Array


@dataclass(frozen=True)
class Moved:
    """An op on its way: its operands as they now are, and what builds others.

    `operands`: with the batch in front where they have it (`dims` says where it was), else as they were.
    `results`: where the batch was in the op's results. `emit` appends an op and returns its results.
    """

    op: GraphOp
    operands: Sequence[SSAValue]
    dims: Sequence[BatchDim | None]
    results: Sequence[BatchDim | None]
    emit: Callable[[type[GraphOp], Sequence[SSAValue], dict[str, Attribute]], Sequence[SSAValue]]
    constant: Callable[[Array], SSAValue]

    def again(self, **props: Attribute) -> Sequence[SSAValue]:
        """The same op on the operands as they now are, with some properties changed."""
        return self.emit(type(self.op), self.operands, {**self.op.properties, **props})

    def reshape(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """`graph.reshape`, if the shape is another."""
        if tuple(shape) == tensor_type(value).get_shape():
            return value
        return self.emit(graph.ReshapeOp, [value], {"shape": int_array(shape)})[0]

    def transpose(self, value: SSAValue, permutation: Sequence[int]) -> SSAValue:
        """`graph.transpose`."""
        return self.emit(graph.TransposeOp, [value], {"permutation": int_array(permutation)})[0]

    def aligned(self, number: int, rank: int) -> SSAValue:
        """Operand `number` so that its dimensions behind the batch are the last of `rank`."""
        value = self.operands[number]
        if self.dims[number] is None:
            return value
        first, *rest = tensor_type(value).get_shape()
        return self.reshape(value, [first, *[1] * (rank - len(rest)), *rest])


Rule = Callable[[Moved], Sequence[SSAValue]]


def front_shape(shape: Sequence[int], dim: BatchDim) -> list[int]:
    """The shape with the batch in front."""
    return [DYNAMIC, *shape[: dim.axis], dim.factor, *shape[dim.axis + 1 :]]


def _rank(value: SSAValue) -> int:
    return tensor_type(value).get_num_dims()


def _broadcast(m: Moved) -> Sequence[SSAValue]:
    rank = _rank(m.op.results[0])
    operands = [m.aligned(n, rank) for n in range(len(m.operands))]
    return m.emit(type(m.op), operands, dict(m.op.properties))


_OF_ONE_RANK: dict[type[GraphOp], int] = {
    graph.AttentionKeyGradientOp: 5,
    graph.AttentionOp: 3,
    graph.AttentionQueryGradientOp: 4,
}


def _attention(m: Moved) -> Sequence[SSAValue]:
    """Query, key and value are of one rank, and so is what else a gradient reads; a mask broadcasts."""
    rank = _rank(m.op.results[0]) + 1
    operands = [m.aligned(n, rank - 1) for n in range(len(m.operands))]
    for n, value in enumerate(operands[: _OF_ONE_RANK[type(m.op)]]):
        shape = tensor_type(value).get_shape()
        operands[n] = m.reshape(value, [*(1,) * (rank - len(shape)), *shape])
    return m.emit(type(m.op), operands, dict(m.op.properties))


def _as_it_is(m: Moved) -> Sequence[SSAValue]:
    return m.again()


def _next_axis(m: Moved) -> Sequence[SSAValue]:
    axis = m.op.properties["axis"]
    assert isinstance(axis, IntegerAttr)
    return m.again(axis=IntegerAttr(axis.value.data + 1, i64))


def _reduce(m: Moved) -> Sequence[SSAValue]:
    assert isinstance(m.op, graph.ReduceOp)
    return m.again(axes=int_array([a + 1 for a in ints(m.op.axes)]))


def _pad(m: Moved) -> Sequence[SSAValue]:
    assert isinstance(m.op, graph.PadOp)
    return m.again(low=int_array([0, *ints(m.op.low)]), high=int_array([0, *ints(m.op.high)]))


def _slice(m: Moved) -> Sequence[SSAValue]:
    assert isinstance(m.op, graph.SliceOp)
    (dim,) = m.dims
    assert dim is not None
    return m.again(
        offsets=int_array([0, *ints(m.op.offsets)]),
        sizes=int_array(front_shape(ints(m.op.sizes), dim)),
        strides=int_array([1, *ints(m.op.strides)]),
    )


def _transpose(m: Moved) -> Sequence[SSAValue]:
    assert isinstance(m.op, graph.TransposeOp)
    return m.again(permutation=int_array([0, *(p + 1 for p in ints(m.op.permutation))]))


def _reshape(m: Moved) -> Sequence[SSAValue]:
    assert isinstance(m.op, graph.ReshapeOp)
    (dim,) = m.results
    assert dim is not None
    return [m.reshape(m.operands[0], front_shape(tensor_type(m.op.y).get_shape(), dim))]


def _expand(m: Moved) -> Sequence[SSAValue]:
    assert isinstance(m.op, graph.ExpandOp)
    (dim,), rank = m.results, _rank(m.op.y)
    assert dim is not None
    operands = [m.aligned(0, rank), *m.operands[1:]]
    shape = int_array(front_shape(tensor_type(m.op.y).get_shape(), dim))
    return m.emit(graph.ExpandOp, operands, {"shape": shape})


def _gather(m: Moved) -> Sequence[SSAValue]:
    """Indices with the batch pick from the first axis: what lies before it goes behind, and back."""
    assert isinstance(m.op, graph.GatherOp)
    if m.dims[1] is None:
        return _next_axis(m)
    (data, indices), axis = m.operands, m.op.axis.value.data
    if axis:
        data = m.transpose(data, [axis, *(d for d in range(_rank(data)) if d != axis)])
    (y,) = m.emit(graph.GatherOp, [data, indices], {"axis": IntegerAttr(0, i64)})
    if not axis:
        return [y]
    picked, rank = _rank(indices), _rank(y)
    before = range(picked, picked + axis)
    return [m.transpose(y, [0, *before, *range(1, picked), *range(picked + axis, rank)])]


def _matmul(m: Moved) -> Sequence[SSAValue]:
    rank = _rank(m.op.results[0])
    return m.emit(graph.MatmulOp, [m.aligned(n, rank) for n in (0, 1)], {})


def _gemm(m: Moved) -> Sequence[SSAValue]:
    """As a product of stacks of matrices, its factors and the sum being ops of their own."""
    op = m.op
    assert isinstance(op, graph.GemmOp)
    sides = [m.aligned(n, 2) for n in (0, 1)]
    for n, flag in enumerate((op.trans_a, op.trans_b)):
        if flag.value.data:
            last = _rank(sides[n]) - 1
            sides[n] = m.transpose(sides[n], [*range(last - 1), last, last - 1])
    (y,) = m.emit(graph.MatmulOp, sides, {})
    y = _scaled(m, y, op.alpha.value.data)
    if op.c is None:
        return [y]
    return m.emit(graph.AddOp, [y, _scaled(m, m.aligned(2, 2), op.beta.value.data)], {})


def _scaled(m: Moved, value: SSAValue, factor: float) -> SSAValue:
    if factor == 1:
        return value
    by = m.constant(np.array(factor, numpy_dtype(tensor_type(value).element_type)))
    return m.emit(graph.MulOp, [value, by], {})[0]


def _batch_norm(m: Moved) -> Sequence[SSAValue]:
    """Channels are axis 1, and now axis 2."""
    x, *parameters = m.operands
    swap = [0, 2, 1, *range(3, _rank(x))]
    (y,) = m.emit(type(m.op), [m.transpose(x, swap), *parameters], dict(m.op.properties))
    return [m.transpose(y, swap)]


def _pool(m: Moved) -> Sequence[SSAValue]:
    """Each channel alone: the samples of a row are more channels."""
    (x,) = m.operands
    rows, samples, channels, *spatial = tensor_type(x).get_shape()
    merged = m.reshape(x, [rows, samples * channels, *spatial])
    (y,) = m.emit(type(m.op), [merged], dict(m.op.properties))
    return [m.reshape(y, [rows, samples, channels, *tensor_type(y).get_shape()[2:]])]


RULES: dict[type[GraphOp], Rule] = {
    **{op: _broadcast for group in (elementwise, functions, integer, logic) for op in group.OPS},
    graph.ArgmaxOp: _next_axis,
    graph.AveragePoolOp: _pool,
    graph.BatchNormOp: _batch_norm,
    graph.ConcatOp: _next_axis,
    graph.CumSumOp: _next_axis,
    graph.ExpandOp: _expand,
    graph.GatherElementsOp: _next_axis,
    graph.GatherOp: _gather,
    graph.GemmOp: _gemm,
    graph.GlobalAveragePoolOp: _pool,
    graph.LayerNormOp: _as_it_is,
    graph.LpPoolOp: _pool,
    graph.MatmulOp: _matmul,
    graph.MaxPoolOp: _pool,
    graph.PadOp: _pad,
    graph.ReduceOp: _reduce,
    graph.ReshapeOp: _reshape,
    graph.SliceOp: _slice,
    graph.AttentionKeyGradientOp: _attention,
    graph.AttentionOp: _attention,
    graph.AttentionQueryGradientOp: _attention,
    graph.SoftmaxOp: _next_axis,
    graph.TopKOp: _next_axis,
    graph.TransposeOp: _transpose,
}
"""Ops that have a form with the batch in front. Others (a convolution of several samples a row) have none."""
