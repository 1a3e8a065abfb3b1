"""Attention."""

from __future__ import annotations

from xdsl.irdl import irdl_op_definition

from irkit.dialects.attention_base import AttentionBase
from irkit.dialects.attention_gradient_base import (
    AttentionKeyGradientBase,
    AttentionQueryGradientBase,
)
from irkit.dialects.graph.base import GraphOp


@irdl_op_definition
class AttentionOp(AttentionBase, GraphOp):
    """Scaled dot-product attention: softmax(scale · query · keyᵀ + mask) · value, the softmax along keys.

    query is …×rows×size, key …×keys×size, value …×keys×columns, and the result …×rows×columns; leading
    dimensions (batch, heads) broadcast, so that several heads of queries may share keys. A mask broadcasts to
    …×rows×keys: of floats it is added to the scores, of i1 it says which keys are seen. With `causal` query
    i sees keys 0 to i + causal. The score of a key that is not seen is -inf.

    As in `graph.softmax` a row is NaN where its largest score is NaN or infinite, and so where it sees no key.
    Scores, softmax and sums are those of f32, of f64 operands those of f64, in no fixed order. Whether the
    value of a key shows that has no weight, if it is NaN or infinite, is left open.

    With `parts` the keys, in order, are cut into so many of ceil(keys / parts), the last of what is left, and the
    result is …×parts×rows×(columns + 1): of each part its own attention, 0 where it sees no key, and behind it
    the logarithm of the sum of exp(score) (-inf where it sees none, NaN where the row of the part is). The
    attention of these, with the logarithms as scores, is that to all keys.

    ```mlir
    %y = graph.attention %q, %k, %v, %mask {scale = 1.25e-1 : f64}
      : (tensor<?x8x10x64xf32>, tensor<?x8x12x64xf32>, tensor<?x8x12x64xf32>, tensor<10x12xf32>)
        -> tensor<?x8x10x64xf32>
    ```
    """

    name = "graph.attention"


@irdl_op_definition
class AttentionQueryGradientOp(AttentionQueryGradientBase, GraphOp):
    """What a change of the result of `graph.attention`, its cotangent, asks of the queries.

    Queries, keys, values, mask, `scale` and `causal` are those of the attention, the cotangent is of its
    result's type. With weights P, the softmax of the scores, and T = cotangent · valueᵀ, the result is
    …×rows×(size + 2): scale · (P ∘ (T - d)) · key; behind it the logarithm of the sum of exp(score) of the
    row; and last d, the sum of P ∘ T. The weights are made anew. A row whose scores are as they may not be for
    `graph.attention` is NaN. Sums are in no fixed order.

    ```mlir
    %y = graph.attention_query_gradient %q, %k, %v, %c {scale = 5.0e-1 : f64, causal = 0 : i64}
      : (tensor<8x6x4xf32>, tensor<8x6x4xf32>, tensor<8x6x3xf32>, tensor<8x6x3xf32>) -> tensor<8x6x6xf32>
    ```
    """

    name = "graph.attention_query_gradient"


@irdl_op_definition
class AttentionKeyGradientOp(AttentionKeyGradientBase, GraphOp):
    """What a change of the result of `graph.attention`, its cotangent, asks of the keys and the values.

    Operands are those of `graph.attention_query_gradient` and what that gives, of which the two sums behind
    each row are read. The result is …×keys×(size + columns): scale · (P ∘ (T - d))ᵀ · query, and behind it
    Pᵀ · cotangent, of all leading dimensions: where keys are shared by heads, the gradient is the sum over
    these. Whether a row of NaN shows at keys that it does not see is left open. Sums are in no fixed order.

    ```mlir
    %y = graph.attention_key_gradient %q, %k, %v, %c, %s {scale = 5.0e-1 : f64, causal = 0 : i64}
      : (tensor<8x6x4xf32>, tensor<8x6x4xf32>, tensor<8x6x3xf32>, tensor<8x6x3xf32>, tensor<8x6x6xf32>)
        -> tensor<8x6x7xf32>
    ```
    """

    name = "graph.attention_key_gradient"


OPS: list[type[GraphOp]] = [AttentionOp, AttentionQueryGradientOp, AttentionKeyGradientOp]
