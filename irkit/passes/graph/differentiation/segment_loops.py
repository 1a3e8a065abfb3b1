"""Segments that a user named, in functions with loops, before these are differentiated in reverse mode.

Each becomes a loop of one round, of which only what it begins with is kept: the way back runs it again
(`asking.py`). In a loop's body nothing need be done: what is in a segment is computed anew from what the
round began with (`loops.py`). Functions of launches alone have `rematerialise` for both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.scf import YieldOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.dialects.loops import while_op
from irkit.dialects.segments import segment_of
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.passes.graph.differentiation.tape import Tape
from irkit.weights import WeightStore


def outline_segments(block: Block, moved: Collection[Operation], weights: WeightStore) -> None:
    """Ops of a block that are in one segment and follow one another as a loop of one round, where some are
    among `moved`."""
    for run in list(_runs(block)):
        if any(op in moved for op in run):
            _outline(run, weights)


def _runs(block: Block) -> Iterator[list[Operation]]:
    """Ops of one segment that follow one another; constants stay where they are."""
    name: str | None = None
    run: list[Operation] = []
    for op in block.ops:
        if isinstance(op, arith.ConstantOp):
            continue
        here = segment_of(op.location)
        if here != name and run:
            yield run
            run = []
        name = here
        if here is not None:
            run.append(op)
    if run:
        yield run


def _outline(run: Sequence[Operation], weights: WeightStore) -> None:
    own = set(run)
    left = [v for op in run for v in op.results if not own.issuperset(_readers(v, run[0].parent))]
    tape = Tape(before := Block(), weights)
    tape.like = run[0]
    starts = [_nothing(tape, v) for v in left]
    once = tape.constant(np.array(True))
    body = Tape(Block(arg_types=[once.type, *(v.type for v in left)]), weights)
    body.like = run[0]
    behind = InsertPoint.after(run[-1])
    for op in run:
        op.detach()
        body.block.add_op(op)
    body.add(YieldOp(body.constant(np.array(False)), *left))
    loop = tape.add(while_op([once, *starts], 0, body.block))
    made = list(before.ops)
    for op in made:
        op.detach()
    Rewriter.insert_op(made, behind)
    for value, result in zip(left, loop.results[1:], strict=True):
        result.name_hint = value.name_hint
        value.replace_uses_with_if(result, lambda use: not _is_in(use.operation, body.block))


def _nothing(tape: Tape, like: SSAValue) -> SSAValue:
    """What a value is before the round that computes it, which nobody reads."""
    t = tensor_type(like)
    zero = tape.constant(np.zeros((), numpy_dtype(t.element_type)))
    return tape.ops.expand(zero, list(t.get_shape()))


def _readers(value: SSAValue, block: Block | None) -> Iterator[Operation]:
    """Ops of a block that read a value, or have ops in them that do."""
    for use in value.uses:
        op = use.operation
        while op.parent is not block:
            outer = op.parent_op()
            assert outer is not None
            op = outer
        yield op


def _is_in(op: Operation, block: Block) -> bool:
    """Whether an op stands in a block, or in an op of it."""
    while op.parent is not block:
        outer = op.parent_op()
        if outer is None:
            return False
        op = outer
    return True
