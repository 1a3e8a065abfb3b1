"""Keep in arrays what is computed in one run of a program and read in another."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import memref
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.dialects.bufferization import MaterializeInDestinationOp, ToTensorOp
from irkit.dialects.program.views import buffer_type
from irkit.dialects.types import tensor_type

Run = list[Operation]
"""Ops of one block, one after another but for what stays where it is."""


def spill(runs: Sequence[Run]) -> None:
    """Write each tensor that is made in one run and read elsewhere to a new array, and read it from there.
    Every op that makes a tensor is in a run."""
    home = {op: n for n, run in enumerate(runs) for top in run for op in top.walk()}
    for number, run in enumerate(runs):
        for op in list(run):
            for value in op.results:
                foreign = [u for u in value.uses if home.get(u.operation) != number]
                if not isinstance(value.type, TensorType) or not foreign:
                    continue
                buffer = _kept(value, run)
                for use in foreign:
                    where = home.get(use.operation)
                    reader = None if where is None else runs[where]
                    read = _read_again(buffer, use.operation, reader)
                    use.operation.operands[use.index] = read


def _kept(value: SSAValue, run: Run) -> SSAValue:
    """The new array, to which the value is written where it is made."""
    t = tensor_type(value)
    made = memref.AllocOp((), (), buffer_type(t.element_type, t.get_shape()))
    Rewriter.insert_op(made, InsertPoint.before(run[0]))
    write = MaterializeInDestinationOp(value, made.memref)
    op = value.owner
    assert isinstance(op, Operation)
    Rewriter.insert_op(write, InsertPoint.after(op))
    run.insert(run.index(op) + 1, write)
    return made.memref


def _read_again(buffer: SSAValue, user: Operation, run: Run | None) -> SSAValue:
    """The value, read before its user: at the start of the run that this is in."""
    read = ToTensorOp(buffer)
    if run is None:
        Rewriter.insert_op(read, InsertPoint.before(user))
        return read.tensor
    Rewriter.insert_op(read, InsertPoint.before(_in_block(user, run[0].parent)))
    run.insert(0, read)
    return read.tensor


def _in_block(op: Operation, block: Block | None) -> Operation:
    """What stands in a block and is an op, or has it inside."""
    found = None if block is None else block.find_ancestor_op_in_block(op)
    assert found is not None
    return found
