"""rowwise: one row at a time, by sweeps in vector registers over what lies in scratch."""

from irkit.dialects.roperator_root import Root
from irkit.rkernels.binding.row_scratch import WIDEST, scratch_rows
from irkit.rkernels.families.rowwise import arithmetic, columns, rows, sums
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work


def rowwise_scratch(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    for r in range(r0, r1):
        ROW(OPERANDS, r, scratch)


def _scratch(root: Root, parameters: Parameters) -> int:
    return scratch_rows(root) * columns(root) * WIDEST


def _work(part: Part) -> Work:
    return arithmetic(part, 1, True) + work(row=1 + 2 * sums(part.root)) * rows(part)


RKERNELS = [
    RKernel(
        family,
        "scratch",
        "cpu",
        __name__,
        "rowwise_scratch",
        work=_work,
        reassociates=True,
        contracts=True,
        scratch_bytes=_scratch,
    )
    for family in ("rowwise", "row_sums")
]
