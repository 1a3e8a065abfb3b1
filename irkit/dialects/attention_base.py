"""Attention: what those of `graph` and of `te` share, and what they mean in NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import Float64Type, FloatAttr, IntegerAttr, IntegerType, TensorType, i1
from xdsl.irdl import operand_def, opt_operand_def, opt_prop_def, prop_def, result_def

from irkit.dialects.element_sets import BOOLEANS, FLOATS, Elements
from irkit.dialects.inference import InferredOp, Props, broadcast_shapes, fail, same_element
from irkit.dialects.precision import Precision, precision_of, rounded
from irkit.dialects.types import DYNAMIC, Tensor, tensor, tensor_type
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
    parts = opt_prop_def(IntegerAttr[IntegerType])
    y = result_def(TensorType)
    assembly_format = (
        "$query `,` $key `,` $value (`,` $mask^)? attr-dict `:` functional-type(operands, results)"
    )

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        _, key, *_ = operands
        y = attention_type(cls, operands)
        element, (*lead, rows, columns) = y.element_type, y.get_shape()
        if "parts" not in props:
            return [y]
        parts = _checked_parts(cls, props, [*lead, rows, columns, key.get_shape()[-2]])
        return [tensor(element, (*lead, parts, rows, columns + 1))]

    @property
    def diagonal(self) -> int | None:
        """The number `causal`; None where every query sees all keys."""
        return None if self.causal is None else self.causal.value.data

    @property
    def count(self) -> int | None:
        """The number `parts`; None where keys are not cut."""
        return None if self.parts is None else self.parts.value.data

    @property
    def span(self) -> int:
        """Keys of a part; the last has what is left."""
        keys = tensor_type(self.key).get_shape()[-2]
        return -(-keys // (self.count or 1))

    @property
    def factor(self) -> float:
        """The number `scale`."""
        return self.scale.value.data


def attention_type(op: type[InferredOp], operands: Sequence[Tensor]) -> Tensor:
    """…×rows×columns of queries, keys, values and a mask, if there is one. Raises VerifyException."""
    query, key, value, *mask = operands
    element = same_element(op, operands[:3])
    ranks = [t.get_num_dims() for t in (query, key, value)]
    if min(ranks) < 2 or len(set(ranks)) > 1:
        raise fail(op, "query, key and value of one rank, 2 or more", f"ranks {ranks}")
    leads = [tensor(element, t.get_shape()[:-2]) for t in (query, key, value)]
    lead = broadcast_shapes(op, leads) if ranks[0] > 2 else []
    (rows, size), (keys, size_k) = query.get_shape()[-2:], key.get_shape()[-2:]
    if size != size_k or size < 1:
        raise fail(op, "queries and keys of one size, 1 or more", f"{query} and {key}")
    if value.get_shape()[-2] != keys or keys == 0:
        raise fail(op, "as many values as keys, one or more", f"{key} and {value}")
    for t in mask:
        _check_mask(op, t, element, [*lead, rows, keys])
    return tensor(element, (*lead, rows, value.get_shape()[-1]))


def _checked_parts(op: type[AttentionBase], props: Props, sizes: Sequence[int]) -> int:
    """How many parts of keys there are, of known `sizes`, the last of which are the keys."""
    attr, keys = props["parts"], sizes[-1]
    parts = attr.value.data if isinstance(attr, IntegerAttr) else 0
    if DYNAMIC in sizes:
        known = "x".join("?" if s == DYNAMIC else str(s) for s in sizes)
        raise fail(op, "known sizes where keys are cut into parts", known)
    if "causal" in props:
        raise fail(op, "no `causal` where keys are cut into parts", props["causal"])
    if parts < 1 or (parts - 1) * -(-keys // parts) >= keys:
        raise fail(op, f"parts that each have some of {keys} keys", parts)
    return parts


def _check_mask(op: type[InferredOp], t: Tensor, element: object, scores: list[int]) -> None:
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
    scores = masked(q @ np.swapaxes(k, -1, -2), op.diagonal, *mask)
    if op.count is not None:
        runs = [slice(n, n + op.span) for n in range(0, scores.shape[-1], op.span)]
        found = [_part(scores[..., run], v[..., run, :], precision) for run in runs]
        return np.stack(found, axis=-3).astype(query.dtype)
    power = np.exp(scores - scores.max(axis=-1, keepdims=True)).astype(kind)
    y = (rounded(power, precision) @ v) / power.sum(axis=-1, keepdims=True)
    return y.astype(query.dtype)


def masked(scores: Array, diagonal: int | None, *mask: Array) -> Array:
    """Scores with a mask, and -inf for keys that are not seen."""
    for m in mask:
        seen_or_added = m.dtype == bool
        scores = np.where(m, scores, -np.inf) if seen_or_added else scores + m.astype(scores.dtype)
    if diagonal is not None:
        seen = np.tri(*scores.shape[-2:], k=diagonal, dtype=bool)
        scores = np.where(seen, scores, -np.inf)
    return scores


def _part(scores: Array, value: Array, precision: Precision) -> Array:
    """The attention to some of the keys, and behind it the logarithm of the sum of their weights."""
    top: Array = scores.max(axis=-1, keepdims=True)
    with np.errstate(all="ignore"):
        shift = np.where(top == -np.inf, np.zeros_like(top), top)
        power: Array = np.exp(scores - shift)
        total: Array = power.sum(axis=-1, keepdims=True)
        y: Array = (rounded(power, precision) @ value) / total
        y = np.where(total == 0, np.zeros_like(y), y)
        return np.concatenate([y, top + np.log(total)], axis=-1)
