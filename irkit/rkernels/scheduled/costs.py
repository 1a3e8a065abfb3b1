"""What an rTask of a scheduled nest is estimated to take."""

from __future__ import annotations

import math

from irkit.dialects.linalg_generic import is_contraction
from irkit.dialects.roperator_root import Root
from irkit.rkernels.scheduled.layout import Layout
from irkit.rkernels.work import Part, Work, work
from irkit.schedule.model import VDevice

_DOUBT = 1.2
"""Nests are printed, templates written and measured: where they are about as fast, the template is taken."""
_NEAR_BYTES = 1 << 18
"""What a tile's columns may take that are read again and again, as they lie."""
_AGAIN = 0.5
"""Simple ops that an element of farther memory costs, by measurement."""
_WIDE = 16 * 64
"""Bytes of sums that take 16 registers of 64 bytes."""


def nest_ns(root: Root, layout: Layout, nbytes: float, device: VDevice) -> float:
    """Nanoseconds of the largest rTask. `nbytes`: of all operands and results.

    Raises UnsupportedError for work that has no rate.
    """
    tasks = math.prod(layout.nest.grid)
    found = work(start=1, byte=nbytes / tasks) + nest_work(layout, Part(root, layout.nest.grid))
    return _DOUBT * found.nanoseconds(device)


def nest_work(layout: Layout, part: Part) -> Work:
    """Every statement of the nest, copies and what is fused among them."""
    nest, first = layout.nest, layout.nest.first_reduced
    tiles = math.prod(a.extent for a in nest.order[:first])
    sums = math.prod(a.extent for a in nest.order[first:] if not a.reduced)
    computed = tiles * sums * part.terms
    stored = part.store * (tiles * sums)
    if nest.vector is None:
        return (part.term + work(scalar=1)) * computed + stored + work(row=tiles * sums)
    kind = "wide" if sums * layout.element_bytes >= _WIDE else "fma"
    if not is_contraction(layout.op):
        kind = "op"
    copied = 0.0
    for copy in layout.copies.values():
        turns = math.prod(a.extent for a in nest.order[: copy.at + 1])
        copied += turns * copy.elements
    return (
        work(**{kind: computed * part.lanes}, tile=tiles, pack=copied)
        + stored
        + _far(layout, tiles)
    )


def _far(layout: Layout, tiles: int) -> Work:
    """What the lanes of every tile read again from a farther cache, where nothing copied it."""
    vector = layout.nest.vector
    assert vector is not None
    elements = math.prod(layout.root.reduction) * vector.extent
    if layout.copies or elements * layout.element_bytes <= _NEAR_BYTES:
        return Work()
    return work(op=_AGAIN * tiles * elements)
