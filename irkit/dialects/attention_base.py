"""Attention: what those of `graph` and of `te` share, and what they mean in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import Float64Type, FloatAttr, IntegerAttr, IntegerType, TensorType, i1
from xdsl.irdl import operand_def, opt_operand_def, opt_prop_def, prop_def, result_def

from irkit.dialects.element_sets import BOOLEANS, FLOATS, Elements
from irkit.dialects.inference import InferredOp, Props, broadcast_shapes, fail, same_element
from irkit.dialects.precision import precision_of, rounded
from irkit.dialects.types import Tensor, tensor
from irkit.weights import Array


class AttentionBase(InferredOp):
    """Operands, types and verifier of attention."""

    ELEMENTS: ClassVar[tuple[Elements, ...]] = (FLOATS, FLOATS, FLOATS, BOOLEANS | FLOATS)
    CONTRACTS: ClassVar[bool] = True

    query = operand_def(TensorType)
    key = operand_def(TensorType)
    value = operand_def(TensorType)
    mask = opt_operand_def(TensorType)
    scale = prop_def(FloatAttr[Float64Type])
    causal = opt_prop_def(IntegerAttr[IntegerType])
    y = result_def(TensorType)
    assembly_format = (
        "$query `,` $key `,` $value (`,` $mask^)? attr-dict `:` functional-type(operands, results)"
    )

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        query, key, value, *mask = operands
        element = same_element(cls, operands[:3])
        ranks = [t.get_num_dims() for t in (query, key, value)]
        if min(ranks) < 2 or len(set(ranks)) > 1:
            raise fail(cls, "query, key and value of one rank, 2 or more", f"ranks {ranks}")
        leads = [tensor(element, t.get_shape()[:-2]) for t in (query, key, value)]
        lead = broadcast_shapes(cls, leads) if ranks[0] > 2 else []
        (rows, size), (keys, size_k) = query.get_shape()[-2:], key.get_shape()[-2:]
        if size != size_k or size < 1:
            raise fail(cls, "queries and keys of one size, 1 or more", f"{query} and {key}")
        if value.get_shape()[-2] != keys or keys == 0:
            raise fail(cls, "as many values as keys, one or more", f"{key} and {value}")
        for t in mask:
            _check_mask(cls, t, element, [*lead, rows, keys])
        return [tensor(element, (*lead, rows, value.get_shape()[-1]))]

    @property
    def diagonal(self) -> int | None:
        """The number `causal`; None where every query sees all keys."""
        return None if self.causal is None else self.causal.value.data

    @property
    def factor(self) -> float:
        """The number `scale`."""
        return self.scale.value.data


def _check_mask(op: type[AttentionBase], t: Tensor, element: object, scores: list[int]) -> None:
    if t.element_type not in (i1, element):
        raise fail(op, f"a mask of i1 or {element}", t)
    shape = t.get_shape()
    fits = len(shape) <= len(scores) and all(
        s in (1, have) for s, have in zip(reversed(shape), reversed(scores), strict=False)
    )
    if not fits:
        raise fail(op, f"a mask that broadcasts to {'x'.join(map(str, scores))}", t)


def attended(op: AttentionBase, query: Array, key: Array, value: Array, *mask: Array) -> Array:
    """The meaning of an attention, its dimensions in the order of the operands."""
    kind = np.promote_types(query.dtype, np.float32)
    q, k, v = (a.astype(kind) for a in (query, key, value))
    precision = precision_of(op)
    q, k, v = (rounded(a, precision) for a in (q * kind.type(op.factor), k, v))
    scores = q @ np.swapaxes(k, -1, -2)
    for m in mask:
        scores = np.where(m, scores, -np.inf) if m.dtype == bool else scores + m.astype(kind)
    if op.diagonal is not None:
        seen = np.tri(*scores.shape[-2:], k=op.diagonal, dtype=bool)
        scores = np.where(seen, scores, -np.inf)
    power = np.exp(scores - scores.max(axis=-1, keepdims=True)).astype(kind)
    y = (rounded(power, precision) @ v) / power.sum(axis=-1, keepdims=True)
    return y.astype(query.dtype)
