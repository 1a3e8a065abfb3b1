"""`schedule-list` and `schedule-auto`: place rTasks by critical path, or as is estimated to be best."""

from __future__ import annotations

from dataclasses import dataclass

from irkit.passes.task.schedule_policy import SchedulePass
from irkit.schedule.critical_path import place_best, place_list


@dataclass(frozen=True)
class ScheduleList(SchedulePass):
    """Place every launch as soon as it is ready, the most urgent first, and derive the waits.

    List scheduling by critical path, with the times that alternatives have, measured or estimated. A launch
    gets vEUs in the company of what is ready beside it, not of a layer, and no wave is waited for; launches
    that read the same constants stay on the same vEUs, as in `schedule-wavefront`. Where one vEU alone would
    end sooner, it does all. Waves are numbered for the modes that know them. Needs `partition-rtasks`.

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

    name = "schedule-list"
    policy = staticmethod(place_list)


@dataclass(frozen=True)
class ScheduleAuto(SchedulePass):
    """Place every launch by `schedule-wavefront` or `schedule-list`, whichever is estimated to end sooner.

    Estimates are the policies' own, of a run in which every vEU walks its own list, by the times that
    alternatives have, measured or estimated. Needs `partition-rtasks`.

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

    name = "schedule-auto"
    policy = staticmethod(place_best)
