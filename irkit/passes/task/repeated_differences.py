"""Rows without a number of their own, x - m, are computed by each that reads them.

As a launch of its own such a difference is written, waited for and read, where x and m are there already and
take one subtraction: so it is where a softmax's logarithm, or a normalisation, is written out. Of state it
stays one, so that the state may be written over as soon as it is read.
"""

from __future__ import annotations

from typing import Final

from xdsl.dialects import arith, func
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.dialects.linalg_generic import is_elementwise, maps
from irkit.dialects.state import state_of
from irkit.dialects.types import DYNAMIC, tensor_type

READERS: Final = 3
"""More readers would take longer for their subtractions than the one launch does."""


def repeat_differences(main: func.FuncOp) -> None:
    """Give each reader of a difference between a tensor and a number for each of its rows a copy of it."""
    arguments = main.body.block.args
    state: set[SSAValue] = {arguments[pair.argument] for pair in state_of(main)}
    for op in list(main.body.block.ops):
        if isinstance(op, linalg.GenericOp) and _is_repeated(op, state):
            _, *others = dict.fromkeys(use.operation for use in op.results[0].uses)
            for user in others:
                _give(user, op)


def _is_repeated(op: linalg.GenericOp, state: set[SSAValue]) -> bool:
    if not _is_difference(op) or state.intersection(op.inputs):
        return False
    users = {use.operation for use in op.results[0].uses}
    few = 1 < len(users) <= READERS
    return few and all(isinstance(user, linalg.GenericOp) for user in users)


def _is_difference(op: linalg.GenericOp) -> bool:
    """Whether it takes one sum or difference, of a tensor of its size and a smaller one."""
    if len(op.inputs) != 2 or len(op.results) != 1 or not is_elementwise(op):
        return False
    body = list(op.body.block.ops)
    if len(body) != 2 or not isinstance(body[0], arith.AddfOp | arith.SubfOp):
        return False
    sizes = [tensor_type(value).get_shape() for value in (*op.inputs, op.results[0])]
    whole, each, result = (_elements(size) for size in sizes)
    last = maps(op)[0].results == maps(op)[-1].results
    return last and whole == result and each * 2 <= result


def _elements(shape: tuple[int, ...]) -> int:
    """How many elements there are for each of a batch."""
    count = 1
    for size in shape:
        count *= 1 if size == DYNAMIC else size
    return count


def _give(user: Operation, op: linalg.GenericOp) -> None:
    copy = op.clone()
    copy.location = op.location
    Rewriter.insert_op(copy, InsertPoint.before(user))
    for number, value in enumerate(user.operands):
        if value is op.results[0]:
            user.operands[number] = copy.results[0]
