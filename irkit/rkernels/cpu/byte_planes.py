"""byte_planes: convolutions of bytes in sums of 32 bits, the input padded once.

As `integer_product.bytes` (its docstring says how), but that the rows of a panel are copied from planes, as
`planes` keeps them: each is one run of bytes, over the ends of rows, whatever the window and its padding.
"""

import math
from collections.abc import Callable

from irkit.dialects.planes import Plane, as_plane
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC
from irkit.rkernels.packed_words import LARGE, SMALL, Tile
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work

_SCRATCH_BYTES = 1 << 20
_MOST_TERMS = 128
"""Places are literals of the template."""
_COPIED = 0.5
"""What it takes to copy a byte and put it beside three others, in simple ops."""


def byte_planes_tiles(task, tasks, rows, scratch, OPERANDS):
    b0, b1, m0, m1, l0, l1, c0, c1 = PART(task, tasks, rows)
    sums = int32p(scratch)
    turned = int32p(scratch + TILE * NC * 4)
    panel = BYTES(scratch + TILE * (NC + 1) * 4)
    plane = BYTES(scratch + (TILE * (NC + 1) + FOURS * NC) * 4)
    places = stack_int64(TERMS)
    PLACES(places)
    first = c0 // WIDTH
    last = (c1 - 1) // WIDTH
    x0 = c0 - first * WIDTH
    x1 = c1 - last * WIDTH
    for b in range(b0, b1):
        for lead in range(l0, l1):
            FILL(OPERANDS, b, lead, plane)
            y = first
            behind = ROW(last) + x1
            for q in range(ROW(first) + x0, behind, NC):
                while ROW(y) + WIDTH <= q:
                    y += 1
                for n in range(CHANNELS):
                    for t in range(TERMS):
                        copy_run(NC, plane, n * STEP + places[t] + q, panel, (n * TERMS + t) * NC)
                interleave_fours(NC, TURNED, K, panel)
                for m in range(m0, m1, TILE):
                    count = min(TILE, m1 - m)
                    filters = (b * M + m) * K
                    for i in range(count):
                        total = int32(0)
                        if TURNED:
                            for k in range(K):
                                total = int32(total + A[filters + i * K + k])
                        turned[i] = int32(total * (-128 if OF_SIGNED else 128))
                    for i in range(0, min(NC, behind - q), 16 * ACROSS):
                        multiply_fours(
                            TILE, ACROSS, OF_SIGNED, count, A, filters, K, panel, i, sums, NC
                        )
                    z = y
                    while z <= last and ROW(z) < q + NC:
                        row = ROW(z)
                        begin = max(q, row + (x0 if z == first else 0))
                        end = min(q + NC, row + (x1 if z == last else WIDTH))
                        for i in range(count):
                            at = i * NC - q
                            for p in range(begin, end):
                                c = z * WIDTH - row + p
                                total = sums[at + p] + turned[i]
                                total += INIT(OPERANDS, b, m + i, lead, c)
                                STORE(OPERANDS, b, m + i, lead, c, int32(total))
                        z += 1


def _plane(root: Root) -> Plane:
    plane = as_plane(root)
    assert plane is not None
    return plane


def _fours(root: Root) -> int:
    product = _plane(root).product
    return -(-product.extent(product.k) // 4)


def _parameters(tile: Tile) -> Callable[[Root], Parameters]:
    """NC: columns in a panel, 64 or as few as there are. FOURS: groups of four terms."""

    def parameters(root: Root) -> Parameters:
        plane = _plane(root)
        sizes = plane.product.extents(plane.product.columns)
        run = 1 + sum((n - 1) * s for n, s in zip(sizes, plane.strides, strict=True))
        packed = min(64, -(-run // tile.columns) * tile.columns)
        return {"ACROSS": tile.across, "FOURS": _fours(root), "NC": packed, "TILE": tile.rows}

    return parameters


def _scratch(root: Root, parameters: Parameters) -> int:
    """A tile of sums, what is to be added to each row's, the panel, and the planes, behind which is read."""
    width = parameters["NC"]
    words = parameters["TILE"] * (width + 1) + parameters["FOURS"] * width
    return words * 4 + _plane(root).elements + width


def _takes(tile: Tile) -> Callable[[Root], bool]:
    """Windows of several elements, or apart; planes and a panel that stay in the cache."""

    def legal(root: Root) -> bool:
        plane = _plane(root)
        if plane.channel_terms == 1 and all(axis.stride == 1 for axis in plane.axes):
            return False
        rows = plane.product.extent(plane.product.m)
        fits = _scratch(root, _parameters(tile)(root)) <= _SCRATCH_BYTES
        return plane.channel_terms <= _MOST_TERMS and fits and (rows == DYNAMIC or rows >= 2)

    return legal


def _work(tile: Tile, kind: str) -> Callable[[Part], Work]:
    """As of `integer_product`, over the ends of rows; planes are filled once for all outputs of a group."""

    def counted(part: Part) -> Work:
        plane = _plane(part.root)
        product, width = plane.product, _parameters(tile)(part.root)["NC"]
        groups = part.share((*product.batch, *product.lead))
        outputs, rows = part.share(product.columns), part.share(product.m)
        sizes = (part.sizes[d] for d in product.columns)
        run = 1 + sum((n - 1) * s for n, s in zip(sizes, plane.strides, strict=True))
        panels = math.ceil(run / width)
        down = math.ceil(rows / tile.rows)
        terms = product.extent(product.k)
        across = math.ceil(run / tile.columns)
        computed = down * tile.rows * across * tile.columns * _fours(part.root)
        tiles = work(**{kind: computed}, tile=down * across)
        runs = plane.elements / plane.run
        filled = work(op=plane.elements, index=runs, row=runs)
        if plane.axes[-1].stride > 1:
            filled = filled + work(stride=plane.elements)
        copied = work(op=_COPIED * terms * panels * width)
        lines = outputs / part.sizes[product.columns[-1]]
        stored = (part.store + work(scalar=1)) * (outputs * rows) + work(
            row=rows * (lines + panels)
        )
        return (filled + copied + tiles + stored) * groups

    return counted


RKERNELS = [
    RKernel(
        "byte_planes",
        variant,
        "cpu",
        __name__,
        "byte_planes_tiles",
        legal=_takes(tile),
        work=_work(tile, kind),
        scratch_bytes=_scratch,
        parameters=_parameters(tile),
    )
    for variant, tile, kind in (("blocked", SMALL, "fma"), ("wide", LARGE, "wide"))
]
