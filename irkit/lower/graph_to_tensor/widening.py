"""Tensors of f32 that are 16-bit floats cast up, of i32 that are bytes or i16: what moves them moves the
narrow.

So weights stay 8 or 16 bits each in every layout, and a contraction reads them as they lie, extending each
factor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import f32, i8, i16, i32
from xdsl.ir import Attribute, Block, SSAValue

from irkit.dialects import graph
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.types import is_half, is_unsigned, numpy_dtype, tensor_type, ui8
from irkit.lower.graph_to_tensor.builder import TensorBuilder
from irkit.lower.graph_to_tensor.nests import Index
from irkit.weights import Array, WeightStore


class WideningBuilder(TensorBuilder):
    """A TensorBuilder that knows which values are casts of narrow ones."""

    def __init__(self, block: Block, weights: WeightStore) -> None:
        super().__init__(block, weights)
        self._narrow: dict[SSAValue, SSAValue] = {}
        self._wide: dict[SSAValue, SSAValue] = {}

    def remember(self, op: GraphOp, values: Sequence[SSAValue]) -> None:
        """Take note of `values`, what `op` has become, if it is a cast of so few bits to 32."""
        if isinstance(op, graph.CastOp) and _wide_type(op.x) == op.to:
            self._know(op.x, values[0])

    def _know(self, narrow: SSAValue, wide: SSAValue) -> None:
        self._narrow[wide] = narrow
        self._wide.setdefault(narrow, wide)

    def _widened(self, narrow: SSAValue) -> SSAValue:
        """`narrow` in 32 bits, made once; what is wide already stays."""
        to = _wide_type(narrow)
        if to is None:
            return narrow
        if narrow not in self._wide:
            t = tensor_type(narrow)
            floats, unsigned = to == f32, is_unsigned(t.element_type)
            wide = self.elementwise(
                t.get_shape(),
                to,
                [narrow],
                lambda s, v: s(arith.ExtFOp(v[0], f32)) if floats else s.extended(v[0], unsigned),
            )
            self._know(narrow, wide)
        return self._wide[narrow]

    def array(self, value: SSAValue) -> Array | None:
        if value not in self._narrow:
            return super().array(value)
        found = super().array(self._narrow[value])
        wide = numpy_dtype(tensor_type(value).element_type)
        return None if found is None else found.astype(wide)

    def packed(
        self, value: SSAValue, key: object, pack: Callable[[Array], Array]
    ) -> SSAValue | None:
        if value not in self._narrow:
            return super().packed(value, key, pack)
        made = super().packed(self._narrow[value], key, lambda a: _narrowed(pack(a), a.dtype))
        return None if made is None else self._widened(made)

    def reshape(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        if value not in self._narrow:
            return super().reshape(value, shape)
        return self._widened(super().reshape(self._narrow[value], shape))

    def transpose(self, value: SSAValue, permutation: Sequence[int]) -> SSAValue:
        if value not in self._narrow:
            return super().transpose(value, permutation)
        return self._widened(super().transpose(self._narrow[value], permutation))

    def cut(self, value: SSAValue, offsets: Sequence[int], shape: Sequence[int]) -> SSAValue:
        if value not in self._narrow:
            return super().cut(value, offsets, shape)
        return self._widened(super().cut(self._narrow[value], offsets, shape))

    def pad(
        self, value: SSAValue, low: Sequence[int], high: Sequence[int], fill: float
    ) -> SSAValue:
        narrow = self._narrow.get(value)
        if narrow is None or not _holds(narrow, fill):
            return super().pad(value, low, high, fill)
        return self._widened(super().pad(narrow, low, high, fill))

    def contract(
        self,
        a: tuple[SSAValue, Index],
        b: tuple[SSAValue, Index],
        init: tuple[SSAValue, Index],
        reduction: int,
    ) -> SSAValue:
        a, b = ((self._narrow.get(v, v), index) for v, index in (a, b))
        return super().contract(a, b, init, reduction)


def _wide_type(narrow: SSAValue) -> Attribute | None:
    """What 8 or 16 bits are extended to; None for what is wide already."""
    element = tensor_type(narrow).element_type
    return f32 if is_half(element) else i32 if element in (i8, i16, ui8) else None


def _narrowed(array: Array, dtype: np.dtype[Any]) -> Array:
    """What was made of narrow weights as `dtype`, where that loses nothing; a scaled one may."""
    narrow = array.astype(dtype)
    return narrow if np.array_equal(narrow.astype(array.dtype), array) else array


def _holds(narrow: SSAValue, value: float) -> bool:
    """Whether the narrow type has the number `value`."""
    dtype = numpy_dtype(tensor_type(narrow).element_type)
    return float(np.float32(value).astype(dtype).astype(np.float32)) == value
