"""depthwise: convolutions of few terms.

The input of a group is padded once, into scratch, by phases of the stride. Neighbouring outputs are then
sums of neighbouring elements at fixed distances, over the ends of rows too: LLVM computes long runs of them
in vector registers, 64 sums at a time, so that none is left over: what is read and written past the last
one is scratch too. The few between two rows are dropped, so that epilogues too run over the ends of rows.
"""

import math

from irkit.dialects.planes import Plane, as_plane
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work

_SCRATCH_BYTES = 1 << 20
_OVERRUN = 64 + 64 + 16


def depthwise_planes(task, tasks, rows, scratch, OPERANDS):
    b0, b1, m0, m1, l0, l1, c0, c1 = PART(task, tasks, rows)
    plane = POINTER(scratch)
    sums = PLANE + 64
    outputs = sums + PHASE + 64
    first = c0 // WIDTH
    last = (c1 - 1) // WIDTH
    x0 = c0 - first * WIDTH
    x1 = c1 - last * WIDTH
    for b in range(b0, b1):
        for lead in range(l0, l1):
            FILL(OPERANDS, b, lead, plane)
            for m in range(m0, m1):
                for begin in range(ROW(first) + x0, ROW(last) + x1, 64):
                    for at in range(begin, begin + 64):
                        plane[sums + at] = SUM(OPERANDS, b, m, plane, at)
                for y in range(first, last + 1):
                    copy_vectors(WIDTH, plane, sums + ROW(y), outputs + (y - first) * WIDTH)
                behind = outputs - first * WIDTH
                for c in range(c0, c1):
                    total = plane[behind + c] + INIT(OPERANDS, b, m, lead, c)
                    STORE(OPERANDS, b, m, lead, c, total)


def _plane(root: Root) -> Plane:
    plane = as_plane(root)
    assert plane is not None
    return plane


def _itemsize(root: Root) -> int:
    # Planes of 16-bit floats are of float32 here.
    return numpy_dtype(tensor_type(root.chain[-1].results[0]).element_type).itemsize


def _scratch(root: Root, parameters: Parameters) -> int:
    """The planes, the sums of one output plane behind them, and its outputs; behind each what is overrun."""
    plane = _plane(root)
    outputs = math.prod(plane.product.extents(plane.product.columns))
    return (plane.elements + plane.phase_elements + outputs + _OVERRUN) * _itemsize(root)


def _fits(root: Root) -> bool:
    """Planes and sums that stay in the second-level cache."""
    plane = _plane(root)
    return (plane.elements + plane.phase_elements) * _itemsize(root) <= _SCRATCH_BYTES


def _work(part: Part) -> Work:
    """Planes are filled once for all outputs of a group; sums of whole rows of a plane, then outputs."""
    plane = _plane(part.root)
    product = plane.product
    groups = part.share((*product.batch, *product.lead))
    outputs = part.share(product.columns)
    rows = outputs / part.sizes[product.columns[-1]]
    filled = work(op=2 * plane.elements, row=2 * plane.elements / plane.axes[-1].extent)
    run = plane.phase_elements * outputs / math.prod(product.extents(product.columns))
    # Of the two factors only one is read for each.
    sums = work(dot=0.55 * math.ceil(run / 64) * 64 * product.extent(product.k), tile=1)
    stored = (part.store + work(op=1)) * outputs + work(row=rows)
    return (filled + (sums + stored) * part.share(product.m)) * groups


RKERNELS = [
    RKernel(
        "depthwise",
        "planes",
        "cpu",
        __name__,
        "depthwise_planes",
        legal=_fits,
        work=_work,
        reassociates=True,
        contracts=True,
        scratch_bytes=_scratch,
    ),
]
