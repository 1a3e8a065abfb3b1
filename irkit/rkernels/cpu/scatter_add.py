"""scatter_add: a block of places has its sums on the stack while all indices go by, once for each block.

An update is added where its index names a place of the block, in the order of the indices, so that each
element is what adding one update after another makes it, whatever the blocks are.
"""

from irkit.dialects.roperator_root import Root
from irkit.rkernels.families.scatter_add import updates_of
from irkit.rkernels.rkernel import RKernel
from irkit.rkernels.work import Part, Work, work


def scatter_add_rows(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    acc = STACK(BLOCK * COLUMNS)
    for left in range(j0, j1, COLUMNS):
        width = min(COLUMNS, j1 - left)
        for top in range(r0, r1, BLOCK):
            count = min(BLOCK, r1 - top)
            for v in range(count):
                for c in range(width):
                    acc[v * COLUMNS + c] = INIT(OPERANDS, top + v, left + c)
            for n in range(N):
                v = INDEX(OPERANDS, n) - top
                if v >= 0 and v < count:
                    at = v * COLUMNS
                    for c in range(width):
                        acc[at + c] += UPDATE(OPERANDS, n, left + c)
            for v in range(count):
                for c in range(width):
                    STORE(OPERANDS, top + v, left + c, acc[v * COLUMNS + c])


TOGETHER, WIDEST = 1 << 14, 1 << 10
"""Sums that lie on the stack at a time, and of one place."""


def _parameters(root: Root) -> dict[str, int]:
    places, width = root.parallel
    columns = min(width, WIDEST)
    return {"BLOCK": min(places, TOGETHER // columns), "COLUMNS": columns}


def _work(part: Part) -> Work:
    """Each block of sums looks at all indices; an update is added once."""
    (places, width), known = part.sizes, _parameters(part.root)
    passes = part.rounds(places, known["BLOCK"]) * part.rounds(width, known["COLUMNS"])
    here = updates_of(part.root) * places / part.root.parallel[0]
    looks = work(scalar=3 * passes * updates_of(part.root))
    added = work(op=2 * part.lanes * width) * here + work(row=here)
    return looks + added + (part.store + work(op=part.lanes)) * part.elements


RKERNELS = [
    RKernel(
        "scatter_add",
        "rows",
        "cpu",
        __name__,
        "scatter_add_rows",
        work=_work,
        parameters=_parameters,
    )
]
