"""Calls of the host that follow one another, made chunk by chunk: one call of a pipeline in the text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.dialects import affine, arith, memref
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.annotations.host_task import HostTask
from irkit.annotations.pipelines import Pipeline
from irkit.annotations.split_types import Broadcast, SplitType
from irkit.dialects.program import CallOp
from irkit.dialects.program.spaces import CPU, cpu_cost, device_of_call, set_cpu_cost
from irkit.dialects.program.views import StridedView, view_of

_PLAIN = (affine.ApplyOp, arith.ConstantOp, memref.AllocOp, memref.ReinterpretCastOp)


@dataclass
class _Use:
    """An array in a chain of calls."""

    value: SSAValue
    view: StridedView
    split: SplitType
    written: bool = False


@dataclass
class _Chain:
    """Calls that are cut alike, and the arrays that they touch."""

    units: int = 0
    calls: list[CallOp] = field(default_factory=list[CallOp])
    uses: list[_Use] = field(default_factory=list[_Use])
    first_reads: set[int] = field(default_factory=set[int])
    places: list[list[int]] = field(default_factory=list[list[int]])

    def take(self, call: CallOp, task: HostTask) -> bool:
        """Add a call, unless it is cut otherwise, or what one call writes would be seen in another part."""
        cut = task.cut
        if cut is None or cut.units < 2 or (self.units not in (0, cut.units)):
            return False
        read, written = set(call.read), set(call.written)
        new = [_Use(v, view_of(v), cut.of(n), v in written) for n, v in enumerate(call.arrays)]
        if not all(_agree(a, b) for a in new for b in (*new, *self.uses)):
            return False
        own: list[int] = []
        for use in new:
            known = next((n for n, u in enumerate(self.uses) if u.view == use.view), None)
            number = len(self.uses) if known is None else known
            if known is None:
                self.uses.append(use)
            if use.value in read and (known is None or not self.uses[number].written):
                self.first_reads.add(number)
            own.append(number)
        for use, number in zip(new, own, strict=True):
            self.uses[number].written |= use.written
        self.units = cut.units
        self.calls.append(call)
        self.places.append(own)
        return True


def _agree(a: _Use, b: _Use) -> bool:
    """Whether a part of one use meets no other part of the other: of one buffer they are one view, cut alike,
    or nobody writes."""
    if a is b:
        return not a.written or a.split != Broadcast()
    if a.view.buffer is not b.view.buffer or not (a.written or b.written):
        return True
    return a.view == b.view and a.split == b.split and a.split != Broadcast()


def join_calls(main: FuncOp, tasks: Mapping[str, HostTask]) -> dict[str, Pipeline]:
    """Make one call of each chain of calls that are cut alike; the pipelines, by name."""
    found: dict[str, Pipeline] = {}
    blocks = [region.block for op in main.walk() for region in op.regions if region.blocks]
    for block in blocks:
        for chain in _chains(block, tasks):
            name = f"pipeline{len(found)}"
            found[name] = _joined(chain, name, tasks)
    return found


def _chains(block: Block, tasks: Mapping[str, HostTask]) -> list[_Chain]:
    found = [_Chain()]
    for op in block.ops:
        if isinstance(op, _PLAIN):
            continue
        on_host = isinstance(op, CallOp) and device_of_call(op) == CPU
        task = tasks.get(_callee(op)) if isinstance(op, CallOp) and on_host else None
        if task is not None and isinstance(op, CallOp) and found[-1].take(op, task):
            continue
        found.append(_Chain())
        if task is not None and isinstance(op, CallOp):
            found[-1].take(op, task)
    return [c for c in found if len(c.calls) > 1]


def _callee(call: CallOp) -> str:
    return call.callee.root_reference.data


def _joined(chain: _Chain, name: str, tasks: Mapping[str, HostTask]) -> Pipeline:
    writes = [n for n, use in enumerate(chain.uses) if use.written]
    call = CallOp(name, [u.value for u in chain.uses], sorted(chain.first_reads), writes)
    call.location = chain.calls[0].location
    costs = [cost for c in chain.calls if (cost := cpu_cost(c)) is not None]
    if len(costs) == len(chain.calls):
        set_cpu_cost(call, sum(costs))
    Rewriter.insert_op(call, InsertPoint.after(chain.calls[-1]))
    for old in reversed(chain.calls):
        Rewriter.erase_op(old)
    return Pipeline([tasks[_callee(c)] for c in chain.calls], chain.places)
