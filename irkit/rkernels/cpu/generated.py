"""generated: loop nests printed from schedules, by default those of `irkit/rkernels/scheduled/rules.py`."""

from irkit.rkernels.rkernel import RKernel
from irkit.rkernels.scheduled.rules import default_schedules


def generated_nest(task, tasks, rows, scratch, OPERANDS):
    NEST(OPERANDS, task, scratch)


RKERNELS = [
    RKernel(
        "generated",
        "nest",
        "cpu",
        __name__,
        "generated_nest",
        reassociates=True,
        contracts=True,
        stores_again=True,
        schedules=default_schedules,
    )
]
