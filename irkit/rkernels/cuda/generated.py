"""generated: loop nests printed from schedules, by default those of `rkernels/scheduled/block_rules.py`."""

from irkit.rkernels.rkernel import RKernel
from irkit.rkernels.scheduled.block_layout import THREADS
from irkit.rkernels.scheduled.block_rules import default_block_schedules


def generated_nest(task, tasks, rows, scratch, OPERANDS):
    NEST(OPERANDS, task, scratch)


RKERNELS = [
    RKernel(
        "generated",
        "nest",
        "cuda",
        __name__,
        "generated_nest",
        reassociates=True,
        stores_again=True,
        streams=True,
        threads=THREADS,
        vectors=("FIRST", "SECOND"),
        schedules=default_block_schedules,
    )
]
