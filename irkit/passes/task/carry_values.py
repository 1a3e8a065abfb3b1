"""`carry-values`: operands that come with their flag, element by element, in the place of waits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from irkit.dialects.functions import is_composed
from irkit.passes.task.program_text import programs_of, read_program, set_carried
from irkit.passes.task.vdevices import device_of
from irkit.remarks import applied
from irkit.rkernels.accesses import carrying
from irkit.schedule.carried import carry_values


@dataclass(frozen=True)
class CarryValues(ModulePass):
    """Have the elements of an operand say themselves that they are there, where an append waits for no more.

    A wait costs a fence, a signal, and the reading of what was written behind it. A step of a recurrence
    waits for a few hundred numbers of the step before, which can come with the number of the run in words of
    64 bits. What else the wait has ordered is ordered by other waits, or not placed in the same bytes. Does
    nothing on a CPU, nor in a module with a function of calls. Needs `schedule-wavefront`, or another
    policy's pass; comes before `pin-residents` and `plan-memory`, which take the room and the order left.

    ```mlir
    %t1 = task.append @cell to [0:12] wave 1 wait(%t0) reads(%h, %w) writes(%n)
    ```
    becomes
    ```mlir
    %t1 = task.append @cell to [0:12] wave 1 reads(%h, %w) writes(%n) carried [0]
    ```
    """

    name = "carry-values"
    requires: ClassVar[tuple[str, ...]] = ("scheduled",)
    produces: ClassVar[str] = "scheduled"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        composed = [f for f in op.ops if isinstance(f, FuncOp) and is_composed(f)]
        if composed or device_of(op).kind != "cuda":
            return
        anywhere = carrying(op)
        for program in programs_of(op):
            made = carry_values(read_program(op, program), anywhere)
            if count := made.notes.get("carried", 0):
                applied(program, "CarryValues", "{} operands come with their flag", count)
                set_carried(program, made)
