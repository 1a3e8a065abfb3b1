"""Loops that are so short that an iteration behind another costs less than what a loop does between them."""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.dialects.loop_places import trips_of

SHORT = 8
"""Ops of all iterations together that are no more than a loop is worth: between two iterations all vEUs meet,
which takes about as long as a small kernel."""


def is_short(op: scf.ForOp) -> bool:
    """Whether a loop is one no more when it is unrolled: one iteration, none, or few ops in all. Raises
    UnsupportedError for unknown bounds."""
    count = trips_of(op).count
    size = sum(not inner.name.startswith("arith.") for inner in op.body.block.ops) - 1
    return count <= 1 or count * size <= SHORT


def unroll(op: scf.ForOp) -> None:
    """Put a loop's iterations one behind another in its place."""
    trips, carried = trips_of(op), list[SSAValue](op.iter_args)
    variable, *arguments = op.body.block.args
    for number in range(trips.count):
        at = arith.ConstantOp.from_int_and_width(trips.first + number * trips.step, IndexType())
        Rewriter.insert_op(at, InsertPoint.before(op))
        env: dict[SSAValue, SSAValue] = {variable: at.result}
        env.update(zip(arguments, carried, strict=True))
        carried = _iteration(op, env)
    Rewriter.replace_op(op, [], carried)


def _iteration(op: scf.ForOp, env: dict[SSAValue, SSAValue]) -> list[SSAValue]:
    """Copy the body before the loop; what it yields."""
    for inner in op.body.block.ops:
        if isinstance(inner, scf.YieldOp):
            return [env.get(v, v) for v in inner.operands]
        copy: Operation = inner.clone(env)
        Rewriter.insert_op(copy, InsertPoint.before(op))
    return []
