"""What a value of the program under construction is computed from."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.ir import BlockArgument, Operation, SSAValue

from irkit.dialects.constants import constant_array
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.semantics import evaluate
from irkit.weights import Array, WeightStore


@dataclass
class Provenance:
    """The inputs behind a value, and the ops between, operands first."""

    inputs: list[BlockArgument] = field(default_factory=list[BlockArgument])
    ops: list[Operation] = field(default_factory=list[Operation])


def provenance(value: SSAValue) -> Provenance:
    """What `value` is computed from."""
    found, seen = Provenance(), set[SSAValue | Operation]()
    pending: list[SSAValue | Operation] = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, Operation):
            found.ops.append(item)
        elif isinstance(item, BlockArgument):
            found.inputs += [] if item in seen else [item]
        elif isinstance(item.owner, Operation) and item.owner not in seen:
            seen.add(item.owner)
            # The op itself comes once all of its operands have.
            pending += [item.owner, *item.owner.operands]
        seen.add(item)
    return found


def known_array(value: SSAValue, weights: WeightStore) -> Array | None:
    """The array behind a value that no input has a part in, else None."""
    found = provenance(value)
    if found.inputs:
        return None
    arrays: dict[SSAValue, Array] = {}
    for op in found.ops:
        if isinstance(op, GraphOp):
            results = evaluate(op, [arrays[v] for v in op.operands])
        else:
            array = constant_array(op.results[0], weights)
            if array is None:
                return None
            results = [array]
        arrays.update(zip(op.results, results, strict=True))
    return arrays[value]
