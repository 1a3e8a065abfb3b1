"""`te.heap_forest`: a forest of perfect trees by nodes of 8 bytes."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, IntegerType, StringAttr, TensorType, f32, i32
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from irkit.dialects.forest_base import check_types, perfect_trees_and_leaves, sums_of_leaves
from irkit.dialects.heap_nodes import NODE_WORDS
from irkit.dialects.inference import InferredOp, Props, fail
from irkit.dialects.types import Tensor, tensor


@irdl_op_definition
class HeapForestOp(InferredOp):
    """`te.perfect_forest` of float32, whose nodes are 8 bytes each.

    `nodes` is as `irkit/dialects/heap_nodes.py` says; the rest is as in `te.perfect_forest`.

    ```mlir
    %y = te.heap_forest %x, %nodes, %value, %output, %base {comparison = "le", depth = 2 : i64}
      : (tensor<?x4xf32>, tensor<5x4x2xi32>, tensor<5x4x1xf64>, tensor<5xi32>, tensor<3xf64>)
      -> tensor<?x3xf64>
    ```
    """

    name = "te.heap_forest"
    x = operand_def(TensorType)
    nodes = operand_def(TensorType)
    value = operand_def(TensorType)
    output = operand_def(TensorType)
    base = operand_def(TensorType)
    comparison = prop_def(StringAttr)
    depth = prop_def(IntegerAttr[IntegerType])
    y = result_def(TensorType)
    assembly_format = "$x `,` $nodes `,` $value `,` $output `,` $base attr-dict `:` functional-type(operands, results)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        x, nodes, value, output, base = operands
        trees, leaves = perfect_trees_and_leaves(cls, props, x, value, output, base)
        if x.element_type != f32:
            raise fail(cls, "x of f32", x)
        check_types(
            cls,
            (
                ("nodes", nodes, tensor(i32, (trees, leaves, NODE_WORDS))),
                ("output", output, tensor(i32, (trees,))),
            ),
        )
        return [sums_of_leaves(cls, x, value, base, (trees, leaves))]
