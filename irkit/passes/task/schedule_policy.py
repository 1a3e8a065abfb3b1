"""What every scheduling pass does around its policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from irkit.dialects.functions import is_straight
from irkit.dialects.task import ProgramOp
from irkit.errors import ScheduleError
from irkit.passes.task.choices import Chosen, write_choices
from irkit.passes.task.launch_reader import LaunchReader, Unscheduled
from irkit.passes.task.program_text import write_program
from irkit.passes.task.vdevices import device_of
from irkit.remarks import applied
from irkit.row_ranges import ALL_ROWS, Rows, called
from irkit.schedule.model import Buffer, Launch, Schedule, VDevice
from irkit.schedule.row_plans import RowPlan, plans_by_rows
from irkit.schedule.waits import derive_waits
from irkit.schedule.wellformed import reject
from irkit.schedule.widths import of_best_width

Policy = Callable[[Sequence[Buffer], Sequence[Launch], VDevice], Schedule]
"""Places launches, which are given in program order, on vEUs: the schedule of their appends, in an order
that keeps that of launches which conflict. Where a launch has options, it is returned as one of them
(`launch.choose(n)`), or as it is, which is the fastest alone. Waits are derived behind it; memory is planned
later."""


@dataclass(frozen=True)
class SchedulePass(ModulePass):
    """Place every launch by `policy`, and derive the waits. A function that has a schedule keeps that.

    What the policy chose of an rOperator's alternatives is written on it; for each further choice of the
    same, on a copy of it that its launches then name. Where what alternatives cost hangs on the number of
    rows of an open batch, there is a schedule for each range of rows in which another one is best
    (`irkit/schedule/row_plans.py`). On a CPU no more vEUs are used than help (`irkit/schedule/widths.py`).
    """

    requires: ClassVar[tuple[str, ...]] = ("partitioned", "scheduled")
    produces: ClassVar[str] = "scheduled"
    policy: ClassVar[Policy]
    waits: ClassVar[Callable[[Schedule], Schedule]] = staticmethod(derive_waits)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        done = {o.function.string_value() for o in op.ops if isinstance(o, ProgramOp)}
        functions = [o for o in op.ops if is_straight(o)]
        found = [
            (main, *self._schedule(ctx, op, main))
            for main in functions
            if main.sym_name.data not in done
        ]
        # Functions may share rOperators, so all choose before one is written.
        named = write_choices(
            op,
            [
                choice
                for _, launches, plans in found
                for _, made in plans
                for choice in chosen(launches, made)
            ],
        )
        for main, launches, plans in found:
            for rows, made in plans:
                symbols = [
                    named.get((launch, its.option), launch.callee.string_value())
                    for launch, its in zip(launches.ops, made.launches, strict=True)
                ]
                write_program(made, launches, main, symbols, rows)

    def _schedule(
        self, ctx: Context, module: ModuleOp, main: FuncOp
    ) -> tuple[Unscheduled, list[RowPlan]]:
        found, device = LaunchReader(ctx, module, main).read(), device_of(module)

        def place(launches: Sequence[Launch], rows: int) -> Schedule:
            def on(some: VDevice) -> Schedule:
                placed = type(self).policy(found.buffers, launches, some)
                return type(self).waits(_as_given(placed, found.launches))

            return of_best_width(device, on, rows)

        try:
            plans = plans_by_rows(found.launches, place)
        except ScheduleError as error:
            raise PassFailedException(str(error)) from None
        for rows, schedule in plans:
            self._say(main, rows, schedule)
        return found, plans

    def _say(self, main: FuncOp, rows: Rows, schedule: Schedule) -> None:
        waves = len({append.wave for append in schedule.appends})
        estimate, by = schedule.notes.get("estimate_ns"), schedule.notes.get("policy", "")
        text = "{} launches in {} waves" + (", estimated at {:.0f} ns" if estimate else "")
        said = text + (", by policy '{}'" if by else "")
        facts = len(schedule.appends), waves, estimate, by
        if rows != ALL_ROWS:
            said = f"{called(rows)}: {said}"
        applied(main, type(self).__name__, said, *facts)


def _as_given(placed: Schedule, launches: Sequence[Launch]) -> Schedule:
    """What a policy says of a launch is which of its options it is, and no more."""
    if len(placed.launches) != len(launches):
        reject(
            "launch", f"{len(launches)} launches were given, {len(placed.launches)} are returned"
        )
    made: list[Launch] = []
    for given, its in zip(launches, placed.launches, strict=True):
        if not 0 <= its.option < max(len(given.options), 1):
            reject(
                "launch",
                f"'{given.name}' has {len(given.options)} options, none is number {its.option}",
            )
        made.append(given if its.option == given.option else given.choose(its.option))
    return replace(placed, launches=made)


def chosen(found: Unscheduled, schedule: Schedule) -> Iterator[Chosen]:
    """Which alternative each launch of a rOperator with some is run by."""
    for op, launch in zip(found.ops, schedule.launches, strict=True):
        if launch.options:
            yield op, launch.option
