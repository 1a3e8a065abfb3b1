"""A run of ops in parts that are about what will be one rOperator: the smallest things that get a device.

Elementwise ops follow what they read; a reduction ends the part that feeds it; products, and loops as a
whole, begin parts of their own. Parts are numbered so that each depends on lower numbers alone, so any
assignment of devices leaves an order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import scf
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.dialects import graph
from irkit.dialects.bufferization import MaterializeInDestinationOp, ToTensorOp
from irkit.passes.placement.op_work import elements
from irkit.passes.program.effects import BufferUse, uses_of

_REDUCING = (graph.ReduceOp, graph.ArgmaxOp, graph.CumSumOp, graph.SoftmaxOp)
_HEAVY = (
    graph.MatmulOp,
    graph.GemmOp,
    graph.ConvOp,
    graph.ConvTransposeOp,
    graph.AttentionKeyGradientOp,
    graph.AttentionOp,
    graph.AttentionQueryGradientOp,
    graph.TopKOp,
    scf.ForOp,
)


@dataclass(eq=False)
class Unit:
    """Ops that run on one device, in order. `stays`: the host does them itself."""

    ops: list[Operation] = field(default_factory=list[Operation])
    stays: bool = False
    elements: int = 0
    times: float = 1.0


def units_of(run: Sequence[Operation], stays: bool, times: float) -> list[Unit]:
    """The parts of a run, `times` as often as the program is run."""
    if stays:
        return [Unit(list(run), True, 0, times)]
    return _Maker(list(run), times).made


class _Maker:
    def __init__(self, run: list[Operation], times: float) -> None:
        self._run, self._times = run, times
        self.made: list[Unit] = []
        self._home: dict[Operation, int] = {}
        self._writer: dict[SSAValue, int] = {}
        self._readers: dict[SSAValue, list[int]] = {}
        self._sunk = self._sinkable()
        for op in run:
            if op not in self._sunk:
                self._place(op)
        for unit in self.made:
            unit.ops = _with_reads(unit.ops, self._sunk)
        for op in self._sunk:
            Rewriter.erase_op(op)

    def _sinkable(self) -> set[Operation]:
        """Reads that may be made where they are used: nothing writes their buffer in between."""
        at = {op: n for n, op in enumerate(self._run)}
        writes: dict[SSAValue, list[int]] = {}
        for number, op in enumerate(self._run):
            for use in _touched(op):
                if use.writes:
                    writes.setdefault(use.buffer, []).append(number)
        found: set[Operation] = set()
        for op in self._run:
            if not isinstance(op, ToTensorOp) or not op.tensor.uses:
                continue
            (use,) = _touched(op)
            users = [at.get(top(u.operation, op.parent), -1) for u in op.tensor.uses]
            between = writes.get(use.buffer, ())
            if min(users) >= 0 and not any(at[op] < w < max(users) for w in between):
                found.add(op)
        return found

    def _place(self, op: Operation) -> None:
        needed, changed = self._buffers(op)
        before = {self._home[p] for p in _producers(op) if p in self._home}
        for buffer in (*needed, *changed):
            before |= {self._writer[buffer]} if buffer in self._writer else set()
        for buffer in changed:
            before |= set(self._readers.get(buffer, ()))
        number = self._number(op, max(before, default=-1), needed)
        unit = self.made[number]
        unit.ops.append(op)
        unit.elements = _size(op) or unit.elements
        self._home[op] = number
        for buffer in needed:
            self._readers.setdefault(buffer, []).append(number)
        for buffer in changed:
            self._writer[buffer] = number
            self._readers.pop(buffer, None)

    def _number(self, op: Operation, least: int, needed: Sequence[SSAValue]) -> int:
        """The part of an op: the last one that it depends on, or one behind that, or a new one."""
        if least >= 0 and _joins(op, self.made[least], self._feeds(op, least, needed)):
            return least
        for number in range(len(self.made) - 1, least, -1):
            if _joins(op, self.made[number], False):
                return number
        self.made.append(Unit([], False, 0, self._times))
        return len(self.made) - 1

    def _feeds(self, op: Operation, number: int, needed: Sequence[SSAValue]) -> bool:
        """Whether something that the op reads is made in a part."""
        written = any(self._writer.get(buffer) == number for buffer in needed)
        return written or any(self._home.get(p) == number for p in _producers(op))

    def _buffers(self, op: Operation) -> tuple[list[SSAValue], list[SSAValue]]:
        """What an op reads, also by reads that are made where it is, and what it writes."""
        sunk = [p for p in _producers(op) if p in self._sunk]
        uses = [u for one in (*sunk, op) for u in _touched(one)]
        return [u.buffer for u in uses], [u.buffer for u in uses if u.writes]


def _with_reads(ops: Sequence[Operation], sunk: set[Operation]) -> list[Operation]:
    """Ops with the reads that they need, each where it is needed first."""
    known: dict[Operation, ToTensorOp] = {}
    found: list[Operation] = []
    for op in ops:
        for inner in op.walk():
            for index, value in enumerate(inner.operands):
                read = value.owner
                if not isinstance(read, ToTensorOp) or read not in sunk:
                    continue
                if read not in known:
                    known[read] = read.clone()
                    Rewriter.insert_op(known[read], InsertPoint.before(op))
                    found.append(known[read])
                inner.operands[index] = known[read].tensor
        found.append(op)
    return found


def _joins(op: Operation, unit: Unit, feeds: bool) -> bool:
    if isinstance(op, MaterializeInDestinationOp):
        return feeds
    if isinstance(op, _HEAVY):
        return False
    if isinstance(op, _REDUCING):
        return feeds and elements(op.operands[0]) == unit.elements
    return _size(op) == unit.elements


def _size(op: Operation) -> int:
    return max((elements(r) for r in op.results if isinstance(r.type, TensorType)), default=0)


def _touched(op: Operation) -> list[BufferUse]:
    return [use for inner in op.walk() for use in uses_of(inner)]


def _producers(op: Operation) -> list[Operation]:
    owners = (v.owner for inner in op.walk() for v in inner.operands)
    return [o for o in owners if isinstance(o, Operation)]


def top(op: Operation, block: Block | None) -> Operation:
    """The op of a block that an op is, or is inside of."""
    found = None if block is None else block.find_ancestor_op_in_block(op)
    return op if found is None else found
