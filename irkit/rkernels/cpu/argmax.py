"""argmax: the first largest element of the last dimension."""

from irkit.rkernels.rkernel import RKernel
from irkit.rkernels.work import Part, Work, work


def argmax_rows(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    for r in range(r0, r1):
        best = int64(0)
        largest = LOAD(OPERANDS, r, 0)
        for k in range(1, K0):
            x = LOAD(OPERANDS, r, k)
            # NumPy's argmax: the first NaN counts as the largest.
            if x > largest or (x != x and largest == largest):
                largest = x
                best = int64(k)
        STORE(OPERANDS, r, best)


def _work(part: Part) -> Work:
    """A comparison waits for the largest so far, which a NaN must be able to be."""
    each = (part.loads + work(scalar=2)) * part.terms + work(chain=3 * (part.terms - 1), row=1)
    return (each + part.store) * part.elements


RKERNELS = [RKernel("argmax", "rows", "cpu", __name__, "argmax_rows", work=_work)]
