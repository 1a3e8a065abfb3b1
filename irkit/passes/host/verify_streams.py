"""`verify-streams`: prove the order of a DAG of kernels."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from irkit.errors import ScheduleError
from irkit.passes.host.program_text import programs_of, proof_of, read_plan
from irkit.schedule.host.verifier import verify


@dataclass(frozen=True)
class VerifyStreams(ModulePass):
    """Prove every DAG of the module, or fail and name what is wrong.

    Of two tasks that conflict over a byte, the one earlier in program order certainly ends before the
    other starts, by the order of queues and by events; tasks lie on queues that may do them, regions
    in their buffers; no wait is for what comes after it. Needs `assign-streams`. Adds `verified`, and
    changes nothing else.

    ```mlir
    host.program @dag {...}
    ```
    becomes
    ```mlir
    host.program @dag attributes {verified = "sha256:..."} {...}
    ```
    """

    name = "verify-streams"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for program in programs_of(op):
            program.verified = None
            plan = read_plan(program)
            try:
                verify(plan)
            except ScheduleError as error:
                raise PassFailedException(str(error)) from error
            program.verified = StringAttr(proof_of(plan))
