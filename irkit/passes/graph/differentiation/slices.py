"""Rules of the parts of arrays that programs have beside graph ops: `tensor.extract_slice`,
`tensor.insert_slice`.

Both are linear. They may lie at places that hang on a loop's variable, which the transpose then does too.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.tensor import ExtractSliceOp, InsertSliceOp
from xdsl.ir import Operation, SSAValue

from irkit.dialects.graph.gradients.rule import Maybe, made_good, zeros
from irkit.passes.graph.differentiation.tape import Tape


def push_slice(
    tape: Tape, op: ExtractSliceOp | InsertSliceOp, tangents: Sequence[Maybe]
) -> list[Maybe]:
    """Tangents of the results, of those of the operands."""
    if isinstance(op, ExtractSliceOp):
        (source, *_) = tangents
        return [None if source is None else _extracted(tape, op, source, op.result)]
    source, dest, *_ = tangents
    if source is None and dest is None:
        return [None]
    part, whole = made_good(tape.ops, source, op.source), made_good(tape.ops, dest, op.dest)
    return [_inserted(tape, op, part, whole)]


def pull_slice(
    tape: Tape, op: ExtractSliceOp | InsertSliceOp, cotangent: SSAValue, wanted: Sequence[bool]
) -> list[Maybe]:
    """Cotangents of the operands, of that of the result."""
    rest: list[Maybe] = [None] * (len(wanted) - 1)
    if isinstance(op, ExtractSliceOp):
        return [_inserted(tape, op, cotangent, zeros(tape.ops, op.source)), *rest]
    part = _extracted(tape, op, cotangent, op.source) if wanted[0] else None
    left = None
    if wanted[1]:
        left = _inserted(tape, op, zeros(tape.ops, op.source), cotangent)
    return [part, left, *rest[1:]]


def add_slice(tape: Tape, op: ExtractSliceOp, cotangent: SSAValue, whole: SSAValue) -> SSAValue:
    """The cotangent `whole` of what a part was taken of, with the part's added there."""
    there = _extracted(tape, op, whole, op.result)
    return _inserted(tape, op, tape.ops.add(there, cotangent), whole)


def _place(op: ExtractSliceOp | InsertSliceOp) -> list[Sequence[SSAValue]]:
    return [list(op.offsets), list(op.sizes), list(op.strides)]


def _properties(op: Operation) -> dict[str, object]:
    names = ("static_offsets", "static_sizes", "static_strides")
    return {n: op.properties[n] for n in names}


def _extracted(
    tape: Tape, op: ExtractSliceOp | InsertSliceOp, whole: SSAValue, like: SSAValue
) -> SSAValue:
    """What is at the op's place of `whole`, of the type of `like`."""
    made = ExtractSliceOp.build(
        operands=[whole, *_place(op)],
        properties={n: op.properties[n] for n in _properties(op)},
        result_types=[like.type],
    )
    return tape.add(made).results[0]


def _inserted(
    tape: Tape, op: ExtractSliceOp | InsertSliceOp, part: SSAValue, whole: SSAValue
) -> SSAValue:
    """`whole` with `part` at the op's place."""
    made = InsertSliceOp.build(
        operands=[part, whole, *_place(op)],
        properties={n: op.properties[n] for n in _properties(op)},
        result_types=[whole.type],
    )
    return tape.add(made).results[0]
