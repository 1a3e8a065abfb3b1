"""Loops that are so short that an iteration behind another costs less than what a loop does between them."""

from __future__ import annotations

from collections.abc import Sequence

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
    for number in range(trips.count):
        at = arith.ConstantOp.from_int_and_width(trips.first + number * trips.step, IndexType())
        Rewriter.insert_op(at, InsertPoint.before(op))
        ops, carried = copy_of_turn(op, [at.result, *carried])
        Rewriter.insert_op(ops, InsertPoint.before(op))
    Rewriter.replace_op(op, [], carried)


def copy_of_turn(
    loop: scf.ForOp, given: Sequence[SSAValue]
) -> tuple[list[Operation], list[SSAValue]]:
    """A copy of a loop's body for these values of its arguments, in no block yet; what it yields."""
    env: dict[SSAValue, SSAValue] = dict(zip(loop.body.block.args, given, strict=True))
    *ops, last = loop.body.block.ops
    # Cloning adds to the map what it makes.
    made = [op.clone(env) for op in ops]
    return made, [env.get(v, v) for v in last.operands]
