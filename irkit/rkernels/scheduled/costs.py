"""What an rTask of a scheduled nest is estimated to take."""

from __future__ import annotations

import math

from irkit.dialects.linalg_generic import is_contraction
from irkit.dialects.precision import Precision
from irkit.dialects.roperator_root import Root
from irkit.rkernels.scheduled.block_layout import THREADS, WARP, BlockLayout
from irkit.rkernels.scheduled.fragments import KINDS
from irkit.rkernels.scheduled.layout import Layout
from irkit.rkernels.work import Part, Work, work
from irkit.schedule.model import VDevice

_DOUBT = 1.2
"""Nests are printed, templates written and measured: where they are about as fast, the template is taken."""
_NEAR_BYTES = 1 << 18
"""What a tile's columns may take that are read again and again, as they lie."""
_NEAR_PAGES = 256
"""Of memory, that a core finds without a walk through its tables: a row of a matrix may be on its own."""
_AGAIN = 0.5
"""Simple ops that an element of farther memory costs, by measurement."""
_WIDE = 16 * 64
"""Bytes of sums that take 16 registers of 64 bytes."""


_TILED = 0.5, 2.0, 1.25
"""Of a multiply-add in a thread's tile: what it takes alone, by what it reads, and all that in tiles of 8 by
4, of which the rate is."""


def nest_ns(root: Root, layout: Layout, nbytes: float, device: VDevice) -> float:
    """Nanoseconds of the largest rTask. `nbytes`: of all operands and results.

    Raises UnsupportedError for work that has no rate.
    """
    tasks = math.prod(layout.nest.grid)
    part = Part(root, layout.nest.grid, device.threads)
    own = block_work(layout, part) if isinstance(layout, BlockLayout) else nest_work(layout, part)
    found = work(start=1, byte=nbytes / tasks) + own
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


def block_work(layout: BlockLayout, part: Part) -> Work:
    """What the threads of a block do: products of a tile behind copies that overlap with them, or terms that
    each thread reads for itself."""
    nest, first = layout.nest, layout.nest.first_reduced
    tiles = math.prod(a.extent for a in nest.order[:first] if not a.mark)
    turns = math.prod(a.extent for a in nest.order[first:] if not a.mark)
    written = math.prod(a.extent for a in nest.order if a.reduced and a.mark == "unroll")
    threads = min(max(layout.working, 1), THREADS)
    stored = part.store * (tiles * layout.sums) + work(barrier=2 * tiles * layout.meets)
    shuffles = work(shuffle=math.log2(layout.lanes) * tiles)
    fragment = layout.fragment
    if fragment is not None:
        terms = math.prod(a.extent for a in nest.order if a.reduced)
        warps = layout.working / WARP
        read = tiles * warps * (fragment.rows.extent + fragment.columns.extent) * terms
        effort = 1.0 if fragment.kind == KINDS[Precision.TF32] else 0.5
        return (
            work(
                tile=tiles,
                stage=tiles * turns,
                fragment=read,
                mma=effort * tiles * layout.sums * terms,
            )
            + stored
        )
    if layout.tile is None:
        terms = work(chain=tiles * turns) + part.term * (tiles * turns * written * threads)
        return terms + stored + shuffles
    alone, read, usual = _TILED
    share = alone + read * (1 / layout.tile.height + 1 / layout.tile.width)
    terms = math.prod(a.extent for a in nest.order if a.reduced)
    products = tiles * layout.sums * terms * part.lanes * share / usual * max(1.0, 128 / threads)
    together = layout.together()
    stages = tiles * turns / (together.extent if together is not None else 1)
    return work(tile=tiles, stage=stages, fma=products) + stored


def _far(layout: Layout, tiles: int) -> Work:
    """What the lanes of every tile read again from a farther cache, where nothing copied it."""
    vector = layout.nest.vector
    assert vector is not None
    across = math.prod(
        a.extent for a in layout.nest.order if a.mark == "unroll" and layout.moves(a)
    )
    elements = math.prod(layout.root.reduction) * vector.extent * across
    near = elements * layout.element_bytes <= _NEAR_BYTES and layout.pages <= _NEAR_PAGES
    return Work() if layout.copies or near else work(op=_AGAIN * tiles * elements)
