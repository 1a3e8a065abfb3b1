"""Matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, cast

from xdsl.dialects.builtin import BoolAttr, Float64Type, FloatAttr, TensorType
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, prop_def, result_def

from irkit.dialects.element_sets import NUMBERS, Elements, holds
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.inference import Props, check_rank, fail, same_element
from irkit.dialects.types import Tensor, tensor


@irdl_op_definition
class GemmOp(GraphOp):
    """alpha * op(a) @ op(b) + beta * c, op being a transposition if asked (ONNX Gemm).

    `c` broadcasts to the result; a missing `c` is zero. Sums of floats have no fixed order, nor has
    the sign of a sum that is zero. Integers wrap; alpha and beta are then numbers of their type.

    ```mlir
    %y = graph.gemm %x, %w, %b {trans_a = false, trans_b = true, alpha = 1.0 : f64, beta = 1.0 : f64}
      : (tensor<?x8xf32>, tensor<16x8xf32>, tensor<16xf32>) -> tensor<?x16xf32>
    ```
    """

    name = "graph.gemm"
    ELEMENTS: ClassVar[tuple[Elements, ...]] = (NUMBERS,)
    CONTRACTS: ClassVar[bool] = True
    a = operand_def(TensorType)
    b = operand_def(TensorType)
    c = opt_operand_def(TensorType)
    trans_a = prop_def(BoolAttr)
    trans_b = prop_def(BoolAttr)
    alpha = prop_def(FloatAttr[Float64Type])
    beta = prop_def(FloatAttr[Float64Type])
    y = result_def(TensorType)
    assembly_format = "$a `,` $b (`,` $c^)? attr-dict `:` functional-type(operands, results)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        a, b, *c = operands
        element = same_element(cls, operands)
        check_rank(cls, "a", a, 2)
        check_rank(cls, "b", b, 2)
        m, k = _transposed(a, props["trans_a"])
        k_b, n = _transposed(b, props["trans_b"])
        if k != k_b:
            raise fail(cls, f"b with {k} rows (columns of a)", k_b)
        for t in c:
            trailing = (1, 1, *t.get_shape())[-2:]
            if t.get_num_dims() > 2 or trailing[0] not in (1, m) or trailing[1] not in (1, n):
                raise fail(cls, f"c that broadcasts to {m}x{n}", t)
        for name in ("alpha", "beta"):
            _check_factor(cls, name, element, props)
        return [tensor(element, (m, n))]


def _check_factor(op: type[GraphOp], name: str, element: Attribute, props: Props) -> None:
    """A factor of integers is one of them."""
    value = cast(FloatAttr[Float64Type], props[name]).value.data
    if not holds(element, value):
        raise fail(op, f"{name} to be a number of {element}", value)


def _transposed(t: Tensor, flag: object) -> tuple[int, int]:
    rows, columns = t.get_shape()
    return (columns, rows) if flag == BoolAttr.from_bool(True) else (rows, columns)


@irdl_op_definition
class MatmulOp(GraphOp):
    """NumPy's matmul on operands of rank two or more: leading dimensions broadcast.

    Sums of floats have no fixed order, nor has the sign of a sum that is zero. Integers wrap.

    ```mlir
    %y = graph.matmul %x, %w : (tensor<?x8xf32>, tensor<8x16xf32>) -> tensor<?x16xf32>
    ```
    """

    name = "graph.matmul"
    ELEMENTS: ClassVar[tuple[Elements, ...]] = (NUMBERS,)
    CONTRACTS: ClassVar[bool] = True
    a = operand_def(TensorType)
    b = operand_def(TensorType)
    y = result_def(TensorType)
    assembly_format = "$a `,` $b attr-dict `:` functional-type(operands, results)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        a, b = operands
        element = same_element(cls, operands)
        if min(a.get_num_dims(), b.get_num_dims()) < 2:
            raise fail(cls, "operands of rank 2 or more", f"{a} and {b}")
        *lead_a, m, k = a.get_shape()
        *lead_b, k_b, n = b.get_shape()
        if k != k_b:
            raise fail(cls, f"b with {k} rows (columns of a)", k_b)
        rank = max(len(lead_a), len(lead_b))
        lead: list[int] = []
        for p, q in zip(
            [1] * (rank - len(lead_a)) + lead_a, [1] * (rank - len(lead_b)) + lead_b, strict=True
        ):
            if p != q and 1 not in (p, q):
                raise fail(cls, "leading dimensions that broadcast", f"{a} and {b}")
            lead.append(q if p == 1 else p)
        return [tensor(element, (*lead, m, n))]


OPS: list[type[GraphOp]] = [GemmOp, MatmulOp]
