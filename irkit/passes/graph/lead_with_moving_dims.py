"""`lead-with-moving-dims`: what loops read and write in parts, so that the parts lie side by side."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from irkit.dialects.loops import is_loop
from irkit.passes.graph.loops.turning import Turner, order_for
from irkit.passes.graph.loops.webs import webs_of


@dataclass(frozen=True)
class LeadWithMovingDims(ModulePass):
    """Turn arrays of which loops read or write slices across the last dimensions: those in which the slices
    move come first.

    A column of a matrix is gathered element by element, and written by a choice among all elements of the
    matrix; a row is read and written where it lies. So an array whose columns an iteration takes is
    transposed before the loop, and back behind it, where both together cost less. An array that an iteration
    needs as a whole stays. Exact.

    ```mlir
    %r = scf.for %i = %c0 to %c9 step %c1 iter_args(%x = %a) -> (tensor<8x9xf64>) {
      %y = tensor.insert_slice %w into %x[0, %i] [8, 1] [1, 1] : tensor<8xf64> into tensor<8x9xf64>
      scf.yield %y : tensor<8x9xf64>
    }
    ```
    becomes
    ```mlir
    %t = graph.transpose %a {permutation = array<i64: 1, 0>} : (tensor<8x9xf64>) -> tensor<9x8xf64>
    %s = scf.for %i = %c0 to %c9 step %c1 iter_args(%x = %t) -> (tensor<9x8xf64>) {
      %y = tensor.insert_slice %w into %x[%i, 0] [1, 8] [1, 1] : tensor<8xf64> into tensor<9x8xf64>
      scf.yield %y : tensor<9x8xf64>
    }
    %r = graph.transpose %s {permutation = array<i64: 1, 0>} : (tensor<9x8xf64>) -> tensor<8x9xf64>
    ```
    """

    name = "lead-with-moving-dims"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in list(op.ops):
            if not isinstance(function, FuncOp) or len(function.body.blocks) != 1:
                continue
            if not any(is_loop(inner) for inner in function.body.block.ops):
                continue
            for web in webs_of(function):
                order = order_for(web)
                if order is not None:
                    Turner(function, web, order).run()
