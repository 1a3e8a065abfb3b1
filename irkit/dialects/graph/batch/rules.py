"""The rule of each graph op: from where the batch is in its operands to where it is in its results.

They are vmap's batching rules read backward: not how an op is run on a batch of operands, but whether what
it does is that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr

from irkit.dialects.graph import (
    attention,
    convolution,
    csr,
    elementwise,
    expression,
    forest,
    functions,
    integer,
    layer_norm,
    linear,
    logic,
    nibbles,
    normalisation,
    pooling,
    random,
    recurrent,
    reduction,
    shape,
)
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.batch.dims import BatchDim, Dim, RowsMix, Rule
from irkit.dialects.types import DYNAMIC, ints, tensor_type

ELSEWHERE = "its operands have the batch in different dimensions, or in other groups"
PARAMETER = "a parameter of the layer has the batch"


def _rank(op: GraphOp, operand: int) -> int:
    return tensor_type(op.operands[operand]).get_num_dims()


def together(found: Sequence[tuple[int, BatchDim]]) -> Dim:
    """The one dimension of several (operand number, dimension)s. Raises RowsMix."""
    for number, dim in found[1:]:
        if dim != found[0][1]:
            raise RowsMix(number, ELSEWHERE)
    return found[0][1] if found else None


def _only(dims: Sequence[Dim], count: int = 1) -> None:
    """Only the first `count` operands may have the batch."""
    for number, dim in enumerate(dims[count:], start=count):
        if dim is not None:
            raise RowsMix(number, PARAMETER)


def broadcast(op: GraphOp, dims: Sequence[Dim]) -> Sequence[Dim]:
    """Operands are aligned at their last dimensions."""
    rank = tensor_type(op.results[0]).get_num_dims()
    found = [
        (number, dim.at(dim.axis + rank - _rank(op, number)))
        for number, dim in enumerate(dims)
        if dim is not None
    ]
    return [together(found)] * len(op.results)


def _along(op: GraphOp, dims: Sequence[Dim]) -> Sequence[Dim]:
    """What works along property `axis` leaves all other dimensions alone."""
    (dim,) = dims
    axis = op.properties["axis"]
    assert isinstance(axis, IntegerAttr)
    if dim is not None and dim.axis == axis.value.data:
        raise RowsMix(0, f"it works along dimension {dim.axis}, which is the batch")
    return [dim] * len(op.results)


def _last(op: GraphOp, dims: Sequence[Dim]) -> Sequence[Dim]:
    """What works along the last dimension leaves all others alone."""
    if dims[0] is not None and dims[0].axis == _rank(op, 0) - 1:
        raise RowsMix(0, "it works along its last dimension, which is the batch")
    return [dims[0]] * len(op.results)


def _without(dim: BatchDim, axes: Sequence[int]) -> BatchDim:
    """Once `axes` are gone."""
    return dim.at(dim.axis - sum(a < dim.axis for a in set(axes)))


def _argmax(op: GraphOp, dims: Sequence[Dim]) -> Sequence[Dim]:
    assert isinstance(op, reduction.ArgmaxOp)
    (dim,) = _along(op, dims)
    if dim is None or op.keepdims.value.data:
        return [dim]
    return [_without(dim, [op.axis.value.data])]


def _reduce(op: GraphOp, dims: Sequence[Dim]) -> Sequence[Dim]:
    assert isinstance(op, reduction.ReduceOp)
    (dim,), axes = dims, ints(op.axes)
    if dim is None:
        return [None]
    if dim.axis in axes:
        raise RowsMix(0, f"{op.kind.data} over dimension {dim.axis}, which is the batch")
    return [dim if op.keepdims.value.data else _without(dim, axes)]


def _matmul(op: GraphOp, dims: Sequence[Dim]) -> Sequence[Dim]:
    summed = [_rank(op, 0) - 1, _rank(op, 1) - 2]
    for number, (dim, axis) in enumerate(zip(dims, summed, strict=True)):
        if dim is not None and dim.axis == axis:
            raise RowsMix(number, f"it sums over dimension {axis}, which is the batch")
    return broadcast(op, dims)


_SUMMED: dict[type[GraphOp], Sequence[tuple[int, ...]]] = {
    attention.AttentionKeyGradientOp: ((1, 2), (1,), (1,), (1, 2), (1, 2), (1, 2)),
    attention.AttentionOp: ((1,), (1, 2), (2,), (1,)),
    attention.AttentionQueryGradientOp: ((1,), (1, 2), (1, 2), (1,), (1,)),
}
"""Operands of an attention, and of its gradients → dimensions, from the last, that it sums over."""


def _attention(op: GraphOp, dims: Sequence[Dim]) -> Sequence[Dim]:
    """Rows of queries do not need one another, nor do keys in their gradient, but causal ones hang on where
    they stand."""
    for number, dim in enumerate(dims):
        place = 0 if dim is None else _rank(op, number) - dim.axis
        if dim is not None and place in _SUMMED[type(op)][number]:
            raise RowsMix(number, f"it sums over dimension {dim.axis}, which is the batch")
        if place == 2 and "causal" in op.properties:
            raise RowsMix(number, "it is causal along its rows, which is the batch")
    return broadcast(op, dims)


def _gemm(op: GraphOp, dims: Sequence[Dim]) -> Sequence[Dim]:
    assert isinstance(op, linear.GemmOp)
    kept = [int(bool(op.trans_a.value.data)), int(not op.trans_b.value.data)]
    found: list[tuple[int, BatchDim]] = []
    for number, (dim, axis) in enumerate(zip(dims[:2], kept, strict=True)):
        if dim is not None and dim.axis != axis:
            raise RowsMix(number, f"it sums over dimension {dim.axis}, which is the batch")
        if dim is not None:
            found.append((number, dim.at(number)))
    if len(dims) == 3 and (dim := dims[2]) is not None:
        found.append((2, dim.at(dim.axis + 2 - _rank(op, 2))))
    return [together(found)]


def _same(op: GraphOp, dims: Sequence[Dim]) -> Sequence[Dim]:
    """Every dimension stays what it is: the verifier lets nothing happen to a dynamic one."""
    return [dims[0]]


def _transpose(op: GraphOp, dims: Sequence[Dim]) -> Sequence[Dim]:
    assert isinstance(op, shape.TransposeOp)
    (dim,) = dims
    return [None if dim is None else dim.at(ints(op.permutation).index(dim.axis))]


def _reshape(op: GraphOp, dims: Sequence[Dim]) -> Sequence[Dim]:
    """In row-major order a row's elements lie in runs; before and behind the dimension that is the batch
    now must lie as many elements as did before."""
    assert isinstance(op, shape.ReshapeOp)
    (dim,) = dims
    if dim is None:
        return [None]
    have, want = tensor_type(op.x).get_shape(), tensor_type(op.y).get_shape()
    axis = want.index(DYNAMIC)
    if 0 in want:
        return [dim.at(axis)]
    before = math.prod(have[: dim.axis]) * dim.outer
    behind = math.prod(have[dim.axis + 1 :]) * dim.inner
    outer, rest = divmod(before, math.prod(want[:axis]))
    inner, more = divmod(behind, math.prod(want[axis + 1 :]))
    if rest or more:
        raise RowsMix(0, "what lies before or behind the batch is not a whole number of rows")
    return [BatchDim(axis, outer, inner)]


def _concat(op: GraphOp, dims: Sequence[Dim]) -> Sequence[Dim]:
    assert isinstance(op, shape.ConcatOp)
    dim = together([(number, d) for number, d in enumerate(dims) if d is not None])
    if dim is not None and dim.axis == op.axis.value.data:
        return [BatchDim(dim.axis, dim.outer * len(dims), dim.inner)]
    return [dim]


def _expand(op: GraphOp, dims: Sequence[Dim]) -> Sequence[Dim]:
    assert isinstance(op, shape.ExpandOp)
    result = tensor_type(op.y)
    if len(dims) == 2 and (like := dims[1]) is not None:
        return [like.at(result.get_shape().index(DYNAMIC))]
    dim = dims[0]
    return [None if dim is None else dim.at(dim.axis + result.get_num_dims() - _rank(op, 0))]


def _gather(op: GraphOp, dims: Sequence[Dim]) -> Sequence[Dim]:
    assert isinstance(op, shape.GatherOp)
    (data, indices), axis = dims, op.axis.value.data
    if data is not None and data.axis == axis:
        raise RowsMix(0, f"it picks from dimension {axis}, which is the batch")
    found: list[tuple[int, BatchDim]] = []
    if data is not None:
        found.append((0, data.at(data.axis + (_rank(op, 1) - 1 if data.axis > axis else 0))))
    if indices is not None:
        found.append((1, indices.at(indices.axis + axis)))
    return [together(found)]


def _scatter_add(op: GraphOp, dims: Sequence[Dim]) -> Sequence[Dim]:
    for number, dim in enumerate(dims):
        if dim is not None:
            raise RowsMix(number, "any of its rows may be added to any place")
    return [None]


def _gather_elements(op: GraphOp, dims: Sequence[Dim]) -> Sequence[Dim]:
    assert isinstance(op, shape.GatherElementsOp)
    axis = op.axis.value.data
    for number, dim in enumerate(dims):
        if dim is not None and dim.axis == axis:
            raise RowsMix(number, f"it picks along dimension {axis}, which is the batch")
    return broadcast(op, dims)


def _windows(op: GraphOp, dims: Sequence[Dim]) -> Sequence[Dim]:
    """Convolutions: samples × channels × spatial."""
    _only(dims)
    if dims[0] is not None and dims[0].axis != 0:
        raise RowsMix(0, f"it combines dimension {dims[0].axis}, which is the batch")
    return [dims[0]]


def _pool(op: GraphOp, dims: Sequence[Dim]) -> Sequence[Dim]:
    if dims[0] is not None and dims[0].axis > 1:
        raise RowsMix(0, f"its windows slide over dimension {dims[0].axis}, which is the batch")
    return [dims[0]]


def _per_channel(op: GraphOp, dims: Sequence[Dim]) -> Sequence[Dim]:
    """What knows channels, dimension 1, apart."""
    _only(dims)
    if dims[0] is not None and dims[0].axis == 1:
        raise RowsMix(0, "its channels are the batch")
    return [dims[0]]


def _first_axis(op: GraphOp, dims: Sequence[Dim]) -> Sequence[Dim]:
    """Rows × features in, rows × outputs out."""
    _only(dims)
    if dims[0] is not None and dims[0].axis != 0:
        raise RowsMix(0, "the batch is among its features")
    return [dims[0]] * len(op.results)


def _cell(op: GraphOp, dims: Sequence[Dim]) -> Sequence[Dim]:
    """x and the states are batch × features."""
    assert isinstance(op, recurrent.CellOp)
    return _recurrence(op, dims, op.STATES, 0)


def _layer(op: GraphOp, dims: Sequence[Dim]) -> Sequence[Dim]:
    """x and the outputs of all steps are steps × batch × features."""
    assert isinstance(op, recurrent.LayerOp)
    return _recurrence(op, dims, op.STATES, 1)


def _recurrence(op: GraphOp, dims: Sequence[Dim], states: int, axis: int) -> Sequence[Dim]:
    x, *initial = dims[: 1 + states]
    _only(dims, 1 + states)
    if x is not None and x.axis != axis:
        raise RowsMix(0, f"the batch is dimension {x.axis}, which are its steps or features")
    found = [] if x is None else [(0, x.at(0))]
    found += [(number, dim) for number, dim in enumerate(initial, start=1) if dim is not None]
    dim = together(found)
    if dim is None:
        return [None] * len(op.results)
    if dim.axis != 0:
        raise RowsMix(1, "the batch is among the features of a state")
    return [dim.at(axis), *[dim] * (len(op.results) - 1)]


def _csr(op: GraphOp, dims: Sequence[Dim]) -> Sequence[Dim]:
    """Where rows begin and end, and what is read beside them by row, is of the batch."""
    found: list[tuple[int, BatchDim]] = []
    for number, dim in enumerate(dims):
        if dim is None:
            continue
        if dim.axis != 0 or number in (0, 1):
            raise RowsMix(number, "the batch is among what rows have stored")
        found.append((number, dim))
    return [together(found)]


def _expression(op: GraphOp, dims: Sequence[Dim]) -> Sequence[Dim]:
    """Of operands whose extents are known, there is no batch."""
    for number, dim in enumerate(dims):
        if dim is not None:
            raise RowsMix(number, "an index expression is of arrays whose extents are known")
    return [None]


RULES: dict[type[GraphOp], Rule] = {
    **{
        op: broadcast
        for group in (elementwise, functions, integer, logic, random)
        for op in group.OPS
    },
    **{op: _windows for op in convolution.OPS},
    **{op: _csr for op in csr.OPS},
    **{op: _first_axis for op in forest.OPS},
    **{op: _pool for op in pooling.OPS},
    **{op: _layer if issubclass(op, recurrent.LayerOp) else _cell for op in recurrent.OPS},
    **{op: _attention for op in attention.OPS},
    expression.ExpressionOp: _expression,
    layer_norm.LayerNormOp: _last,
    linear.GemmOp: _gemm,
    linear.MatmulOp: _matmul,
    nibbles.NibbleMatmulOp: _last,
    normalisation.BatchNormOp: _per_channel,
    normalisation.LrnOp: _per_channel,
    normalisation.SoftmaxOp: _along,
    reduction.ArgmaxOp: _argmax,
    reduction.CumSumOp: _along,
    reduction.ReduceOp: _reduce,
    reduction.TopKOp: _along,
    shape.ConcatOp: _concat,
    shape.ExpandOp: _expand,
    shape.GatherElementsOp: _gather_elements,
    shape.GatherOp: _gather,
    shape.PadOp: _same,
    shape.ReshapeOp: _reshape,
    shape.ScatterAddOp: _scatter_add,
    shape.SliceOp: _same,
    shape.TransposeOp: _transpose,
}
"""Every op of the dialect has its rule here; a test holds the two lists together."""


def of_other_dialects(op: GraphOp, dims: Sequence[Dim]) -> Sequence[Dim]:
    """Of an op added from outside nothing is known: the batch leads, in and out. That its rows do not mix
    is seen when the rOperators' boxes are (`check_rows`)."""
    for number, dim in enumerate(dims):
        if dim is not None and not dim.leads:
            raise RowsMix(number, "what it does to a batch that does not lead is not known")
    shapes = [tensor_type(r).get_shape() for r in op.results]
    if any(dims) and any(DYNAMIC in s[1:] for s in shapes):
        raise RowsMix(0, "the batch does not lead in its results")
    return [BatchDim(0) if s[:1] == (DYNAMIC,) else None for s in shapes]
