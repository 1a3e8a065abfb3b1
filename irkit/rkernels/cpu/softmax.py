"""softmax: one row at a time, or a block of short ones."""

import math

from irkit.dialects.roperator_root import Root
from irkit.dialects.types import tensor_type
from irkit.rkernels.approximations import may_be_approximate
from irkit.rkernels.families.softmax import exponentials, in_memory
from irkit.rkernels.families.whole_rows import row_bytes
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work


def softmax_rows(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    for r in range(r0, r1):
        largest = LOAD(OPERANDS, r, 0)
        for j in range(1, J):
            x = LOAD(OPERANDS, r, j)
            largest = largest if (largest > x or largest != largest) else x
        total = FLOAT(0)
        for j in range(J):
            total += EXP(LOAD(OPERANDS, r, j) - largest)
        for j in range(J):
            STORE(OPERANDS, r, j, EXP(LOAD(OPERANDS, r, j) - largest) / total)


def softmax_buffered(task, tasks, rows, scratch, OPERANDS):
    """Each element is loaded and raised once, into scratch: every sweep runs in vector registers."""
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    row = POINTER(scratch)
    for r in range(r0, r1):
        for j in range(J):
            row[j] = LOAD(OPERANDS, r, j)
        # NaN is in the sum, whatever is taken from it.
        largest = row_largest(row, J)
        total = FLOAT(0)
        for j in range(J):
            raised = EXP(row[j] - largest)
            row[j] = raised
            total += raised
        for j in range(J):
            STORE(OPERANDS, r, j, row[j] / total)


def softmax_in_memory(task, tasks, rows, scratch, OPERANDS):
    """Nothing is copied, and the memory of one row comes while another is raised."""
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    for r in range(r0, r1):
        # NaN is in the sum, whatever is taken from it.
        largest = row_largest_ahead(row_from(SOURCE, r * J), J)
        total = FLOAT(0)
        for j in range(J):
            raised = EXP(SOURCE[r * J + j] - largest)
            TARGET[r * J + j] = raised
            total += raised
        for j in range(J):
            TARGET[r * J + j] = TARGET[r * J + j] / total


def softmax_short(task, tasks, rows, scratch, OPERANDS):
    """A block of short rows: all of their elements are raised in one sweep, whose vectors are full."""
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    block = POINTER(scratch)
    for first in range(r0, r1, BLOCK):
        count = min(BLOCK, r1 - first)
        for i in range(count):
            at = i * J
            largest = LOAD(OPERANDS, first + i, 0)
            for j in range(J):
                x = LOAD(OPERANDS, first + i, j)
                block[at + j] = x
                # NaN is in the sum, whatever is taken from it.
                largest = x if x > largest else largest
            for j in range(J):
                block[at + j] = block[at + j] - largest
        for k in range(count * J):
            four_vectors_at_a_time()
            block[k] = EXP(block[k])
        for i in range(count):
            at = i * J
            total = FLOAT(0)
            for j in range(J):
                total += block[at + j]
            for j in range(J):
                STORE(OPERANDS, first + i, j, block[at + j] / total)


def _approximate(root: Root) -> bool:
    """What the C library's exp is asked for is computed element by element anyway."""
    assert root.op is not None
    return may_be_approximate(root.op)


def _approximate_in_memory(root: Root) -> bool:
    return _approximate(root) and in_memory(root) is not None


_FEWEST, _SHORT = 5, 32
"""Columns of rows that are too short for sweeps of their own, and are worth the copy."""
_BLOCK = 1 << 10
"""Elements of a block of them, at most: of float64 a quarter of a nearest cache of 32 KiB."""


def _columns(root: Root) -> int:
    assert root.value is not None
    return tensor_type(root.value).get_shape()[-1]


def _approximate_short(root: Root) -> bool:
    return _approximate(root) and _FEWEST <= _columns(root) <= _SHORT


def _rows_of_block(root: Root) -> Parameters:
    return {"BLOCK": _BLOCK // _columns(root)}


def _block_bytes(root: Root, parameters: Parameters) -> int:
    return row_bytes(root, parameters) * parameters["BLOCK"]


def _short_work(part: Part) -> Work:
    """Sums and the largest of a row are taken one by one, but those of several rows side by side."""
    once = work(scalar=4, divide=1) + exponentials(part, 1)
    vectors = math.ceil(part.rows * part.width / 16) * 16 / (part.rows * part.width)
    return (part.loads + once * vectors + part.store) * part.elements + work(row=3 * part.rows)


def _rows_work(part: Part) -> Work:
    """Three sweeps, and the sum of exponentials keeps those out of vectors."""
    each = part.loads * 3 + work(chain=2, scalar=2, divide=1, exp=2) + part.store
    return each * part.elements + work(row=3 * part.rows)


_SWEEP = 0.5
"""Simple ops that a sweep of a row takes an element, by measurement."""


def _swept(part: Part, sweeps: int) -> Work:
    """Sweeps of every row, all of them in vectors; what fills no vector takes one an element."""
    lanes = 16 / part.lanes
    left = part.width % lanes / part.width
    raised = exponentials(part, 1) * (1 - left + left * lanes)
    once = work(op=_SWEEP * sweeps * part.lanes, divide=1) + raised
    return (part.loads + once + part.store) * part.elements + work(row=sweeps * part.rows)


def _buffered_work(part: Part) -> Work:
    return _swept(part, 4)


def _in_memory_work(part: Part) -> Work:
    return _swept(part, 3)


RKERNELS = [
    RKernel("softmax", "rows", "cpu", __name__, "softmax_rows", work=_rows_work),
    RKernel(
        "softmax",
        "buffered",
        "cpu",
        __name__,
        "softmax_buffered",
        legal=_approximate,
        work=_buffered_work,
        reassociates=True,
        scratch_bytes=row_bytes,
    ),
    RKernel(
        "softmax",
        "short",
        "cpu",
        __name__,
        "softmax_short",
        legal=_approximate_short,
        work=_short_work,
        reassociates=True,
        scratch_bytes=_block_bytes,
        parameters=_rows_of_block,
    ),
    RKernel(
        "softmax",
        "in_memory",
        "cpu",
        __name__,
        "softmax_in_memory",
        legal=_approximate_in_memory,
        work=_in_memory_work,
        reassociates=True,
        stores_again=True,
    ),
]
