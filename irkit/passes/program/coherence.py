"""Which side has what a program means by its buffers, and the copies that this takes.

A buffer has a twin on the device. `Coherence` follows, through blocks and loops, on which sides a buffer is
true, and finds where a side needs one that is true on the other alone: the classic write-back protocol of two
caches, decided at compile time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.dialects.program.call import CallOp as HostCall
from irkit.dialects.program.spaces import CUDA, device_of_call, in_device_space
from irkit.dialects.program.views import array_type, trips_of
from irkit.passes.program.effects import BufferUse, uses_of

HOST, DEVICE = "host", "device"
Sides = frozenset[str]
State = dict[SSAValue, Sides]
"""On which sides a buffer is true; on none, while nothing was written to it."""

NOWHERE: Sides = frozenset()


@dataclass(frozen=True)
class WantedCopy:
    """A copy of a buffer to its twin, or back, before an op."""

    buffer: SSAValue
    to_device: bool
    before: Operation

    def insert(self, twin: Callable[[SSAValue], SSAValue]) -> None:
        """Write it into the program."""
        ends = self.buffer, twin(self.buffer)
        copy = memref.CopyOp(*(ends if self.to_device else ends[::-1]))
        copy.location = self.before.location
        Rewriter.insert_op(copy, InsertPoint.before(self.before))


@dataclass
class Copies:
    """The copies of a program, in order, and the buffers that the device has."""

    wanted: list[WantedCopy] = field(default_factory=list[WantedCopy])
    on_device: dict[SSAValue, None] = field(default_factory=dict[SSAValue, None])
    _twins: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])

    def twin(self, buffer: SSAValue) -> SSAValue:
        """The device's memory for a buffer: made where the buffer is."""
        if buffer not in self._twins:
            made = memref.AllocOp((), (), in_device_space(array_type(buffer)))
            made.memref.name_hint = buffer.name_hint
            self._twins[buffer] = made.memref
            owner = buffer.owner
            after = isinstance(owner, Operation)
            point = InsertPoint.after(owner) if after else InsertPoint.at_start(owner)
            Rewriter.insert_op(made, point)
        return self._twins[buffer]


class Coherence:
    """Follows the buffers of the host's part of a program."""

    def __init__(self, function: FuncOp) -> None:
        self.function = function
        self._arguments = [a for a in function.body.block.args if isinstance(a.type, MemRefType)]
        self._written = {use.buffer for op in function.walk() for use in uses_of(op) if use.writes}

    def copies(self) -> Copies:
        """All that is to be copied, and where."""
        found = Copies()
        _Walk(self, found).block(
            self.function.body.block, dict.fromkeys(self._arguments, frozenset({HOST}))
        )
        return found

    def left(self) -> list[BufferUse]:
        """Arguments that the caller sees changed."""
        return [BufferUse(a, True, False) for a in self._arguments if a in self._written]


@dataclass
class _Walk:
    """One way through a block: with `found`, copies are noted. `wants` are the sides on which buffers were
    needed while nothing had been written to them on the way."""

    coherence: Coherence
    found: Copies | None = None
    wants: dict[SSAValue, set[str]] = field(default_factory=dict[SSAValue, set[str]])
    written: set[SSAValue] = field(default_factory=set[SSAValue])

    def block(self, block: Block, state: State) -> State:
        """The state behind a block."""
        for op in list(block.ops):
            if isinstance(op, scf.ForOp | scf.WhileOp) and _touches(op):
                state = self._loop(op, state)
            else:
                state = self._op(op, state)
        return state

    def _op(self, op: Operation, state: State) -> State:
        if isinstance(op, memref.AllocOp):
            self.written.add(op.memref)
            return {**state, op.memref: NOWHERE}
        side = DEVICE if isinstance(op, CallOp | HostCall) and device_of_call(op) == CUDA else HOST
        uses = uses_of(op)
        if isinstance(op, ReturnOp) and op.parent_op() is self.coherence.function:
            uses = [*uses, *self.coherence.left()]
        for use in uses:
            state = self._use(use, side, op, state)
        return state

    def _use(self, use: BufferUse, side: str, before: Operation, state: State) -> State:
        buffer = use.buffer
        if self.found is not None and side == DEVICE:
            self.found.on_device[buffer] = None
        if use.needs:
            state = self._needed(buffer, side, before, state)
        if use.writes:
            self.written.add(buffer)
            return {**state, buffer: frozenset({side})}
        return state

    def _needed(self, buffer: SSAValue, side: str, before: Operation, state: State) -> State:
        """The state once a buffer is true on a side."""
        if buffer not in self.written:
            self.wants.setdefault(buffer, set()).add(side)
        true = state.get(buffer, NOWHERE)
        if side in true or not true:
            return state
        if self.found is not None:
            self.found.wanted.append(WantedCopy(buffer, side == DEVICE, before))
        return {**state, buffer: true | {side}}

    # Loops

    def _loop(self, op: scf.ForOp | scf.WhileOp, state: State) -> State:
        """What a loop needs and keeps is made true before it; what is true where it begins is so
        whenever its body begins."""
        dry = _Walk(self.coherence)
        dry.body(op, state)
        entry = {**dict.fromkeys(dry.written, NOWHERE), **state}
        head = {b: s | dry.wants.get(b, set()) if s else s for b, s in entry.items()}
        once = isinstance(op, scf.ForOp) and len(trips_of(op)) > 0
        while (settled := self._settled(op, head, dry)) != head:
            head = settled
        for buffer, sides in head.items():
            for side in sorted(sides - state.get(buffer, NOWHERE)):
                if buffer in dry.wants or not once:
                    state = self._needed(buffer, side, op, state)
        for buffer in dry.wants.keys() - self.written:
            self.wants.setdefault(buffer, set()).update(dry.wants[buffer])
        inner = _Walk(self.coherence, self.found)
        end, asked = inner.body(op, head)
        for buffer, sides in head.items():
            for side in sorted(sides - end.get(buffer, NOWHERE)):
                end = inner._needed(buffer, side, _last(op), end)
        self.written |= inner.written
        if isinstance(op, scf.WhileOp):
            return asked
        return end if once else head

    def _settled(self, op: scf.ForOp | scf.WhileOp, head: State, dry: _Walk) -> State:
        """What is still true at the end of the body. Where that is nothing of a buffer that the next round
        needs, it is copied there; what the next round writes first may be anywhere."""
        end, _ = _Walk(self.coherence).body(op, head)
        found: State = {}
        for buffer, sides in head.items():
            left = end.get(buffer, NOWHERE)
            kept = sides if buffer in dry.wants and sides else left
            found[buffer] = (sides & left) or kept
        return found

    def body(self, op: scf.ForOp | scf.WhileOp, state: State) -> tuple[State, State]:
        """The state at the end of a loop's body, and where the loop may end before it."""
        if isinstance(op, scf.ForOp):
            return self.block(op.body.block, state), state
        asked = self.block(op.before_region.block, state)
        return self.block(op.after_region.block, asked), asked


def _last(op: scf.ForOp | scf.WhileOp) -> Operation:
    """Where a loop's body ends."""
    body = op.body if isinstance(op, scf.ForOp) else op.after_region
    assert body.block.last_op is not None
    return body.block.last_op


def _touches(op: Operation) -> bool:
    return any(uses_of(inner) for inner in op.walk() if inner is not op)
