"""`assign-streams`: queues and events for a DAG of kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, cast, get_args

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from irkit.errors import UnsupportedError
from irkit.passes.host.program_text import programs_of, read_plan, write_places
from irkit.remarks import applied
from irkit.schedule.host.planning import STREAMS, Policy, assign_streams

POLICIES: Final[tuple[str, ...]] = get_args(Policy)


@dataclass(frozen=True)
class AssignStreams(ModulePass):
    """Give each task of a DAG a stream, and the events that it waits for.

    The first child of a task goes to its stream, others to a free or a new one, of `streams` at most, or
    of fewer, or tasks go where they start first: whichever is expected to cost least by `cost_ns`
    (`irkit/schedule/host/expected.py`). With policy by-kind copies to the device, copies to the host and
    what is computed have a stream each. Host tasks go to the host's queue. A task waits for the
    conflicting earlier ones that neither the order of its queue nor other waits put before it
    (`irkit/schedule/host/streams.py`). Numeric risk: none, conflicting tasks keep their order.

    ```mlir
    %t0 = host.task "a" kernel uses(%0)
    ```
    becomes
    ```mlir
    %t0 = host.task "a" kernel on 1 uses(%0)
    ```
    """

    name = "assign-streams"
    streams: int = STREAMS
    policy: str = "disjoint"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.policy not in POLICIES:
            raise UnsupportedError(f"policy = {self.policy}: there are {', '.join(POLICIES)}")
        for program in programs_of(op):
            known = read_plan(program)
            plan = assign_streams(
                known.buffers, known.tasks, self.streams, cast("Policy", self.policy)
            )
            write_places(program, plan)
            waits = sum(len(place.waits) for place in plan.places)
            applied(
                program, "AssignStreams", "{} streams, {} events", str(plan.queues - 1), str(waits)
            )
