"""`schedule-wavefront`: place rTasks on vEUs and say who waits for whom."""

from __future__ import annotations

from dataclasses import dataclass

from irkit.passes.task.schedule_policy import SchedulePass
from irkit.schedule.wavefront import place_wavefront


@dataclass(frozen=True)
class ScheduleWavefront(SchedulePass):
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
    policy = staticmethod(place_wavefront)
