"""Slices of state of which an update of the same state is made belong to the launch that updates it.

Such a slice may name bytes, and so would stay between launches. What is updated in place has to be read as
a whole by the launch that writes it: only then can it be seen that each element is read where it is written.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import func, tensor
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.dialects.linalg_generic import is_elementwise
from irkit.dialects.state import state_of
from irkit.dialects.tensor_ops.interface import Kind
from irkit.dialects.tensor_ops.registry import kind_of


def own_slices(main: func.FuncOp) -> set[Operation]:
    """Slices of state that only an update of it reads, each with one reader: copies are made for that."""
    arguments = main.body.block.args
    state: set[SSAValue] = {arguments[pair.argument] for pair in state_of(main)}
    found: set[Operation] = set()
    # What the first of a row of insertions is made into, of each that stands in one.
    first: dict[SSAValue, SSAValue] = {}
    for op in list(main.body.block.ops):
        if not isinstance(op, tensor.InsertSliceOp):
            continue
        into = first[op.result] = first.get(op.dest, op.dest)
        if into not in state:
            continue
        for user, operand in _slices_read(op, into):
            slice_ = user.operands[operand].owner
            assert isinstance(slice_, tensor.ExtractSliceOp)
            copy = slice_.clone()
            Rewriter.insert_op(copy, InsertPoint.before(user))
            user.operands[operand] = copy.result
            found.add(copy)
    return found


def _slices_read(
    op: tensor.InsertSliceOp, state: SSAValue
) -> Iterator[tuple[linalg.GenericOp, int]]:
    """Where the elementwise op that makes what is inserted reads slices of `state` that name bytes."""
    made = op.source.owner
    if not isinstance(made, linalg.GenericOp) or not is_elementwise(made):
        return
    if any(use.operation is not op for use in op.source.uses):
        return
    for number, value in enumerate(made.inputs):
        slice_ = value.owner
        if not isinstance(slice_, tensor.ExtractSliceOp) or kind_of(slice_) is not Kind.VIEW:
            continue
        if slice_.source is state and not slice_.offsets:
            yield made, number
