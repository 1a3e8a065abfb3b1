"""Gradients of attention: what the ops of `graph` and of `te` share, and what they mean in NumPy.

No weights are kept from the forward pass: each op makes them again, from queries and keys. After T. Dao and
others, FlashAttention, arXiv:2205.14135, appendix B; what that keeps of each row, the logarithm of the sum of
weights, comes from the gradient of the queries here, which sees whole rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import Float64Type, FloatAttr, IntegerAttr, IntegerType, TensorType
from xdsl.irdl import operand_def, opt_operand_def, opt_prop_def, prop_def, result_def

from irkit.dialects.attention_base import attention_type, masked
from irkit.dialects.element_sets import BOOLEANS, SINGLES, Elements
from irkit.dialects.inference import InferredOp, Props, fail
from irkit.dialects.precision import precision_of, rounded
from irkit.dialects.types import Tensor, tensor
from irkit.weights import Array


class AttentionGradientBase(InferredOp):
    """Properties of both gradients."""

    CONTRACTS: ClassVar[bool] = True

    scale = prop_def(FloatAttr[Float64Type])
    causal = opt_prop_def(IntegerAttr[IntegerType])
    y = result_def(TensorType)

    @property
    def diagonal(self) -> int | None:
        """The number `causal`; None where every query sees all keys."""
        return None if self.causal is None else self.causal.value.data

    @property
    def factor(self) -> float:
        """The number `scale`."""
        return self.scale.value.data


class AttentionQueryGradientBase(AttentionGradientBase):
    """Operands, types and verifier of the gradient of queries."""

    ELEMENTS: ClassVar[tuple[Elements, ...]] = (*(SINGLES,) * 4, BOOLEANS | SINGLES)

    query = operand_def(TensorType)
    key = operand_def(TensorType)
    value = operand_def(TensorType)
    cotangent = operand_def(TensorType)
    mask = opt_operand_def(TensorType)
    assembly_format = (
        "$query `,` $key `,` $value `,` $cotangent (`,` $mask^)? attr-dict `:` "
        "functional-type(operands, results)"
    )

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        query, key, value, cotangent, *mask = operands
        y = _cotangent_type(cls, [query, key, value, *mask], cotangent)
        *lead, rows, _ = y.get_shape()
        return [tensor(y.element_type, (*lead, rows, query.get_shape()[-1] + 2))]


class AttentionKeyGradientBase(AttentionGradientBase):
    """Operands, types and verifier of the gradient of keys and values."""

    ELEMENTS: ClassVar[tuple[Elements, ...]] = (*(SINGLES,) * 5, BOOLEANS | SINGLES)

    query = operand_def(TensorType)
    key = operand_def(TensorType)
    value = operand_def(TensorType)
    cotangent = operand_def(TensorType)
    sums = operand_def(TensorType)
    mask = opt_operand_def(TensorType)
    assembly_format = (
        "$query `,` $key `,` $value `,` $cotangent `,` $sums (`,` $mask^)? attr-dict `:` "
        "functional-type(operands, results)"
    )

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        query, key, value, cotangent, sums, *mask = operands
        y = _cotangent_type(cls, [query, key, value, *mask], cotangent)
        *lead, rows, columns = y.get_shape()
        keys, size = key.get_shape()[-2:]
        wanted = tensor(y.element_type, (*lead, rows, size + 2))
        if sums != wanted:
            raise fail(cls, f"the gradient of the queries and two sums, {wanted}", sums)
        return [tensor(y.element_type, (*lead, keys, size + columns))]


def _cotangent_type(op: type[InferredOp], operands: Sequence[Tensor], cotangent: Tensor) -> Tensor:
    y = attention_type(op, operands)
    if cotangent != y:
        raise fail(op, f"a cotangent of the attention's type, {y}", cotangent)
    return y


def query_gradient(
    op: AttentionQueryGradientBase,
    query: Array,
    key: Array,
    value: Array,
    cotangent: Array,
    *mask: Array,
) -> Array:
    """The meaning: gradients of queries; behind each the logarithm of the sum of its weights, and the sum of
    these times their cotangents."""
    kind, precision = query.dtype.type, precision_of(op)
    with np.errstate(all="ignore"):
        scaled = rounded(query * kind(op.factor), precision)
        key, value, cotangent = (rounded(a, precision) for a in (key, value, cotangent))
        scores = masked(scaled @ np.swapaxes(key, -1, -2), op.diagonal, *mask)
        top: Array = scores.max(axis=-1, keepdims=True)
        power: Array = np.exp(scores - top)
        total: Array = power.sum(axis=-1, keepdims=True)
        weights: Array = power / total
        slopes: Array = cotangent @ np.swapaxes(value, -1, -2)
        along: Array = (weights * slopes).sum(axis=-1, keepdims=True)
        slopes = rounded(weights * (slopes - along), precision)
        gradient: Array = kind(op.factor) * slopes @ key
        gradient = np.broadcast_to(gradient, (*along.shape[:-1], gradient.shape[-1]))
        return np.concatenate([gradient, top + np.log(total), along], axis=-1).astype(kind)


def key_gradient(
    op: AttentionKeyGradientBase,
    query: Array,
    key: Array,
    value: Array,
    cotangent: Array,
    sums: Array,
    *mask: Array,
) -> Array:
    """The meaning: gradients of keys, and behind each that of its value."""
    kind, precision = query.dtype.type, precision_of(op)
    size = query.shape[-1]
    with np.errstate(all="ignore"):
        scaled = rounded(query * kind(op.factor), precision)
        query, key, value, cotangent = (
            rounded(a, precision) for a in (query, key, value, cotangent)
        )
        scores = masked(scaled @ np.swapaxes(key, -1, -2), op.diagonal, *mask)
        weights: Array = np.exp(scores - sums[..., size : size + 1])
        slopes: Array = cotangent @ np.swapaxes(value, -1, -2)
        slopes = rounded(weights * (slopes - sums[..., size + 1 :]), precision)
        weights = rounded(weights, precision)
        of_keys: Array = kind(op.factor) * np.swapaxes(slopes, -1, -2) @ query
        of_values: Array = np.swapaxes(weights, -1, -2) @ cotangent
        lead = np.broadcast_shapes(of_keys.shape[:-1], of_values.shape[:-1])
        both = [np.broadcast_to(a, (*lead, a.shape[-1])) for a in (of_keys, of_values)]
        return np.concatenate(both, axis=-1).astype(kind)
