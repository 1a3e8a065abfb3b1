"""`write-out-attention`: gradients of attention as the products and the softmax that they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint

from irkit.context import weights_of
from irkit.dialects import graph
from irkit.dialects.constants import constant
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.composition import Ops
from irkit.dialects.graph.gradients.attention import (
    along_keys,
    attention,
    query_gradient,
    scores,
    softmax,
)
from irkit.dialects.graph.gradients.linear import swapped
from irkit.dialects.properties import attribute
from irkit.dialects.types import DYNAMIC, ints, tensor_type
from irkit.passes.gpu import gpu_of
from irkit.rewriting import Rule, rewrite
from irkit.weights import Array, WeightStore


def _key_gradient_of(op: graph.AttentionQueryGradientOp) -> graph.AttentionKeyGradientOp | None:
    """The gradient of keys and values that goes with one of queries."""
    for use in op.y.uses:
        other = use.operation
        if (
            isinstance(other, graph.AttentionKeyGradientOp)
            and other.sums is op.y
            and [v for v in other.operands if v is not op.y] == list(op.operands)
            and other.properties == op.properties
        ):
            return other
    return None


def _forward_of(op: graph.AttentionQueryGradientOp) -> list[graph.AttentionOp]:
    """The attentions before it of the same weights."""
    read = [op.query, op.key, *([] if op.mask is None else [op.mask])]
    users = [use.operation for use in op.query.uses]
    return [
        other
        for other in dict.fromkeys(users)
        if isinstance(other, graph.AttentionOp)
        and [other.query, other.key, *([] if other.mask is None else [other.mask])] == read
        and other.properties == op.properties
        and other.parent is op.parent
    ]


def _columns(op: Operation, value: SSAValue) -> tuple[int, int] | None:
    """Which columns of all rows of `value` an op takes, if that is what it does."""
    if not isinstance(op, graph.SliceOp) or {*ints(op.strides)} != {1}:
        return None
    *rest, _ = tensor_type(value).get_shape()
    offsets, sizes = ints(op.offsets), ints(op.sizes)
    if list(sizes[:-1]) != rest or any(offsets[:-1]):
        return None
    return offsets[-1], sizes[-1]


@dataclass
class WriteOut(Rule):
    """The gradient of queries, that of keys and values with it, and the attention, share one softmax."""

    weights: WeightStore

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.AttentionQueryGradientOp, rewriter: PatternRewriter, /):
        if any(DYNAMIC in tensor_type(v).get_shape() for v in op.operands):
            return self.no_match(op, "an extent is open")
        other = _key_gradient_of(op)
        for forward in _forward_of(op):
            rewriter.replace(forward, [], [attention(self._before(forward, rewriter), forward)])
        o = self._before(op, rewriter)
        weights = softmax(o, scores(o, op, op.query, op.key))
        slopes = o(graph.MatmulOp, op.cotangent, swapped(o, op.value))
        left = o.mul(weights, o.sub(slopes, along_keys(o, o.mul(weights, slopes))))
        size, axis = o.shape(op.query)[-1], len(o.shape(op.query)) - 1
        if other is not None:
            keys = swapped(o, o(graph.MatmulOp, swapped(o, op.query), left))
            keys = o.mul(keys, o.like(op.factor, keys))
            values = o(graph.MatmulOp, swapped(o, weights), op.cotangent)
            lead = o.shape(other.y)[:-1]
            parts = [o.expand(v, [*lead, o.shape(v)[-1]]) for v in (keys, values)]
            given = [((0, size), parts[0]), ((size, o.shape(op.value)[-1]), parts[1])]
            self._replace(rewriter, other, given)
            if other.y.uses:
                whole = o(graph.ConcatOp, *parts, axis=axis)
                rewriter.replace_all_uses_with(other.y, whole)
            rewriter.erase(other)
        queries = o(graph.MatmulOp, left, op.key)
        queries = o.mul(queries, o.like(op.factor, queries))
        self._replace(rewriter, op, [((0, size), queries)])
        if op.y.uses:
            (whole,) = query_gradient(o, op)
            rewriter.replace_all_uses_with(op.y, whole)
        rewriter.erase(op)

    def _before(self, op: Operation, rewriter: PatternRewriter) -> Ops[SSAValue]:
        """Appends ops before one."""

        def make(what: type[GraphOp], /, *operands: SSAValue, **props: Any) -> Sequence[SSAValue]:
            made = what.make(operands, {k: attribute(v) for k, v in props.items()})
            made.location = op.location
            rewriter.insert(made, InsertPoint.before(op))
            return made.results

        def held(array: Array) -> SSAValue:
            made = constant(np.ascontiguousarray(array), self.weights)
            rewriter.insert(made, InsertPoint.before(op))
            return made.result

        return Ops(make, held)

    def _replace(
        self,
        rewriter: PatternRewriter,
        op: Operation,
        parts: Sequence[tuple[tuple[int, int], SSAValue]],
    ) -> None:
        """Give readers of some columns what these are."""
        (value,) = op.results
        known = dict(parts)
        for user in [use.operation for use in value.uses]:
            place = _columns(user, value)
            if place in known:
                rewriter.replace(user, [], [known[place]])


@dataclass(frozen=True)
class WriteOutAttention(ModulePass):
    """Write gradients of attention out on a CPU, with the attention itself: all read one softmax.

    An rKernel of the gradients makes the weights anew and keeps nothing of the size of the scores, which
    spares a GPU launches and memory. On a CPU the products are worth more by themselves: they run in tiles of
    vectors, and a launch costs little. Done where `device` is a CPU; where an extent is open the ops stay.

    Numeric risk: sums are in another order.

    ```mlir
    %y = graph.attention %q, %k, %v {scale = 5.0e-1 : f64}
    %s = graph.attention_query_gradient %q, %k, %v, %c {scale = 5.0e-1 : f64}
    %t = graph.attention_key_gradient %q, %k, %v, %c, %s {scale = 5.0e-1 : f64}
    ```
    becomes `%p = graph.softmax` of the scores, `%y = graph.matmul %p, %v`, and products of %p and of
    %p · (T - sum of %p · T), where T = %c · %vᵀ.
    """

    name = "write-out-attention"
    device: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.device and gpu_of(self.device) is None:
            rewrite(op, [WriteOut(weights_of(ctx))])
