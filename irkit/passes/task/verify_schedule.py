"""`verify-schedule`: prove the schedule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from irkit.errors import ScheduleError
from irkit.passes.task.plain import mark_verified, program_of, read_program
from irkit.schedule.verifier import verify_schedule


@dataclass(frozen=True)
class VerifySchedule(ModulePass):
    """Prove the schedule, or fail and name what is wrong.

    Every rTask runs exactly once; every read-after-write, write-after-read and write-after-write is
    ordered by program order and waits; abstract execution reaches the end; all vEUs are resident at
    once; shared memory fits; offsets lie in the arena. Needs `plan-memory`. Adds `verified`, changes
    nothing else.

    ```mlir
    task.program @main attributes {device = @test4} {...}
    ```
    becomes
    ```mlir
    task.program @main attributes {device = @test4, verified = "2 appends, 8 rTasks"} {...}
    ```
    """

    name = "verify-schedule"
    requires: ClassVar[tuple[str, ...]] = ("planned",)
    produces: ClassVar[str] = "verified"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        program = program_of(op)
        schedule = read_program(op, program)
        try:
            verify_schedule(schedule)
        except ScheduleError as error:
            raise PassFailedException(str(error)) from None
        mark_verified(program, schedule)
