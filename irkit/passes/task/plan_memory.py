"""`plan-memory`: give every buffer an offset in the arena."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from irkit.passes.task.program_text import programs_of, read_program, set_plan
from irkit.remarks import applied
from irkit.schedule.planner import plan_memory
from irkit.schedule.pool import SearchBounds


@dataclass(frozen=True)
class PlanMemory(ModulePass):
    """Give every planned buffer an offset; bytes are reused only where the schedule orders all accesses
    of one buffer before every write of the next. Constants lie one behind another.

    Buffers whose leading dimension is the batch are planned in bytes per row, so that one plan serves
    every batch. Greedy packings come first; where none is at the lower bound, the most bytes that are in
    use together, an exact search of at most so many `steps` and `seconds` follows, which finds a better
    packing or proves that there is none. The plan says its bytes, those of the greedy packing, both bounds
    and the ratio to the first. Needs `schedule-wavefront`.

    ```mlir
    %h = task.buffer {space = "arena"} : tensor<4xf32>
    ```
    becomes
    ```mlir
    %h = task.buffer {space = "arena", offset = 256 : i64} : tensor<4xf32>
    ```
    """

    name = "plan-memory"
    requires: ClassVar[tuple[str, ...]] = ("scheduled",)
    produces: ClassVar[str] = "planned"
    steps: int = SearchBounds.steps
    seconds: float = SearchBounds.seconds

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        bounds = SearchBounds(self.steps, self.seconds)
        for program in programs_of(op):
            planned = plan_memory(read_program(op, program), bounds)
            for pool in ("arena", "row"):
                text = "{} bytes of {}, {:.2f} times the lower bound; greedy {}{}"
                size, ratio, greedy, proved = (
                    planned.notes.get(f"{pool}_{what}", 0)
                    for what in ("bytes", "ratio", "greedy_bytes", "proved_bound")
                )
                lowest = ", none is lower" if size <= proved else ""
                applied(program, "PlanMemory", text, size, pool, ratio, greedy, lowest)
            set_plan(program, planned)
