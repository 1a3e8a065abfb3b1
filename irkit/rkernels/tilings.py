"""Grids of products that are computed in tiles: into how many parts each loop is cut, so that the largest
part has the fewest.

How many tiles a part has hangs on the loops of a product and on how tiles lie, on nothing else: products of
equal loops, and rKernels of equal tiles, have equal grids, which are found once.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from irkit.dialects.products import as_product
from irkit.dialects.roperator_root import Root
from irkit.rkernels.product_grids import Ladder, Step, grids
from irkit.rkernels.work import Part, largest_share


class Tiling(NamedTuple):
    """Tiles of so many rows and columns, which begin at multiples of a unit. `squarely`: of as many tiles
    those in squares are fewer, and batches are none."""

    rows: int
    columns: int
    row_unit: int = 1
    column_unit: int = 1
    squarely: bool = False

    def of_part(self, part: Part) -> float:
        """Tiles of the largest part."""
        product = as_product(part.root)
        assert product is not None
        high, wide = (
            reach(part.root.parallel, part.sizes, part.grid, dims, unit)
            for dims, unit in ((product.m, self.row_unit), (product.columns, self.column_unit))
        )
        many = part.share((*product.batch, *product.lead))
        return many * math.ceil(high / self.rows) * math.ceil(wide / self.columns)


class _Loops(NamedTuple):
    """Loops of a product, by their groups: all that the grids of tiles hang on, beside the tiles. The last
    `whole` of `columns` are never cut."""

    parallel: tuple[int, ...]
    batch: tuple[int, ...]
    lead: tuple[int, ...]
    m: tuple[int, ...]
    columns: tuple[int, ...]
    whole: int


def cut_into_tiles(
    tiling: Callable[[Root], Tiling], whole: int = 0
) -> Callable[[Root, int], list[int]]:
    """At most `tasks` parts, as those of `cut_largest`, by the tiles of the largest."""

    def grid(root: Root, tasks: int) -> list[int]:
        product = as_product(root)
        assert product is not None
        groups = product.batch, product.lead, product.m, product.columns
        loops, tiles = _Loops(root.parallel, *groups, whole), tiling(root)
        return _ladder(loops, tiles).grid(tasks, partial(_offered, loops, tiles))

    return grid


# Of the products of a network there are few kinds, and some dozens of tilings.
@functools.lru_cache(maxsize=1024)
def _ladder(loops: _Loops, tiling: Tiling) -> Ladder:
    return Ladder()


def _offered(loops: _Loops, tiling: Tiling, tasks: int) -> Iterator[Step]:
    longest, columns = _longest(loops, tiling), loops.columns[: len(loops.columns) - loops.whole]
    groups = loops.batch, loops.lead, loops.m, columns
    for parts, grid in grids(groups, loops.parallel, tasks):
        yield Step(parts, grid, longest(grid))


def _longest(loops: _Loops, tiling: Tiling) -> Callable[[Sequence[int]], float]:
    """By what grids are compared: the tiles of the largest part. What each group has of them is counted once
    for all grids that cut it so."""
    outer = *loops.batch, *loops.lead
    known: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}

    def along(grid: Sequence[int], dims: tuple[int, ...], size: int, unit: int) -> int:
        key = dims, tuple(grid[d] for d in dims)
        if key not in known:
            sizes = list(map(largest_share, loops.parallel, grid))
            known[key] = math.ceil(reach(loops.parallel, sizes, grid, dims, unit) / size)
        return known[key]

    def longest(grid: Sequence[int]) -> float:
        down = along(grid, loops.m, tiling.rows, tiling.row_unit)
        across = along(grid, loops.columns, tiling.columns, tiling.column_unit)
        if tiling.squarely:
            return down * across + (down + across) / 1024
        return math.prod(largest_share(loops.parallel[d], grid[d]) for d in outer) * down * across

    return longest


def reach(
    extents: Sequence[int],
    sizes: Sequence[float],
    grid: Sequence[int],
    dims: Sequence[int],
    unit: int,
) -> float:
    """How far the largest part of a group of parallel loops, of these `sizes`, reaches from the multiple of
    `unit` at or before its start: where rows or columns are read in units, tiles begin there."""
    share = math.prod(sizes[d] for d in dims)
    cuts = [d for d in dims if grid[d] > 1]
    if not cuts or unit == 1:
        return share
    if len(cuts) > 1:
        return share + unit - 1
    size, parts = extents[cuts[0]], grid[cuts[0]]
    inner = math.prod(extents[d] for d in dims if d > cuts[0])
    starts = [size * n // parts * inner for n in range(parts + 1)]
    return max(end - begin // unit * unit for begin, end in itertools.pairwise(starts))
