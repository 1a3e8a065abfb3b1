"""`verify-schedule`: prove the schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from irkit.dialects.functions import function_named
from irkit.dialects.task import CompositeOp, ProgramOp, ROperatorOp
from irkit.errors import ScheduleError
from irkit.passes.task.composed_meaning import composed_meaning
from irkit.passes.task.composite_text import parts_of, read_composite
from irkit.passes.task.function_meaning import function_meaning
from irkit.passes.task.program_text import function_of, programs_of, read_program
from irkit.passes.task.proof import record_proof
from irkit.passes.task.same_bodies import meanings
from irkit.passes.task.vdevices import device_of
from irkit.remarks import applied, missed
from irkit.rkernels.accesses import appends_listed
from irkit.rkernels.legality import why_illegal
from irkit.row_ranges import Rows
from irkit.schedule.composite import runs_of
from irkit.schedule.composite_blocks import check_blocks
from irkit.schedule.composite_proof import prove_composite
from irkit.schedule.meaning import Function
from irkit.schedule.model import Schedule
from irkit.schedule.modes import Mode
from irkit.schedule.together import check_together
from irkit.schedule.verifier import Proof, prove


@dataclass(frozen=True)
class VerifySchedule(ModulePass):
    """Prove every schedule of the module, or fail and name what is wrong.

    Every rOperator can be computed by its rKernel on the device, as it says (docs/emission.md). The schedule
    computes its function: every launch once, with its operands and results. Every
    read-after-write, write-after-read and write-after-write is ordered; abstract execution reaches the
    end; all vEUs are resident at once; shared memory fits; offsets lie in their spaces. This holds in each
    of `modes`: persistent always, another one if its own order suffices. Several schedules of one function
    are for every number of rows between them, and share its constants. Needs `plan-memory`. Adds `modes`
    and `verified`, the digest of all that was proved; changes nothing else.

    ```mlir
    task.program @main_schedule of @main attributes {device = @test4} {...}
    ```
    becomes
    ```mlir
    task.program @main_schedule of @main attributes {..., verified = "sha256:...", modes = [...]} {...}
    ```
    """

    name = "verify-schedule"
    requires: ClassVar[tuple[str, ...]] = ("planned",)
    produces: ClassVar[str] = "verified"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        _check_rkernels(op)
        proved: dict[ProgramOp, list[Mode]] = {}
        plans: dict[str, list[tuple[Rows, Schedule]]] = {}
        schedules: dict[str, Schedule] = {}
        same = meanings(op)
        for program in programs_of(op):
            program.retract()
            schedule = schedules[program.sym_name.data] = read_program(op, program)
            plans.setdefault(program.function.string_value(), []).append(
                (program.row_range, schedule)
            )
            proof = _prove(schedule, function_meaning(ctx, function_of(op, program), same))
            modes = ", ".join(proof.modes)
            applied(program, "VerifySchedule", "safe in modes {}", modes)
            for mode, reason in proof.refused.items():
                missed(program, "VerifySchedule", "mode {}: {}", mode.value, reason)
            proved[program] = proof.modes
        _check_together(plans)
        record_proof(op, {**proved, **_prove_composites(op, proved, schedules)})


def _prove(schedule: Schedule, function: Function) -> Proof:
    try:
        return prove(schedule, function)
    except ScheduleError as error:
        raise PassFailedException(str(error)) from None


def _prove_composites(
    module: ModuleOp,
    proved: Mapping[ProgramOp, Sequence[Mode]],
    schedules: Mapping[str, Schedule],
) -> dict[CompositeOp, list[Mode]]:
    """The modes of functions of calls: those of all that they run."""
    modes = {program.sym_name.data: found for program, found in proved.items()}
    found: dict[CompositeOp, list[Mode]] = {}
    for op in module.ops:
        if not isinstance(op, CompositeOp):
            continue
        op.retract()
        function = function_named(module, op.function.string_value())
        if function is None:
            raise PassFailedException(f"task.composite @{op.sym_name.data} is of no function here")
        composite = read_composite(op)
        try:
            prove_composite(composite, composed_meaning(function), parts_of(module))
            check_blocks(composite, schedules, device_of(module))
        except ScheduleError as error:
            raise PassFailedException(str(error)) from None
        used = [modes[run.program] for run in runs_of(composite.steps)]
        found[op] = [mode for mode in Mode if all(mode in of_run for of_run in used)]
        applied(op, "VerifySchedule", "safe in modes {}", ", ".join(found[op]))
    return found


def _check_together(plans: Mapping[str, Sequence[tuple[Rows, Schedule]]]) -> None:
    try:
        for function, of_function in plans.items():
            check_together(function, of_function)
    except ScheduleError as error:
        raise PassFailedException(str(error)) from None


def _check_rkernels(module: ModuleOp) -> None:
    """Raises PassFailedException for an rOperator that its rKernel cannot compute as it says."""
    device, roperators = device_of(module), [o for o in module.ops if isinstance(o, ROperatorOp)]
    with appends_listed(module):
        reasons = [why_illegal(op, device) for op in roperators]
    for op, reason in zip(roperators, reasons, strict=True):
        if reason is not None:
            rkernel = op.rkernel.data if op.rkernel is not None else "none"
            raise PassFailedException(f"@{op.sym_name.data} with rKernel '{rkernel}': {reason}")
