"""`depthwise`: convolutions of few terms, as sums over padded planes of the input."""

from __future__ import annotations

from irkit.dialects.planes import Plane, as_plane
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC
from irkit.errors import UnsupportedError
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.groups import part, store
from irkit.rkernels.binding.planes import fill, outputs
from irkit.rkernels.family import Family, leading_parts, of_floats

MOST_TERMS = 64
"""The terms of a sum are printed one by one."""


class Depthwise(Family):
    """`PART`, `INIT`, `STORE`, pointer `A` and `M` as `product`; `FILL(OPERANDS, b, l, plane)` pads the input
    of one group. `PLACES`: how far the terms of an output are from the first, in the order of k, `TERMS` of
    them; `ROW(y)`: where the outputs of row y begin; `PITCH`: how far a row is from the one before;
    `WIDTH`: how many outputs it has; `PLANE`: how many elements all planes have."""

    name = "depthwise"

    def refuses(self, root: Root) -> str | None:
        """Few terms, windows that move along planes."""
        plane = as_plane(root) if root.family == "conv" else None
        if plane is None:
            return "its root is no convolution over planes of an operand in memory"
        if plane.product.extent(plane.product.k) > MOST_TERMS:
            return f"sums of more than {MOST_TERMS} terms"
        return of_floats(root)

    def grid(self, root: Root, tasks: int) -> list[int]:
        """Groups are cut before planes, which every part of one pads again."""
        if DYNAMIC in root.parallel:
            return leading_parts(root, tasks)
        plane = as_plane(root)
        assert plane is not None
        product, grid = plane.product, [1] * len(root.parallel)
        firsts = (
            next((d for d in dims if product.sizes[d] > 1), None)
            for dims in (product.batch, product.columns, product.m)
        )
        for d in firsts:
            if d is not None:
                grid[d] = min(tasks, product.sizes[d])
                break
        return grid

    def bind(self, binder: Binder) -> None:
        """Planes are the rKernel's scratch."""
        plane = as_plane(binder.root)
        if plane is None:
            raise UnsupportedError("it is no convolution over planes of an operand in memory")
        product = plane.product
        part(binder, product)
        store(binder, product)
        fill(binder, plane)
        outputs(binder, plane)
        places = list(plane.terms())
        binder.binding.names["A"] = f"p{product.in_place.index}"
        binder.binding.names["PLACES"] = f"({''.join(f'{place}, ' for place in places)})"
        binder.literal("M", max(product.extent(product.m), 0))
        binder.literal("TERMS", len(places))
        binder.literal("PITCH", pitch(plane))


def pitch(plane: Plane) -> int:
    """How far apart the outputs of neighbouring rows are in a phase; 0 where there is one row."""
    return plane.strides[-2] if len(plane.strides) > 1 else 0
