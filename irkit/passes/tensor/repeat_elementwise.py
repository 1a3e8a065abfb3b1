"""`repeat-elementwise`: on a GPU, what is made of one array is computed by each that reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.dialects.functions import is_straight
from irkit.dialects.linalg_generic import is_contraction, is_plain, maps
from irkit.dialects.rowwise import CHEAP
from irkit.dialects.state import state_of
from irkit.passes.gpu import gpu_of
from irkit.passes.tensor.fuse_elementwise import fuse_block
from irkit.remarks import applied, missed

REPEAT: Final = "RepeatElementwise"
READERS: Final = 4
MOST: Final = 32
"""Ops of a body that take no longer than it takes to write an element and to read it again."""
DEAR: Final = 2
"""Functions and quotients among them."""


def _readers(value: SSAValue) -> list[Operation]:
    """Who reads a value, each once."""
    return list(dict.fromkeys(use.operation for use in value.uses))


def _wholes(op: linalg.GenericOp) -> set[SSAValue]:
    """Inputs of which an op reads another element at each point of its loops."""
    own = zip(op.inputs, maps(op), strict=False)
    return {v for v, m in own if len(m.used_dims()) == m.num_dims}


def _why_stored(op: linalg.GenericOp, state: set[SSAValue]) -> str | None:
    """Why an elementwise op's result is written and read; None if its readers compute it."""
    readers = _readers(op.results[0])
    if not 2 <= len(readers) <= READERS:
        return f"{len(readers)} read it"
    if not all(_computes(user, op.results[0]) for user in readers):
        return "something reads it from memory"
    wholes = _wholes(op)
    if len(wholes) > 1:
        return "it is made of several arrays"
    if state.intersection(op.inputs):
        return "it is made of state, which is written over"
    body = [o for o in op.body.block.ops if not isinstance(o, linalg.YieldOp)]
    if len(body) > MOST or sum(not isinstance(o, CHEAP) for o in body) > DEAR:
        return "it takes longer than reading it"
    for value in wholes:
        if isinstance(value.owner, Operation) and len(_readers(value)) < 2:
            return "nothing else needs what it is made of"
    return None


def _computes(user: Operation, value: SSAValue) -> bool:
    """Whether a reader can compute what it reads, which it reads once."""
    if not isinstance(user, linalg.GenericOp) or is_contraction(user) or value in user.outputs:
        return False
    reads = [m for v, m in zip(user.inputs, maps(user), strict=False) if v is value]
    return all(len(m.used_dims()) == m.num_dims for m in reads)


def _repeat(op: linalg.GenericOp) -> None:
    _, *others = _readers(op.results[0])
    for user in others:
        copy = op.clone()
        for inner, own in zip(copy.walk(), op.walk(), strict=True):
            inner.location = own.location
        Rewriter.insert_op(copy, InsertPoint.before(user))
        for number, value in enumerate(user.operands):
            if value is op.results[0]:
                user.operands[number] = copy.results[0]


def repeat_block(block: Block, state: set[SSAValue]) -> None:
    """Repeat what may be of a function's body, the last ops first; then fuse it where it is."""
    for op in reversed(list(block.ops)):
        if not isinstance(op, linalg.GenericOp) or not is_plain(op):
            continue
        reason = _why_stored(op, state)
        if reason is not None:
            missed(op, REPEAT, "{}", reason)
            continue
        applied(op, REPEAT, "each that reads it computes it")
        _repeat(op)
    fuse_block(block)


@dataclass(frozen=True)
class RepeatElementwise(ModulePass):
    """Compute an elementwise result where it is read, instead of writing it, where a GPU is planned for.

    What several ops read, elementwise ops and reductions, and is made of one array that something else needs
    too, by arithmetic that takes no longer than a write and a read, is computed by each of them. So of what a
    forward pass makes of one product the backward pass reads the product alone.
    `device` is the vDevice that is planned for: on a CPU nothing changes. No value changes.

    ```mlir
    %1 = linalg.generic {...} ins(%0) outs(%e) { ... math.erf ... }
    %2 = linalg.generic {...} ins(%1, %0) outs(%e) {...}
    %3 = linalg.generic {...} ins(%1, %y) outs(%e) {...}
    ```
    becomes
    ```mlir
    %2 = linalg.generic {...} ins(%0) outs(%e) { ... math.erf ... }
    %3 = linalg.generic {...} ins(%0, %y) outs(%e) { ... math.erf ... }
    ```
    """

    name = "repeat-elementwise"
    requires: ClassVar[tuple[str, ...]] = ("tensor",)
    produces: ClassVar[str] = "tensor"
    device: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if gpu_of(self.device) is None:
            return
        for function in op.walk():
            if not is_straight(function):
                continue
            arguments = function.body.block.args
            state: set[SSAValue] = {arguments[pair.argument] for pair in state_of(function)}
            repeat_block(function.body.block, state)
