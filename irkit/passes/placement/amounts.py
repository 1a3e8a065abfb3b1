"""How much the parts of a program do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from irkit.dialects.bufferization import MaterializeInDestinationOp, ToTensorOp
from irkit.dialects.program.views import trips_of, view_of
from irkit.dialects.types import tensor_type
from irkit.passes.placement.op_work import elements, nbytes, work_of
from irkit.passes.placement.region_costs import Amount
from irkit.passes.placement.units import Unit
from irkit.passes.program.effects import uses_of
from irkit.rkernels.work import total


def amount_of(unit: Unit, approximate: bool) -> Amount:
    """What a part does: all its ops, and what it reads of elsewhere and writes for others."""
    work = total(work_of(op, approximate) for op in unit.ops)
    own = {op for outer in unit.ops for op in outer.walk()}
    local = _local_buffers(own)
    repeated = list(_repeated(unit.ops))
    moved = sum(times * _bytes(op, own, local) for op, times in _once(repeated))
    wide = max((_width(op) for op, _ in repeated), default=1)
    rounds = max((times for _, times in repeated), default=1.0)
    return Amount(work, wide, moved, rounds)


def _once(repeated: Sequence[tuple[Operation, float]]) -> Iterator[tuple[Operation, float]]:
    """Without reads of what was read before."""
    seen: set[SSAValue] = set()
    for op, times in repeated:
        if isinstance(op, ToTensorOp):
            if op.memref in seen:
                continue
            seen.add(op.memref)
        yield op, times


def _local_buffers(own: set[Operation]) -> set[SSAValue]:
    """Buffers that a part writes and nobody else touches: they need not be."""
    buffers = {use.buffer for op in own for use in uses_of(op) if use.writes}
    return {b for b in buffers if isinstance(b.owner, memref.AllocOp) and is_local(b, own)}


def is_local(value: SSAValue, own: set[Operation]) -> bool:
    """Whether all uses of an array, and of its views, are in `own`."""
    return all(
        use.operation in own
        or (
            isinstance(use.operation, memref.ReinterpretCastOp)
            and is_local(use.operation.result, own)
        )
        for use in value.uses
    )


def _repeated(ops: Sequence[Operation]) -> Iterator[tuple[Operation, float]]:
    """All ops, and how often each is done."""
    for op in ops:
        if not isinstance(op, scf.ForOp):
            yield op, 1.0
            continue
        trips = len(trips_of(op))
        for inner, times in _repeated(list(op.body.block.ops)):
            yield inner, trips * times


def _width(op: Operation) -> int:
    values: list[SSAValue] = [v for v in (*op.operands, *op.results)]
    return max((elements(v) for v in values if isinstance(v.type, TensorType)), default=1)


def _bytes(op: Operation, own: set[Operation], local: set[SSAValue]) -> int:
    if isinstance(op, ToTensorOp):
        inside = view_of(op.memref).buffer in local
        return 0 if inside else nbytes(tensor_type(op.tensor))
    if isinstance(op, MaterializeInDestinationOp):
        inside = view_of(op.dest).buffer in local
        return 0 if inside else nbytes(tensor_type(op.source))
    foreign = [v for v in op.operands if isinstance(v.owner, Operation) and v.owner not in own]
    read = sum(nbytes(tensor_type(v)) for v in foreign if _is_made(v))
    made = [r for r in op.results if isinstance(r.type, TensorType)]
    left = sum(nbytes(tensor_type(r)) for r in made if any(u.operation not in own for u in r.uses))
    return read + left


def _is_made(value: SSAValue) -> bool:
    owner = value.owner
    return (
        isinstance(value.type, TensorType)
        and isinstance(owner, Operation)
        and owner.name != "arith.constant"
    )
