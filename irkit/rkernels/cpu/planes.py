"""planes: convolutions as blocked matrix products, without a copy of the input for each tap of the window.

The input of a group is padded once, into scratch, by phases of the stride (`irkit.dialects.planes`). What a
window's tap sees is then the plane from a fixed place on: column q of B, row (n, t) of k, is element
n * STEP + places[t] + q, and tiles of sums run over neighbouring q, over the ends of rows too; the few
outputs between two rows are dropped. Where `product` copies the input once for each tap, it is copied once,
and read unaligned. Groups that look at other places of the same planes, as phases of a transposed
convolution do, begin elsewhere.
"""

import math
from collections.abc import Callable

from irkit.dialects.planes import Plane, as_plane
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC, numpy_dtype, tensor_type
from irkit.rkernels.cpu.product import LARGE, SMALL, Tile
from irkit.rkernels.families.product import cut_one
from irkit.rkernels.family import leading_parts
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work

_SCRATCH_BYTES = 4 << 20
_MOST_TERMS = 128
"""Places are literals of the template."""
_FILLED = 8
"""Terms of sums that take as long as an element of a plane to be filled, by rates."""


def planes_tiles(task, tasks, rows, scratch, OPERANDS):
    b0, b1, m0, m1, l0, l1, c0, c1 = PART(task, tasks, rows)
    plane = POINTER(scratch)
    places = stack_int64(TERMS)
    PLACES(places)
    columns = 16 * ACROSS
    sums = PLANE + columns
    first = c0 // WIDTH
    last = (c1 - 1) // WIDTH
    x0 = c0 - first * WIDTH
    x1 = c1 - last * WIDTH
    for b in range(b0, b1):
        for lead in range(l0, l1):
            FILL(OPERANDS, b, lead, plane)
            shift = SHIFT(b)
            y = first
            for q in range(ROW(first) + x0, ROW(last) + x1, columns):
                while ROW(y) + WIDTH <= q:
                    y += 1
                for m in range(m0, m1, TILE):
                    n = min(TILE, m1 - m)
                    filters = (b * M + m) * (CHANNELS * TERMS)
                    multiply_planes(
                        TILE,
                        ACROSS,
                        n,
                        A,
                        filters,
                        CHANNELS,
                        STEP,
                        TERMS,
                        places,
                        plane,
                        shift + q,
                        plane,
                        sums,
                    )
                    z = y
                    while z <= last and ROW(z) < q + columns:
                        row = ROW(z)
                        begin = max(q - row, x0 if z == first else 0)
                        end = min(q + columns - row, x1 if z == last else WIDTH)
                        c = z * WIDTH
                        for i in range(n):
                            at = sums + i * columns - q + row - c
                            STORE_COLUMNS(
                                OPERANDS, b, m + i, lead, c + begin, c + end, plane, at
                            )  # fmt: skip
                        z += 1


def _plane(root: Root) -> Plane:
    plane = as_plane(root, True)
    assert plane is not None
    return plane


def _scratch(root: Root, parameters: Parameters) -> int:
    """The planes, what the last tile reads behind them, and a tile of sums."""
    plane = _plane(root)
    # Planes of 16-bit floats are of float32 here.
    size = numpy_dtype(tensor_type(root.chain[-1].results[0]).element_type).itemsize
    columns = 16 * parameters["ACROSS"]
    return (plane.elements + columns + parameters["TILE"] * columns) * size


def _takes(tile: Tile) -> Callable[[Root], bool]:
    """Planes that stay in the cache, and several rows.

    An input of which each element is looked at once is a matrix already: `product` reads it with fewer
    misses, by measurement up to twice as fast.
    """
    parameters = {"ACROSS": tile.across, "TILE": tile.rows}

    def legal(root: Root) -> bool:
        plane = _plane(root)
        rows = plane.product.extent(plane.product.m)
        if plane.channel_terms == 1 and all(axis.stride == 1 for axis in plane.axes):
            return False
        fits = plane.channel_terms <= _MOST_TERMS and _scratch(root, parameters) <= _SCRATCH_BYTES
        return fits and (rows == DYNAMIC or rows >= 2)

    return legal


def _grid(tile: Tile) -> Callable[[Root, int], list[int]]:
    """One loop is cut, the first of its group: where the largest part is the least work. Whole tiles are
    computed, and every part of a group of channels fills its planes."""

    def grid(root: Root, tasks: int) -> list[int]:
        if DYNAMIC in root.parallel:
            return leading_parts(root, tasks)
        plane = _plane(root)
        terms = plane.product.extent(plane.product.k)

        def counted(batch: float, lead: float, rows: float, columns: float) -> float:
            across = math.ceil(columns / tile.columns) * tile.columns
            sums = tile.computed(rows)[0] * across * terms
            return batch * lead * (sums + _FILLED * plane.elements)

        return cut_one(plane.product, len(root.parallel), tasks, counted)

    return grid


def _work(tile: Tile, kind: str) -> Callable[[Part], Work]:
    """Planes are filled once for all outputs of a group. Whole tiles are computed, over the ends of rows,
    those of the last rows by powers of two, of which a small one waits for its own sums."""

    def counted(part: Part) -> Work:
        plane = _plane(part.root)
        product = plane.product
        groups = part.share((*product.batch, *product.lead))
        outputs, rows = part.share(product.columns), part.share(product.m)
        sizes = (part.sizes[d] for d in product.columns)
        run = 1 + sum((n - 1) * s for n, s in zip(sizes, plane.strides, strict=True))
        computed, high = tile.computed(rows)
        across = math.ceil(run / tile.columns)
        products = computed * across * tile.columns * product.extent(product.k)
        tiles = work(**{kind: products}, tile=high * across)
        lines = outputs / part.sizes[product.columns[-1]]
        runs = plane.elements / plane.run
        copied = work(**{"stride" if plane.axes[-1].stride > 1 else "op": plane.elements})
        filled = copied + work(op=plane.elements, index=runs, row=runs)
        stored = (part.store + work(scalar=1)) * outputs + work(row=lines + across)
        return (filled + tiles + stored * rows) * groups

    return counted


RKERNELS = [
    RKernel(
        "planes",
        variant,
        "cpu",
        __name__,
        "planes_tiles",
        legal=_takes(tile),
        work=_work(tile, kind),
        reassociates=True,
        contracts=True,
        scratch_bytes=_scratch,
        parameters={"ACROSS": tile.across, "TILE": tile.rows},
        grid=_grid(tile),
    )
    for variant, tile, kind in (("blocked", SMALL, "fma"), ("wide", LARGE, "wide"))
]
