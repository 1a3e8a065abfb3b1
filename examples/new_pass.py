"""A pass of one's own: a pattern with reasons, in every compilation and in irkit-opt.

    python examples/new_pass.py

abs(relu(x)) is relu(x): nothing below zero is left to turn round. The pattern says what it does not
match and why (`irkit-opt --remarks=missed` shows it), and the pass runs at the graph level of every
compilation from then on.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern

import irkit
from irkit.dialects.graph import AbsOp, ReluOp
from irkit.extending import add_pass
from irkit.rewriting import Rule, rewrite


class AbsOfRelu(Rule):
    """abs(relu(x)) = relu(x)"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AbsOp, rewriter: PatternRewriter, /):
        if not isinstance(op.x.owner, ReluOp):
            return self.no_match(op, "the operand is no relu")
        rewriter.replace(op, [], [op.x])


@dataclass(frozen=True)
class RemoveAbs(ModulePass):
    """Drop abs where its operand cannot be negative. No value changes but the sign of a zero.

    ```mlir
    %0 = graph.relu %x
    %1 = graph.abs %0
    ```
    becomes
    ```mlir
    %0 = graph.relu %x
    ```
    """

    name = "remove-abs"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite(op, [AbsOfRelu()])


MODULE = """
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = graph.relu %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = graph.abs %0 : (tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %1 : tensor<?x4xf32>
}
"""


def register() -> None:
    """Make the pass known and part of every compilation; `irkit-opt --load-plugin` calls this too."""
    add_pass(RemoveAbs, level="graph")


def main() -> int:
    """Compile a module that the pass shortens; 1 if it did not, or if a value changed."""
    register()
    program = irkit.compile(irkit.parse(MODULE), target="cpu")
    x = np.random.default_rng(0).standard_normal((3, 4), dtype=np.float32)
    right = bool((program(x) == np.maximum(x, 0)).all())
    gone = "graph.abs" not in program.ir("graph")
    print(
        f"graph.abs is {'gone' if gone else 'still there'}; values {'equal' if right else 'differ'}"
    )
    return 0 if right and gone else 1


if __name__ == "__main__":
    sys.exit(main())
