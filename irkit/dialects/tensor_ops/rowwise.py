"""`te.rowwise`: elements of rows that hang on sums along them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap

from irkit.dialects import te
from irkit.dialects.roperator_root import Root
from irkit.dialects.tensor_ops.interface import Box, Extents, Interpreter, Kind, TensorOpModel
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.weights import Array


class Rowwise(TensorOpModel[te.RowwiseOp]):
    """A row of the result needs whole rows of the operands."""

    family = "rowwise"

    def kind(self, op: te.RowwiseOp) -> Kind:
        return Kind.HEAVY

    def evaluate(
        self, op: te.RowwiseOp, operands: list[Array], interpreter: Interpreter
    ) -> Sequence[Array]:
        columns = op.columns
        placed = [_placed(x, m) for x, m in zip(operands, op.maps, strict=True)]
        shape = np.broadcast_shapes(*(x.shape for x in placed))
        scope: dict[SSAValue, Array] = dict(zip(op.body.block.args, placed, strict=True))

        def known(value: SSAValue) -> Array:
            if value not in scope:
                # Constants of bodies may stand in the function around them.
                assert isinstance(value.owner, Operation)
                return interpreter.scalar(value.owner, [])
            return scope[value]

        for inner in op.body.block.ops:
            if isinstance(inner, te.RowReduceOp):
                scope[inner.y] = _along(known(inner.x), inner.kind.data, columns)
            elif inner.results:
                found = [known(v) for v in inner.operands]
                scope[inner.results[0]] = interpreter.scalar(inner, found)
        end = op.body.block.last_op
        assert end is not None
        y = known(end.operands[0])
        y = y.astype(numpy_dtype(tensor_type(op.y).element_type))
        y = np.broadcast_to(y, shape).copy()
        return [y[..., 0] if op.sums_up else y]

    def operand_boxes(
        self, op: te.RowwiseOp, needed: Sequence[Box | None], extents: Extents
    ) -> Sequence[Box | None]:
        (box,) = needed
        assert box is not None
        rows = (*box[: len(op.rows) - 1], (0, op.columns))
        return [
            tuple(rows[e.position] if isinstance(e, AffineDimExpr) else (0, 1) for e in m.results)
            for m in op.maps
        ]

    def root(self, heavy: Sequence[Operation]) -> Root:
        root = super().root(heavy)
        (op,) = heavy
        assert isinstance(op, te.RowwiseOp)
        return Root("row_sums", op, root.parallel, (op.columns,)) if op.sums_up else root

    def why_no_prologue(self, op: te.RowwiseOp, producer: Operation, cheap: bool) -> str | None:
        """Each element is read once, or as often as there are sweeps; what broadcasts is read for each row."""
        reads = [m for v, m in zip(op.inputs, op.maps, strict=True) if v.owner is producer]
        if cheap or all(len(m.used_dims()) == m.num_dims for m in reads):
            return None
        return f"'{op.name}' reads an element of it in several rows"


def _placed(x: Array, amap: AffineMap) -> Array:
    """An operand's elements at the places that read them, with an extent of 1 where all read the same."""
    dims = [e.position for e in amap.results if isinstance(e, AffineDimExpr)]
    units = tuple(0 if isinstance(e, AffineConstantExpr) else slice(None) for e in amap.results)
    found = x[units].transpose(np.argsort(dims, kind="stable"))
    shape = [1] * amap.num_dims
    for d, size in zip(sorted(dims), found.shape, strict=True):
        shape[d] = size
    return found.reshape(shape)


def _along(x: Array, kind: str, columns: int) -> Array:
    """What is summed along rows, in the order of the columns."""
    x = np.broadcast_to(x, (*x.shape[:-1], columns))
    combine = {"add": np.add, "max": np.maximum, "min": np.minimum}[kind]
    # Terms are added to 0, which two zeros without a sign are.
    found = x[..., 0] + x.dtype.type(0)
    for column in range(1, columns):
        found = combine(found, x[..., column])
    return found[..., None]
