"""What the ops of the host's part of a program do to its buffers, each as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.func import CallOp as FunctionCall
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue

from irkit.dialects.bufferization import MaterializeInDestinationOp
from irkit.dialects.program.check import (
    arrays_read,
    arrays_written,
    function_called,
    written_arguments,
)
from irkit.dialects.program.views import view_of


@dataclass(frozen=True)
class BufferUse:
    """What an op does to a buffer. `needs`: something of what the buffer holds before stays or is read."""

    buffer: SSAValue
    needs: bool
    writes: bool


def uses_of(op: Operation) -> list[BufferUse]:
    """The buffers that an op itself touches, each once, in order; for a call of another function of the
    program, those that this touches."""
    if isinstance(op, FunctionCall):
        callee = function_called(op)
        return [] if callee is None else list(_of_call(op, callee))
    if isinstance(op, ReturnOp):
        return [BufferUse(b, True, False) for b in _buffers(_arrays(op))]
    return list(_own(op))


def function_uses(function: FuncOp) -> list[BufferUse]:
    """What a function without calls does to its arguments."""
    found: dict[SSAValue, BufferUse] = {}
    for op in function.walk():
        for use in _own(op):
            # What is written as a whole first needs nothing from before; in a loop it may not be.
            certain = op.parent_op() is function
            known = found.get(use.buffer)
            needs = known.needs if known else use.needs or not certain
            writes = use.writes or (known is not None and known.writes)
            found[use.buffer] = BufferUse(use.buffer, needs, writes)
    return [found[a] for a in function.body.block.args if a in found]


def _of_call(op: FunctionCall, callee: FuncOp) -> Iterator[BufferUse]:
    given: dict[SSAValue, SSAValue] = dict(zip(callee.body.block.args, op.operands, strict=True))
    merged: dict[SSAValue, BufferUse] = {}
    calls = any(isinstance(inner, FunctionCall) for inner in callee.walk())
    for use in _all(callee) if calls else function_uses(callee):
        buffer = given[use.buffer]
        known = merged.get(buffer)
        needs = use.needs or (known is not None)
        merged[buffer] = BufferUse(
            buffer, needs, use.writes or (known is not None and known.writes)
        )
    yield from merged.values()


def _all(callee: FuncOp) -> list[BufferUse]:
    written = written_arguments(callee)
    arguments = callee.body.block.args
    return [
        BufferUse(a, True, a.index in written) for a in arguments if isinstance(a.type, MemRefType)
    ]


def _own(op: Operation) -> Iterator[BufferUse]:
    read, written = _buffers(arrays_read(op)), _buffers(arrays_written(op))
    for buffer in dict.fromkeys([*read, *written]):
        needs = buffer in read or not _overwrites(op)
        yield BufferUse(buffer, needs, buffer in written)


def _overwrites(op: Operation) -> bool:
    if isinstance(op, memref.CopyOp):
        return view_of(op.destination).is_whole()
    return isinstance(op, MaterializeInDestinationOp) and view_of(op.dest).is_whole()


def _arrays(op: Operation) -> list[SSAValue]:
    return [v for v in op.operands if isinstance(v.type, MemRefType)]


def _buffers(arrays: list[SSAValue]) -> list[SSAValue]:
    return list(dict.fromkeys(view_of(a).buffer for a in arrays))
