"""Slices that several elementwise ops read are computed in each of them.

Reading a slice takes no arithmetic. As a launch of its own it would be a copy that all its readers wait for.
Of state it stays one, so that the state may be written over as soon as the copy is made.
"""

from __future__ import annotations

from xdsl.dialects import func, tensor
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.dialects.linalg_generic import is_elementwise
from irkit.dialects.state import state_of
from irkit.dialects.tensor_ops.interface import Kind
from irkit.dialects.tensor_ops.registry import kind_of


def repeat_slices(main: func.FuncOp) -> None:
    """Give each reader of a slice that would be a launch a copy of the op, where all are elementwise."""
    arguments = main.body.block.args
    state: set[SSAValue] = {arguments[pair.argument] for pair in state_of(main)}
    for op in list(main.body.block.ops):
        if isinstance(op, tensor.ExtractSliceOp) and _is_repeated(op, state):
            first, *others = dict.fromkeys(use.operation for use in op.result.uses)
            for user in others:
                _give(user, op)
            # Beside its reader, so that it is computed no earlier than that.
            op.detach()
            Rewriter.insert_op(op, InsertPoint.before(first))


def _is_repeated(op: tensor.ExtractSliceOp, state: set[SSAValue]) -> bool:
    users = {use.operation for use in op.result.uses}
    several = len(users) > 1 and kind_of(op) is Kind.LIGHT and op.source not in state
    return several and all(isinstance(u, linalg.GenericOp) and is_elementwise(u) for u in users)


def _give(user: Operation, op: tensor.ExtractSliceOp) -> None:
    copy = op.clone()
    copy.location = op.location
    Rewriter.insert_op(copy, InsertPoint.before(user))
    for number, value in enumerate(user.operands):
        if value is op.result:
            user.operands[number] = copy.result
