"""The bodies of tensor-level ops on NumPy arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from irkit.dialects.tensor_ops.interface import Interpreter
from irkit.errors import InvalidModelError, UnsupportedError
from irkit.weights import Array

Loops = Sequence[Array]
"""Per loop its index, broadcastable over the parallel loops."""


def yielded(
    op: Operation, block: Block, arguments: Sequence[Array], loops: Loops, interpreter: Interpreter
) -> list[Array]:
    """What the body `block` of `op` yields for its first arguments.

    Raises UnsupportedError for a body that uses more of the function around it than scalar constants.
    """
    scope: dict[SSAValue, Array] = dict(zip(block.args, arguments, strict=False))

    def known(value: SSAValue) -> Array:
        return _known(op, value, scope, interpreter)

    for inner in block.ops:
        if inner.has_trait(IsTerminator):
            return [known(v) for v in inner.operands]
        if isinstance(inner, linalg.IndexOp):
            scope[inner.result] = loops[inner.dim.value.data]
        else:
            operands = [known(v) for v in inner.operands]
            scope[inner.results[0]] = interpreter.scalar(inner, operands)
    raise InvalidModelError(f"a '{op.name}' whose body ends without a terminator")


def _known(
    op: Operation, value: SSAValue, scope: Mapping[SSAValue, Array], interpreter: Interpreter
) -> Array:
    """A value of the body, or a constant of the function around it (`cse` shares those)."""
    if value in scope:
        return scope[value]
    if isinstance(value.owner, ConstantOp):
        return interpreter.scalar(value.owner, [])
    raise UnsupportedError(f"a '{op.name}' whose body uses a value of the function around it")
