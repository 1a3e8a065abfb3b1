"""How long one rTask takes: a program's rOperators, each measured, beside what it does and was estimated to.

On a CPU the trace of a run in mode `serial` says it. On a GPU each rOperator's own kernel runs many times in
one graph, a block an rTask, and what a kernel that does nothing takes is subtracted.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from irkit.context import IrkitContext
from irkit.dialects.task import AlternativeAttr, ROperatorOp
from irkit.driver.compiler.models import read_model
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.errors import UnsupportedError
from irkit.model_info import ModelInfo
from irkit.passes.task.partition_rtasks import grid_for, nbytes
from irkit.rkernels import families, registry
from irkit.rkernels.legality import (
    refuses_device,
    refuses_scratch,
    root_of,
    target_of,
    why_illegal,
)
from irkit.rkernels.work import TYPICAL_ROWS
from irkit.runtime.artifact import Artifact
from irkit.schedule.devices import device as find_device
from irkit.schedule.model import VDevice
from irkit.schedule.modes import Mode

_LONGEST_NS, _FACTOR = 4e6, 5
"""rTasks that are estimated to take longer are not measured, nor those of rKernels that are far from the
best: what they would tell, others do."""


@dataclass
class Sample:
    """One rOperator of one program: what its largest rTask does, is estimated to take, and took."""

    program: str
    roperator: str
    rkernel: str
    grid: list[int]
    work: dict[str, float]
    estimate_ns: float
    measured_ns: float = 0.0
    loops: str = ""

    @property
    def ratio(self) -> float:
        """Estimate over measurement."""
        return self.estimate_ns / self.measured_ns

    def to_json(self) -> dict[str, Any]:
        """As an object of JSON."""
        return asdict(self)


@dataclass
class Prepared:
    """A module at the task level, with an rKernel and a grid chosen for each rOperator."""

    name: str
    module: ModuleOp
    ctx: IrkitContext
    info: ModelInfo
    device: VDevice

    @staticmethod
    def of(name: str, model: Any, device: str) -> Prepared:
        """A model brought to the task level. Raises what `irkit.compile` raises."""
        imported = read_model(model, "float32")
        ctx = IrkitContext(weights=imported.weights)
        register_dialects(ctx)
        for level in ("graph", "tensor", "task"):
            run_level(ctx, imported.module, level, device)
        return Prepared(name, imported.module, ctx, imported.info, find_device(device))

    def roperators(self) -> list[ROperatorOp]:
        """The rOperators, in order."""
        return [op for op in self.module.ops if isinstance(op, ROperatorOp)]

    def samples(self) -> list[Sample]:
        """What is known of each rOperator before it runs, once `schedule` has chosen how."""
        return [self._sample(op) for op in self.roperators()]

    def _sample(self, op: ROperatorOp) -> Sample:
        root = root_of(op)
        assert op.rkernel is not None
        rkernel = registry.find(target_of(self.device), op.rkernel.data)
        grid = list(op.grid.get_values()) if op.grid is not None else []
        family = families.find(rkernel.family)
        work = family.task_work(rkernel, root, grid, nbytes(op), self.device)
        loops = f"{list(root.parallel)} {list(root.reduction)}"
        units = {kind: units for kind, units in work.units.items() if units}
        return Sample(
            self.name, op.sym_name.data, rkernel.name, grid, units, work.nanoseconds(self.device),
            loops=loops,
        )  # fmt: skip

    def variants(self, tasks: int) -> Iterator[Prepared]:
        """The same with each legal rKernel of the heaviest rOperator, in a grid of about `tasks` rTasks."""
        costs = [_least(op) for op in self.roperators()]
        number = costs.index(max(costs))
        heaviest, limit = self.roperators()[number], min(_LONGEST_NS, _FACTOR * costs[number])
        root = root_of(heaviest)
        for rkernel in registry.candidates(target_of(self.device), root):
            literals = rkernel.literals(root)
            if refuses_device(rkernel, self.device) or refuses_scratch(
                rkernel, root, literals, self.device
            ):
                continue
            grid = grid_for(root, tasks, rkernel)
            family = families.find(rkernel.family)
            cost = family.task_ns(rkernel, root, grid, nbytes(heaviest), self.device)
            scratch = rkernel.scratch(root, literals)
            made = Prepared(self.name, self.module.clone(), self.ctx, self.info, self.device)
            op = made.roperators()[number]
            op.choose(
                AlternativeAttr.of(
                    rkernel.name, grid, cost, dict(literals), scratch, rkernel.fastmath
                )
            )
            if cost <= limit and why_illegal(op, self.device) is None:
                yield made

    def schedule(self) -> None:
        """Choose where there is a choice, and place."""
        run_level(self.ctx, self.module, "schedule", self.device.name)

    def built(self) -> Artifact:
        """Emitted, once it is scheduled; for a GPU also compiled to a cubin."""
        from irkit.lower.task_to_numba.emit import emit_module

        target = "cuda" if self.device.kind == "cuda" else "cpu"
        source = emit_module(self.module, self.ctx.weights, target)
        text = str(self.module)
        names = [name for name in self.ctx.weights if f'"{name}"' in text]
        weights = {name: self.ctx.weights[name] for name in names}
        cubin = b""
        if target == "cuda":
            from irkit.runtime.cuda.compiling import compile_module
            from irkit.runtime.cuda.facts import read_facts

            _, facts = read_facts(source)
            cubin = compile_module(source, facts.entries, facts.threads, facts.arch)
        return Artifact(target, source, weights, self.info.to_json(), {}, {}, cubin)


def build(name: str, model: Any, device: str) -> tuple[Artifact, list[Sample]]:
    """A model as the standard pipeline compiles it, and its rOperators."""
    prepared = Prepared.of(name, model, device)
    prepared.schedule()
    return prepared.built(), prepared.samples()


def build_variants(
    name: str, model: Any, device: str, tasks: int
) -> Iterator[tuple[Artifact, list[Sample]]]:
    """The same with every legal rKernel of its heaviest rOperator."""
    for prepared in Prepared.of(name, model, device).variants(tasks):
        with suppress(UnsupportedError):
            prepared.schedule()
            yield prepared.built(), prepared.samples()


def _least(op: ROperatorOp) -> float:
    """Time of an rTask of the fastest alternative."""
    offered = op.alternatives
    return min(a.cost_ns for a in offered) if offered is not None else 0.0


def measure(artifact: Artifact, samples: list[Sample], runs: int = 15) -> list[Sample]:
    """Fill in what each rOperator's rTasks took: the best of `runs`, the median of all its rTasks."""
    found = _on_gpu(artifact, runs) if artifact.target == "cuda" else _on_cpu(artifact, runs)
    for number, sample in enumerate(samples):
        sample.measured_ns = found.get(number, 0.0)
    return [s for s in samples if s.measured_ns > 0]


_SECONDS = 1.0
"""How long a program is run, at most, once it ran three times."""


def _inputs(ports: Any) -> list[Any]:
    rng = np.random.default_rng(0)
    shapes = [[TYPICAL_ROWS if size == -1 else size for size in p.shape] for p in ports]
    return [(rng.random(s) + 0.05).astype(p.dtype) for s, p in zip(shapes, ports, strict=True)]


def _on_cpu(artifact: Artifact, runs: int) -> dict[int, float]:
    """rOperator → nanoseconds of an rTask, from the trace, less what an empty one takes."""
    from irkit.runtime.cpu import CpuExecutor
    from irkit.runtime.cpu_trace import TracedExecutor
    from irkit.runtime.loading import load_source

    info = ModelInfo.from_json(artifact.info)
    plain = CpuExecutor(load_source(artifact), artifact.weights, info, "serial")
    traced = TracedExecutor(plain, "serial")
    program = traced.program
    inputs = _inputs(program.inputs)
    traced.run(inputs)
    times: list[Any] = []
    rows = traced.rows()
    until = time.perf_counter() + _SECONDS
    while len(times) < runs and (len(times) < 3 or time.perf_counter() < until):
        traced.run(inputs)
        rows = traced.rows()
        times.append(rows[:, 5] - rows[:, 4])
    # Whatever else the machine does makes a run longer, never shorter.
    best = np.array(times).min(axis=0)
    kernels = np.array([a.kernel for a in program.appends])[rows[:, 0].astype(int)]
    return {int(k): float(np.median(best[kernels == k])) for k in np.unique(kernels)}


_GRAPH_LAUNCHES = 50
_EMPTY = b""".version 7.8
.target sm_80
.address_size 64
.visible .entry empty() { ret; }
\0"""


def _on_gpu(artifact: Artifact, runs: int) -> dict[int, float]:
    """rOperator → nanoseconds of its kernel with a block an rTask, less an empty kernel's."""
    from irkit.runtime.cuda.driver import Graph, Module
    from irkit.runtime.cuda.executor import CudaExecutor

    info = ModelInfo.from_json(artifact.info)
    executor = CudaExecutor.from_artifact(artifact, info, "per-op")
    program = executor.program
    executor.device.activate()
    stream, held, addresses = executor.stream, list[Any](), list[int]()
    for array in _inputs(program.inputs):
        buffer = executor.pool.take(array.nbytes)
        buffer.upload(array, stream)
        held.append(buffer)
        addresses.append(buffer.address)
    rows = TYPICAL_ROWS if program.dynamic else 1
    outputs = executor.new_outputs("irkit", rows, stream)
    executor.residence.bind([*addresses, *(a for a, _ in outputs)], -(-rows // 16) * 16, stream)
    # Once, so that what rOperators read of one another is there.
    executor.launch(Mode.PER_OP, rows, stream)
    executor.synchronize()
    empty = Module(_EMPTY, executor.device)
    nothing = empty.kernel("empty", 0, executor.facts.threads)
    found: dict[int, float] = {}
    first = np.cumsum([0, *(a.tasks for a in program.appends)])
    for number, append in enumerate(program.appends):
        if append.kernel in found:
            continue
        blocks = append.tasks
        record = executor.residence.serial + int(first[number]) * executor.residence.record_bytes
        arguments = (record, executor.residence.bases, rows, -(-rows // 16) * 16)
        kernel = executor.ops[append.kernel]

        def launches(into: Any, kernel: Any = kernel, blocks: int = blocks, given: Any = arguments):
            for _ in range(_GRAPH_LAUNCHES):
                kernel.launch(blocks, given, into)

        def idle(into: Any, blocks: int = blocks):
            for _ in range(_GRAPH_LAUNCHES):
                nothing.launch(blocks, (), into)

        graphs = Graph(launches, stream), Graph(idle, stream)
        took, none = (_replayed(g, stream, runs) for g in graphs)
        found[append.kernel] = max(took - none, 1.0)
    executor.synchronize()
    return found


def _replayed(graph: Any, stream: Any, runs: int) -> float:
    """Nanoseconds of one launch of a graph of launches."""
    from irkit.runtime.cuda.driver import Event

    times: list[float] = []
    for _ in range(runs + 1):
        start, end = Event(), Event()
        start.record(stream)
        graph.launch(stream)
        end.record(stream)
        times.append(end.since(start) * 1e6 / _GRAPH_LAUNCHES)
    return float(np.median(times[1:]))
