"""`outline-loops`: functions without loops of what stands in loops and between them."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from irkit.dialects.loops import is_loop
from irkit.passes.graph.loops.outline import LoopOutliner
from irkit.passes.graph.loops.slices import normalise_slices


@dataclass(frozen=True)
class OutlineLoops(ModulePass):
    """Make each run of ops in a loop, or between loops, a function that is called there.

    What is left of a function with loops is `scf.for`, `scf.while`, `func.call`, and slices at places that
    hang on the loops' variables; the levels below compile the functions that it calls, each by itself. What
    a loop carries from one iteration to the next is state of the function that makes it (`irkit.state`), and
    has one place: where two values would need the same place, one of them is copied by the function before.
    Static slices become `graph.slice`, insertions get the rank of what they go into. Trip counts of `scf.for`
    must be known, and moving slices be runs of bytes at places that are affine in the loops' variables.
    Exact.

    ```mlir
    func.func @main(%a: tensor<4xf64>) -> tensor<4xf64> {
      %r = scf.for %i = %c0 to %c9 step %c1 iter_args(%x = %a) -> (tensor<4xf64>) {
        %y = graph.add %x, %x : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
        scf.yield %y : tensor<4xf64>
      }
      func.return %r : tensor<4xf64>
    }
    ```
    becomes
    ```mlir
    func.func @main_part0(%x: tensor<4xf64>) -> tensor<4xf64> attributes {irkit.state = array<i64: 0, 0>} {
      %y = graph.add %x, %x : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
      func.return %y : tensor<4xf64>
    }
    func.func @main_part1(%a: tensor<4xf64>) -> tensor<4xf64> {
      func.return %a : tensor<4xf64>
    }
    func.func @main(%a: tensor<4xf64>) -> tensor<4xf64> {
      %0 = func.call @main_part1(%a) : (tensor<4xf64>) -> tensor<4xf64>
      %r = scf.for %i = %c0 to %c9 step %c1 iter_args(%x = %0) -> (tensor<4xf64>) {
        %y = func.call @main_part0(%x) : (tensor<4xf64>) -> tensor<4xf64>
        scf.yield %y : tensor<4xf64>
      }
      func.return %r : tensor<4xf64>
    }
    ```
    """

    name = "outline-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in list(op.ops):
            # A function of several blocks is of no level: the next pass says so.
            if not isinstance(function, FuncOp) or len(function.body.blocks) != 1:
                continue
            normalise_slices(function)
            if any(is_loop(inner) for inner in function.body.block.ops):
                LoopOutliner(function).run()
