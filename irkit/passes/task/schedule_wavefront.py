"""`schedule-wavefront`: place rTasks on vEUs and say who waits for whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from irkit.dialects.task import ProgramOp
from irkit.passes.task.launch_reader import LaunchReader
from irkit.passes.task.program_text import write_program
from irkit.passes.task.vdevices import device_of
from irkit.remarks import applied
from irkit.schedule.waits import derive_waits
from irkit.schedule.wavefront import schedule_wavefront


@dataclass(frozen=True)
class ScheduleWavefront(ModulePass):
    """Place every launch on a range of vEUs, in waves, and derive the waits (Rammer's wavefront policy).

    Launches are layered into waves by their data dependences; those of one wave sit side by side, and
    one that reads the same constants as an earlier one goes to the same vEUs. A launch waits only for
    appends that it conflicts with and that nothing else orders before it. The function stays, since the
    schedule is proved against it; one that has a schedule keeps that. Needs `partition-rtasks`.

    ```mlir
    func.func @main(%x) { %y = task.launch @map_0(%x) ... }
    ```
    becomes
    ```mlir
    func.func @main(%x) { %y = task.launch @map_0(%x) ... }
    task.program @main_schedule of @main attributes {device = @test4} {
      %x = task.buffer {space = "input", port = 0 : i64} : tensor<8xf32>
      %t0 = task.append @map_0 to [0:3] wave 0 reads(%x) writes(%y)
    }
    ```
    """

    name = "schedule-wavefront"
    requires: ClassVar[tuple[str, ...]] = ("partitioned", "scheduled")
    produces: ClassVar[str] = "scheduled"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        done = {o.function.string_value() for o in op.ops if isinstance(o, ProgramOp)}
        functions = [o for o in op.ops if isinstance(o, FuncOp) and o.body.blocks]
        for main in [f for f in functions if f.sym_name.data not in done]:
            found = LaunchReader(ctx, op, main).read()
            schedule = schedule_wavefront(found.buffers, found.launches, device_of(op))
            text = "{} launches in {} waves, estimated at {:.0f} ns"
            notes = schedule.notes
            launches = len(schedule.appends)
            applied(main, "Wavefront", text, launches, notes["waves"], notes["estimate_ns"])
            write_program(derive_waits(schedule), found, main)
