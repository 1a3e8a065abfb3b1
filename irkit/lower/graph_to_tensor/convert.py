"""`convert-graph-to-tensor`: say what each op of a model computes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irkit.context import weights_of
from irkit.dialects import graph
from irkit.dialects.functions import is_straight
from irkit.dialects.graph.base import GraphOp
from irkit.errors import UnsupportedError
from irkit.lower.graph_to_tensor import (
    attention,
    convolution,
    csr,
    elementwise,
    expression,
    forest,
    functions,
    integer,
    layer_norm,
    linear,
    nibbles,
    normalisation,
    pooling,
    random,
    recurrent,
    reduction,
    shape,
    transposed_convolution,
)
from irkit.lower.graph_to_tensor.batch import check_batch
from irkit.lower.graph_to_tensor.elementwise import Rule
from irkit.lower.graph_to_tensor.widening import WideningBuilder
from irkit.passes.graph.widen_half import widen
from irkit.weights import WeightStore

RULES: dict[type[GraphOp], Rule] = {
    op: rule
    for group in (
        attention,
        convolution,
        csr,
        elementwise,
        expression,
        forest,
        functions,
        integer,
        layer_norm,
        linear,
        nibbles,
        normalisation,
        pooling,
        random,
        recurrent,
        reduction,
        shape,
        transposed_convolution,
    )
    for op, rule in group.RULES.items()
}
"""How each graph op is built: values for its results, from its operands."""

_HINTS: dict[type[GraphOp], str] = dict.fromkeys(
    (graph.GruOp, graph.LstmOp, graph.RnnOp), ": run unroll-recurrence first"
)


def lower_block(block: Block, weights: WeightStore) -> None:
    """Replace every graph op of a function's body. Raises UnsupportedError naming the op."""
    builder = WideningBuilder(block, weights)
    for op in list(block.ops):
        if not isinstance(op, GraphOp):
            continue
        rule = RULES.get(type(op))
        if rule is None:
            raise UnsupportedError(
                f"'{op.name}' has no tensor-level form{_HINTS.get(type(op), '')}"
            )
        builder.move_before(op)
        values = rule(builder, op)
        builder.remember(op, values)
        for old, new in zip(op.results, values, strict=True):
            if new.name_hint is None:
                new.name_hint = old.name_hint
        Rewriter.replace_op(op, [], values)
    for op in list(block.ops):
        if isinstance(op, ConstantOp) and not op.result.uses:
            Rewriter.erase_op(op)


@dataclass(frozen=True)
class ConvertGraphToTensor(ModulePass):
    """Lower every graph op to `linalg`, `tensor` and `te` ops on tensors.

    Elementwise ops become all-parallel `linalg.generic`s, products and convolutions become
    contractions that start from the bias, reductions start from a neutral element, shapes become
    `tensor` ops, and what upstream has no op for becomes `te`. Transposed weights are only read in
    another order. Weights of LSTM cells and small forests are packed anew.

    ```mlir
    %y = graph.gemm %x, %w, %b {trans_a = false, trans_b = true, alpha = 1.0 : f64, beta = 1.0 : f64}
      : (tensor<?x8xf32>, tensor<16x8xf32>, tensor<16xf32>) -> tensor<?x16xf32>
    ```
    becomes
    ```mlir
    %init = linalg.generic {... ["parallel", "parallel"]} ins(%b) outs(%empty) {linalg.yield %b}
    %y = linalg.generic {
        indexing_maps = [(m, n, k) -> (m, k), (m, n, k) -> (n, k), (m, n, k) -> (m, n)],
        iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w) outs(%init) {
      %p = arith.mulf %a, %b
      %s = arith.addf %acc, %p
      linalg.yield %s }
    ```

    Arithmetic of 16-bit floats is that of float32, its results rounded, as `widen-half` spells it out. Sums
    run in another order than the graph level's; forests and elementwise ops give the same bits.
    """

    name = "convert-graph-to-tensor"
    requires: ClassVar[tuple[str, ...]] = ("graph", "tensor")
    produces: ClassVar[str] = "tensor"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        weights = weights_of(ctx)
        for function in op.walk():
            if is_straight(function):
                check_batch(function)
                widen(function)
                lower_block(function.body.block, weights)
