"""Rows of a CSR matrix: what is computed of the elements that are stored alone."""

from __future__ import annotations

from xdsl.irdl import irdl_op_definition

from irkit.dialects.csr_base import CsrDenseBase, CsrMatmulBase, CsrReduceBase
from irkit.dialects.graph.base import GraphOp


@irdl_op_definition
class CsrDenseOp(CsrDenseBase, GraphOp):
    """Rows of a CSR matrix as dense ones of so many `columns`: `initial` where nothing is stored.

    All else is as in `graph.csr_matmul`. A row has each column once; of what it has twice, one is taken.

    ```mlir
    %y = graph.csr_dense %data, %indices, %starts, %ends {columns = 30 : i64, initial = 0.0 : f64}
      : (tensor<1x?xf32>, tensor<1x?xi32>, tensor<?xi64>, tensor<?xi64>) -> tensor<?x30xf32>
    ```
    """

    name = "graph.csr_dense"


@irdl_op_definition
class CsrMatmulOp(CsrMatmulBase, GraphOp):
    """Rows of a CSR matrix times a matrix, what is stored being changed before by `steps`.

    `data` and `indices` (1×stored) are elements and their columns, in any order; row r has those from `starts[r]`
    to `ends[r]`, of which one column may have several. Each is changed by the steps (`irkit/dialects/csr_steps.py`),
    which read the operands that follow: numbers, one value a column, or one a row (rows×1). The sum of a
    row runs in the order in which its elements are stored; what is not stored adds nothing, whatever the
    steps make of 0. Where it is known how many elements are stored, places that lie outside are the nearest
    ones; where it is not, the host has seen that none does.

    ```mlir
    %y = graph.csr_matmul %data, %indices, %starts, %ends, %w, %norms {steps = ["div x a0"]}
      : (tensor<1x?xf64>, tensor<1x?xi32>, tensor<?xi64>, tensor<?xi64>, tensor<30x4xf64>, tensor<?x1xf64>)
        -> tensor<?x4xf64>
    ```
    """

    name = "graph.csr_matmul"


@irdl_op_definition
class CsrReduceOp(CsrReduceBase, GraphOp):
    """What rows of a CSR matrix have stored, changed by `steps`, combined: `kind` is sum, max or min.

    It starts from `initial`, which is what a row without elements gives; all else is as in `graph.csr_matmul`.

    ```mlir
    %y = graph.csr_reduce %data, %indices, %starts, %ends {kind = "sum", initial = 0.0 : f64, steps = ["mul x x"]}
      : (tensor<1x?xf64>, tensor<1x?xi32>, tensor<?xi64>, tensor<?xi64>) -> tensor<?x1xf64>
    ```
    """

    name = "graph.csr_reduce"


OPS: list[type[GraphOp]] = [CsrDenseOp, CsrMatmulOp, CsrReduceOp]
