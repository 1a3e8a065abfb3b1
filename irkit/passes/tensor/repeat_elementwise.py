"""`repeat-elementwise`: on a GPU, what is made of one array is computed by each that reads it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Final

from xdsl.context import Context
from xdsl.dialects.builtin import AffineMapAttr, ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.dialects.functions import is_straight
from irkit.dialects.linalg_generic import is_contraction, is_plain, maps
from irkit.dialects.rowwise import CHEAP
from irkit.dialects.state import state_of
from irkit.dialects.tensor_ops.interface import Kind
from irkit.dialects.tensor_ops.registry import kind_of
from irkit.passes.gpu import gpu_of
from irkit.passes.tensor.fuse_elementwise import fuse_block
from irkit.remarks import applied, missed

REPEAT, STORE = "RepeatElementwise", "StoreBoth"
READERS: Final = 4
MOST: Final = 32
"""Ops of a body that take no longer than it takes to write an element and to read it again."""
DEAR: Final = 2
"""Functions and quotients among them."""


def _readers(value: SSAValue) -> list[Operation]:
    """Who reads a value, each once, in program order."""
    users = dict.fromkeys(use.operation for use in value.uses)
    block = value.owner if isinstance(value.owner, Block) else value.owner.parent
    assert block is not None
    order = {op: n for n, op in enumerate(block.ops)} if len(users) > 1 else {}
    return sorted(users, key=lambda op: order.get(op, -1))


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


# What a heavy op makes, and what is made of that


def _first_behind(op: Operation) -> linalg.GenericOp | str:
    """The elementwise op that stores what a heavy op makes beside its own result, or why there is none."""
    (value,) = op.results
    readers = _readers(value)
    if len(readers) < 2:
        return "one reads what it makes"
    first = readers[0]
    if not isinstance(first, linalg.GenericOp) or not is_plain(first):
        return "the first that reads it is no elementwise op"
    whole = AffineMap.identity(len(first.iterator_types))
    reads = [m for v, m in zip(first.inputs, maps(first), strict=False) if v is value]
    if set(reads) != {whole} or first.results[0].type != value.type:
        return "the first that reads it has other elements"
    if not _stand_before(first.inputs, op):
        return "the first that reads it waits for more"
    return first


def _stand_before(values: Iterable[SSAValue], op: Operation) -> bool:
    block = op.parent
    assert block is not None
    for value in values:
        maker = value.owner
        if maker is op or not isinstance(maker, Operation):
            continue
        if not maker.is_before_in_block(op) and kind_of(maker) is not Kind.FREE:
            return False
    return True


def _store_both(op: Operation, first: linalg.GenericOp) -> None:
    """`first` gives what `op` makes as a result of its own, which all others read."""
    (value,) = op.results
    others = [user for user in _readers(value) if user is not first]
    whole = AffineMap.identity(len(first.iterator_types))
    block = first.body.block
    argument = next(
        a
        for a, v, m in zip(block.args, first.inputs, maps(first), strict=False)
        if v is value and m == whole
    )
    end = block.last_op
    assert end is not None
    yielded = [*end.operands, argument]
    Rewriter.erase_op(end)
    block.add_op(linalg.YieldOp(*yielded))
    block.insert_arg(argument.type, len(block.args))
    body = first.body
    made = linalg.GenericOp(
        list(first.inputs),
        [*first.outputs, *first.outputs],
        Region(body.detach_block(0)),
        [AffineMapAttr(m) for m in (*maps(first), whole)],
        first.iterator_types,
        [first.results[0].type, value.type],
    )
    made.location = first.location
    Rewriter.replace_op(first, made, [made.results[0]])
    for user in others:
        for number, operand in enumerate(user.operands):
            if operand is value:
                user.operands[number] = made.results[1]


def repeat_block(block: Block, state: set[SSAValue]) -> None:
    """Both rules for a function's body, the last ops first; then fusion of what is repeated."""
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
    for op in list(block.ops):
        if kind_of(op) is not Kind.HEAVY or len(op.results) != 1:
            continue
        first = _first_behind(op)
        if isinstance(first, str):
            missed(op, STORE, "{}", first)
            continue
        applied(op, STORE, "what is computed behind it stores both")
        _store_both(op, first)


@dataclass(frozen=True)
class RepeatElementwise(ModulePass):
    """Compute an elementwise result where it is read, instead of writing it, where a GPU is planned for.

    What several ops read, elementwise ops and reductions, and is made of one array that something else needs
    too, by arithmetic that takes no longer than a write and a read, is computed by each of them. So of what a
    forward pass makes of one product the backward pass reads the product alone. And what a heavy op makes, if
    the first that reads it is elementwise, is stored by that one, which can then be its epilogue.
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
