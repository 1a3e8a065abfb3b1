"""`read-as-it-lies`: a transposed matrix times a column, as a row times the matrix."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern

from irkit.dialects.graph import MatmulOp, ReshapeOp, TransposeOp
from irkit.dialects.types import DYNAMIC, int_array, ints, tensor_type
from irkit.passes.gpu import gpu_of
from irkit.rewriting import Rule, rewrite


@dataclass
class ReadAsItLies(Rule):
    """transpose(A) @ x  ->  x as a row @ A"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: MatmulOp, rewriter: PatternRewriter, /):
        turned, column = op.operands
        transpose, shape = turned.owner, tensor_type(column).get_shape()
        if not isinstance(transpose, TransposeOp) or ints(transpose.permutation) != [1, 0]:
            return self.no_match(op, "its matrix is not transposed")
        if len(shape) != 2 or shape[1] != 1 or DYNAMIC in tensor_type(turned).get_shape():
            return self.no_match(op, "it is no product of a matrix with a column")
        row = ReshapeOp.make([column], {"shape": int_array([1, shape[0]])})
        made = MatmulOp.make([row.results[0], transpose.operands[0]], op.properties)
        made.attributes.update(op.attributes)
        own = int_array(tensor_type(op.results[0]).get_shape())
        rewriter.replace(op, [row, made, ReshapeOp.make([made.results[0]], {"shape": own})])


@dataclass(frozen=True)
class ReadAsItLiesPass(ModulePass):
    """Make of a transposed matrix times a column a row times the matrix as it lies, on a CPU: nothing is
    transposed, and `read-matrix-once` sees which products read one matrix. `device` is the vDevice that is
    planned for.

    Numeric risk: terms are added in another order, as in any product.

    ```mlir
    %t = graph.transpose %a {permutation = array<i64: 1, 0>} : (tensor<4x5xf64>) -> tensor<5x4xf64>
    %y = graph.matmul %t, %x : (tensor<5x4xf64>, tensor<4x1xf64>) -> tensor<5x1xf64>
    ```
    becomes
    ```mlir
    %r = graph.reshape %x {shape = array<i64: 1, 4>} : (tensor<4x1xf64>) -> tensor<1x4xf64>
    %0 = graph.matmul %r, %a : (tensor<1x4xf64>, tensor<4x5xf64>) -> tensor<1x5xf64>
    %y = graph.reshape %0 {shape = array<i64: 5, 1>} : (tensor<1x5xf64>) -> tensor<5x1xf64>
    ```
    """

    name = "read-as-it-lies"
    device: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if gpu_of(self.device) is None:
            rewrite(op, [ReadAsItLies()])
