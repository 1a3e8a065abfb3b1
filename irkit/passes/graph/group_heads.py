"""`group-heads`: attention whose heads share keys reads them where they are, not repeated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern

from irkit.dialects import graph
from irkit.dialects.precision import inherit
from irkit.dialects.types import DYNAMIC, int_array, ints, tensor_type
from irkit.rewriting import Rule, rewrite


def _turned_back(value: SSAValue) -> SSAValue:
    """`value` without two transpositions that undo each other."""
    while isinstance(value.owner, graph.TransposeOp):
        inner = value.owner.x.owner
        if not isinstance(inner, graph.TransposeOp):
            break
        first, second = ints(inner.permutation), ints(value.owner.permutation)
        if [first[d] for d in second] != list(range(len(first))):
            break
        value = inner.x
    return value


def repeated(value: SSAValue) -> tuple[SSAValue, int] | None:
    """Of …×(heads · group)×keys×size, where each head is there `group` times, …×heads×1×keys×size and the
    group; None where heads are not repeated so."""
    reshape = _turned_back(value).owner
    if not isinstance(reshape, graph.ReshapeOp):
        return None
    expand = _turned_back(reshape.x).owner
    if not isinstance(expand, graph.ExpandOp):
        return None
    once, more = (tensor_type(v).get_shape() for v in (expand.x, expand.y))
    flat = tensor_type(reshape.y).get_shape()
    if len(more) < 4 or len(once) != len(more) or len(flat) != len(more) - 1:
        return None
    *lead, heads, group, keys, size = more
    if (*lead, heads * group, keys, size) != flat or DYNAMIC in (heads, group):
        return None
    if group < 2 or (*once[:-3], group, *once[-2:]) != more or once[-3] != 1:
        return None
    return expand.x, group


@dataclass
class _Grouped:
    """What replaces an attention; `heads` are those of the keys, each of `group` heads of queries."""

    op: graph.AttentionOp
    heads: int
    group: int
    made: list[Operation]

    def reshape(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """`value` in another shape, if it is another."""
        if tuple(shape) == tensor_type(value).get_shape():
            return value
        self.made.append(graph.ReshapeOp.make([value], {"shape": int_array(shape)}))
        return self.made[-1].results[0]

    def parted(self, value: SSAValue, rows: Sequence[int]) -> SSAValue:
        """…×(heads · group)×rows×size as …×heads×group×rows×size, `rows` being what the third last
        dimension becomes part of: none for one row."""
        shape = tensor_type(value).get_shape()
        if len(shape) < 3:
            return value
        pair = [self.heads, self.group] if shape[-3] != 1 else [1, 1]
        return self.reshape(value, [*shape[:-3], *pair, *rows, shape[-1]])


@dataclass
class ShareKeys(Rule):
    """attention(q, repeated(k), repeated(v)) = attention(q as groups of heads, k, v)"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.AttentionOp, rewriter: PatternRewriter, /):
        keys, values = repeated(op.key), repeated(op.value)
        if keys is None or values is None or keys[1] != values[1]:
            return self.no_match(op, "its keys and values are not those of fewer heads, repeated")
        (key, group), (value, _) = keys, values
        shape, heads = tensor_type(op.query).get_shape(), tensor_type(key).get_shape()[-4]
        if shape[-3] != heads * group:
            return self.no_match(op, "its queries are not of {} heads", heads * group)
        if shape.count(DYNAMIC) > 1:
            return self.no_match(op, "its queries are of several unknown sizes")
        built = _Grouped(op, heads, group, [])
        # The heads of one row are the rows of one head: what they share is read once for all of them.
        one = shape[-2] == 1 and op.causal is None
        between = [] if one else [shape[-2]]
        query = built.parted(op.query, between)
        if one:
            key, value = (
                built.reshape(v, [s for d, s in enumerate(have) if d != len(have) - 3])
                for v in (key, value)
                for have in [tensor_type(v).get_shape()]
            )
        given = [query, key, value]
        if op.mask is not None:
            rows = tensor_type(op.mask).get_shape()[-2:-1]
            given.append(built.parted(op.mask, [] if one else rows))
        attention = graph.AttentionOp.make(given, op.properties)
        inherit(attention, op)
        built.made.append(attention)
        built.reshape(attention.y, tensor_type(op.y).get_shape())
        rewriter.replace(op, built.made, [built.made[-1].results[0]])


@dataclass(frozen=True)
class GroupHeads(ModulePass):
    """Let groups of heads that share keys and values read them where they are.

    Exporters write an attention of fewer heads of keys by repeating these, in memory. The heads of queries
    become two dimensions instead, of which keys and values have the first alone. Where each head has one
    row, as in a decoder's step, the heads of a group are rows of one head: keys are read once for all of
    them. No numeric risk: each row is the same sum.

    ```mlir
    %0 = graph.expand %k {shape = array<i64: 2, 4, 7, 8>} : (tensor<2x1x7x8xf32>) -> tensor<2x4x7x8xf32>
    %1 = graph.reshape %0 {shape = array<i64: 8, 7, 8>} : (tensor<2x4x7x8xf32>) -> tensor<8x7x8xf32>
    ... the same for %v
    %4 = graph.attention %q, %1, %3 {scale = 1.0 : f64}
    ```
    becomes
    ```mlir
    %0 = graph.reshape %q {shape = array<i64: 2, 4, 5, 8>} : (tensor<8x5x8xf32>) -> tensor<2x4x5x8xf32>
    %1 = graph.attention %0, %k, %v {scale = 1.0 : f64}
    %2 = graph.reshape %1 {shape = array<i64: 8, 5, 8>} : (tensor<2x4x5x8xf32>) -> tensor<8x5x8xf32>
    ```
    """

    name = "group-heads"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite(op, [ShareKeys()])
