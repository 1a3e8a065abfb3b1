"""A program that the host takes part in: compiled regions, and between them functions that irkit does not
compile, called in order by the thread that calls the program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp as FunctionCall
from xdsl.dialects.func import FuncOp

from irkit.annotations.device_twin import why_not_there
from irkit.annotations.host_task import HostTask
from irkit.annotations.pipelines import Pipeline
from irkit.annotations.structures import same_bytes
from irkit.context import IrkitContext
from irkit.dialects.functions import function_named
from irkit.dialects.program.builder import BuiltProgram
from irkit.dialects.program.check import written_arguments
from irkit.dialects.program.spaces import device_of_call
from irkit.driver.diagnostics.library_errors import library_errors
from irkit.driver.pipelines.runner import PipelineRunner, Verify
from irkit.driver.pipelines.specification import build_pipeline
from irkit.driver.programs.joining import join_calls
from irkit.driver.programs.lowering import Lowered
from irkit.driver.programs.placing import Placement
from irkit.driver.registry import all_passes, register_dialects
from irkit.errors import UnsupportedError
from irkit.interp.program import Execution
from irkit.passes.program.regions import region_modules
from irkit.viewing.timeline import Timeline
from irkit.weights import Array

REGIONS = "form-regions"
"""The pass that cuts a program where the host acts."""


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
        self._main = main_of(module)
        self._weights = ctx.weights
        self._written = list(written_arguments(self._main))
        self.tasks = tasks_of(built)
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
            **{name: CompiledRegion(region) for name, region in self.regions.items()},
        }
        self._execution = Execution(self._main, self._weights, self._functions)

    def run(self, buffers: Sequence[Array]) -> tuple[list[Array], Mapping[int, Array]]:
        """As `Runner` has it: the program writes to copies, of which those that have changed are given."""
        # A function of the host that was not seen to keep to its annotation may write what it is not to.
        trusted = all(task.checked for task in self.tasks.values())
        own = [
            np.array(b, order="C") if n in self._written or not trusted else b
            for n, b in enumerate(buffers)
        ]
        found = self._execution.run(own)
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
            "host_tasks": calls_told(self.tasks),
        }

    def explained(self) -> list[str]:
        """Every function that the host calls, a line each."""
        head, *calls = calls_in_words(self.tasks, self.pipelines)
        return [f"{len(self.regions)} regions compiled, {head}", *calls]

    def timelines(self) -> list[Timeline]:
        """The planned schedules of the regions."""
        return [t for region in self.regions.values() for t in region.timelines()]


def main_of(module: ModuleOp) -> FuncOp:
    """Where a program begins. Raises UnsupportedError for one without `@main`."""
    main = function_named(module, "main")
    if main is None:
        raise UnsupportedError("a program without '@main'")
    return main


class CompiledRegion:
    """A compiled region, called with its buffers, which it writes."""

    def __init__(self, region: Lowered) -> None:
        self._region = region

    def __call__(self, *buffers: Array) -> None:
        _, written = self._region.run(buffers)
        for number, contents in written.items():
            np.copyto(buffers[number], contents)


def tasks_of(built: BuiltProgram) -> dict[str, HostTask]:
    """The functions that a program's host calls, by name."""
    return {n: t for n, t in built.functions.items() if isinstance(t, HostTask)}


def calls_in_words(tasks: Mapping[str, HostTask], pipelines: Mapping[str, Pipeline]) -> list[str]:
    """How many calls the host makes, then a line for each, and for each chain of calls."""
    lines: list[str] = []
    for task in tasks.values():
        line = (
            f"host task: {task.annotation.name} at {task.place}: {task.bytes_in} bytes in, "
            f"{task.bytes_out} bytes out; {task.annotation.why}"
        )
        line += f"; in parts of {task.cut.units}" if task.cut else ""
        why = why_not_there(task) if task.annotation.device_twin is not None else None
        lines.append(line + (f"; its device twin is not called: {why}" if why else ""))
    chains = [
        f"chunk by chunk: {', '.join(t.annotation.name for t in p.tasks)}"
        for p in pipelines.values()
    ]
    return [f"{len(lines)} calls by the host", *lines, *chains]


def calls_told(tasks: Mapping[str, HostTask]) -> list[dict[str, Any]]:
    """What the host calls, for a report."""
    return [
        {
            "name": name,
            "function": task.annotation.name,
            "place": task.place,
            "bytes_in": task.bytes_in,
            "bytes_out": task.bytes_out,
            "why": task.annotation.why,
        }
        for name, task in tasks.items()
    ]
