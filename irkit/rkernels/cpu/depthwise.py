"""depthwise: convolutions of few terms.

The input of a group is padded once, into scratch, by phases of the stride. Neighbouring outputs are then
sums of neighbouring elements at fixed distances: 16 of a row, and of several rows at once, since they look at
the same elements. The sums of some rows lie one behind another in scratch, and epilogues run over their ends.
"""

import math

from irkit.dialects.planes import Plane, as_plane
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.rkernels.cpu.product import LANES
from irkit.rkernels.families.depthwise import pitch
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work

_SCRATCH_BYTES = 1 << 20
_OVERRUN = 16
_MOST_IN_REGISTERS = 25
_STRIP_OUTPUTS = 1024
_FIRST_LEVEL_BYTES = 32 << 10


def depthwise_planes(task, tasks, rows, scratch, OPERANDS):
    b0, b1, m0, m1, l0, l1, c0, c1 = PART(task, tasks, rows)
    plane = POINTER(scratch)
    outputs = PLANE + ROWS * PITCH + 16
    first = c0 // WIDTH
    last = (c1 - 1) // WIDTH
    for b in range(b0, b1):
        for lead in range(l0, l1):
            FILL(OPERANDS, b, lead, plane)
            for m in range(m0, m1):
                filters = (b * M + m) * TERMS
                for y0 in range(first, last + 1, STRIP):
                    y1 = min(y0 + STRIP, last + 1)
                    behind = outputs - y0 * WIDTH
                    for y in range(y0, y1, ROWS):
                        to = behind + y * WIDTH
                        add_windows(ROWS, WIDTH, PITCH, PLACES, plane, ROW(y), A, filters, to)
                    begin, end = max(c0, y0 * WIDTH), min(c1, y1 * WIDTH)
                    STORE_COLUMNS(OPERANDS, b, m, lead, begin, end, plane, behind)


def _plane(root: Root) -> Plane:
    plane = as_plane(root)
    assert plane is not None
    return plane


def _itemsize(root: Root) -> int:
    # Planes of 16-bit floats are of float32 here.
    return numpy_dtype(tensor_type(root.chain[-1].results[0]).element_type).itemsize


def _parameters(root: Root) -> Parameters:
    """ROWS: rows of outputs computed at once, as many as leave registers for the terms of filters; those of a
    volume are not equally far apart. STRIP: rows that are computed before they are stored, whole ROWS, which
    stay in the first-level cache."""
    plane = _plane(root)
    product = plane.product
    most = 4 if product.extent(product.k) <= _MOST_IN_REGISTERS else 2
    rows = min(most, product.sizes[product.columns[0]]) if len(plane.axes) == 2 else 1
    width = product.sizes[product.columns[-1]]
    return {"ROWS": rows, "STRIP": rows * max(1, _STRIP_OUTPUTS // (rows * width))}


def _scratch(root: Root, parameters: Parameters) -> int:
    """The planes, a strip of outputs, and what rows behind the last one read."""
    plane = _plane(root)
    width = plane.product.sizes[plane.product.columns[-1]]
    outputs = parameters["STRIP"] * width + parameters["ROWS"] * pitch(plane)
    return (plane.elements + outputs + 2 * _OVERRUN) * _itemsize(root)


def _fits(root: Root) -> bool:
    """Planes that stay in the second-level cache."""
    plane = _plane(root)
    return _scratch(root, _parameters(root)) <= _SCRATCH_BYTES


def _term(root: Root) -> Work:
    """By measurement: a term of a filter in registers looks at what other rows look at too; more terms are
    loaded for each vector, and more planes than the first-level cache has room for come from the second."""
    plane = _plane(root)
    if plane.channel_count == 1 and plane.channel_terms <= _MOST_IN_REGISTERS:
        return work(dot=0.25)
    return work(dot=0.55 if plane.elements * _itemsize(root) <= _FIRST_LEVEL_BYTES else 1)


def _work(part: Part) -> Work:
    """Planes are filled once for all outputs of a group; sums of whole rows of a plane, then outputs."""
    plane = _plane(part.root)
    product = plane.product
    groups = part.share((*product.batch, *product.lead))
    outputs = part.share(product.columns)
    width, computed = part.sizes[product.columns[-1]], _parameters(part.root)["ROWS"]
    rows = math.ceil(outputs / width / computed) * computed
    lines = plane.elements / plane.axes[-1].phase
    # By measurement; every second element takes two loads and a shuffle.
    filled = work(
        op=(1.5 if plane.axes[-1].stride > 1 else 0.5) * plane.elements, scalar=12 * lines
    )
    vectors = rows * math.ceil(width / LANES) * LANES
    sums = _term(part.root) * (vectors * product.extent(product.k)) + work(tile=2)
    stored = part.store * outputs + work(row=rows)
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
        parameters=_parameters,
    ),
]
