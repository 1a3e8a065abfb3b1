"""Normalisation: by statistics of the batch, of channels, of groups, of layers; softmax and its kin."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from onnx import TensorProto, helper
from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, SSAValue

from irkit.dialects import graph
from irkit.dialects.types import DYNAMIC, element_type, is_half, numpy_dtype, tensor_type
from irkit.frontends.onnx.handlers.reduction import cast, reduce
from irkit.frontends.onnx.node import Handler, Node, Value

STANDARD_EPSILON = 1e-5


def _epsilon(node: Node, default: float = STANDARD_EPSILON) -> float:
    return float(node.attribute("epsilon", default))


def _scalar(node: Node, x: SSAValue, value: float) -> SSAValue:
    """`value` in the element type of `x`."""
    return node.tensor(np.array(value, numpy_dtype(tensor_type(x).element_type)))


def _shape(x: SSAValue) -> list[int]:
    return list(tensor_type(x).get_shape())


def _rank(node: Node, least: int) -> int:
    rank = node.type_of(0).get_num_dims()
    if rank < least:
        node.refuse(f"input of rank {rank}", f"{least} dimensions or more are needed")
    return rank


def _axis(node: Node, default: int) -> int:
    rank, value = node.type_of(0).get_num_dims(), int(node.attribute("axis", default))
    if not -rank <= value < rank:
        node.refuse(f"axis = {value}", f"the input has {rank} dimensions")
    return node.axis(value, rank)


# Statistics of axes


def _moment(node: Node, x: SSAValue, axes: Sequence[int]) -> SSAValue:
    return reduce(node, x, "mean", axes, True)


def _deviation(node: Node, square: SSAValue, epsilon: float) -> SSAValue:
    raised = node.emit(graph.AddOp, square, _scalar(node, square, epsilon))
    return node.emit(graph.SqrtOp, raised)


def _standardised(
    node: Node, x: SSAValue, axes: Sequence[int], epsilon: float
) -> tuple[SSAValue, SSAValue, SSAValue]:
    """(x - mean) / sqrt(variance + epsilon) over `axes`; the mean and the root as well."""
    mean = _moment(node, x, axes)
    centred = node.emit(graph.SubOp, x, mean)
    variance = _moment(node, node.emit(graph.MulOp, centred, centred), axes)
    deviation = _deviation(node, variance, epsilon)
    return node.emit(graph.DivOp, centred, deviation), mean, deviation


def standardised(node: Node, x: SSAValue, epsilon: float, centred: bool) -> SSAValue:
    """`x` by the statistics of its last dimension; of a type narrower than float32 in that."""
    element = tensor_type(x).element_type
    wide = cast(node, x, f32) if is_half(element) else x
    props = {"epsilon": float(np.float32(epsilon)), "centred": centred}
    return cast(node, node.emit(graph.LayerNormOp, wide, **props), element)


def _batch_normalization(node: Node) -> Sequence[Value]:
    momentum = float(node.attribute("momentum", 0.9))
    if node.attribute("training_mode", 0):
        return _trained_batch_normalization(node, momentum)
    return [node.emit(graph.BatchNormOp, *node.operands(), epsilon=_epsilon(node))]


def _trained_batch_normalization(node: Node, momentum: float) -> Sequence[Value]:
    """By the statistics of this batch, which also move the running ones."""
    x, rank = node.operand(0), _rank(node, 2)
    axes = [d for d in range(rank) if d != 1]
    mean = _moment(node, x, axes)
    centred = node.emit(graph.SubOp, x, mean)
    variance = _moment(node, node.emit(graph.MulOp, centred, centred), axes)
    statistics = [node.emit(graph.ReshapeOp, v, shape=[_shape(x)[1]]) for v in (mean, variance)]
    operands = [*node.operands()[:3], *statistics]
    y = node.emit(graph.BatchNormOp, *operands, epsilon=_epsilon(node))
    moved: list[SSAValue] = []
    for before, now in zip(node.operands()[3:], statistics, strict=True):
        kept = node.emit(graph.MulOp, before, _scalar(node, before, momentum))
        new = node.emit(graph.MulOp, now, _scalar(node, now, 1 - momentum))
        moved.append(node.emit(graph.AddOp, kept, new))
    return [y, *moved]


def _per_channel(node: Node, index: int, rank: int) -> SSAValue:
    """Input `index`, one value per channel, so that it broadcasts along axis 1."""
    value = node.operand(index)
    return node.emit(graph.ReshapeOp, value, shape=[*_shape(value), *(1,) * (rank - 2)])


def _instance_normalization(node: Node) -> Sequence[Value]:
    rank = _rank(node, 3)
    y, *_ = _standardised(node, node.operand(0), range(2, rank), _epsilon(node))
    y = node.emit(graph.MulOp, y, _per_channel(node, 1, rank))
    return [node.emit(graph.AddOp, y, _per_channel(node, 2, rank))]


def _group_normalization(node: Node) -> Sequence[Value]:
    rank, shape = _rank(node, 3), _shape(node.operand(0))
    groups, channels = int(node.attribute("num_groups", 0)), shape[1]
    if groups < 1 or channels % groups:
        node.refuse(f"num_groups = {groups}", f"it does not divide {channels} channels")
    kind = _stash(node)
    x = cast(node, node.operand(0), kind)
    x = node.emit(graph.ReshapeOp, x, shape=[shape[0], groups, channels // groups, *shape[2:]])
    y, *_ = _standardised(node, x, range(2, rank + 1), _epsilon(node))
    y = cast(node, node.emit(graph.ReshapeOp, y, shape=shape), node.type_of(0).element_type)
    y = node.emit(graph.MulOp, y, _per_channel(node, 1, rank))
    return [node.emit(graph.AddOp, y, _per_channel(node, 2, rank))]


def _stash(node: Node) -> Attribute:
    """The type that statistics are computed in."""
    code = int(node.attribute("stash_type", TensorProto.FLOAT))
    dtype = helper.tensor_dtype_to_np_dtype(code)
    if dtype.name not in ("float32", "float64"):
        node.refuse(f"stash_type = {code}", "only float32 and float64 are supported")
    return element_type(dtype)


def _layer_axes(node: Node) -> range:
    rank = _rank(node, 1)
    axes = range(_axis(node, -1), rank)
    if DYNAMIC in node.type_of(0).get_shape()[axes.start :]:
        node.refuse(f"axis = {axes.start}", "it mixes the rows of a dynamic batch")
    return axes


def _layer_normalization(node: Node) -> Sequence[Value]:
    axes, element = _layer_axes(node), node.type_of(0).element_type
    x = cast(node, node.operand(0), _stash(node))
    y, mean, deviation = _standardised(node, x, axes, _epsilon(node))
    y = node.emit(graph.MulOp, cast(node, y, element), node.operand(1))
    if node.given(2) is not None:
        y = node.emit(graph.AddOp, y, node.operand(2))
    if len(node.proto.output) == 1:
        return [y]
    inverse = node.emit(graph.DivOp, _scalar(node, deviation, 1.0), deviation)
    return [y, mean, inverse]


def _rms_normalization(node: Node) -> Sequence[Value]:
    axes, element = _layer_axes(node), node.type_of(0).element_type
    x = cast(node, node.operand(0), _stash(node))
    square = _moment(node, node.emit(graph.MulOp, x, x), axes)
    y = node.emit(graph.DivOp, x, _deviation(node, square, _epsilon(node)))
    return [node.emit(graph.MulOp, cast(node, y, element), node.operand(1))]


def _mean_variance_normalization(node: Node) -> Sequence[Value]:
    rank = node.type_of(0).get_num_dims()
    axes = sorted({node.axis(int(a), rank) for a in node.attribute("axes", [0, 2, 3])})
    if axes and axes[-1] >= rank:
        node.refuse(f"axes = {axes}", f"the input has {rank} dimensions")
    x = node.operand(0)
    centred = node.emit(graph.SubOp, x, _moment(node, x, axes))
    variance = _moment(node, node.emit(graph.MulOp, centred, centred), axes)
    # As in the function that defines it, the small number is added behind the root.
    deviation = node.emit(graph.SqrtOp, variance)
    deviation = node.emit(graph.AddOp, deviation, _scalar(node, deviation, 1e-9))
    return [node.emit(graph.DivOp, centred, deviation)]


def _lp_normalization(node: Node) -> Sequence[Value]:
    p, axis, x = int(node.attribute("p", 2)), _axis(node, -1), node.operand(0)
    if p not in (1, 2):
        node.refuse(f"p = {p}", "only 1 and 2 are norms here")
    if p == 1:
        norm = reduce(node, node.emit(graph.AbsOp, x), "sum", [axis], True)
    else:
        square = reduce(node, node.emit(graph.MulOp, x, x), "sum", [axis], True)
        norm = node.emit(graph.SqrtOp, square)
    zero = _scalar(node, x, 0.0)
    nothing = node.emit(graph.CompareOp, norm, zero, predicate="eq")
    return [node.emit(graph.WhereOp, nothing, zero, node.emit(graph.DivOp, x, norm))]


def _lrn(node: Node) -> Sequence[Value]:
    y = node.emit(
        graph.LrnOp,
        node.operand(0),
        size=int(node.attribute("size", 1)),
        alpha=float(node.attribute("alpha", 1e-4)),
        beta=float(node.attribute("beta", 0.75)),
        bias=float(node.attribute("bias", 1.0)),
    )
    return [y]


# Softmax and its kin


def _along_axis(make: Callable[[Node, SSAValue, int], SSAValue]) -> Handler:
    """`make` along one axis; up to operator set 12 all dimensions from the axis on count as one."""

    def handler(node: Node) -> Sequence[Value]:
        x, shape = node.operand(0), _shape(node.operand(0))
        axis = _axis(node, -1 if node.opset >= 13 else 1)
        if DYNAMIC in (shape[axis : axis + 1] if node.opset >= 13 else shape[axis:]):
            node.refuse(f"axis = {axis}", "it mixes the rows of a dynamic batch")
        if node.opset >= 13 or axis == len(shape) - 1:
            return [make(node, x, axis)]
        flat = [*shape[:axis], math.prod(shape[axis:])]
        y = make(node, node.emit(graph.ReshapeOp, x, shape=flat), axis)
        return [node.emit(graph.ReshapeOp, y, shape=shape)]

    return handler


def _softmax(node: Node, x: SSAValue, axis: int) -> SSAValue:
    return node.emit(graph.SoftmaxOp, x, axis=axis)


def _log_softmax(node: Node, x: SSAValue, axis: int) -> SSAValue:
    """What is left of x - max when the logarithm of the sum of its powers is taken away: of a row whose
    largest is infinite or NaN all are NaN, as of a softmax."""
    x = node.emit(graph.SubOp, x, reduce(node, x, "max", [axis], True))
    total = reduce(node, node.emit(graph.ExpOp, x), "sum", [axis], True)
    return node.emit(graph.SubOp, x, node.emit(graph.LogOp, total))


def _hardmax(node: Node, x: SSAValue, axis: int) -> SSAValue:
    shape = _shape(x)
    where = node.emit(graph.ArgmaxOp, x, axis=axis, keepdims=True)
    places = np.arange(shape[axis]).reshape(-1, *(1,) * (len(shape) - 1 - axis))
    hit = node.emit(graph.CompareOp, where, node.tensor(places), predicate="eq")
    return cast(node, hit, tensor_type(x).element_type)


HANDLERS: dict[str, Handler] = {
    "BatchNormalization": _batch_normalization,
    "GroupNormalization": _group_normalization,
    "Hardmax": _along_axis(_hardmax),
    "InstanceNormalization": _instance_normalization,
    "LRN": _lrn,
    "LayerNormalization": _layer_normalization,
    "LogSoftmax": _along_axis(_log_softmax),
    "LpNormalization": _lp_normalization,
    "MeanVarianceNormalization": _mean_variance_normalization,
    "RMSNormalization": _rms_normalization,
    "Softmax": _along_axis(_softmax),
}
