"""`select-transposed-form`: transposed convolutions of many channels as one matrix product on a GPU."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern

from irkit.dialects.graph import ConvTransposeOp
from irkit.dialects.graph.convolution import PRODUCT
from irkit.dialects.types import ints, is_half, tensor_type
from irkit.passes.gpu import gpu_of
from irkit.rewriting import Rule, rewrite

CHANNELS: Final = 8
"""Channels of a group from which on its product is one worth the name."""
PARTS: Final = 16
"""Results of the product that an element sums at most: it takes as many times the memory of the result."""


class AsProduct(Rule):
    """conv_transpose(x, w) = sum over taps of shifted (x times the filters' tap)"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ConvTransposeOp, rewriter: PatternRewriter, /):
        why = why_not(op)
        if why:
            return self.no_match(op, "{}", why)
        op.properties["form"] = StringAttr(PRODUCT)
        rewriter.notify_op_modified(op)


def why_not(op: ConvTransposeOp) -> str:
    """Why a transposed convolution is better computed by phases of its stride; empty if it is not."""
    if op.form is not None:
        return "its form is chosen"
    if math.prod(ints(op.strides)) == 1:
        return "its stride is 1: it is a convolution"
    if any(d != 1 for d in ints(op.dilations)):
        return "its taps stand apart"
    if is_half(tensor_type(op.y).element_type):
        return "16-bit floats would be rounded before they are summed"
    channels, _, *kernel = tensor_type(op.w).get_shape()
    channels //= op.group.value.data
    parts = math.prod(-(-k // s) for k, s in zip(kernel, ints(op.strides), strict=True))
    if parts > PARTS:
        return f"each element would be a sum of {parts} in memory"
    return f"its groups have {channels} channels each" if channels < CHANNELS else ""


@dataclass(frozen=True)
class SelectTransposedForm(ModulePass):
    """Choose the form of transposed convolutions for a GPU: one product of all elements and filters, whose
    results are added where they meet, keeps tensor cores busy where phases of the stride are small
    contractions, or zeros.

    Those of few channels, of far more taps than a stride, of dilations, of 16-bit floats, whose partial sums
    would be rounded in memory, and everything on a CPU stay as they are.

    ```mlir
    %y = graph.conv_transpose %x, %w {strides = array<i64: 2, 2>, ...}
      : (tensor<1x64x16x16xf32>, tensor<64x32x4x4xf32>) -> tensor<1x32x34x34xf32>
    ```
    becomes
    ```mlir
    %y = graph.conv_transpose %x, %w {form = "product", strides = array<i64: 2, 2>, ...}
      : (tensor<1x64x16x16xf32>, tensor<64x32x4x4xf32>) -> tensor<1x32x34x34xf32>
    ```
    """

    name = "select-transposed-form"
    device: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if gpu_of(self.device) is not None:
            rewrite(op, [AsProduct()])
