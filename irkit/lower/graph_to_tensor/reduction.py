"""Reductions: a generic whose result starts at the neutral element of what combines."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, Operation, SSAValue

from irkit.dialects import graph, te
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.types import DYNAMIC, ints, is_float, tensor_type
from irkit.errors import UnsupportedError
from irkit.lower.graph_to_tensor.builder import Scalars, TensorBuilder, highest, lowest
from irkit.lower.graph_to_tensor.elementwise import Rule

Combine = Callable[[SSAValue, SSAValue], Operation]


def add(element: Attribute) -> Combine:
    """Addition of `element`s."""
    return arith.AddfOp if is_float(element) else arith.AddiOp


def maximum(element: Attribute) -> Combine:
    """The larger of two `element`s."""
    return arith.MaximumfOp if is_float(element) else arith.MaxSIOp


def _combination(kind: str, element: Attribute) -> tuple[float, Combine]:
    """Neutral element and op of a kind of reduction."""
    if kind == "max":
        return lowest(element), maximum(element)
    if kind == "min":
        return highest(element), arith.MinimumfOp if is_float(element) else arith.MinSIOp
    if kind == "prod":
        return 1, arith.MulfOp if is_float(element) else arith.MuliOp
    return 0, add(element)


def reduced(
    b: TensorBuilder, x: SSAValue, axes: Sequence[int], neutral: float, combine: Combine
) -> SSAValue:
    """`x` combined along `axes`, which go; loops are the kept dimensions, then `axes` in order."""
    t = tensor_type(x)
    shape = t.get_shape()
    kept = [d for d in range(len(shape)) if d not in axes]
    loop = {d: number for number, d in enumerate([*kept, *sorted(axes)])}
    init = b.fill(neutral, [shape[d] for d in kept], t.element_type, [x])

    def body(s: Scalars, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        element, acc = args
        return [s(combine(acc, element))]

    index = [loop[d] for d in range(len(shape))]
    every = list(range(len(kept)))
    return b.generic([(x, index)], [(init, every)], len(kept), len(axes), body)[0]


def divided(b: TensorBuilder, x: SSAValue, count: int) -> SSAValue:
    """`x / count`, element by element."""
    t = tensor_type(x)
    divide = arith.DivfOp if is_float(t.element_type) else arith.DivSIOp

    def body(s: Scalars, args: Sequence[SSAValue]) -> SSAValue:
        return s(divide(args[0], s.constant(count, t.element_type)))

    return b.elementwise(t.get_shape(), t.element_type, [x], body)


def _reduce(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    assert isinstance(op, graph.ReduceOp)
    t, axes, kind = tensor_type(op.x), sorted(set(ints(op.axes))), op.kind.data
    sizes = [t.get_shape()[a] for a in axes]
    if t.element_type == i1:
        raise UnsupportedError(f"'{op.name}' on elements of i1: cast them first")
    if not axes:
        return [op.x]
    y = reduced(b, op.x, axes, *_combination(kind, t.element_type))
    if kind == "mean":
        if DYNAMIC in sizes:
            raise UnsupportedError(f"'{op.name}' with kind = mean over a dynamic dimension")
        y = divided(b, y, math.prod(sizes))
    return [b.reshape(y, tensor_type(op.y).get_shape())]


def _global_average_pool(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    assert isinstance(op, graph.GlobalAveragePoolOp)
    t = tensor_type(op.x)
    height, width = t.get_shape()[2:]
    if DYNAMIC in (height, width):
        raise UnsupportedError(f"'{op.name}' over a dynamic dimension")
    total = reduced(b, op.x, [2, 3], 0, add(t.element_type))
    return [b.reshape(divided(b, total, height * width), tensor_type(op.y).get_shape())]


def _argmax(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    assert isinstance(op, graph.ArgmaxOp)
    axis, rank = op.axis.value.data, tensor_type(op.x).get_num_dims()
    x = b.transpose(op.x, [*(d for d in range(rank) if d != axis), axis])
    y = b.insert(te.ArgmaxOp.make([x]))
    return [b.reshape(y, tensor_type(op.y).get_shape())]


RULES: dict[type[GraphOp], Rule] = {
    graph.ArgmaxOp: _argmax,
    graph.GlobalAveragePoolOp: _global_average_pool,
    graph.ReduceOp: _reduce,
}
