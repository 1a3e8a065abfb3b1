"""`pin-residents`: keep operands that a vEU reads again in its shared memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from irkit.dialects.functions import is_composed
from irkit.passes.task.program_text import programs_of, read_program, set_residents
from irkit.passes.task.vdevices import device_of
from irkit.remarks import applied
from irkit.rkernels.accesses import streaming
from irkit.schedule.residents import pin_residents


@dataclass(frozen=True)
class PinResidents(ModulePass):
    """Keep constant operands that one vEU reads in several appends in its shared memory for the whole run.

    Known only to a static schedule: which vEU will read which bytes again. What saves most bytes goes
    first, as far as shared memory reaches beside the scratch of the rTasks. Does nothing on devices
    without shared memory, nor in a module with a function of calls, whose programs take turns in it.
    Needs `schedule-wavefront`.

    ```mlir
    %t1 = task.append @cell to [0:12] wave 1 wait(%t0) reads(%x, %w) writes(%h)
    ```
    becomes
    ```mlir
    %t1 = task.append @cell to [0:12] wave 1 wait(%t0) reads(%x, %w) writes(%h) resident [1 at 0]
    ```
    """

    name = "pin-residents"
    requires: ClassVar[tuple[str, ...]] = ("scheduled",)
    produces: ClassVar[str] = "scheduled"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        composed = [f for f in op.ops if isinstance(f, FuncOp) and is_composed(f)]
        programs = [] if composed else programs_of(op)
        schedules = {program: read_program(op, program) for program in programs}
        for program, schedule in schedules.items():
            beside = [other for p, other in schedules.items() if p.function == program.function]
            pinned = pin_residents(schedule, streaming(op, device_of(op)), beside)
            text, notes = "{} operands stay, {} bytes on one vEU", pinned.notes
            operands, nbytes = notes["resident_operands"], notes["resident_bytes"]
            applied(program, "PinResidents", text, operands, nbytes)
            set_residents(program, pinned)
