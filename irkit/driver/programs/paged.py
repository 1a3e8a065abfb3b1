"""Programs of arrays that are larger than the device's memory: compiled for chunks, and run in chunks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from irkit.dags.device import DagDevice
from irkit.dags.host_programs import DeviceFunction, HostFunction, HostProgramRunner
from irkit.dialects.functions import function_named
from irkit.dialects.program import CallOp as HostCall
from irkit.dialects.program.builder import BuiltProgram
from irkit.dialects.program.check import written_arguments
from irkit.dialects.program.spaces import is_of_device
from irkit.driver.compiler.models import ONE_BUILDER
from irkit.driver.compiler.targets import planned_device, target_of
from irkit.driver.pipelines.collecting import seldom_collected
from irkit.driver.programs.device_functions import called_functions, device_function
from irkit.driver.programs.lowering import Lowered, Runner
from irkit.driver.programs.placed import lowered
from irkit.errors import UnsupportedError
from irkit.interp.program import Execution
from irkit.passes.host.host_program import host_program
from irkit.passes.program.page import BUFFERS
from irkit.passes.program.paging.calls import PagedSweep
from irkit.passes.program.paging.paged import page_module
from irkit.runtime.artifact import Artifact
from irkit.schedule.host.expected import expected
from irkit.viewing.host_plans import planned
from irkit.viewing.timeline import Timeline
from irkit.weights import Array, WeightStore


def limited(built: BuiltProgram, options: Mapping[str, Any]) -> Runner:
    """What runs a program under `options["memory_limit"]`. Raises UnsupportedError for a limit that is no
    number of bytes, of a CPU, or of a program that calls functions of the host."""
    limit = options["memory_limit"]
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise UnsupportedError(f"memory_limit={limit!r}: expected a number of bytes")
    device = planned_device(options["target"], options["device"])
    if target_of(device) == "cpu":
        if options["target"] == "auto" and options["device"] is None:
            return lowered(built, options)
        raise UnsupportedError(
            f"memory_limit={limit}: it is of a GPU's memory, and '{device.name}' is a CPU"
        )
    if any(isinstance(op, HostCall | scf.WhileOp) for op in built.module.walk()):
        raise UnsupportedError(
            f"memory_limit={limit}: a function that calls what irkit does not compile, or repeats until data "
            "say so, is not computed in chunks"
        )
    return in_chunks(built, options, limit, _gpu)


def _gpu() -> DagDevice:
    from irkit.dags.gpu import GpuDevice

    return GpuDevice()


def in_chunks(
    built: BuiltProgram, options: Mapping[str, Any], limit: int, device: Callable[[], DagDevice]
) -> Runner:
    """What runs a program on a device that has `limit` bytes for it: in chunks, if its arrays are more."""
    module = built.module.clone()
    sweeps = page_module(module, built.weights, limit, BUFFERS, values=True)
    if not sweeps:
        return Lowered(built, options)
    return Paged(built, module, sweeps, options, limit, device())


class Paged:
    """A program of arrays in chunks; `runner` runs it."""

    def __init__(
        self,
        built: BuiltProgram,
        module: ModuleOp,
        sweeps: Sequence[PagedSweep],
        options: Mapping[str, Any],
        limit: int,
        device: DagDevice,
    ) -> None:
        """`module` is the program in chunks. Raises UnsupportedError, DeviceError and what else passes
        raise."""
        main = function_named(built.module, "main")
        assert main is not None
        self._results, self._written = (
            len(main.function_type.outputs),
            list(written_arguments(main)),
        )
        self._texts = {"program": str(built.module), "paged": str(module)}
        self._artifacts: dict[str, Artifact] = {}
        self._sweeps, self._limit = list(sweeps), limit
        functions: dict[str, DeviceFunction | HostFunction] = {}
        with ONE_BUILDER, seldom_collected():
            for function in called_functions(module):
                functions[function.sym_name.data] = self._function(function, built.weights, options)
        self.runner = HostProgramRunner(host_program(module), device, functions, limit)

    def _function(
        self, function: FuncOp, weights: WeightStore, options: Mapping[str, Any]
    ) -> DeviceFunction | HostFunction:
        if not is_of_device(function):
            return partial(_interpreted, function, weights)
        made = device_function(function, weights, options)
        self._artifacts[function.sym_name.data] = made.source
        return made.function

    def run(self, buffers: Sequence[Array]) -> tuple[list[Array], Mapping[int, Array]]:
        """As `Runner` has it."""
        found = self.runner.run(buffers)
        written = dict(zip(self._written, found[self._results :], strict=True))
        return found[: self._results], written

    def ir(self, level: str) -> str:
        """Its text at a level; below "paged", that of the function of the first sweep's chunk."""
        texts = {**next(iter(self._artifacts.values())).ir, **self._texts}
        if level not in texts:
            raise UnsupportedError(f"level '{level}'; there are {', '.join(texts)}")
        return texts[level]

    @property
    def source(self) -> str:
        """The emitted module of the first sweep's chunk."""
        return next(iter(self._artifacts.values())).source

    def report(self) -> dict[str, Any]:
        """What was compiled, and how it runs: of each sweep, `chunk` units, so many `chunks` (and a `rest`),
        `buffers` of them on the device at a time; bytes and times of all, those as estimates in ns."""
        plan = self.runner.plan
        times = expected(plan)
        reports = [a.report for a in self._artifacts.values()]
        return {
            "roperators": {
                f"{name}.{op}": value
                for name, a in self._artifacts.items()
                for op, value in dict(a.report.get("roperators", {})).items()
            },
            "proved": all(bool(r.get("proved")) for r in reports),
            "sweeps": [
                {
                    "region": s.region,
                    "rows": s.units,
                    "chunk": s.size.units,
                    "chunks": s.chunks,
                    "rest": s.rest,
                    "buffers": s.size.slots,
                    "halo": s.halo,
                    "whole": list(s.whole),
                    "merged": list(s.merged),
                    "bytes_in": s.bytes_in,
                    "bytes_out": s.bytes_out,
                }
                for s in self._sweeps
            ],
            "memory_limit": self._limit,
            "device_bytes": self.runner.arrays_bytes,
            "expected": {
                "makespan_ns": times.makespan,
                "bound_ns": times.bound,
                "overlap": times.overlap,
                "gain": times.gain,
            },
            "explained": self._explained(),
        }

    def _explained(self) -> list[str]:
        plan = self.runner.plan
        times = expected(plan)
        lines = [
            f"in chunks, as its arrays are larger than {self._limit} bytes: "
            f"{self.runner.arrays_bytes} bytes on the device, {plan.queues - 1} streams, proved"
        ]
        for s in self._sweeps:
            rest = f" and one of {s.rest}" if s.rest else ""
            lines.append(
                f"@{s.region}: {s.chunks} chunks of {s.size.units} of {s.units} rows{rest}, {s.size.slots} "
                f"at a time, {s.bytes_in} bytes in, {s.bytes_out} out"
            )
        lines.append(
            f"expected: {times.makespan / 1e6:.3f} ms, {times.overlap:.2f} of the bound of link and "
            f"computing, {times.gain:.2f} times faster than one after another"
        )
        return lines

    def timelines(self) -> list[Timeline]:
        """Its planned schedule."""
        return [planned(self.runner.plan)]


def _interpreted(function: FuncOp, weights: WeightStore, *arrays: Array) -> None:
    """A function of the host: a few numbers, or what is there before chunks."""
    Execution(function, weights, {}).run(arrays)
