"""`te.packed_forest`: a forest by nodes of 16 bytes."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, IntegerType, StringAttr, TensorType, f32, f64, i32
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from irkit.dialects.forest_base import check_ranks, check_types, check_walk
from irkit.dialects.inference import InferredOp, Props, fail
from irkit.dialects.packed_nodes import NODE_WORDS
from irkit.dialects.types import Tensor, tensor


@irdl_op_definition
class PackedForestOp(InferredOp):
    """A forest whose nodes are 16 bytes each, the children of a node side by side.

    `nodes` is as `irkit/dialects/packed_nodes.py` says, `root` (i32) is where the trees' first nodes are, and
    `value` is nodes×width; the rest is as in `graph.forest`.

    ```mlir
    %y = te.packed_forest %x, %nodes, %value, %root, %output, %base {comparison = "le", depth = 2 : i64}
      : (tensor<?x4xf32>, tensor<10x4xi32>, tensor<10x1xf64>, tensor<2xi32>, tensor<2xi32>, tensor<3xf64>)
      -> tensor<?x3xf64>
    ```
    """

    name = "te.packed_forest"
    x = operand_def(TensorType)
    nodes = operand_def(TensorType)
    value = operand_def(TensorType)
    root = operand_def(TensorType)
    output = operand_def(TensorType)
    base = operand_def(TensorType)
    comparison = prop_def(StringAttr)
    depth = prop_def(IntegerAttr[IntegerType])
    y = result_def(TensorType)
    assembly_format = (
        "$x `,` $nodes `,` $value `,` $root `,` $output `,` $base attr-dict `:` "
        "functional-type(operands, results)"
    )

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        x, nodes, value, root, output, base = operands
        check_ranks(cls, (("x", x, 2), ("value", value, 2), ("root", root, 1), ("base", base, 1)))
        check_walk(cls, props)
        if x.element_type not in (f32, f64):
            raise fail(cls, "x of f32 or f64", x)
        (count, width), (columns,), (trees,) = (t.get_shape() for t in (value, base, root))
        check_types(
            cls,
            (
                ("nodes", nodes, tensor(i32, (count, NODE_WORDS))),
                ("root", root, tensor(i32, (trees,))),
                ("output", output, tensor(i32, (trees,))),
            ),
        )
        if width not in (1, columns) or value.element_type != base.element_type:
            raise fail(cls, f"value of {count}x(1 or {columns}) {base.element_type}", value)
        return [tensor(base.element_type, (x.get_shape()[0], columns))]
