"""What flows between the parts of a program: values, each made on one side and needed on one or both.

A value is a tensor that one part makes and another reads, or what a buffer holds from one write to the next.
It crosses between host and device at most once, as `insert-transfers` has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from irkit.dialects.program.check import written_arguments
from irkit.dialects.program.views import array_type
from irkit.dialects.types import tensor_type
from irkit.passes.placement.op_work import nbytes
from irkit.passes.placement.units import Unit, top
from irkit.passes.program.effects import BufferUse, uses_of

HOST_PART = 0
"""The number of what the host has and does itself; units count from 1."""


@dataclass(eq=False)
class Value:
    """`nbytes` made by part `maker`, so many `times`, and needed by parts `users`."""

    nbytes: int
    maker: int
    times: float = 1.0
    users: set[int] = field(default_factory=set[int])


@dataclass
class Flow:
    """`parts` are units; values between them and with the host."""

    parts: Sequence[Unit]
    values: list[Value]


def flow_of(function: FuncOp, segments: Sequence[Sequence[Unit]]) -> Flow:
    """What flows in the host's part of a program, of whose runs the units are made, run by run."""
    scan = _Scan(segments)
    arguments = function.body.block.args
    state: _State = {a: frozenset({scan.value(a, HOST_PART, a)}) for a in arguments}
    left = scan.block(function.body.block, state)
    for number in written_arguments(function):
        for value in left[arguments[number]]:
            value.users.add(HOST_PART)
    return Flow(scan.units, [v for v in scan.all() if v.users - {v.maker}])


_State = dict[SSAValue, frozenset[Value]]


class _Scan:
    """Follows the versions of buffers through blocks; a loop is followed twice, so that what one round
    leaves is found by the next."""

    def __init__(self, segments: Sequence[Sequence[Unit]]) -> None:
        self.units = [unit for segment in segments for unit in segment]
        self._number = {unit: n for n, unit in enumerate(self.units, 1)}
        self._part = {op: n for n, unit in enumerate(self.units, 1) for op in unit.ops}
        self._segment = {op: s for s in segments for unit in s for op in unit.ops}
        self._versions: dict[tuple[SSAValue, object], Value] = {}
        self._tensors: dict[SSAValue, Value] = {}

    def all(self) -> list[Value]:
        """All values that were met."""
        return [*self._versions.values(), *self._tensors.values()]

    def value(self, buffer: SSAValue, maker: int, origin: object, times: float = 1.0) -> Value:
        """What is left in a buffer by what is at `origin`, which is of part `maker`."""
        key = buffer, origin
        if key not in self._versions:
            self._versions[key] = Value(nbytes_of(buffer), maker, times)
        return self._versions[key]

    def block(self, block: Block, state: _State) -> _State:
        """The state behind a block. A run is taken where its first op is, its units in order."""
        done: list[Sequence[Unit]] = []
        new = [op.memref for op in block.ops if isinstance(op, memref.AllocOp)]
        state = {**state, **dict.fromkeys(new, frozenset[Value]())}
        for op in block.ops:
            segment = self._segment.get(op)
            if segment is not None:
                if segment not in done:
                    done.append(segment)
                    state = self._units_of(segment, state)
            elif isinstance(op, scf.ForOp | scf.WhileOp):
                state = self._loop(op, state)
            else:
                state = self._uses(uses_of(op), HOST_PART, op, state)
        return state

    def _units_of(self, segment: Sequence[Unit], state: _State) -> _State:
        for unit in segment:
            part = self._of(self._number[unit])
            for op in unit.ops:
                self._tensors_of(op, self._number[unit])
            state = self._uses(unit_uses(unit.ops), part, unit, state)
        return state

    def _of(self, part: int) -> int:
        return HOST_PART if self.units[part - 1].stays else part

    def _tensors_of(self, op: Operation, part: int) -> None:
        for inner in op.walk():
            for operand in inner.operands:
                if not isinstance(operand.type, TensorType):
                    continue
                home = self._home(operand, op)
                if home is None or home == part:
                    continue
                size, times = nbytes(tensor_type(operand)), self.units[home - 1].times
                made = self._tensors.setdefault(operand, Value(size, self._of(home), times))
                made.users.add(self._of(part))

    def _home(self, value: SSAValue, user: Operation) -> int | None:
        """The part that makes a value."""
        maker = value.owner
        if not isinstance(maker, Operation):
            return None
        return self._part.get(top(maker, user.parent))

    def _loop(self, op: scf.ForOp | scf.WhileOp, state: _State) -> _State:
        regions = [op.body] if isinstance(op, scf.ForOp) else [op.before_region, op.after_region]
        for _ in range(2):
            end = state
            for region in regions:
                end = self.block(region.block, end)
            state = {b: state.get(b, frozenset()) | v for b, v in end.items()}
        return state

    def _uses(self, uses: Sequence[BufferUse], part: int, origin: object, state: _State) -> _State:
        for use in uses:
            if use.needs:
                for value in state.get(use.buffer, frozenset()):
                    value.users.add(part)
            if use.writes:
                times = origin.times if isinstance(origin, Unit) else 1.0
                made = self.value(use.buffer, part, origin, times)
                state = {**state, use.buffer: frozenset({made})}
        return state


def unit_uses(ops: Sequence[Operation]) -> list[BufferUse]:
    """What ops, one after another, do to buffers."""
    found: dict[SSAValue, BufferUse] = {}
    for op in ops:
        for inner in op.walk():
            for use in uses_of(inner):
                known = found.get(use.buffer)
                needs = known.needs if known else use.needs or inner is not op
                writes = use.writes or (known is not None and known.writes)
                found[use.buffer] = BufferUse(use.buffer, needs, writes)
    return list(found.values())


def nbytes_of(buffer: SSAValue) -> int:
    """Bytes of a buffer."""
    t = array_type(buffer)
    width = getattr(t.element_type, "bitwidth", 64)
    size = 1
    for extent in t.get_shape():
        size *= extent
    return size * max(1, width // 8)
