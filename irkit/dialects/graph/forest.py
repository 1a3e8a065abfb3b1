"""Tree ensembles. Trees are arrays, never nested regions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr, IntegerType, StringAttr, TensorType, i1, i32
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from irkit.dialects.graph.base import GraphOp, Props, check_rank, fail
from irkit.dialects.graph.elements import BOOLEANS, FLOATS, NODES, Elements
from irkit.dialects.types import Tensor, tensor

COMPARISONS = ("le", "lt")
STRATEGIES = ("auto", "walk", "gemm", "traversal", "perfect_traversal")


class ForestBase(GraphOp):
    """Operands, types and verifier of a tree ensemble."""

    ELEMENTS: ClassVar[tuple[Elements, ...]] = (
        *(FLOATS, NODES, FLOATS, NODES, NODES, BOOLEANS),
        *(FLOATS, NODES, NODES, FLOATS),
    )

    x = operand_def(TensorType)
    feature = operand_def(TensorType)
    threshold = operand_def(TensorType)
    left = operand_def(TensorType)
    right = operand_def(TensorType)
    nan_left = operand_def(TensorType)
    value = operand_def(TensorType)
    root = operand_def(TensorType)
    output = operand_def(TensorType)
    base = operand_def(TensorType)
    comparison = prop_def(StringAttr)
    depth = prop_def(IntegerAttr[IntegerType])
    strategy = prop_def(StringAttr)
    y = result_def(TensorType)
    assembly_format = (
        "$x `,` $feature `,` $threshold `,` $left `,` $right `,` $nan_left `,` $value `,` $root `,` "
        "$output `,` $base attr-dict `:` functional-type(operands, results)"
    )

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        x, feature, threshold, left, right, nan_left, value, root, output, base = operands
        check_rank(cls, "x", x, 2)
        check_rank(cls, "value", value, 2)
        for what, t in (("feature", feature), ("root", root), ("base", base)):
            check_rank(cls, what, t, 1)
        nodes, trees, columns = (t.get_shape()[0] for t in (feature, root, base))
        for what, t, want in (
            ("feature", feature, tensor(i32, (nodes,))),
            ("threshold", threshold, tensor(x.element_type, (nodes,))),
            ("left", left, tensor(i32, (nodes,))),
            ("right", right, tensor(i32, (nodes,))),
            ("nan_left", nan_left, tensor(i1, (nodes,))),
            ("root", root, tensor(i32, (trees,))),
            ("output", output, tensor(i32, (trees,))),
        ):
            if t != want:
                raise fail(cls, f"{what} of type {want}", t)
        width = value.get_shape()[1]
        if width not in (1, columns) or value != tensor(base.element_type, (nodes, width)):
            raise fail(cls, f"value of {nodes}x1 or {nodes}x{columns} {base.element_type}", value)
        _check_choice(cls, props, "comparison", COMPARISONS)
        _check_choice(cls, props, "strategy", STRATEGIES)
        return [tensor(base.element_type, (x.get_shape()[0], columns))]


@irdl_op_definition
class ForestOp(ForestBase):
    """Walk every tree of an ensemble for each row and add the leaves' values, in tree order.

    x is rows×features. One entry per node, all trees end to end: `feature` (i32), `threshold`
    (element type of x), `left` and `right` (i32, absolute node numbers; a leaf names itself twice),
    `nan_left` (i1: where NaN goes). `value` is nodes×width, used at leaves. `root` (i32) and
    `output` (i32) have one entry per tree: width is 1 where a tree adds to one output column
    (`output`), or the number of columns where it adds to all (`output` is then 0).
    `base` (columns) is where the sums start; its element type is that of the sums.

    A row goes left if x[feature] `comparison` threshold holds, or x[feature] is NaN and `nan_left`.
    `depth` is the largest number of comparisons on a path.

    ```mlir
    %y = graph.forest %x, %feature, %threshold, %left, %right, %nan_left, %value, %root, %output, %base
        {comparison = "le", depth = 2 : i64, strategy = "auto"}
      : (tensor<?x4xf32>, tensor<10xi32>, tensor<10xf32>, tensor<10xi32>, tensor<10xi32>, tensor<10xi1>,
         tensor<10x3xf64>, tensor<2xi32>, tensor<2xi32>, tensor<3xf64>) -> tensor<?x3xf64>
    ```
    """

    name = "graph.forest"


def _check_choice(op: type[GraphOp], props: Props, name: str, choices: Sequence[str]) -> None:
    choice = props[name]
    assert isinstance(choice, StringAttr)
    if choice.data not in choices:
        raise fail(op, f"a {name} among {', '.join(choices)}", f"'{choice.data}'")


OPS: list[type[GraphOp]] = [ForestOp]
