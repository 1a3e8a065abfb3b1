"""From a program to one whose regions have devices: parts, their costs, the cut, and regions anew."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.dialects.memref import ReinterpretCastOp
from xdsl.ir import Operation
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.dialects.bufferization import ToTensorOp
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.program.call import CallOp as HostCall
from irkit.dialects.program.spaces import COSTS, CPU, CUDA, DEVICE, cpu_cost, twin_cost
from irkit.dialects.program.views import is_buffer, trips_of
from irkit.passes.placement.amounts import amount_of
from irkit.passes.placement.cut import Choice, cheapest
from irkit.passes.placement.flow import Flow, flow_of
from irkit.passes.placement.grouping import Group, grouped
from irkit.passes.placement.inlining import inline_regions
from irkit.passes.placement.region_costs import nanoseconds
from irkit.passes.placement.units import Unit, units_of
from irkit.passes.program.form_regions import has_effect, outlined, runs_of, sweep
from irkit.passes.program.spilling import Run, spill
from irkit.schedule.links import Link
from irkit.schedule.model import VDevice

PLAN = "irkit.plan"
"""Attribute of a function whose regions have devices: what all of it is expected to take."""

ROUNDS_OF_WHILE = 16.0
"""How often a loop that asks is taken to go on."""

Assign = Callable[[Choice], list[bool]]


@dataclass(frozen=True)
class Planner:
    """What is chosen between, and how: `device` is "auto", or where all has to be that may."""

    cpu: VDevice
    gpu: VDevice
    link: Link
    device: str = "auto"
    approximate: bool = True
    assign: Assign = cheapest

    def choice(self, flow: Flow) -> Choice:
        """The costs of all parts."""
        amounts = [amount_of(unit, self.approximate) for unit in flow.parts]
        times = [unit.times for unit in flow.parts]
        cpu, gpu = (
            [t * nanoseconds(a, device, self.link) for a, t in zip(amounts, times, strict=True)]
            for device in (self.cpu, self.gpu)
        )
        for number, unit in enumerate(flow.parts):
            if isinstance(call := unit.ops[0], HostCall):
                # Of all rounds of its loops, as it is said.
                cpu[number], gpu[number] = cpu_cost(call) or 0, twin_cost(call) or 0
        tied = frozenset(n for n, unit in enumerate(flow.parts, 1) if unit.stays)
        return Choice(flow, self.link, cpu, gpu, tied)

    def chosen(self, choice: Choice) -> list[bool]:
        """For each part whether it goes to the GPU."""
        if self.device == CPU:
            return [False] * len(choice.cpu)
        if self.device == CUDA:
            return [part not in choice.tied for part in range(1, len(choice.cpu) + 1)]
        return self.assign(choice)


def placed(module: ModuleOp, function: FuncOp, planner: Planner) -> list[Group]:
    """Give a program regions with devices. Returns them, in order."""
    inline_regions(module, function)
    _drop_unused(function)
    segments = [
        units_of(run, stays, times_of(run[0])) for run, stays in list(runs_of(function.body.block))
    ]
    calls = [Unit([op], times=times_of(op)) for op in function.walk() if may_be_there(op)]
    choice = planner.choice(flow_of(function, [*segments, *([call] for call in calls)]))
    on_gpu = planner.chosen(choice)
    where = dict(zip(choice.flow.parts, on_gpu, strict=True))
    groups: list[Group] = []
    for segment in segments:
        made = grouped(segment, [where[unit] for unit in segment])
        _rearrange(made)
        groups += made
    runs = [group.ops for group in groups]
    spill(runs)
    for call in calls:
        _place_call(call, choice, on_gpu)
    return _with_regions(function, list(zip(groups, runs, strict=True)), choice, on_gpu)


def may_be_there(op: Operation) -> bool:
    """Whether an op is a call of the host whose function has a twin on the device, of buffers or plain views
    of them."""
    if not isinstance(op, HostCall) or twin_cost(op) is None:
        return False
    sources = [v.owner.source if isinstance(v.owner, ReinterpretCastOp) else v for v in op.arrays]
    return bool(sources) and all(is_buffer(v) for v in sources)


def _place_call(unit: Unit, choice: Choice, on_gpu: Sequence[bool]) -> None:
    """A call of the host goes where its part does."""
    number = choice.flow.parts.index(unit)
    (call,) = unit.ops
    call.attributes[DEVICE] = StringAttr(CUDA if on_gpu[number] else CPU)
    call.attributes[COSTS] = _costs(choice, on_gpu, [number])


def times_of(op: Operation) -> float:
    """How often an op is done in a run of the program."""
    times, outer = 1.0, op.parent_op()
    while outer is not None and not isinstance(outer, FuncOp):
        if isinstance(outer, scf.ForOp):
            times *= len(trips_of(outer))
        elif isinstance(outer, scf.WhileOp):
            times *= ROUNDS_OF_WHILE
        outer = outer.parent_op()
    return times


def _drop_unused(function: FuncOp) -> None:
    """Values that nobody reads would be copied for nobody."""
    for op in reversed(list(function.walk())):
        if isinstance(op, GraphOp | ToTensorOp) and not any(r.uses for r in op.results):
            Rewriter.erase_op(op)


def _rearrange(groups: Sequence[Group]) -> None:
    """Put the ops of a run into the order of its groups, behind all that they read of elsewhere."""
    ops = [op for group in groups for op in group.ops]
    block = ops[0].parent
    assert block is not None
    own = set(ops)
    last = [op for op in block.ops if op in own][-1]
    anchor = last.next_op
    assert anchor is not None
    for op in ops:
        op.detach()
        block.insert_op_before(op, anchor)


def _with_regions(
    function: FuncOp,
    groups: Sequence[tuple[Group, Run]],
    choice: Choice,
    on_gpu: Sequence[bool],
) -> list[Group]:
    number = {unit: n for n, unit in enumerate(choice.flow.parts)}
    made: list[Group] = []
    for group, ops in groups:
        if group.units[0].stays or not has_effect(ops):
            continue
        region, call = outlined(f"{function.sym_name.data}_region{len(made)}", ops)
        Rewriter.insert_op(region, InsertPoint.before(function))
        numbers = [number[unit] for unit in group.units]
        call.attributes[DEVICE] = StringAttr(CUDA if group.on_gpu else CPU)
        call.attributes[COSTS] = _costs(choice, on_gpu, numbers)
        made.append(group)
    sweep(function)
    function.attributes[PLAN] = _totals(choice, on_gpu)
    return made


def _costs(choice: Choice, on_gpu: Sequence[bool], numbers: Sequence[int]) -> DictionaryAttr:
    other = [there != (n in numbers) for n, there in enumerate(on_gpu)]
    return _numbers(
        cpu=sum(choice.cpu[n] for n in numbers),
        cuda=sum(choice.gpu[n] for n in numbers),
        moved=choice.cost(other) - choice.cost(on_gpu),
    )


def _totals(choice: Choice, on_gpu: Sequence[bool]) -> DictionaryAttr:
    parts = range(1, len(on_gpu) + 1)
    return _numbers(
        chosen=choice.cost(on_gpu),
        cpu=choice.cost([False] * len(on_gpu)),
        cuda=choice.cost([part not in choice.tied for part in parts]),
    )


def _numbers(**values: float) -> DictionaryAttr:
    return DictionaryAttr({k: IntegerAttr(round(v), i64) for k, v in values.items()})
