"""A program on the CPU and a GPU: what its plan says is what is done. Regions of the GPU leave their arrays
there, and what is copied is what the text copies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from typing import Any

import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.printer import Printer

from irkit.annotations.device_twin import DeviceTwin, why_not_there
from irkit.annotations.structures import same_bytes
from irkit.dags.device import DagDevice
from irkit.dags.host_programs import Computing, DeviceFunction, HostFunction, HostProgramRunner
from irkit.dialects.program.builder import BuiltProgram
from irkit.dialects.program.spaces import CPU, CUDA, is_of_device
from irkit.driver.compiler.models import ONE_BUILDER
from irkit.driver.pipelines.collecting import seldom_collected
from irkit.driver.programs.device_functions import called_functions, device_function
from irkit.driver.programs.hosted import CompiledRegion, calls_in_words, calls_told, tasks_of
from irkit.driver.programs.lowering import Lowered
from irkit.driver.programs.placing import Placement
from irkit.errors import UnsupportedError
from irkit.interp.program import Execution
from irkit.passes.host.actions import Call, HostProgram
from irkit.passes.host.program_text import program_of
from irkit.passes.program.regions import region_modules
from irkit.runtime.artifact import Artifact
from irkit.viewing.host_plans import planned
from irkit.viewing.timeline import Timeline
from irkit.weights import Array, WeightStore

Compile = Callable[[FuncOp, WeightStore, Mapping[str, Any]], DeviceFunction]


class Planned:
    """A program whose regions are compiled, each for its side, and run with the planned copies by one proved
    schedule. Memory of the device is kept from call to call."""

    def __init__(
        self,
        built: BuiltProgram,
        placement: Placement,
        program: HostProgram,
        device: DagDevice,
        compiled: Compile | None = None,
    ) -> None:
        """`program` is the plan of `placement`; `compiled` makes a function of the device, by default by
        compiling it for the GPU. Raises as `Lowered`, of each region."""
        self._placement = placement
        self._module, self._weights = placement.module, placement.weights
        self._compiled: Compile = compiled or self._on_gpu
        self.tasks, self.pipelines = tasks_of(built), placement.pipelines
        self.artifacts: dict[str, Artifact] = {}
        self.regions: dict[str, Lowered] = {}
        calls = (a for a in program.actions if isinstance(a, Call) and not a.on_device)
        here = {a.function for a in calls}
        self._here = [t for n, t in self.tasks.items() if n in here]
        self._here += [t for n, p in self.pipelines.items() if n in here for t in p.tasks]
        made: dict[str, Any] = {}
        functions: dict[str, DeviceFunction | HostFunction] = {**built.functions, **self.pipelines}
        with ONE_BUILDER, seldom_collected():
            modules = region_modules(self._module)
            for function in called_functions(self._module):
                # Of regions that are alike, as rounds of a loop that was unrolled, there is one.
                name = function.sym_name.data
                key = str(modules[name])
                if key not in made:
                    made[key] = self._region(name, function, modules[name])
                functions[name] = made[key]
        self.runner = HostProgramRunner(
            program,
            device,
            functions,
            policy="disjoint",
            keep=True,
            computing=computing(self._weights),
            twins={n: DeviceTwin(t) for n, t in self.tasks.items() if why_not_there(t) is None},
        )

    def _region(self, name: str, function: FuncOp, module: Any) -> DeviceFunction | HostFunction:
        if is_of_device(function):
            return self._compiled(function, self._weights, self._placement.options_of(CUDA))
        region = Lowered(BuiltProgram(module, self._weights), self._placement.options_of(CPU))
        self.regions[name] = region
        return CompiledRegion(region)

    def _on_gpu(
        self, function: FuncOp, weights: WeightStore, options: Mapping[str, Any]
    ) -> DeviceFunction:
        made = device_function(function, weights, options)
        self.artifacts[function.sym_name.data] = made.source
        return made.function

    def run(self, buffers: Sequence[Array]) -> tuple[list[Array], Mapping[int, Array]]:
        """As `Runner` has it."""
        # A function of the host that was not seen to keep to its annotation may write what it is not to.
        trusted = all(task.checked for task in self._here)
        ran = self.runner.execute(buffers if trusted else [np.array(b, order="C") for b in buffers])
        left = {n: a for n, a in ran.left.items() if not same_bytes(a, buffers[n])}
        return ran.results, left

    def ir(self, level: str) -> str:
        """Its text at a level: "host" is the schedule; below, that of each region."""
        if level == "host":
            text = StringIO()
            Printer(text).print_op(program_of(self.runner.plan, "main", verified=True))
            return text.getvalue() + "\n"
        texts = {name: r.ir(level) for name, r in self.regions.items()}
        for name, artifact in self.artifacts.items():
            if level not in artifact.ir:
                raise UnsupportedError(
                    f"level '{level}'; there are program, host, {', '.join(artifact.ir)}"
                )
            texts[name] = artifact.ir[level]
        return "\n".join(f"// @{name}\n{text}" for name, text in texts.items())

    @property
    def source(self) -> str:
        """The emitted modules."""
        sources = {n: r.source for n, r in self.regions.items()}
        sources |= {n: a.source for n, a in self.artifacts.items()}
        return "\n".join(f"# {name}\n{source}" for name, source in sources.items())

    def report(self) -> dict[str, Any]:
        """What was compiled, what the host does, and what there is on the device."""
        regions = {n: r.report() for n, r in self.regions.items()}
        regions |= {n: a.report for n, a in self.artifacts.items()}
        parts = [f"{name}.{op}" for name, r in regions.items() for op in r.get("roperators", {})]
        return {
            "target": CUDA,
            "proved": all(bool(r.get("proved")) for r in regions.values()),
            "roperators": parts,
            "regions": regions,
            "host_tasks": calls_told(self.tasks),
            "device_bytes": self.runner.arrays_bytes,
            "tasks": [(t.name, t.kind) for t in self.runner.plan.tasks],
        }

    def explained(self) -> list[str]:
        """What is compiled, what is on the device, and every function that the host calls."""
        head, *calls = calls_in_words(self.tasks, self.pipelines)
        plan = self.runner.plan
        line = (
            f"{len(self.regions) + len(self.artifacts)} regions compiled, {head}; "
            f"{self.runner.arrays_bytes} bytes of arrays on the device, {plan.queues - 1} streams, proved"
        )
        return [line, *calls]

    def timelines(self) -> list[Timeline]:
        """The planned schedule of all, then those of the CPU's regions."""
        own = [t for region in self.regions.values() for t in region.timelines()]
        return [planned(self.runner.plan), *own]


def computing(weights: WeightStore) -> Computing:
    """What does ops of the host."""

    def run(ops: Sequence[Operation], values: Mapping[SSAValue, Any]) -> None:
        main = ops[-1].parent_op()
        while not isinstance(main, FuncOp):
            assert main is not None
            main = main.parent_op()
        Execution(main, weights, {}).compute(ops, values)

    return run
