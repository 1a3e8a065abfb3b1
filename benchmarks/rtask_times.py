"""How long one rTask takes: a program's rOperators, each measured (`irkit/runtime/rtask_times.py`), beside
what it does and was estimated to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from irkit.context import IrkitContext
from irkit.dialects.task import AlternativeAttr, ROperatorOp
from irkit.driver.compiler.models import read_model
from irkit.driver.diagnostics.library_errors import library_errors
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.pipelines.runner import PipelineRunner
from irkit.driver.pipelines.specification import build_pipeline
from irkit.driver.pipelines.standard import level_pipeline
from irkit.driver.registry import all_passes, register_dialects
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
from irkit.runtime.rtask_times import RUNS, rtask_times
from irkit.schedule.devices import device as find_device
from irkit.schedule.model import VDevice

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
    def of(
        name: str, model: Any, device: str, packed: bool | None = None, whole: bool = False,
        only: str = "", terms: str = "",
    ) -> Prepared:  # fmt: skip
        """A model brought to the task level; `packed`: all products of matrices are of packed terms, or none;
        `only`: of packed ones this operand alone; `terms`: how they are packed; `whole`: no attention is cut
        into parts of the keys.

        Raises what `irkit.compile` raises.
        """
        imported = read_model(model, "float32")
        ctx = IrkitContext(weights=imported.weights)
        register_dialects(ctx)
        text = level_pipeline("graph", device)
        if whole:
            text = text.replace(f'split-attention{{device="{device}"}},', "")
        with library_errors():
            PipelineRunner(ctx).run(imported.module, build_pipeline(text, all_passes()))
        run_level(ctx, imported.module, "tensor", device)
        text = level_pipeline("task", device)
        own = f'pack-products{{device="{device}"}}'
        if packed is not None:
            chosen = (("only", only), ("terms", terms))
            how = " always=true" + "".join(f' {n}="{v}"' for n, v in chosen if v)
            text = text.replace(f"{own},", f"{own[:-1]}{how}}}," if packed else "")
        with library_errors():
            PipelineRunner(ctx).run(imported.module, build_pipeline(text, all_passes()))
        return Prepared(name, imported.module, ctx, imported.info, find_device(device))

    def roperators(self) -> list[ROperatorOp]:
        """The rOperators, in order."""
        return [op for op in self.module.ops if isinstance(op, ROperatorOp)]

    def samples(self) -> list[Sample]:
        """What is known, before it runs, of each rOperator of which an rKernel is chosen: by `schedule` of
        all, in `variants` of the heaviest."""
        return [self._sample(op) for op in self.roperators() if op.rkernel is not None]

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


def measure(artifact: Artifact, samples: list[Sample], runs: int = RUNS) -> list[Sample]:
    """Fill in what each rOperator's rTasks took: the best of `runs`, the median of all its rTasks."""
    found = rtask_times(artifact, TYPICAL_ROWS, runs)
    for sample in samples:
        sample.measured_ns = found.get(sample.roperator, 0.0)
    return [s for s in samples if s.measured_ns > 0]
