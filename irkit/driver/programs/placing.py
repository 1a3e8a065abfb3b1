"""Where the regions of a program run: planned by the passes of the program level, and told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects import memref
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, ModuleOp
from xdsl.dialects.func import CallOp
from xdsl.ir import Attribute, Operation

from irkit.annotations.device_twin import why_not_there
from irkit.annotations.host_task import HostTask
from irkit.annotations.pipelines import Pipeline
from irkit.context import IrkitContext
from irkit.dialects.functions import function_named
from irkit.dialects.program import CallOp as HostCall
from irkit.dialects.program.builder import BuiltProgram
from irkit.dialects.program.spaces import (
    COSTS,
    CPU,
    CUDA,
    DEVICE,
    device_of_call,
    on_device,
    set_costs,
    set_cpu_cost,
)
from irkit.driver.compiler.targets import planned_device, target_of
from irkit.driver.device_at_hand import why_elsewhere
from irkit.driver.diagnostics.library_errors import library_errors
from irkit.driver.gpu_at_hand import gpu_at_hand
from irkit.driver.pipelines.runner import PipelineRunner, Verify
from irkit.driver.pipelines.specification import build_pipeline
from irkit.driver.programs.joining import join_calls
from irkit.driver.registry import all_passes, register_dialects
from irkit.errors import DeviceError, UnsupportedError
from irkit.passes.host.actions import HostProgram, Rates
from irkit.passes.host.host_program import host_program
from irkit.passes.host.sharing import shared
from irkit.passes.placement.flow import nbytes_of
from irkit.passes.placement.planning import PLAN, times_of
from irkit.runtime.cuda.link_times import keep_link
from irkit.schedule.host.expected import expected
from irkit.schedule.host.planning import assign_streams
from irkit.schedule.links import link_to
from irkit.schedule.model import VDevice
from irkit.weights import WeightStore

Options = Mapping[str, Any]


@dataclass(frozen=True)
class Placement:
    """A plan of a program for the CPU and a GPU. `pipeline`: the passes that give its regions devices;
    `module`: the program with these and with transfers, whose `text` it is, and in which `pipelines` are
    chains of the host's calls; `plan`: its tasks, or why there are none beforehand; `absent`: why the GPU is
    not there to run it."""

    options: Options
    gpu: VDevice
    pipeline: str
    module: ModuleOp
    weights: WeightStore
    text: str
    pipelines: Mapping[str, Pipeline]
    plan: HostProgram | str
    devices: frozenset[str]
    lines: tuple[str, ...]
    absent: str | None = None

    def options_of(self, device: str) -> Options:
        """How a region on a device is compiled. Where the GPU is absent and nobody insists on it, all
        are the CPU's."""
        if device == CUDA and self.absent is None:
            return {**self.options, "target": CUDA}
        if device == CUDA and self.options["target"] == CUDA:
            return self.options
        return {**self.options, "target": CPU, "device": None}


def placement_of(built: BuiltProgram, options: Options) -> Placement | None:
    """The plan of a program for the GPU that is named or at hand; None where there is no choice: a CPU is
    asked for, or there is no GPU.

    Raises DeviceError, UnsupportedError as `irkit.jit`.
    """
    gpu = _gpu(options)
    if gpu is None:
        return None
    absent = why_elsewhere(gpu)
    if absent is None:
        keep_link(gpu)
    forced = CUDA if options["target"] == CUDA else "auto"
    exact = "afn" not in (options["fastmath"] or ())
    chosen = f"choose-devices{{device={forced} target={gpu.name} afn={str(not exact).lower()}}}"
    pipeline = f"form-regions,{chosen}"
    module, ctx = built.module.clone(), IrkitContext(weights=built.weights)
    register_dialects(ctx)
    tasks = {n: t for n, t in built.functions.items() if isinstance(t, HostTask)}
    _price(module, tasks)
    with library_errors():
        passes = build_pipeline(f"{pipeline},insert-transfers", all_passes())
        PipelineRunner(ctx, verify=Verify.LEVELS).run(module, passes)
    calls = [
        op for op in module.walk() if isinstance(op, CallOp | HostCall) and DEVICE in op.attributes
    ]
    devices = frozenset(map(device_of_call, calls))
    text, main = str(module), function_named(module, "main")
    pipelines = {} if main is None else join_calls(main, tasks)
    plan = _plan(module, gpu)
    lines = tuple(_told(module, calls, gpu, absent, forced, plan))
    return Placement(
        options, gpu, pipeline, module, ctx.weights, text, pipelines, plan, devices, lines, absent
    )


def _price(module: ModuleOp, tasks: Mapping[str, HostTask]) -> None:
    """Write what annotations say that calls of the host cost where they are made, on either side where their
    functions have twins that may be called."""
    for op in module.walk():
        if isinstance(op, HostCall) and (task := tasks.get(op.callee.root_reference.data)):
            _price_call(op, task, Rates())


def _price_call(call: HostCall, task: HostTask, rates: Rates) -> None:
    cost, times = task.cost_ns(), times_of(call)
    nbytes = task.bytes_in + task.bytes_out
    if why_not_there(task) is None:
        there = task.device_cost_ns()
        own = rates.run(nbytes, False) if cost is None else cost
        twin = rates.run(nbytes, True) if there is None else there
        set_costs(call, {CPU: round(own * times), CUDA: round(twin * times)})
    elif cost is not None:
        set_cpu_cost(call, round(cost * times))


def _plan(module: ModuleOp, gpu: VDevice) -> HostProgram | str:
    """The tasks of a program with transfers, on as little of the device as costs no time; or why there are
    none before it runs. Pages of a plan's arrays stay."""
    link = link_to(gpu, pinned=True).rates
    there, back = (1e9 / link[f"{way}_pinned"] for way in ("to_device", "to_host"))
    try:
        return shared(host_program(module, Rates(there, start_ns=link["copy"], back=back), True))
    except UnsupportedError as error:
        return str(error)


def _gpu(options: Options) -> VDevice | None:
    """The GPU that may be chosen."""
    target, named = options["target"], options["device"]
    if named is None and target != CUDA:
        try:
            return gpu_at_hand() if target == "auto" else None
        except DeviceError:
            return None
    device = planned_device(target, named)
    return device if target_of(device) == CUDA else None


# In words


def _told(
    module: ModuleOp,
    calls: Sequence[CallOp | HostCall],
    gpu: VDevice,
    absent: str | None,
    forced: str,
    plan: HostProgram | str,
) -> Iterator[str]:
    main = function_named(module, "main")
    total = _numbers(main.attributes.get(PLAN) if main is not None else None)
    yield (
        f"planned for the CPU and {gpu.name}: {_time(total['chosen'])}; "
        f"{_time(total['cpu'])} with all on the CPU, {_time(total['cuda'])} with all on {gpu.name}"
    )
    if isinstance(plan, HostProgram) and plan.tasks:
        yield _scheduled(plan)
    if forced == CUDA:
        yield f"all that may be is on {gpu.name}, as asked for"
    for call in calls:
        yield _region(call, gpu)
    copies = [op for op in module.walk() if isinstance(op, memref.CopyOp)]
    back = sum(nbytes_of(op.source) for op in copies if on_device(op.source))
    there = sum(nbytes_of(op.source) for op in copies) - back
    yield f"{len(copies)} copies: {_size(there)} to {gpu.name}, {_size(back)} back"
    link = link_to(gpu)
    if link.assumed:
        yield f"the link to {gpu.name} was not measured on this machine; assumed: {', '.join(link.assumed)}"
    if absent is not None and forced != CUDA:
        yield f"it runs on the CPU alone: {absent}"


def _scheduled(program: HostProgram) -> str:
    """What the schedule of a plan is expected to take, with overlap, beside the sum of its tasks."""
    plan = assign_streams(program.buffers, program.tasks)
    times = expected(plan)
    busy = ", ".join(f"{name} {_time(ns)}" for name, ns in times.busy.items())
    return (
        f"as scheduled on the host and {plan.queues - 1} streams: {_time(times.makespan)}; "
        f"{_time(times.one_by_one)} one after another ({busy})"
    )


def _region(call: CallOp | HostCall, gpu: VDevice) -> str:
    costs, there = _numbers(call.attributes[COSTS]), device_of_call(call) == CUDA
    here, other = (gpu.name, "the CPU") if there else ("the CPU", gpu.name)
    own, elsewhere = (costs["cuda"], costs["cpu"]) if there else (costs["cpu"], costs["cuda"])
    moved = sum(nbytes_of(op.source) for op in _copies_before(call))
    more = costs["moved"]
    why = f"there the program would take {_time(abs(more))} {'more' if more >= 0 else 'less'}"
    copied = f"; {_size(moved)} copied for it" if moved else ""
    twin = ", its device twin," if there and isinstance(call, HostCall) else ""
    return (
        f"@{call.callee.string_value()}{twin} on {here}: {_time(own)}, on {other} {_time(elsewhere)}; "
        f"{why}, copies and all{copied}"
    )


def _copies_before(call: CallOp | HostCall) -> Iterator[memref.CopyOp]:
    op: Operation | None = call.prev_op
    while isinstance(op, memref.CopyOp | memref.ReinterpretCastOp):
        if isinstance(op, memref.CopyOp):
            yield op
        op = op.prev_op


def _numbers(attribute: Attribute | None) -> dict[str, int]:
    found = attribute.data.items() if isinstance(attribute, DictionaryAttr) else ()
    return {k: v.value.data for k, v in found if isinstance(v, IntegerAttr)}


def _time(nanoseconds: float) -> str:
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if nanoseconds >= scale:
            return f"{nanoseconds / scale:.3g} {unit}"
    return f"{nanoseconds:.0f} ns"


def _size(nbytes: float) -> str:
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if nbytes >= scale:
            return f"{nbytes / scale:.3g} {unit}"
    return f"{nbytes:.0f} bytes"
