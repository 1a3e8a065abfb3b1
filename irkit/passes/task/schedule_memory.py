"""`schedule-memory`: place rTasks in the order that needs the fewest bytes at once."""

from __future__ import annotations

from dataclasses import dataclass

from irkit.passes.task.schedule_policy import SchedulePass
from irkit.schedule.memory_policy import place_for_memory
from irkit.schedule.waits import wait_in_line


@dataclass(frozen=True)
class ScheduleMemory(SchedulePass):
    """Place one launch after another in the order with the fewest bytes in use at once, and derive the waits.

    The order is found by a beam search over which launches are done (`irkit/schedule/memory_order.py`): it
    needs no more than the given one, and the least there is as long as the beam holds all. Each launch is a
    wave of its own, by the option and on the vEUs that are fastest alone, and waits for the one before: this
    is for programs whose memory matters more than what runs side by side. Needs `partition-rtasks`.

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

    name = "schedule-memory"
    policy = staticmethod(place_for_memory)
    waits = staticmethod(wait_in_line)
