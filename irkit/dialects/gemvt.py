"""`te.gemvt`: a matrix times a column, and a row times the matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr, IntegerType, TensorType
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, prop_def, result_def

from irkit.dialects.element_sets import SINGLES, Elements
from irkit.dialects.inference import InferredOp, Props, check_rank, fail, same_element
from irkit.dialects.types import DYNAMIC, Tensor, tensor, tensor_type


@irdl_op_definition
class GemvtOp(InferredOp):
    """Two products with one matrix, z = A x and y = A^T r, by parts of its rows, each read once.

    Of `parts` parts, number p has rows p * m // parts to (p + 1) * m // parts of the m that there are. Row p of
    the result begins with the part's elements of z, as many as the largest part has rows; where the part has
    one less, the last is 0. Behind them is what its rows add to y. Without `r` that is z: y = A^T A x.

    Named after _GEMVT of the BLAS Technical Forum's standard, which has both products for this reason.

    ```mlir
    %y = te.gemvt %a, %x, %r {parts = 2 : i64}
      : (tensor<5x4xf64>, tensor<4xf64>, tensor<5xf64>) -> tensor<2x7xf64>
    ```
    """

    name = "te.gemvt"
    ELEMENTS: ClassVar[tuple[Elements, ...]] = (SINGLES,)
    a = operand_def(TensorType)
    x = operand_def(TensorType)
    r = opt_operand_def(TensorType)
    parts = prop_def(IntegerAttr[IntegerType])
    y = result_def(TensorType)
    assembly_format = "$a `,` $x (`,` $r^)? attr-dict `:` functional-type(operands, results)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        a, x, *rest = operands
        parts = props["parts"]
        assert isinstance(parts, IntegerAttr)
        check_rank(cls, "a matrix", a, 2)
        rows, columns = a.get_shape()
        if DYNAMIC in (rows, columns):
            raise fail(cls, "a matrix of known extents", a)
        if x.get_shape() != (columns,):
            raise fail(cls, f"a vector of {columns} elements", x)
        if rest and rest[0].get_shape() != (rows,):
            raise fail(cls, f"a vector of {rows} elements", rest[0])
        if not 0 < parts.value.data <= rows:
            raise fail(cls, f"0 < parts <= {rows}", f"parts = {parts.value.data}")
        height = -(-rows // parts.value.data)
        return [tensor(same_element(cls, operands), (parts.value.data, height + columns))]

    @property
    def count(self) -> int:
        """How many parts there are."""
        return self.parts.value.data

    @property
    def rows(self) -> int:
        """Rows of the matrix."""
        return tensor_type(self.a).get_shape()[0]

    @property
    def columns(self) -> int:
        """Columns of the matrix."""
        return tensor_type(self.a).get_shape()[1]

    @property
    def height(self) -> int:
        """Rows of the largest part."""
        return -(-self.rows // self.count)

    def first(self, part: int) -> int:
        """The first row of a part; of the one behind the last, the rows that there are."""
        return part * self.rows // self.count
