"""`fold-batch-norm`: batch normalisation as part of the convolution before it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern

from irkit.context import weights_of
from irkit.dialects.constants import constant, constant_array
from irkit.dialects.graph import AddOp, BatchNormOp, ConvOp, MulOp
from irkit.dialects.precision import inherit
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.rewriting import Rule, rewrite
from irkit.weights import Array, WeightStore

_NOT_CONSTANT = "scale, bias, mean and variance are not all constants"


def _affine(op: BatchNormOp, weights: WeightStore) -> tuple[Array, Array] | None:
    """(factor, offset) per channel in float64: batch_norm(x) = factor * x + offset."""
    arrays: list[Array] = []
    for operand in (op.scale, op.bias, op.mean, op.variance):
        array = constant_array(operand, weights)
        if array is None:
            return None
        arrays.append(array.astype(np.float64))
    scale, bias, mean, variance = arrays
    factor = scale / np.sqrt(variance + op.epsilon.value.data)
    return factor, bias - mean * factor


@dataclass
class BatchNormOfConv(Rule):
    """batch_norm(conv(x, w, b)) = conv(x, factor·w, factor·b + offset)"""

    weights: WeightStore

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: BatchNormOp, rewriter: PatternRewriter, /):
        conv = op.x.owner
        if not isinstance(conv, ConvOp):
            return self.no_match(op, "what is normalised is no convolution")
        if not conv.y.has_one_use():
            return self.no_match(op, "something else reads the convolution")
        w = constant_array(conv.w, self.weights)
        b = 0.0 if conv.b is None else constant_array(conv.b, self.weights)
        affine = _affine(op, self.weights)
        if w is None or b is None:
            return self.no_match(op, "the convolution's weights or bias are no constants")
        if affine is None:
            return self.no_match(op, _NOT_CONSTANT)
        factor, offset = affine
        folded = [w * factor.reshape(-1, *(1,) * (w.ndim - 1)), b * factor + offset]
        constants = [constant(a.astype(w.dtype), self.weights) for a in folded]
        fused = ConvOp.make([conv.x, *(c.result for c in constants)], conv.properties)
        inherit(fused, conv)
        rewriter.replace(op, [*constants, fused])
        rewriter.erase(conv)


@dataclass
class BatchNormAlone(Rule):
    """batch_norm(x) = x·factor + offset"""

    weights: WeightStore

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: BatchNormOp, rewriter: PatternRewriter, /):
        affine = _affine(op, self.weights)
        if affine is None:
            return self.no_match(op, _NOT_CONSTANT)
        x = tensor_type(op.x)
        dtype = numpy_dtype(x.element_type)
        per_channel = (-1, *(1,) * (x.get_num_dims() - 2))
        factor, offset = (
            constant(a.reshape(per_channel).astype(dtype), self.weights) for a in affine
        )
        product = MulOp.make([op.x, factor.result])
        total = AddOp.make([product.y, offset.result])
        rewriter.replace(op, [factor, offset, product, total])


@dataclass(frozen=True)
class FoldBatchNorm(ModulePass):
    """Fold `graph.batch_norm` with constant parameters into the convolution that it follows.

    Needs constant weights, and that nothing else reads the convolution. Elsewhere it becomes a
    multiplication and an addition. With parameters that are not constant it stays. Numeric risk:
    the folded weights are computed in float64 and rounded once, and the sum is rounded in another
    order than before; results differ in the last bits, more where a channel's variance is tiny.

    ```mlir
    %0 = graph.conv %x, %w, %b {...}
    %1 = graph.batch_norm %0, %scale, %bias, %mean, %variance {epsilon = 1.0e-5 : f64}
    ```
    becomes, with w' = w·scale/√(variance + ε) and b' = (b - mean)·scale/√(variance + ε) + bias,
    ```mlir
    %1 = graph.conv %x, %w', %b' {...}
    ```
    """

    name = "fold-batch-norm"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        weights = weights_of(ctx)
        rewrite(op, [BatchNormOfConv(weights), BatchNormAlone(weights)])
