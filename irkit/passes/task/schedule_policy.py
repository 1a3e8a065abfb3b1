"""What every scheduling pass does around its policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from irkit.dialects.task import ProgramOp
from irkit.errors import ScheduleError
from irkit.passes.task.launch_reader import LaunchReader
from irkit.passes.task.program_text import write_program
from irkit.passes.task.vdevices import device_of
from irkit.remarks import applied
from irkit.schedule.model import Buffer, Launch, Schedule, VDevice
from irkit.schedule.waits import derive_waits

Policy = Callable[[Sequence[Buffer], Sequence[Launch], VDevice], Schedule]
"""Places launches, which are given in program order, on vEUs: the schedule of their appends, in an order
that keeps that of launches which conflict. Waits are derived behind it; memory is planned later."""


@dataclass(frozen=True)
class SchedulePass(ModulePass):
    """Place every launch by `policy`, and derive the waits. A function that has a schedule keeps that."""

    requires: ClassVar[tuple[str, ...]] = ("partitioned", "scheduled")
    produces: ClassVar[str] = "scheduled"
    policy: ClassVar[Policy]

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        done = {o.function.string_value() for o in op.ops if isinstance(o, ProgramOp)}
        functions = [o for o in op.ops if isinstance(o, FuncOp) and o.body.blocks]
        for main in [f for f in functions if f.sym_name.data not in done]:
            self._schedule(ctx, op, main)

    def _schedule(self, ctx: Context, module: ModuleOp, main: FuncOp) -> None:
        found = LaunchReader(ctx, module, main).read()
        try:
            placed = type(self).policy(found.buffers, found.launches, device_of(module))
            schedule = derive_waits(placed)
        except ScheduleError as error:
            raise PassFailedException(str(error)) from None
        waves = len({append.wave for append in schedule.appends})
        estimate = schedule.notes.get("estimate_ns")
        text = "{} launches in {} waves" + (", estimated at {:.0f} ns" if estimate else "")
        applied(main, type(self).__name__, text, len(schedule.appends), waves, estimate)
        write_program(schedule, found, main)
