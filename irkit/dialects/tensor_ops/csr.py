"""`te.csr_dense`, `te.csr_matmul` and `te.csr_reduce`: rows of a CSR matrix, by the elements that are stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from xdsl.ir import SSAValue

from irkit.dialects import te
from irkit.dialects.csr_base import CsrBase, csr_dense, csr_matmul, csr_reduce
from irkit.dialects.tensor_ops.interface import Box, Extents, Interpreter, Kind, TensorOpModel
from irkit.dialects.types import tensor_type
from irkit.weights import Array

AnyCsr = TypeVar("AnyCsr", bound=CsrBase)


class _Csr(TensorOpModel[AnyCsr], Generic[AnyCsr]):
    """A row of the result hangs on where that row begins and ends, and on all that is stored."""

    def kind(self, op: AnyCsr) -> Kind:
        return Kind.HEAVY

    def operand_boxes(
        self, op: AnyCsr, needed: Sequence[Box | None], extents: Extents
    ) -> Sequence[Box | None]:
        (box,) = needed
        assert box is not None
        rows = (op.operands[2], op.operands[3], *(v for v in op.beside if _is_of_rows(v)))
        return [
            (box[0], *extents.whole(v)[1:]) if v in rows else extents.whole(v) for v in op.operands
        ]


def _is_of_rows(value: SSAValue) -> bool:
    return tensor_type(value).get_num_dims() == 2


class CsrDense(_Csr[te.CsrDenseOp]):
    """Row by row."""

    family = "csr_dense"

    def evaluate(
        self, op: te.CsrDenseOp, operands: list[Array], interpreter: Interpreter
    ) -> Sequence[Array]:
        return [csr_dense(op, *operands)]


class CsrMatmul(_Csr[te.CsrMatmulOp]):
    """Row by row."""

    family = "csr"

    def evaluate(
        self, op: te.CsrMatmulOp, operands: list[Array], interpreter: Interpreter
    ) -> Sequence[Array]:
        return [csr_matmul(op, *operands)]


class CsrReduce(_Csr[te.CsrReduceOp]):
    """Row by row."""

    family = "csr_reduce"

    def evaluate(
        self, op: te.CsrReduceOp, operands: list[Array], interpreter: Interpreter
    ) -> Sequence[Array]:
        return [csr_reduce(op, *operands)]
