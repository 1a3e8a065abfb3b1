"""Products of bytes less zero points as products of the bytes as they lie, and corrections behind them.

sum (a - s)(b - t) = sum a b - s sum b - t sum a + k s t, all modulo 2^32, where it is exact whatever the
sums are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects.builtin import BoolAttr, FloatAttr, StringAttr, f64, i32
from xdsl.ir import Operation, SSAValue

from irkit.dialects import graph
from irkit.dialects.constants import constant, constant_array
from irkit.dialects.graph.base import GraphOp, product
from irkit.dialects.types import int_array, ints, tensor_type
from irkit.passes.graph.quantised_values import KnownValues
from irkit.weights import Array, WeightStore


class NoBytes(Exception):
    """Why a product cannot be one of bytes."""


@dataclass(frozen=True)
class Centred:
    """`cast(data) - zero`, in i32; `data` are bytes."""

    data: SSAValue
    zero: SSAValue | None


def centred(value: SSAValue) -> Centred:
    """What an i32 value that `is_centred_byte` consists of."""
    op = value.owner
    if isinstance(op, graph.CastOp):
        return Centred(op.x, None)
    assert isinstance(op, graph.SubOp)
    assert isinstance(op.lhs.owner, graph.CastOp)
    return Centred(op.lhs.owner.x, op.rhs)


@dataclass
class ByteProduct:
    """Makes the ops that compute a product of centred bytes; raises NoBytes where there is no such form."""

    known: KnownValues
    made: list[Operation] = field(default_factory=list[Operation])

    @property
    def weights(self) -> WeightStore:
        """Where constants are."""
        return self.known.weights

    def of(self, op: GraphOp) -> list[Operation]:
        """The ops in order, the last one with the product's result."""
        a, b = (self._folded(centred(v)) for v in op.operands[:2])
        rule = _RULES[type(op)]
        self._minus(*rule(self, op, a, b))
        return self.made

    def _add(self, op: GraphOp) -> SSAValue:
        self.made.append(op)
        return op.results[0]

    def _constant(self, array: Any) -> SSAValue:
        op = constant(np.asarray(array).astype(np.int32), self.weights)
        self.made.append(op)
        return op.result

    def _folded(self, value: Centred) -> Centred:
        """Weights less their zero point, where that leaves bytes."""
        data = constant_array(value.data, self.weights)
        zero = None if value.zero is None else self.known.of(value.zero)
        if zero is None:
            return value
        if not zero.any():
            return Centred(value.data, None)
        if data is None:
            return value
        array = data.astype(np.int32) - zero
        for kind in (np.int8, np.uint8):
            narrow = array.astype(kind)
            if np.array_equal(narrow, array):
                op = constant(narrow, self.weights)
                self.made.append(op)
                return Centred(op.result, None)
        return value

    def wide(self, data: SSAValue) -> SSAValue:
        """Bytes in i32."""
        return self._add(graph.CastOp.make([data], {"to": i32}))

    def times(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """x * y."""
        return self._add(graph.MulOp.make([x, y]))

    def sums(self, data: SSAValue, axes: Sequence[int]) -> SSAValue:
        """Sums of bytes in i32 over some axes, which are kept."""
        array = constant_array(data, self.weights)
        if array is not None:
            return self._constant(array.sum(tuple(axes), dtype=np.int64, keepdims=True))
        props = {"kind": StringAttr("sum"), "axes": int_array(axes)}
        keep = {"keepdims": BoolAttr.from_bool(True)}
        return self._add(graph.ReduceOp.make([self.wide(data)], props | keep))

    def corrections(
        self,
        a: Centred,
        b: Centred,
        of_a: Callable[[], SSAValue],
        of_b: Callable[[], SSAValue],
        k: int,
    ) -> list[SSAValue]:
        """What is to be taken off the product of bytes; `of_a` and `of_b` make sums over k of them."""
        found: list[SSAValue] = []
        if a.zero is not None:
            found.append(self.times(a.zero, of_b()))
        if b.zero is not None:
            found.append(self.times(b.zero, of_a()))
        if a.zero is not None and b.zero is not None:
            found.append(self.times(self.times(a.zero, b.zero), self._constant(-k)))
        return found

    def _within(
        self, bias: SSAValue | None, a: Centred, b: Centred, sums: Array | None
    ) -> list[SSAValue] | None:
        """A constant bias with the correction in it, as operands; None where that is not one of constants."""
        zero = None if a.zero is None else self.known.of(a.zero)
        given = None if bias is None else self.known.of(bias)
        if zero is None or b.zero is not None or sums is None or (given is None) != (bias is None):
            return None
        total = (0 if given is None else given.astype(np.int64)) - zero.reshape(()) * sums.reshape(
            -1
        )
        return [self._constant(total)]

    def matmul(self, op: GraphOp, a: Centred, b: Centred) -> tuple[SSAValue, list[SSAValue]]:
        """Zero points of all elements, of rows of a, or of columns of b."""
        ranks = [tensor_type(v.data).get_num_dims() for v in (a, b)]
        _check_zero(a.zero, ranks[0], [ranks[0] - 1])
        _check_zero(b.zero, ranks[1], [ranks[1] - 2])
        y = self._add(graph.MatmulOp.make([self.wide(a.data), self.wide(b.data)]))
        k = tensor_type(a.data).get_shape()[-1]
        return y, self.corrections(
            a,
            b,
            lambda: self.sums(a.data, [ranks[0] - 1]),
            lambda: self.sums(b.data, [ranks[1] - 2]),
            k,
        )

    def gemm(self, op: GraphOp, a: Centred, b: Centred) -> tuple[SSAValue, list[SSAValue]]:
        """Zero points of all elements."""
        assert isinstance(op, graph.GemmOp)
        _check_zero(a.zero, 2, (0, 1))
        _check_zero(b.zero, 2, (0, 1))
        axes = [int(not op.trans_a.value.data), int(bool(op.trans_b.value.data))]
        if (axes[0] == 0 and b.zero is not None) or (op.alpha.value.data, op.beta.value.data) != (
            1,
            1,
        ):
            raise NoBytes("its first factor is transposed, or it is scaled")
        weights = constant_array(b.data, self.weights)
        sums = None if weights is None else weights.sum(axes[1], dtype=np.int64)
        within = self._within(op.c, a, b, sums)
        last = list(op.operands[2:]) if within is None else within
        operands = [self.wide(a.data), self.wide(b.data), *last]
        y = self._add(graph.GemmOp.make(operands, op.properties))
        if within is not None:
            return y, []

        def columns() -> SSAValue:
            total = self.sums(b.data, [axes[1]])
            shape = int_array([product(tensor_type(total).get_shape())])
            return self._add(graph.ReshapeOp.make([total], {"shape": shape}))

        k = tensor_type(a.data).get_shape()[axes[0]]
        return y, self.corrections(a, b, lambda: self.sums(a.data, [axes[0]]), columns, k)

    def conv(self, op: GraphOp, a: Centred, b: Centred) -> tuple[SSAValue, list[SSAValue]]:
        """A zero point of the image, and of all filters or of each: what pads the image is its zero point."""
        assert isinstance(op, graph.ConvOp)
        filters = constant_array(b.data, self.weights)
        if filters is None:
            raise NoBytes("its filters are not constant")
        _check_zero(a.zero, filters.ndim, range(filters.ndim))
        _check_zero(b.zero, filters.ndim, range(1, filters.ndim))
        if b.zero is not None and op.group.value.data != 1:
            raise NoBytes("filters in groups have a zero point")
        x, pads = self._padded(a, ints(op.pads))
        props = op.properties | {"pads": int_array(pads)}
        total = filters.sum(tuple(range(1, filters.ndim)), dtype=np.int64)
        within = self._within(op.b, a, b, total)
        last = list(op.operands[2:]) if within is None else within
        operands = [self.wide(x), self.wide(b.data)]
        y = self._add(graph.ConvOp.make([*operands, *last], props))
        behind = [1] * (filters.ndim - 2)
        if within is not None:
            return y, []

        def of_filters() -> SSAValue:
            return self._constant(total.reshape(-1, *behind))

        def of_image() -> SSAValue:
            ones = constant(np.ones((1, *filters.shape[1:]), np.uint8), self.weights)
            self.made.append(ones)
            return self._add(graph.ConvOp.make([operands[0], self.wide(ones.result)], props))

        if b.zero is not None and _size(b.zero) > 1:
            shape = {"shape": int_array([len(filters), *behind])}
            b = Centred(b.data, self._add(graph.ReshapeOp.make([b.zero], shape)))
        return y, self.corrections(a, b, of_image, of_filters, product(filters.shape[1:]))

    def _padded(self, a: Centred, pads: list[int]) -> tuple[SSAValue, list[int]]:
        """The image and what is left to pad with zeros: with a zero point, nothing."""
        if a.zero is None or not any(pads):
            return a.data, pads
        zero = self.known.of(a.zero)
        if zero is None:
            raise NoBytes("what pads its image is not known")
        rank = len(pads) // 2
        low, high = ([0, 0, *pads[:rank]], [0, 0, *pads[rank:]])
        props = {"low": int_array(low), "high": int_array(high)}
        value = FloatAttr(float(zero.reshape(())), f64)
        return self._add(graph.PadOp.make([a.data], props | {"value": value})), [0] * len(pads)

    def _minus(self, y: SSAValue, terms: list[SSAValue]) -> None:
        for term in terms:
            y = self._add(graph.SubOp.make([y, term]))


def _size(value: SSAValue) -> int:
    return product(tensor_type(value).get_shape())


def _check_zero(zero: SSAValue | None, rank: int, same: Sequence[int]) -> None:
    """Raises NoBytes where a zero point of a factor of `rank` dimensions differs along those of `same`."""
    if zero is None or _size(zero) == 1:
        return
    shape = tensor_type(zero).get_shape()
    shape = (*[1] * (rank - len(shape)), *shape)
    if any(shape[axis] != 1 for axis in same):
        raise NoBytes("a zero point differs along what is summed over, or in more ways")


_RULES: dict[type[GraphOp], Callable[..., tuple[SSAValue, list[SSAValue]]]] = {
    graph.MatmulOp: ByteProduct.matmul,
    graph.GemmOp: ByteProduct.gemm,
    graph.ConvOp: ByteProduct.conv,
}
