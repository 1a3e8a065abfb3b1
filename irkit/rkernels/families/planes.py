"""`planes`: convolutions as products, B's columns being places of padded planes of the input."""

from __future__ import annotations

import math

from irkit.dialects.planes import Plane, as_plane
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC
from irkit.errors import UnsupportedError
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.elements import delinearised
from irkit.rkernels.binding.groups import part, store
from irkit.rkernels.binding.plane_blocks import plane_blocks
from irkit.rkernels.binding.planes import fill, outputs
from irkit.rkernels.families.product import cut_one
from irkit.rkernels.family import Family, leading_parts, of_floats

_ROWS, _COLUMNS = 8, 32
"""About what a tile computes at once."""


class PlaneProduct(Family):
    """`PART`, `INIT`, `STORE`, pointer `A` and `M` as `product`; on a CPU `FILL`, `ROW`, `WIDTH` and `PLANE`
    as `depthwise`. `CHANNELS` and `TERMS`: how many of each there are; `STEP`: elements of a channel.
    `PLACES(places)`: how far from the first term of an output its others of one channel are; `SHIFT(b)`: how
    far that of a group lies behind the first group's. On a GPU what `binding/plane_blocks.py` has in their
    place."""

    name = "planes"

    def refuses(self, root: Root) -> str | None:
        """Windows that move along planes, summed channel by channel."""
        plane = as_plane(root, True) if root.family == "conv" else None
        if plane is None:
            return "its root is no convolution over planes of an operand in memory"
        if plane.channels != plane.product.k[: len(plane.channels)]:
            return "its sums do not go channel by channel"
        return of_floats(root)

    def grid(self, root: Root, tasks: int) -> list[int]:
        """One loop is cut, the first of its group: where the largest part is the least work. Whole tiles are
        computed, and every part of a group of channels fills its planes."""
        if DYNAMIC in root.parallel:
            return leading_parts(root, tasks)
        plane = as_plane(root, True)
        assert plane is not None
        terms = plane.product.extent(plane.product.k)

        def work(batch: float, lead: float, rows: float, columns: float) -> float:
            tiles = math.ceil(rows / _ROWS) * math.ceil(columns / _COLUMNS)
            return batch * lead * tiles * _ROWS * _COLUMNS * terms

        return cut_one(plane.product, len(root.parallel), tasks, work)

    def bind(self, binder: Binder) -> None:
        """Planes are the rKernel's scratch."""
        plane = as_plane(binder.root, True)
        if plane is None:
            raise UnsupportedError("it is no convolution over planes of an operand in memory")
        product = plane.product
        binder.binding.names["A"] = f"p{product.in_place.index}"
        binder.literal("M", max(product.extent(product.m), 0))
        part(binder, product)
        store(binder, product)
        if binder.target == "cuda":
            plane_blocks(binder, plane)
            return
        fill(binder, plane)
        outputs(binder, plane)
        binder.literal("CHANNELS", plane.channel_count)
        binder.literal("STEP", plane.channel_elements)
        binder.literal("TERMS", plane.channel_terms)
        places(binder, plane)
        shift(binder, plane)


def places(binder: Binder, plane: Plane) -> None:
    """`PLACES`: those of the first channel, in the order of k."""
    terms = zip(range(plane.channel_terms), plane.terms(), strict=False)
    lines = [f"places[{number}] = {place}" for number, place in terms]
    binder.binding.function("PLACES", "places", [*lines, "return"])


def shift(binder: Binder, plane: Plane) -> None:
    """`SHIFT(b)`: how far what group b looks at lies behind what the first does."""
    batch = plane.product.batch
    numbers = dict(zip(batch, delinearised("b", plane.product.extents(batch)), strict=True))
    parts = [f"({numbers[loop]}) * {step}" for loop, step in plane.shifts.items()]
    binder.binding.function("SHIFT", "b", [f"return {' + '.join(parts) or '0'}"])
