"""Reductions: a generic whose result starts at the neutral element of what combines."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, Operation, SSAValue

from irkit.dialects import graph, te
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.types import DYNAMIC, ints, is_float, is_unsigned, tensor_type, ui64
from irkit.errors import UnsupportedError
from irkit.lower.graph_to_tensor.builder import TensorBuilder
from irkit.lower.graph_to_tensor.elementwise import Rule, convert
from irkit.lower.graph_to_tensor.scalars import Scalars, highest, lowest

Combine = Callable[[SSAValue, SSAValue], Operation]
BLOCK, BLOCKED = 32, 128
"""Elements of a running sum that are added in one block, and above how many there are blocks."""


def add(element: Attribute) -> Combine:
    """Addition of `element`s."""
    return arith.AddfOp if is_float(element) else arith.AddiOp


def maximum(element: Attribute) -> Combine:
    """The larger of two `element`s, of unsigned ones as `TensorBuilder.bits` orders them."""
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
    if is_unsigned(t.element_type):
        divide = arith.DivUIOp

    def body(s: Scalars, args: Sequence[SSAValue]) -> SSAValue:
        return s(divide(args[0], s.constant(count, t.element_type)))

    return b.elementwise(t.get_shape(), t.element_type, [x], body)


def _reduce(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    assert isinstance(op, graph.ReduceOp)
    axes, kind = sorted(set(ints(op.axes))), op.kind.data
    if not axes:
        return [op.x]
    y = _mean(b, op, axes) if kind == "mean" else _combined(b, op.x, axes, kind)
    return [b.reshape(y, tensor_type(op.y).get_shape())]


def _combined(b: TensorBuilder, x: SSAValue, axes: Sequence[int], kind: str) -> SSAValue:
    element, ordered = tensor_type(x).element_type, kind in ("max", "min")
    x = b.bits(x, ordered=ordered)
    y = reduced(b, x, axes, *_combination(kind, tensor_type(x).element_type))
    return b.bits(y, element, ordered=ordered)


def _mean(b: TensorBuilder, op: graph.ReduceOp, axes: Sequence[int]) -> SSAValue:
    """The sum over the count; of integers in 64 bits."""
    t = tensor_type(op.x)
    element, sizes = t.element_type, [t.get_shape()[a] for a in axes]
    if DYNAMIC in sizes:
        raise UnsupportedError(f"'{op.name}' with kind = mean over a dynamic dimension")
    wide = element if is_float(element) else ui64 if is_unsigned(element) else i64
    x = _converted(b, op.x, wide)
    return _converted(b, divided(b, _combined(b, x, axes, "sum"), math.prod(sizes)), element)


def _converted(b: TensorBuilder, x: SSAValue, to: Attribute) -> SSAValue:
    t = tensor_type(x)
    have = t.element_type
    if have == to:
        return x
    return b.elementwise(t.get_shape(), to, [x], lambda s, v: convert(s, v[0], to, have))


def _argmax(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    assert isinstance(op, graph.ArgmaxOp)
    axis, rank = op.axis.value.data, tensor_type(op.x).get_num_dims()
    x = b.transpose(op.x, [*(d for d in range(rank) if d != axis), axis])
    y = b.insert(te.ArgmaxOp.make([x]))
    return [b.reshape(y, tensor_type(op.y).get_shape())]


def _cumsum(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    """In blocks. Sums without the element itself begin with 0.0."""
    assert isinstance(op, graph.CumSumOp)
    axis, reverse = op.axis.value.data, bool(op.reverse.value.data)
    y: SSAValue = op.x
    if op.exclusive.value.data:
        y = _shifted(b, y, axis, 1, reverse, 0)
    return [_running(b, y, axis, reverse)]


def _running(b: TensorBuilder, x: SSAValue, axis: int, reverse: bool) -> SSAValue:
    """Sums of all elements up to each one: within blocks, then each with what the blocks before its own
    add up to (Blelloch, "Prefix sums and their applications", 1990)."""
    t = tensor_type(x)
    shape = list(t.get_shape())
    extent = shape[axis]
    if extent <= BLOCKED:
        return _doubled(b, x, axis, reverse)
    blocks = -(-extent // BLOCK)
    none, rest = [0] * len(shape), blocks * BLOCK - extent
    after = [rest if d == axis else 0 for d in range(len(shape))]
    x = b.pad(x, none, after, _neutral(t.element_type))
    cut = [*shape[:axis], blocks, BLOCK, *shape[axis + 1 :]]
    inside = _doubled(b, b.reshape(x, cut), axis + 1, reverse)
    last = [0 if reverse or d != axis + 1 else BLOCK - 1 for d in range(len(cut))]
    ends = b.cut(inside, last, [1 if d == axis + 1 else n for d, n in enumerate(cut)])
    sums = b.reshape(ends, [*shape[:axis], blocks, *shape[axis + 1 :]])
    neutral = _neutral(t.element_type)
    before = _running(b, _shifted(b, sums, axis, 1, reverse, neutral), axis, reverse)
    before = b.reshape(before, tensor_type(ends).get_shape())
    y = _sum(b, before, inside)
    whole = [blocks * BLOCK if d == axis else n for d, n in enumerate(shape)]
    return b.cut(b.reshape(y, whole), none, shape)


def _doubled(b: TensorBuilder, x: SSAValue, axis: int, reverse: bool) -> SSAValue:
    """In log2(n) steps: after step i, each element is the sum of 2^i up to it."""
    distance, neutral = 1, _neutral(tensor_type(x).element_type)
    while distance < tensor_type(x).get_shape()[axis]:
        x = _sum(b, _shifted(b, x, axis, distance, reverse, neutral), x)
        distance *= 2
    return x


def _sum(b: TensorBuilder, x: SSAValue, y: SSAValue) -> SSAValue:
    """x + y, of the shape of y."""
    t = tensor_type(y)
    combine = add(t.element_type)
    return b.elementwise(t.get_shape(), t.element_type, [x, y], lambda s, v: s(combine(v[0], v[1])))


def _neutral(element: Attribute) -> float:
    """What changes no number that it is added to: 0.0 would change -0.0."""
    return -0.0 if is_float(element) else 0


def _shifted(
    b: TensorBuilder, x: SSAValue, axis: int, distance: int, back: bool, fill: float
) -> SSAValue:
    """x moved by `distance` along `axis`, to the front if `back`, with `fill` after it."""
    shape = tensor_type(x).get_shape()
    widths = [distance if d == axis else 0 for d in range(len(shape))]
    none = [0] * len(shape)
    wider = b.pad(x, none, widths, fill) if back else b.pad(x, widths, none, fill)
    return b.cut(wider, widths if back else none, shape)


def _top_k(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    """Along the last dimension it is found where the elements are, which are then gathered."""
    assert isinstance(op, graph.TopKOp)
    axis, rank = op.axis.value.data, tensor_type(op.x).get_num_dims()
    order = [*(d for d in range(rank) if d != axis), axis]
    found = b.insert(te.TopKOp.make([b.transpose(op.x, order)], {"k": op.k, "largest": op.largest}))
    indices = b.transpose(found, [order.index(d) for d in range(rank)])
    return [b.insert(te.GatherElementsOp.make([op.x, indices], {"axis": op.axis})), indices]


RULES: dict[type[GraphOp], Rule] = {
    graph.ArgmaxOp: _argmax,
    graph.CumSumOp: _cumsum,
    graph.ReduceOp: _reduce,
    graph.TopKOp: _top_k,
}
