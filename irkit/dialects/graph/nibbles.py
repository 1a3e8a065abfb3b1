"""Products with matrices of 4-bit integers."""

from __future__ import annotations

from xdsl.irdl import irdl_op_definition

from irkit.dialects.graph.base import GraphOp
from irkit.dialects.nibbles import NibbleMatmulBase


@irdl_op_definition
class NibbleMatmulOp(NibbleMatmulBase, GraphOp):
    """x (…×K) times a matrix of K×`columns` that is kept in 4 bits an element.

    `block` terms of a column share a scale and a zero point, which is 0 where `zeros` are left out. How the
    matrix lies is in `irkit/dialects/nibbles.py`. Each of its elements is (integer - zero) * scale, rounded
    once; sums have no fixed order. K is even.

    ```mlir
    %y = graph.nibble_matmul %x, %q, %s {block = 32 : i64, columns = 100 : i64}
      : (tensor<3x80xf32>, tensor<2x40x64xui8>, tensor<2x3x64xf32>) -> tensor<3x100xf32>
    ```
    """

    name = "graph.nibble_matmul"


OPS: list[type[GraphOp]] = [NibbleMatmulOp]
