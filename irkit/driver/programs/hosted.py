"""A program that the host takes part in: compiled regions, and between them functions that irkit does not
compile, called in order by the thread that calls the program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp as FunctionCall
from xdsl.dialects.func import FuncOp

from irkit.annotations.host_task import HostTask
from irkit.annotations.structures import same_bytes
from irkit.context import IrkitContext
from irkit.dialects.functions import function_named
from irkit.dialects.program import CallOp
from irkit.dialects.program.builder import BuiltProgram
from irkit.dialects.program.check import written_arguments
from irkit.dialects.program.spaces import CPU, device_of_call
from irkit.driver.diagnostics.library_errors import library_errors
from irkit.driver.pipelines.runner import PipelineRunner, Verify
from irkit.driver.pipelines.specification import build_pipeline
from irkit.driver.programs.joining import join_calls
from irkit.driver.programs.lowering import Lowered, Runner
from irkit.driver.programs.placing import Placement, placement_of
from irkit.driver.registry import all_passes, register_dialects
from irkit.errors import UnsupportedError
from irkit.interp.program import Execution
from irkit.passes.program.regions import region_modules
from irkit.viewing.timeline import Timeline
from irkit.weights import Array

REGIONS = "form-regions"
"""The pass that cuts a program where the host acts."""


def lowered(built: BuiltProgram, options: Mapping[str, Any]) -> Runner:
    """What runs a program of arrays: one compiled program, or several with the host between them."""
    needed = any(isinstance(op, CallOp | scf.WhileOp) for op in built.module.walk())
    placement = placement_of(built, options)
    if placement is None:
        return Hosted(built, options) if needed else Lowered(built, options)
    parts = {d: placement.options_of(d) for d in placement.devices}
    compiled = {options["target"] for options in parts.values()}
    if needed or len(compiled) > 1:
        return Placed(Hosted(built, options, placement), placement)
    alone = next(iter(parts.values()), placement.options_of(CPU))
    return Placed(Lowered(built, alone), placement)


class Hosted:
    """A program whose regions are compiled, and whose host's part is run as its text says."""

    def __init__(
        self,
        built: BuiltProgram,
        options: Mapping[str, Any],
        placement: Placement | None = None,
    ) -> None:
        """Raises as `Lowered`, of each region."""
        self._program = str(built.module)
        module = built.module.clone()
        ctx = IrkitContext(weights=built.weights)
        register_dialects(ctx)
        with library_errors():
            PipelineRunner(ctx, verify=Verify.LEVELS).run(
                module, build_pipeline(placement.pipeline if placement else REGIONS, all_passes())
            )
        self._main = _main_of(module)
        self._weights = ctx.weights
        self._written = list(written_arguments(self._main))
        self.tasks: dict[str, HostTask] = {
            n: t for n, t in built.functions.items() if isinstance(t, HostTask)
        }
        self.pipelines = join_calls(self._main, self.tasks)
        self._text = str(module)
        # Of regions that are alike, as rounds of a loop that was unrolled, there is one.
        made: dict[tuple[str, str], Lowered] = {}
        where = {
            call.callee.string_value(): device_of_call(call)
            for call in self._main.walk()
            if isinstance(call, FunctionCall)
        }
        self.regions: dict[str, Lowered] = {}
        for name, region in region_modules(module).items():
            key = str(region), where[name]
            if key not in made:
                own = placement.options_of(where[name]) if placement else options
                made[key] = Lowered(BuiltProgram(region, ctx.weights), own)
            self.regions[name] = made[key]
        self._functions: dict[str, Callable[..., object]] = {
            **built.functions,
            **self.pipelines,
            **{name: _Region(region) for name, region in self.regions.items()},
        }

    def run(self, buffers: Sequence[Array]) -> tuple[list[Array], Mapping[int, Array]]:
        """As `Runner` has it: the program writes to copies, of which those that have changed are given."""
        # A function of the host that was not seen to keep to its annotation may write what it is not to.
        trusted = all(task.checked for task in self.tasks.values())
        own = [
            np.array(b, order="C") if n in self._written or not trusted else b
            for n, b in enumerate(buffers)
        ]
        found = Execution(self._main, self._weights, self._functions).run(own)
        written = {n: own[n] for n in self._written if not same_bytes(own[n], buffers[n])}
        return found, written

    def ir(self, level: str) -> str:
        """Its text at a level; below that of programs, of each region."""
        if level == "program":
            return self._program
        if level == "host":
            return self._text
        return "\n".join(f"// @{n}\n{r.ir(level)}" for n, r in self.regions.items())

    @property
    def source(self) -> str:
        """The emitted modules."""
        return "\n".join(f"# {name}\n{r.source}" for name, r in self.regions.items())

    def report(self) -> dict[str, Any]:
        """What was compiled, what the host does, and how each runs."""
        regions = {name: region.report() for name, region in self.regions.items()}
        parts = [f"{name}.{op}" for name, r in regions.items() for op in r.get("roperators", {})]
        return {
            "target": next((r.get("target") for r in regions.values()), "host"),
            "proved": all(bool(r.get("proved")) for r in regions.values()),
            "roperators": parts,
            "regions": regions,
            "host_tasks": [_told(name, task) for name, task in self.tasks.items()],
        }

    def explained(self) -> list[str]:
        """Every function that the host calls, a line each."""
        lines: list[str] = []
        for task in self.tasks.values():
            line = (
                f"host task: {task.annotation.name} at {task.place}: {task.bytes_in} bytes in, "
                f"{task.bytes_out} bytes out; {task.annotation.why}"
            )
            lines.append(line + (f"; in parts of {task.cut.units}" if task.cut else ""))
        chains = [
            f"chunk by chunk: {', '.join(t.annotation.name for t in p.tasks)}"
            for p in self.pipelines.values()
        ]
        head = f"{len(self.regions)} regions compiled, {len(lines)} calls by the host"
        return [head, *lines, *chains]

    def timelines(self) -> list[Timeline]:
        """The planned schedules of the regions."""
        return [t for region in self.regions.values() for t in region.timelines()]


class Placed:
    """A program with a plan of where it runs, and what runs it on this machine."""

    def __init__(self, runner: Hosted | Lowered, placement: Placement) -> None:
        self._runner, self._placement = runner, placement
        self.source = runner.source

    def run(self, buffers: Sequence[Array]) -> tuple[list[Array], Mapping[int, Array]]:
        """As `Runner` has it."""
        return self._runner.run(buffers)

    def ir(self, level: str) -> str:
        """Its text at a level: of the program, with devices and transfers."""
        return self._placement.text if level == "program" else self._runner.ir(level)

    def report(self) -> dict[str, Any]:
        """What was compiled, and how it runs."""
        return {**self._runner.report(), "placement": list(self._placement.lines)}

    def explained(self) -> list[str]:
        """Where each region runs and why, and what the host calls."""
        calls = self._runner.explained() if isinstance(self._runner, Hosted) else []
        return [*self._placement.lines, *calls]

    def timelines(self) -> list[Timeline]:
        """As `Runner` has it."""
        return self._runner.timelines()


class _Region:
    """A compiled region, called with its buffers, which it writes."""

    def __init__(self, region: Lowered) -> None:
        self._region = region

    def __call__(self, *buffers: Array) -> None:
        _, written = self._region.run(buffers)
        for number, contents in written.items():
            np.copyto(buffers[number], contents)


def _main_of(module: ModuleOp) -> FuncOp:
    main = function_named(module, "main")
    if main is None:
        raise UnsupportedError("a program without '@main'")
    return main


def _told(name: str, task: HostTask) -> dict[str, Any]:
    return {
        "name": name,
        "function": task.annotation.name,
        "place": task.place,
        "bytes_in": task.bytes_in,
        "bytes_out": task.bytes_out,
        "why": task.annotation.why,
    }
