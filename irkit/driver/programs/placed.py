"""What runs a program of arrays on this machine, by where its parts are to run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from xdsl.dialects import scf

from irkit.dialects.program import CallOp
from irkit.dialects.program.builder import BuiltProgram
from irkit.dialects.program.spaces import CPU, CUDA
from irkit.driver.programs.hosted import Hosted
from irkit.driver.programs.lowering import Lowered, Runner
from irkit.driver.programs.placing import Placement, placement_of
from irkit.errors import UnsupportedError
from irkit.passes.host.actions import HostProgram
from irkit.viewing.timeline import Timeline
from irkit.weights import Array

if TYPE_CHECKING:
    from irkit.driver.programs.planned import Planned


def lowered(built: BuiltProgram, options: Mapping[str, Any]) -> Runner:
    """What runs a program of arrays: one compiled program, or several with the host between them."""
    ops = list(built.module.walk())
    calls = any(isinstance(op, CallOp) for op in ops)
    placement = placement_of(built, options)
    if options.get("memory_budget") is not None and (calls or placement is not None):
        raise UnsupportedError(
            "memory_budget: a program that calls the host, or runs on two devices, is several programs:"
            " expected one (name a target)"
        )
    if placement is None:
        return Hosted(built, options) if calls else Lowered(built, options)
    parts = {d: placement.options_of(d) for d in placement.devices}
    compiled = {options["target"] for options in parts.values()}
    # A GPU asks for nothing: there the host does, between regions.
    needed = calls or (CUDA in compiled and any(isinstance(op, scf.WhileOp) for op in ops))
    if not needed and len(compiled) < 2:
        alone = next(iter(parts.values()), placement.options_of(CPU))
        return Placed(Lowered(built, alone), placement)
    if CUDA not in compiled or placement.absent is not None:
        return Placed(Hosted(built, options, placement), placement)
    return on_both(built, options, placement)


def on_both(built: BuiltProgram, options: Mapping[str, Any], placement: Placement) -> Placed:
    """What runs a program on the CPU and on the GPU at hand: its plan, or, where the host does not know
    beforehand what there is to do, one region after another."""
    plan = placement.plan
    if isinstance(plan, HostProgram):
        from irkit.dags.gpu import GpuDevice
        from irkit.driver.programs.planned import Planned

        return Placed(Planned(built, placement, plan, GpuDevice()), placement)
    why = f"each region copies its own arrays, as there is no plan of all: {plan}"
    return Placed(Hosted(built, options, placement), placement, (why,))


class Placed:
    """A program with a plan of where it runs, and what runs it on this machine."""

    def __init__(
        self, runner: Hosted | Lowered | Planned, placement: Placement, notes: Sequence[str] = ()
    ) -> None:
        self._runner, self._placement, self._notes = runner, placement, list(notes)
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
        calls = [] if isinstance(self._runner, Lowered) else self._runner.explained()
        return [*self._placement.lines, *self._notes, *calls]

    def timelines(self) -> list[Timeline]:
        """As `Runner` has it."""
        return self._runner.timelines()
