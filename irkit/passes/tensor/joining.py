"""Elementwise ops over the same loops as one, with the results of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.dialects.linalg_generic import is_elementwise, maps
from irkit.dialects.positions import Positions
from irkit.dialects.tensor_ops.interface import Kind
from irkit.dialects.tensor_ops.registry import kind_of
from irkit.dialects.types import tensor_type

Operand = tuple[SSAValue, AffineMap]


Sources = dict[Operation, set[Operation | Block]]
"""What makes what an op reads, in its regions too: of ops that do not change while it is known."""


def why_not_joined(ops: Sequence[linalg.GenericOp], known: Sources | None = None) -> str | None:
    """Why elementwise ops of one block, in program order, cannot be one; None if they can. `known` is added
    to."""
    for op in ops:
        if (reason := _why_alone(op)) is not None:
            return reason
    if len({tensor_type(op.results[0]).get_shape() for op in ops}) != 1:
        return "they are of several shapes"
    members = set(ops)
    identity = maps(ops[0])[-1]
    for op in ops:
        for value, amap in zip(op.inputs, maps(op), strict=False):
            if value.owner in members and amap != identity:
                return "one reads elements of another elsewhere than it computes its own"
    found = _between(ops, {} if known is None else known)
    return None if found is not None else "one waits for what is computed from another"


def _why_alone(op: linalg.GenericOp) -> str | None:
    if not is_elementwise(op):
        return "something that is not elementwise reads it"
    if any(isinstance(inner, linalg.IndexOp) for inner in op.body.block.ops):
        return "a body reads the index"
    block, own = op.body.block, maps(op)[len(op.inputs) :]
    identity = AffineMap.identity(len(op.iterator_types))
    if any(m != identity for m in own):
        return "one is written in another order than it is computed"
    if any(argument.uses for argument in block.args[len(op.inputs) :]):
        return "one reads its own destination"
    return None if all(_is_free(v) for v in op.outputs) else "a destination is computed"


def _is_free(value: SSAValue) -> bool:
    return isinstance(value.owner, Operation) and kind_of(value.owner) is Kind.FREE


def _between(ops: Sequence[linalg.GenericOp], known: Sources) -> list[Operation] | None:
    """What stands between the first and the last and depends on one of them; None if one depends on that."""
    members: set[Operation] = set(ops)
    late: list[Operation] = []
    found: set[Operation] = set()
    op: Operation | None = ops[0]
    while op is not None:
        if op not in known:
            known[op] = {v.owner for inner in op.walk() for v in inner.operands}
        sources = known[op]
        if op in members:
            if sources & found:
                return None
        elif sources & (members | found):
            late.append(op)
            found.add(op)
        if op is ops[-1]:
            return late
        op = op.next_op
    return None


@dataclass
class _Joined:
    """The inputs, destinations and body of the one op."""

    block: Block = field(default_factory=Block)
    inputs: dict[Operand, SSAValue] = field(default_factory=dict[Operand, SSAValue])

    def argument(self, value: SSAValue, amap: AffineMap, element: SSAValue) -> None:
        """Have an argument for an input."""
        if (value, amap) not in self.inputs:
            self.inputs[value, amap] = self.block.insert_arg(element.type, len(self.inputs))


def join(
    ops: Sequence[linalg.GenericOp],
    replaced: dict[SSAValue, Operand],
    positions: Positions | None = None,
) -> linalg.GenericOp:
    """One op in the place of `ops` (`why_not_joined` is None). Inputs in `replaced` are read otherwise: as
    the value and map there, from the loops that the ops have. `positions` of their block are kept."""
    late = _between(ops, {})
    assert late is not None
    members, made = set(ops), _Joined()
    reads = [
        [_read(v, m, replaced) for v, m in zip(op.inputs, maps(op), strict=False)] for op in ops
    ]
    for op, own in zip(ops, reads, strict=True):
        for (value, amap), argument in zip(own, op.body.block.args, strict=False):
            if value.owner not in members:
                made.argument(value, amap, argument)
    known: dict[SSAValue, SSAValue] = {}
    outputs: list[tuple[SSAValue, SSAValue]] = []
    for op, own in zip(ops, reads, strict=True):
        scope: dict[SSAValue, SSAValue] = {
            argument: known[value] if value.owner in members else made.inputs[value, amap]
            for (value, amap), argument in zip(own, op.body.block.args, strict=False)
        }
        for result, value in zip(op.results, _inline(op, made.block, scope), strict=True):
            known[result] = value
            if any(use.operation not in members for use in result.uses):
                outputs.append((result, value))
    return _finish(ops, late, made, outputs, positions)


def _read(value: SSAValue, amap: AffineMap, replaced: dict[SSAValue, Operand]) -> Operand:
    return replaced.get(value, (value, amap))


def _inline(op: linalg.GenericOp, block: Block, scope: dict[SSAValue, SSAValue]) -> list[SSAValue]:
    for inner in op.body.block.ops:
        if isinstance(inner, linalg.YieldOp):
            return [scope.get(v, v) for v in inner.operands]
        copy = inner.clone(scope)
        copy.location = inner.location
        block.add_op(copy)
        scope.update(zip(inner.results, copy.results, strict=True))
    return []


def _finish(
    ops: Sequence[linalg.GenericOp],
    late: Sequence[Operation],
    made: _Joined,
    outputs: Sequence[tuple[SSAValue, SSAValue]],
    positions: Positions | None,
) -> linalg.GenericOp:
    last = ops[-1]
    destinations = [_destination(result) for result, _ in outputs]
    for value in destinations:
        made.block.insert_arg(tensor_type(value).element_type, len(made.block.args))
    made.block.add_op(linalg.YieldOp(*(value for _, value in outputs)))
    identity = AffineMap.identity(len(last.iterator_types))
    new = linalg.GenericOp(
        [v for v, _ in made.inputs],
        destinations,
        Region(made.block),
        ArrayAttr(
            AffineMapAttr(m) for m in [*(m for _, m in made.inputs), *[identity] * len(outputs)]
        ),
        last.iterator_types,
        [result.type for result, _ in outputs],
    )
    new.location = last.location
    insert = _insert_after if positions is None else positions.insert_after
    insert(new, last)
    at: Operation = new
    for op in late:
        op.detach()
        insert(op, at)
        at = op
    for (old, _), value in zip(outputs, new.results, strict=True):
        value.name_hint = old.name_hint
        old.replace_all_uses_with(value)
    for op in reversed(ops):
        Rewriter.erase_op(op)
    return new


def _insert_after(op: Operation, place: Operation) -> None:
    Rewriter.insert_op(op, InsertPoint.after(place))


def _destination(result: SSAValue) -> SSAValue:
    op = result.owner
    assert isinstance(op, linalg.GenericOp)
    return op.outputs[next(n for n, r in enumerate(op.results) if r is result)]
