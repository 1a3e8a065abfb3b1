"""Tree ensembles. Trees are arrays, never nested regions."""

from __future__ import annotations

from xdsl.irdl import irdl_op_definition

from irkit.dialects.forest_base import ForestBase
from irkit.dialects.graph.base import GraphOp


@irdl_op_definition
class ForestOp(ForestBase, GraphOp):
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


OPS: list[type[GraphOp]] = [ForestOp]
