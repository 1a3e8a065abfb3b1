"""pixels: convolutions as blocked matrix products with filters side by side, one element for all of them.

As `planes.wide` (its docstring says how the input is kept), but that a vector has 16 filters instead of 16
neighbouring outputs: a tile takes any few outputs, none over the end of a row, so that images of few and odd
columns lose nothing. What it takes for that: 32 filters at a time are laid out side by side before, and their
sums transposed behind. Filters that are known lie so already (`pack-filters`), and an input that is looked at
whole is read where it lies.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects.builtin import Float32Type

from irkit.dialects.planes import Plane
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.rkernels.cpu.product import LANES
from irkit.rkernels.families.pixels import kept_elements, pixel_plane
from irkit.rkernels.families.product import cut_one
from irkit.rkernels.family import leading_parts
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work

_SCRATCH_BYTES = 5 << 18
"""Most of the second-level cache, and a little more."""
_MOST_TERMS = 128
"""Places are literals of the template."""
_STRIP_OUTPUTS = 256
_TURNED = 2.5
"""What it takes to lay out an element of a filter, or to transpose a sum, in simple ops."""


@dataclass(frozen=True)
class Tile:
    """Sums that stay in registers: `outputs` times `across` vectors of filters."""

    outputs: int
    across: int

    @property
    def filters(self) -> int:
        """Filters that are laid out at once."""
        return self.across * LANES


# Sixteen registers of 32 bytes hold the first, 32 of 64 bytes the second.
SMALL, LARGE = Tile(6, 1), Tile(14, 2)


def pixels_tiles(task, tasks, rows, scratch, OPERANDS):
    b0, b1, m0, m1, l0, l1, c0, c1 = PART(task, tasks, rows)
    plane = POINTER(scratch)
    places = stack_int64(TERMS)
    PLACES(places)
    k = CHANNELS * TERMS
    sums = KEPT + (0 if PACKED else CHANNELS * TERMS * 16 * ACROSS)
    apart = STRIP * WIDTH + 16
    first = c0 // WIDTH
    last = (c1 - 1) // WIDTH + 1
    for b in range(b0, b1):
        for lead in range(l0, l1):
            FILL(OPERANDS, b, lead, plane)
            start = START(b, lead)
            # Packed filters lie in blocks, which a part may begin within.
            for m in range(m0 // 16 * 16 if PACKED else m0, m1, 16 * ACROSS):
                n = min(16 * ACROSS, m1 - m)
                filters = (b * DEPTH + m) * k if PACKED else KEPT
                # What the last tiles of these filters ask for: the next, a vector of each term at a time.
                others = min(16 * ACROSS, m1 - m - 16 * ACROSS) if PACKED else 0
                if not PACKED:
                    for i in range(0, n, 16):
                        turn_rows(min(16, n - i), A, (b * M + m + i) * k, k, plane, KEPT + i * k)
                for y0 in range(first, last, STRIP):
                    y1 = min(y0 + STRIP, last)
                    for y in range(y0, y1, ROWS):
                        at = start + ROW(y)
                        to = sums + (y - y0) * WIDTH
                        later = (last - 1 - y) // ROWS * 16
                        ahead = filters + (16 * ACROSS + later) * k if later < others else filters
                        if n > 16 and y + ROWS <= y1:
                            multiply_pixels(
                                ACROSS, ROWS, COLUMNS, WIDTH, PITCH, FILTERS, filters, CHANNELS,
                                STEP, TERMS, places, SOURCE, at, plane, to, apart, ahead,
                            )  # fmt: skip
                        elif y + ROWS <= y1:
                            multiply_pixels(
                                1, ROWS, COLUMNS, WIDTH, PITCH, FILTERS, filters, CHANNELS,
                                STEP, TERMS, places, SOURCE, at, plane, to, apart, ahead,
                            )  # fmt: skip
                        else:
                            for z in range(y, y1):
                                at = start + ROW(z)
                                for i in range(0, n, 16):
                                    to = sums + i * apart + (z - y0) * WIDTH
                                    multiply_pixels(
                                        1, 1, COLUMNS, WIDTH, PITCH, FILTERS, filters + i * k,
                                        CHANNELS, STEP, TERMS, places, SOURCE, at, plane, to, apart,
                                        ahead,
                                    )  # fmt: skip
                    for i in range(max(m0 - m, 0), n):
                        behind = sums + i * apart - y0 * WIDTH
                        begin, end = max(c0, y0 * WIDTH), min(c1, y1 * WIDTH)
                        STORE_COLUMNS(OPERANDS, b, m + i, lead, begin, end, plane, behind)


def _plane(root: Root) -> Plane:
    plane = pixel_plane(root)
    assert plane is not None
    return plane


def _parameters(tile: Tile) -> Callable[[Root], Parameters]:
    """COLUMNS: outputs of a row in a tile, of which as few as can be are computed twice. ROWS: whole rows in
    a tile, where they are equally far apart. STRIP: rows that are computed before they are stored."""

    def parameters(root: Root) -> Parameters:
        plane = _plane(root)
        sizes = plane.product.extents(plane.product.columns)
        width = sizes[-1]
        columns = math.ceil(width / math.ceil(width / tile.outputs))
        high = sizes[0] if len(plane.axes) == 2 else 1
        rows = max(1, min(tile.outputs // width, high))
        strip = rows * max(1, _STRIP_OUTPUTS // (rows * width))
        return {"ACROSS": tile.across, "COLUMNS": columns, "ROWS": rows, "STRIP": strip}

    return parameters


def _scratch(root: Root, parameters: Parameters) -> int:
    """The planes, filters side by side unless they are packed, a strip of sums, what is written behind it."""
    plane = _plane(root)
    product = plane.product
    filters = LANES * parameters["ACROSS"]
    apart = parameters["STRIP"] * product.sizes[product.columns[-1]] + LANES
    terms = 0 if product.packed else product.extent(product.k)
    return (kept_elements(plane) + filters * (terms + apart)) * 4


def _takes(tile: Tile) -> Callable[[Root], bool]:
    """Sums of float32 over planes that stay in the cache, and several filters."""

    def legal(root: Root) -> bool:
        plane = _plane(root)
        rows = plane.product.extent(plane.product.m)
        element = tensor_type(plane.product.op.results[0]).element_type
        if not isinstance(element, Float32Type) or plane.channel_terms > _MOST_TERMS:
            return False
        fits = _scratch(root, _parameters(tile)(root)) <= _SCRATCH_BYTES
        return fits and (rows == DYNAMIC or rows >= 2)

    return legal


def _grid(root: Root, tasks: int) -> list[int]:
    """One loop is cut, the first of its group: where the largest part is the least work. Every part lays out
    its filters, and those of a group of channels fill its planes."""
    if DYNAMIC in root.parallel:
        return leading_parts(root, tasks)
    plane = _plane(root)
    terms = plane.product.extent(plane.product.k)

    turned = 0 if plane.product.packed else LANES

    def work(batch: float, lead: float, rows: float, columns: float) -> float:
        filters = math.ceil(rows / LANES) * LANES
        return batch * lead * (filters * (columns + turned) * terms + LANES * kept_elements(plane))

    return cut_one(plane.product, len(root.parallel), tasks, work)


def _work(tile: Tile, kind: str) -> Callable[[Part], Work]:
    """Planes are filled once for all outputs of a group, filters laid out once for them; tiles of whole rows,
    and their sums transposed, then outputs."""

    def counted(part: Part) -> Work:
        plane = _plane(part.root)
        product, own = plane.product, _parameters(tile)(part.root)
        groups = part.share((*product.batch, *product.lead))
        terms, width = product.extent(product.k), product.sizes[product.columns[-1]]
        outputs, rows = part.share(product.columns), part.share(product.m)
        filters = math.ceil(rows / LANES) * LANES
        lines = math.ceil(outputs / width)
        along = math.ceil(width / own["COLUMNS"])
        computed = lines * along * own["COLUMNS"]
        tiles = math.ceil(lines / own["ROWS"]) * along * math.ceil(rows / tile.filters)
        kept = kept_elements(plane)
        runs = kept / plane.run
        copied = work(**{"stride" if plane.axes[-1].stride > 1 else "op": kept})
        filled = copied + work(op=kept, index=runs, row=runs)
        sums = work(**{kind: filters * computed * terms}, tile=tiles)
        turned = work(op=_TURNED * filters * (computed + (0 if product.packed else terms)))
        strips = math.ceil(lines / own["STRIP"])
        stored = (part.store + work(scalar=1)) * (outputs * rows) + work(row=strips * rows)
        return (filled + sums + turned + stored) * groups

    return counted


RKERNELS = [
    RKernel(
        "pixels",
        variant,
        "cpu",
        __name__,
        "pixels_tiles",
        legal=_takes(tile),
        work=_work(tile, kind),
        reassociates=True,
        contracts=True,
        scratch_bytes=_scratch,
        parameters=_parameters(tile),
        grid=_grid,
    )
    for variant, tile, kind in (("blocked", SMALL, "fma"), ("wide", LARGE, "wide"))
]
