"""`write-out-softmax`: a softmax down columns as the maximum, exponentials, sum and quotients that it is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f32, f64
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint

from irkit.dialects import graph
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.properties import attribute
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.passes.gpu import gpu_of
from irkit.rewriting import Rule, rewrite

FEWEST: Final = 8
"""Elements beside each other behind the dimension: fewer fill no vector, and are turned into rows."""


class WriteOut(Rule):
    """softmax(x) = e / sum(e) with e = exp(x - max(x)), where elements of many columns lie side by side"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.SoftmaxOp, rewriter: PatternRewriter, /):
        t, axis = tensor_type(op.x), op.axis.value.data
        behind = t.get_shape()[axis + 1 :]
        if t.element_type not in (f32, f64):
            return self.no_match(op, "its steps would be rounded to 16 bits")
        if DYNAMIC in t.get_shape()[axis:] or math.prod(behind) < FEWEST:
            return self.no_match(op, "fewer than {} columns lie side by side", FEWEST)

        def made(what: type[GraphOp], /, *operands: SSAValue, **props: Any) -> SSAValue:
            new = what.make(operands, {name: attribute(value) for name, value in props.items()})
            new.location = op.location
            rewriter.insert(new, InsertPoint.before(op))
            (result,) = new.results
            return result

        def reduced(x: SSAValue, kind: str) -> SSAValue:
            return made(graph.ReduceOp, x, kind=kind, axes=[axis], keepdims=True)

        raised = made(graph.ExpOp, made(graph.SubOp, op.x, reduced(op.x, "max")))
        rewriter.replace(op, [], [made(graph.DivOp, raised, reduced(raised, "sum"))])


@dataclass(frozen=True)
class WriteOutSoftmax(ModulePass):
    """Write a softmax along another dimension than the last out on a CPU.

    An rKernel of the softmax goes along rows, so that columns have to be turned into rows and back: both take
    longer than the softmax. Down columns that lie side by side the largest element, the sum and the
    exponentials of as many columns as a vector has elements are found at once. Done where `device` is a CPU,
    for float32 and float64.

    Numeric risk: sums are in another order.

    ```mlir
    %y = graph.softmax %x {axis = 0 : i64} : (tensor<3x8xf64>) -> tensor<3x8xf64>
    ```
    becomes
    ```mlir
    %0 = graph.reduce %x {kind = "max", axes = array<i64: 0>, keepdims = true}
    %1 = graph.sub %x, %0
    %2 = graph.exp %1
    %3 = graph.reduce %2 {kind = "sum", axes = array<i64: 0>, keepdims = true}
    %y = graph.div %2, %3
    ```
    """

    name = "write-out-softmax"
    device: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.device and gpu_of(self.device) is None:
            rewrite(op, [WriteOut()])
