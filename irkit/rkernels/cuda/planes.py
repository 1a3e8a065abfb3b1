"""planes: convolutions of few channels as sums over padded planes, which a block keeps in shared memory.

The input of a group is padded once, into shared memory, by phases of the stride (`irkit.dialects.planes`);
what a window's tap sees is then the plane from a fixed place on. The filters lie beside it, term by term. A
thread keeps the sums of TM filters and four pixels, which lie so far apart that neighbouring threads have
neighbouring pixels, and walks over the terms: nothing else is fetched, and no index computed, until all are
added. Where there are more threads than that, KG groups of them share the terms, as in the gradient of a
convolution by its filters, where A is the gradient of the result, and a window is all of an image. Where
`product` looks up every element of every window in memory, here a plane is read once.

Planes and filters of CHUNK channels are there at a time; where that is not all of them, they are copied anew
for every round of sums.
"""

from __future__ import annotations

import math
from functools import partial

from xdsl.dialects.builtin import Float32Type, Float64Type

from irkit.dialects.planes import Plane, as_plane
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC, numpy_dtype, tensor_type
from irkit.rkernels.binding.plane_blocks import SIDE_BY_SIDE, Layout, printed_loops, spread
from irkit.rkernels.product_grids import cut_largest
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work

THREADS_PER_BLOCK = 256
_SCRATCH_BYTES = 110 << 10
"""Two blocks of a kernel are on a multiprocessor at once."""
_LANES = 32
_MOST_GROUPS = 16
_AT_ONCE = 8
"""Loads of a thread that are on their way together."""


def planes_blocks(task, tasks, rows, scratch, OPERANDS):
    b0, b1, m0, m1, l0, l1, c0, c1 = PART(task, tasks, rows)
    thread = thread_index()
    staged = shared_of(FLOAT(0), scratch)
    loaded = cuda.local.array(AT_ONCE, FLOAT)
    group, within = divide(thread, THREADS // KG)
    across = (c1 - c0 + 3) // 4
    units = (m1 - m0 + TM - 1) // TM * across
    for b in range(b0, b1):
        for lead in range(l0, l1):
            for first in range(0, units, THREADS // KG):
                mine = first + within < units and group < KG
                down, wide = divide(min(first + within, units - 1), across)
                columns = PIXELS(c0 + wide, across, c1 - 1)
                sums = zeros_like(staged, TM * 4)
                for channel in range(0, CHANNELS, CHUNK):
                    if CHUNK < CHANNELS or first == 0:
                        # Until here threads read what is there.
                        cuda.syncthreads()
                        # Loads are on their way together.
                        for e in range(thread, CHUNK * STEP, AT_ONCE * THREADS):
                            for i in range(AT_ONCE):
                                at = min(e + i * THREADS, CHUNK * STEP - 1)
                                loaded[i] = ELEMENT(OPERANDS, b, lead, channel, at)
                            for i in range(AT_ONCE):
                                if e + i * THREADS < CHUNK * STEP:
                                    staged[e + i * THREADS] = loaded[i]
                        if CHUNK < CHANNELS or lead == l0:
                            start = (b * M + m0) * (CHANNELS * TERMS) + channel * TERMS
                            count = (m1 - m0) * (CHUNK * TERMS)
                            for e in range(thread, count, AT_ONCE * THREADS):
                                for i in range(AT_ONCE):
                                    row, k = divide(min(e + i * THREADS, count - 1), CHUNK * TERMS)
                                    loaded[i] = A[start + row * (CHANNELS * TERMS) + k]
                                for i in range(AT_ONCE):
                                    row, k = divide(e + i * THREADS, CHUNK * TERMS)
                                    if e + i * THREADS < count:
                                        staged[FILTERS + k * PITCH + row] = loaded[i]
                        cuda.syncthreads()
                    if mine:
                        # Groups of threads share the runs of terms.
                        for run in range(group, CHUNK * (TERMS // RUN_TERMS), KG):
                            filters = FILTERS + run * (RUN_TERMS * PITCH) + down * TM
                            sums = WINDOW(sums, staged, filters, columns, SHIFT(run))
                # Through shared memory, where groups meet; and a sum is no code for itself.
                place = SUMS + thread * (TM * 4 + 4)
                tile_store(staged, place, 4, sums, 4)
                if KG > 1:
                    cuda.syncthreads()
                if mine:
                    for i in range(group, min(TM, m1 - m0 - down * TM), KG):
                        m, c = m0 + down * TM + i, c0 + wide
                        at = SUMS + within * (TM * 4 + 4) + i * 4
                        t0, t1, t2, t3 = load4(staged, at)
                        for g in range(1, KG):
                            at += THREADS // KG * (TM * 4 + 4)
                            u0, u1, u2, u3 = load4(staged, at)
                            t0, t1, t2, t3 = t0 + u0, t1 + u1, t2 + u2, t3 + u3
                        STORE(OPERANDS, b, m, lead, c, t0 + INIT(OPERANDS, b, m, lead, c))
                        if c + across < c1:
                            c += across
                            STORE(OPERANDS, b, m, lead, c, t1 + INIT(OPERANDS, b, m, lead, c))
                            if c + across < c1:
                                c += across
                                STORE(OPERANDS, b, m, lead, c, t2 + INIT(OPERANDS, b, m, lead, c))
                                if c + across < c1:
                                    c += across
                                    STORE(
                                        OPERANDS, b, m, lead, c, t3 + INIT(OPERANDS, b, m, lead, c)
                                    )
                if KG > 1:
                    cuda.syncthreads()


def _plane(root: Root) -> Plane:
    plane = as_plane(root)
    assert plane is not None
    if "spread planes" not in root.counted:
        root.counted["spread planes"] = spread(plane)
    return root.counted["spread planes"]


def _bytes(plane: Plane, rows: int, chunk: int) -> int:
    element = tensor_type(plane.product.op.results[0]).element_type
    layout = Layout.of(plane, rows, chunk)
    sums = THREADS_PER_BLOCK * (rows * SIDE_BY_SIDE + 4)
    return (layout.sums + sums) * numpy_dtype(element).itemsize


def _chunk(plane: Plane, rows: int) -> int:
    """The most channels that fit, in equal parts; 0 where one does not."""
    count = plane.channel_count
    parts = (n for n in range(count, 0, -1) if count % n == 0)
    return next((n for n in parts if _bytes(plane, rows, n) <= _SCRATCH_BYTES), 0)


def _parameters(rows: int, root: Root) -> Parameters:
    # The cost of every grid asks for them.
    key = f"planes of {rows} rows"
    if key not in root.counted:
        chunk = _chunk(plane := _plane(root), rows)
        groups = _groups(plane, rows, chunk) if chunk else 1
        root.counted[key] = {"TM": rows, "CHUNK": chunk, "KG": groups, "AT_ONCE": _AT_ONCE}
    return root.counted[key]


def _groups(plane: Plane, rows: int, chunk: int) -> int:
    """As many groups of threads share the terms as there are threads for, and runs of terms for each."""
    product = plane.product
    units = _units(rows, product.extent(product.m), product.extent(product.columns))
    most = min(THREADS_PER_BLOCK // units, _runs(plane, chunk) // 2, _MOST_GROUPS)
    return 1 << max(most, 1).bit_length() - 1


def _runs(plane: Plane, chunk: int) -> int:
    """Runs of terms, each of which is printed, of so many channels."""
    printed = printed_loops(plane)
    assert printed is not None
    return chunk * plane.channel_terms // math.prod(plane.product.extents(printed))


def _units(rows: int, filters: float, pixels: float) -> int:
    return math.ceil(filters / rows) * math.ceil(pixels / SIDE_BY_SIDE)


def _scratch(root: Root, parameters: Parameters) -> int:
    return _bytes(_plane(root), parameters["TM"], parameters["CHUNK"])


def _legal(rows: int, root: Root) -> bool:
    """Sizes that are known, filters for all rows of a tile, windows whose terms can be printed, and that lie
    at one place for all groups."""
    if as_plane(root) is None:
        return False
    plane = _plane(root)
    product = plane.product
    element = tensor_type(product.op.results[0]).element_type
    stored = [tensor_type(v).element_type for v in (plane.source, product.in_place)]
    if DYNAMIC in root.parallel or not isinstance(element, Float32Type | Float64Type):
        return False
    if any(kind != element for kind in stored) or product.packed:
        return False
    few = product.extent(product.m) < rows or product.extent(product.columns) < SIDE_BY_SIDE
    return not few and printed_loops(plane) is not None and _chunk(plane, rows) > 0


def _work(rows: int, part: Part) -> Work:
    """Rounds of all threads, each of which walks over its terms; what is copied before them."""
    plane = _plane(part.root)
    product, parameters = plane.product, _parameters(rows, part.root)
    chunk, shared = parameters["CHUNK"], parameters["KG"]
    groups = part.share((*product.batch, *product.lead))
    filters, pixels = part.share(product.m), part.share(product.columns)
    units = _units(rows, filters, pixels)
    rounds = math.ceil(units / (THREADS_PER_BLOCK // shared))
    times, runs = plane.channel_count // chunk, _runs(plane, chunk)
    terms = times * math.ceil(runs / shared) * (chunk * plane.channel_terms // runs)
    # A term also costs what is read for it; fewer warps than a multiprocessor has parts leave some idle.
    busy = math.ceil(units * shared / _LANES) * _LANES
    busy = max(busy, (rounds - 1) * THREADS_PER_BLOCK + THREADS_PER_BLOCK // 2)
    sums = busy * terms * (rows * SIDE_BY_SIDE + 8)
    # Where channels come one after another, they do for every round.
    again = rounds if times > 1 else 1
    once = again * groups if times > 1 else part.share(product.batch)
    filled = again * groups * plane.elements + once * filters * product.extent(product.k)
    counted = work(fma=sums * part.lanes, tile=rounds, step=2 * again * times) * groups
    return counted + work(pack=filled) + part.store * part.elements


def _longest(rows: int, part: Part) -> float:
    """By which grids are compared: about the nanoseconds of the largest part."""
    units = _work(rows, part).units
    fixed = 1500 * units["tile"] + 500 * units["step"]
    return fixed + 0.009 * units["fma"] + 0.2 * units["pack"]


RKERNELS = [
    RKernel(
        "planes",
        f"rows{rows}",
        "cuda",
        __name__,
        "planes_blocks",
        legal=partial(_legal, rows),
        reassociates=True,
        scratch_bytes=_scratch,
        threads=THREADS_PER_BLOCK,
        parameters=partial(_parameters, rows),
        choices={"CHUNK": range(1, 1 << 16), "KG": (1, 2, 4, 8, 16)},
        grid=cut_largest(partial(_longest, rows)),
        work=partial(_work, rows),
    )
    for rows in (4, 8, 16)
]
