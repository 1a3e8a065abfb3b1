"""Gradients of attention at the tensor level."""

from __future__ import annotations

from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.irdl import irdl_op_definition, opt_prop_def

from irkit.dialects.attention_gradient_base import (
    AttentionKeyGradientBase,
    AttentionQueryGradientBase,
)


@irdl_op_definition
class AttentionQueryGradientOp(AttentionQueryGradientBase):
    """`graph.attention_query_gradient`. `fastmath`: `afn` lets exp be approximated, as on `math.exp`.

    ```mlir
    %y = te.attention_query_gradient %q, %k, %v, %c {scale = 5.0e-1 : f64, causal = 0 : i64}
      : (tensor<8x6x4xf32>, tensor<8x6x4xf32>, tensor<8x6x3xf32>, tensor<8x6x3xf32>) -> tensor<8x6x6xf32>
    ```
    """

    name = "te.attention_query_gradient"
    fastmath = opt_prop_def(FastMathFlagsAttr)


@irdl_op_definition
class AttentionKeyGradientOp(AttentionKeyGradientBase):
    """`graph.attention_key_gradient`. `fastmath`: `afn` lets exp be approximated, as on `math.exp`.

    ```mlir
    %y = te.attention_key_gradient %q, %k, %v, %c, %s {scale = 5.0e-1 : f64, causal = 0 : i64}
      : (tensor<8x6x4xf32>, tensor<8x6x4xf32>, tensor<8x6x3xf32>, tensor<8x6x3xf32>, tensor<8x6x6xf32>)
        -> tensor<8x6x7xf32>
    ```
    """

    name = "te.attention_key_gradient"
    fastmath = opt_prop_def(FastMathFlagsAttr)


AttentionGradientOp = AttentionQueryGradientOp | AttentionKeyGradientOp
