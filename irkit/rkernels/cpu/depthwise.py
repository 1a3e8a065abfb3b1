"""depthwise: convolutions of few terms.

The input of a group is padded once, into scratch, by phases of the stride. Neighbouring outputs are then
sums of neighbouring elements at fixed distances, over the ends of rows too: LLVM computes long runs of them
in vector registers. The few between two rows are dropped.
"""

import math

from irkit.dialects.planes import Plane, as_plane
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work

_SCRATCH_BYTES = 1 << 20


def depthwise_planes(task, tasks, rows, scratch, OPERANDS):
    b0, b1, m0, m1, l0, l1, c0, c1 = PART(task, tasks, rows)
    plane = POINTER(scratch)
    first = c0 // WIDTH
    last = (c1 - 1) // WIDTH
    x0 = c0 - first * WIDTH
    x1 = c1 - last * WIDTH
    for b in range(b0, b1):
        for lead in range(l0, l1):
            FILL(OPERANDS, b, lead, plane)
            for m in range(m0, m1):
                for at in range(ROW(first) + x0, ROW(last) + x1):
                    plane[PLANE + at] = SUM(OPERANDS, b, m, plane, at)
                for y in range(first, last + 1):
                    row = PLANE + ROW(y)
                    for x in range(x0 if y == first else 0, x1 if y == last else WIDTH):
                        c = y * WIDTH + x
                        total = plane[row + x] + INIT(OPERANDS, b, m, lead, c)
                        STORE(OPERANDS, b, m, lead, c, total)


def _plane(root: Root) -> Plane:
    plane = as_plane(root)
    assert plane is not None
    return plane


def _scratch(root: Root, parameters: Parameters) -> int:
    """The planes, and behind them the sums of one output plane."""
    plane = _plane(root)
    # Planes of 16-bit floats are of float32 here.
    size = numpy_dtype(tensor_type(root.chain[-1].results[0]).element_type).itemsize
    return (plane.elements + plane.phase_elements) * size


def _fits(root: Root) -> bool:
    """Planes that stay in the second-level cache."""
    return _scratch(root, {}) <= _SCRATCH_BYTES


def _work(part: Part) -> Work:
    """Planes are filled once for all outputs of a group; sums of whole rows of a plane, then outputs."""
    plane = _plane(part.root)
    product = plane.product
    groups = part.share((*product.batch, *product.lead))
    outputs = part.share(product.columns)
    rows = outputs / part.sizes[product.columns[-1]]
    filled = work(op=2 * plane.elements, row=2 * plane.elements / plane.axes[-1].extent)
    run = plane.phase_elements * outputs / math.prod(product.extents(product.columns))
    sums = work(dot=run * product.extent(product.k), tile=1)
    stored = (part.store + work(op=2)) * outputs + work(row=rows)
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
