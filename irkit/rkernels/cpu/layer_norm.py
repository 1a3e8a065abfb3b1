"""layer_norm: one row at a time, in scratch from its first reading on."""

from irkit.rkernels.families.whole_rows import row_bytes
from irkit.rkernels.rkernel import RKernel
from irkit.rkernels.work import Part, Work, work


def layer_norm_buffered(task, tasks, rows, scratch, OPERANDS):
    """Each element is loaded once; every sweep runs in vector registers."""
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    row = POINTER(scratch)
    for r in range(r0, r1):
        for j in range(J):
            row[j] = LOAD(OPERANDS, r, j)
        if CENTRED:
            mean = row_sum(row, J) / FLOAT(J)
            for j in range(J):
                row[j] = row[j] - mean
            # What the mean was wrong by, which shows in rows far from zero.
            mean = row_sum(row, J) / FLOAT(J)
            for j in range(J):
                row[j] = row[j] - mean
        square = row_squares(row, J) / FLOAT(J)
        factor = FLOAT(1) / math.sqrt(square + EPSILON)
        for j in range(J):
            STORE(OPERANDS, r, j, row[j] * factor)


_SWEPT = 3
"""Simple ops that the sweeps of a row take an element, by measurement."""


def _work(part: Part) -> Work:
    """Seven sweeps at most, all of them in vectors; a root and divisions a row."""
    each = part.loads + work(op=_SWEPT * part.lanes) + part.store
    return each * part.elements + work(row=7, divide=5) * part.rows


RKERNELS = [
    RKernel(
        "layer_norm",
        "buffered",
        "cpu",
        __name__,
        "layer_norm_buffered",
        work=_work,
        reassociates=True,
        contracts=True,
        scratch_bytes=row_bytes,
    ),
]
