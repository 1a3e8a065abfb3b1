"""`host.program` and plain data (`irkit/schedule/host/model.py`), both ways."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import cast

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, SSAValue
from xdsl.ir import Region as IrRegion
from xdsl.rewriter import Rewriter

from irkit.dialects.host import BufferOp, ProgramOp, RegionOp, TaskOp
from irkit.dialects.types import ints
from irkit.schedule.host.model import (
    HostBuffer,
    HostPlan,
    HostTask,
    Kind,
    Place,
    Region,
    Space,
    Use,
)

_ACCESS = {(True, False): "reads", (False, True): "writes", (True, True): "updates"}


def programs_of(module: ModuleOp) -> Iterator[ProgramOp]:
    """The DAGs of a module."""
    return (op for op in module.ops if isinstance(op, ProgramOp))


def read_plan(program: ProgramOp) -> HostPlan:
    """A program as plain data; tasks without a queue have no places."""
    buffers = [op for op in program.body.block.ops if isinstance(op, BufferOp)]
    tasks = [op for op in program.body.block.ops if isinstance(op, TaskOp)]
    numbers: dict[SSAValue, int] = {op.memory: n for n, op in enumerate(buffers)}
    events: dict[SSAValue, int] = {op.event: n for n, op in enumerate(tasks)}
    plan = HostPlan(
        [
            HostBuffer(
                op.memory.name_hint or f"buffer{n}",
                cast("Space", op.space.data),
                op.nbytes.value.data,
            )
            for n, op in enumerate(buffers)
        ],
        [_task(op, numbers) for op in tasks],
    )
    if all(op.queue is not None for op in tasks):
        plan.places = [
            Place(op.queue.value.data, tuple(events[w] for w in op.waits))
            for op in tasks
            if op.queue is not None
        ]
    return plan


def _task(op: TaskOp, numbers: dict[SSAValue, int]) -> HostTask:
    found: list[Use] = []
    for value in op.uses:
        region = cast(RegionOp, value.owner)
        place = region.offset.value.data, ints(region.sizes), ints(region.strides)
        access = region.access.data
        made = Region.of(numbers[region.memory], *place, region.itemsize.value.data)
        label = region.label.data if region.label else ""
        found.append(Use(made, access != "writes", access != "reads", label))
    cost = op.cost_ns.value.data if op.cost_ns else HostTask.cost_ns
    line = op.line.data if op.line else ""
    return HostTask(op.label.data, cast("Kind", op.kind.data), tuple(found), cost, line)


def write_places(program: ProgramOp, plan: HostPlan) -> None:
    """Write on each task where it goes and what it waits for. Takes back the proof."""
    events: list[SSAValue] = []
    for op in [op for op in program.body.block.ops if isinstance(op, TaskOp)]:
        place = plan.places[len(events)]
        made = TaskOp(
            op.label.data, op.kind.data, op.uses, place.queue, [events[w] for w in place.waits]
        )
        kept = {k: v for k, v in op.properties.items() if k in ("line", "cost_ns")}
        made.properties.update(kept)
        made.attributes.update(op.attributes)
        made.event.name_hint = op.event.name_hint
        Rewriter.replace_op(op, made)
        events.append(made.event)
    program.verified = None


def proof_of(plan: HostPlan) -> str:
    """A digest of all that a proof reads: buffers, uses, queues and waits."""
    read = (
        [(b.space, b.nbytes) for b in plan.buffers],
        [(t.kind, [(u.region, u.reads, u.writes) for u in t.uses]) for t in plan.tasks],
        plan.places,
    )
    return f"sha256:{hashlib.sha256(repr(read).encode()).hexdigest()}"


def program_of(plan: HostPlan, name: str = "dag", verified: bool = False) -> ModuleOp:
    """A module of a plan."""
    block = Block()
    memories: list[SSAValue] = []
    for buffer in plan.buffers:
        made = BufferOp(buffer.space, buffer.nbytes)
        made.memory.name_hint = buffer.name
        block.add_op(made)
        memories.append(made.memory)
    events: list[SSAValue] = []
    for number, task in enumerate(plan.tasks):
        regions = [_region(use, memories) for use in task.uses]
        block.add_ops(regions)
        place = plan.places[number] if plan.places else None
        op = TaskOp(
            task.name,
            task.kind,
            [r.region for r in regions],
            place.queue if place else None,
            [events[w] for w in place.waits] if place else (),
            task.origin,
            task.cost_ns,
        )
        op.event.name_hint = f"t{number}"
        block.add_op(op)
        events.append(op.event)
    program = ProgramOp(name, IrRegion(block))
    program.verified = StringAttr(proof_of(plan)) if verified else None
    return ModuleOp([program])


def _region(use: Use, memories: list[SSAValue]) -> RegionOp:
    region = use.region
    place = region.offset, region.itemsize
    access = _ACCESS[use.reads, use.writes]
    return RegionOp(memories[region.buffer], access, place, region.shape, region.strides, use.name)
