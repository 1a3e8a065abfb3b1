"""`te.perfect_forest`: trees of one depth, level by level."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    IntegerAttr,
    IntegerType,
    StringAttr,
    TensorType,
    UnitAttr,
    i1,
    i32,
)
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def

from irkit.dialects.forest_base import check_types, perfect_trees_and_leaves, sums_of_leaves
from irkit.dialects.inference import InferredOp, Props
from irkit.dialects.types import Tensor, tensor


@irdl_op_definition
class PerfectForestOp(InferredOp):
    """A forest whose trees are all padded to the same depth, so that a walk needs no child pointers.

    Per tree, inner node `i` has children `2i+1` (left) and `2i+2`; leaf `l` of `2^depth` is reached
    after `depth` comparisons. `feature` (i32), `threshold` and `nan_left` are trees×(2^depth - 1),
    `value` is trees×2^depth×width; the rest is as in `graph.forest`. With `symmetric` all nodes of a level of a
    tree are alike (feature, threshold, nan_left), so that a leaf's number is the answers' bits.

    ```mlir
    %y = te.perfect_forest %x, %feature, %threshold, %nan_left, %value, %output, %base
        {comparison = "le", depth = 2 : i64}
      : (tensor<?x4xf32>, tensor<5x3xi32>, tensor<5x3xf32>, tensor<5x3xi1>, tensor<5x4x1xf64>,
         tensor<5xi32>, tensor<3xf64>) -> tensor<?x3xf64>
    ```
    """

    name = "te.perfect_forest"
    x = operand_def(TensorType)
    feature = operand_def(TensorType)
    threshold = operand_def(TensorType)
    nan_left = operand_def(TensorType)
    value = operand_def(TensorType)
    output = operand_def(TensorType)
    base = operand_def(TensorType)
    comparison = prop_def(StringAttr)
    depth = prop_def(IntegerAttr[IntegerType])
    symmetric = opt_prop_def(UnitAttr)
    y = result_def(TensorType)
    assembly_format = (
        "$x `,` $feature `,` $threshold `,` $nan_left `,` $value `,` $output `,` $base attr-dict "
        "`:` functional-type(operands, results)"
    )

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        x, feature, threshold, nan_left, value, output, base = operands
        trees, leaves = perfect_trees_and_leaves(cls, props, x, value, output, base)
        check_types(
            cls,
            (
                ("feature", feature, tensor(i32, (trees, leaves - 1))),
                ("threshold", threshold, tensor(x.element_type, (trees, leaves - 1))),
                ("nan_left", nan_left, tensor(i1, (trees, leaves - 1))),
                ("output", output, tensor(i32, (trees,))),
            ),
        )
        return [sums_of_leaves(cls, x, value, base, (trees, leaves))]
