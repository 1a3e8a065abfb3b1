"""`depthwise`: convolutions of few terms, as sums over padded planes of the input."""

from __future__ import annotations

import math

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
    """`PART`, `INIT`, `STORE` as `product`; `FILL(OPERANDS, b, l, plane)` pads the input of one group, and
    `SUM(OPERANDS, b, m, plane, at)` adds up the terms of the output that is `at` elements from the first in
    the plane. `ROW(y)`: where the outputs of row y begin; `WIDTH`: how many they are; `PLANE`, `PHASE`:
    how many elements all planes and one phase have."""

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
        binder.literal("PHASE", plane.phase_elements)
        _add(binder, plane)


def _add(binder: Binder, plane: Plane) -> None:
    """`SUM`: the terms one by one, in the order of the body's loops."""
    product = plane.product
    filters = f"p{product.in_place.index}"
    terms = math.prod(product.extents(product.k))
    lines = [f"w = (b * {max(product.extent(product.m), 0)} + m) * {terms}"]
    for number, place in enumerate(plane.terms()):
        before = "acc + " if number else ""
        lines.append(f"acc = {before}plane[at + {place}] * {filters}[w + {number}]")
    lines.append("return acc")
    binder.binding.function("SUM", f"{binder.binding.operands}, b, m, plane, at", lines)
