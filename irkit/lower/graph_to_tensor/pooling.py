"""Pooling: windows that are combined, over an input that is padded first."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import i64
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.pooling import PoolOp
from irkit.dialects.types import DYNAMIC, ints, is_float, numpy_dtype, tensor_type
from irkit.errors import UnsupportedError
from irkit.lower.graph_to_tensor.builder import TensorBuilder
from irkit.lower.graph_to_tensor.convolution import padded, window
from irkit.lower.graph_to_tensor.elementwise import Rule
from irkit.lower.graph_to_tensor.reduction import Combine, add, divided, maximum, reduced
from irkit.lower.graph_to_tensor.scalars import Scalars, highest, lowest

Term = Callable[[Scalars, SSAValue], SSAValue]


def _itself(s: Scalars, x: SSAValue) -> SSAValue:
    return x


def _pool(
    b: TensorBuilder, op: PoolOp, x: SSAValue, fill: float, combine: Combine, term: Term = _itself
) -> SSAValue:
    """`term` of each element of a window of `x`, combined from `fill` on."""
    element, where = tensor_type(x).element_type, op.windows()
    x = padded(b, op, x, where.before, where.reach, fill)
    rank = len(where.kernel)
    out, taps = list(range(2, 2 + rank)), list(range(2 + rank, 2 + 2 * rank))
    slides = [window(out[d], where.strides[d], taps[d], where.dilations[d]) for d in range(rank)]
    # Read by no one: it says how large a window is.
    extent = b.empty(where.kernel, element, [])
    init = b.fill(fill, tensor_type(op.y).get_shape(), element, [x])

    def body(s: Scalars, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        value, _, acc = args
        return [s(combine(acc, term(s, value)))]

    pairs = [(x, [0, 1, *slides]), (extent, taps)]
    return b.generic(pairs, [(init, [0, 1, *out])], 2 + rank, rank, body)[0]


def _max_pool(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    assert isinstance(op, graph.MaxPoolOp)
    return [b.bits(_maxima(b, op)[1], tensor_type(op.y).element_type, ordered=True)]


def _maxima(b: TensorBuilder, op: PoolOp) -> tuple[SSAValue, SSAValue]:
    """The input, signless, and the largest element of each of its windows."""
    x = b.bits(op.x, ordered=True)
    element = tensor_type(x).element_type
    return x, _pool(b, op, x, lowest(element), maximum(element))


def _average_pool(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    assert isinstance(op, graph.AveragePoolOp)
    t, kernel = tensor_type(op.y), ints(op.kernel_shape)
    total = _pool(b, op, op.x, 0, add(t.element_type))
    sizes, padding = tensor_type(op.x).get_shape()[2:], bool(op.count_include_pad.value.data)
    count = op.windows().counts(sizes, padding=padding)
    if (count == math.prod(kernel)).all():
        return [divided(b, total, math.prod(kernel))]
    counts = b.constant(count.astype(numpy_dtype(t.element_type)), "count")
    return [
        b.elementwise(
            t.get_shape(), t.element_type, [total, counts], lambda s, v: s(arith.DivfOp(v[0], v[1]))
        )
    ]


def _lp_pool(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    assert isinstance(op, graph.LpPoolOp)
    t, p = tensor_type(op.y), op.p.value.data

    def power(s: Scalars, x: SSAValue) -> SSAValue:
        if p == 2:
            return s(arith.MulfOp(x, x))
        size = s(math_dialect.AbsFOp(x))
        return size if p == 1 else s(math_dialect.PowFOp(size, s.constant(p, t.element_type)))

    def root(s: Scalars, v: Sequence[SSAValue]) -> SSAValue:
        if p == 2:
            return s(math_dialect.SqrtOp(v[0]))
        return s(math_dialect.PowFOp(v[0], s.constant(1 / p, t.element_type)))

    total = _pool(b, op, op.x, 0, add(t.element_type), power)
    return [total if p == 1 else b.elementwise(t.get_shape(), t.element_type, [total], root)]


def _max_pool_indices(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    """The least position of an element that is its window's maximum and no padding."""
    assert isinstance(op, graph.MaxPoolIndicesOp)
    x_type, where = tensor_type(op.x), op.windows()
    shape = tensor_type(op.y).get_shape()
    x, maxima = _maxima(b, op)
    element = tensor_type(x).element_type
    x = padded(b, op, x, where.before, where.reach, lowest(element))
    rank, sizes = len(where.kernel), x_type.get_shape()[2:]
    out, taps = list(range(2, 2 + rank)), list(range(2 + rank, 2 + 2 * rank))
    slides = [window(out[d], where.strides[d], taps[d], where.dilations[d]) for d in range(rank)]
    extent = b.empty(where.kernel, element, [])
    init = b.fill(highest(i64), shape, i64, [x])

    def body(s: Scalars, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        value, _, most, acc = args
        wins = _equal(s, value, most)
        position = _plus(s, _times(s, _loop(s, 0), x_type.get_shape()[1]), _loop(s, 1))
        for d, size in enumerate(sizes):
            at = _position(
                s, out[d], where.strides[d], taps[d], where.dilations[d], where.before[d]
            )
            position = _plus(s, _times(s, position, size), at)
            wins = s(arith.AndIOp(wins, s(arith.CmpiOp(at, s.constant(0, i64), "sge"))))
            wins = s(arith.AndIOp(wins, s(arith.CmpiOp(at, s.constant(size, i64), "slt"))))
        found = s(arith.SelectOp(wins, position, s.constant(highest(i64), i64)))
        return [s(arith.MinSIOp(acc, found))]

    every = [0, 1, *out]
    pairs = [(x, [0, 1, *slides]), (extent, taps), (maxima, every)]
    (y,) = b.generic(pairs, [(init, every)], 2 + rank, rank, body)
    if not op.column_major.value.data:
        return [y]
    return [b.elementwise(shape, i64, [y], lambda s, v: _by_columns(s, v[0], sizes))]


def _by_columns(s: Scalars, position: SSAValue, sizes: Sequence[int]) -> SSAValue:
    """A row-major position counted column by column within the last dimensions, of extents `sizes`."""
    rest, stride = position, math.prod(sizes)
    y: SSAValue = s.constant(0, i64)
    for size in reversed(sizes):
        stride //= size
        y = _plus(s, y, _times(s, s(arith.RemUIOp(rest, s.constant(size, i64))), stride))
        rest = s(arith.DivUIOp(rest, s.constant(size, i64)))
    return _plus(s, y, _times(s, rest, math.prod(sizes)))


def _loop(s: Scalars, number: int) -> SSAValue:
    return s(arith.IndexCastOp(s(linalg.IndexOp(number)), i64))


def _times(s: Scalars, x: SSAValue, factor: int) -> SSAValue:
    return x if factor == 1 else s(arith.MuliOp(x, s.constant(factor, i64)))


def _plus(s: Scalars, x: SSAValue, y: SSAValue) -> SSAValue:
    return s(arith.AddiOp(x, y))


def _position(s: Scalars, out: int, stride: int, tap: int, dilation: int, before: int) -> SSAValue:
    """Index into the unpadded dimension."""
    at = _plus(s, _times(s, _loop(s, out), stride), _times(s, _loop(s, tap), dilation))
    return at if before == 0 else _plus(s, at, s.constant(-before, i64))


def _equal(s: Scalars, x: SSAValue, y: SSAValue) -> SSAValue:
    """Whether x is the maximum y; a NaN always is."""
    if not is_float(x.type):
        return s(arith.CmpiOp(x, y, "eq"))
    return s(arith.OrIOp(s(arith.CmpfOp(x, y, "oeq")), s(arith.CmpfOp(x, x, "uno"))))


def _global_average_pool(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    assert isinstance(op, graph.GlobalAveragePoolOp)
    t = tensor_type(op.x)
    sizes = t.get_shape()[2:]
    if DYNAMIC in sizes:
        raise UnsupportedError(f"'{op.name}' over a dynamic dimension")
    total = reduced(b, op.x, range(2, 2 + len(sizes)), 0, add(t.element_type))
    return [b.reshape(divided(b, total, math.prod(sizes)), tensor_type(op.y).get_shape())]


RULES: dict[type[GraphOp], Rule] = {
    graph.AveragePoolOp: _average_pool,
    graph.GlobalAveragePoolOp: _global_average_pool,
    graph.LpPoolOp: _lp_pool,
    graph.MaxPoolIndicesOp: _max_pool_indices,
    graph.MaxPoolOp: _max_pool,
}
