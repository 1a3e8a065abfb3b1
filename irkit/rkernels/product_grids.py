"""Grids of products: into how many parts each loop is cut, so that the largest part is the least work."""

from __future__ import annotations

import bisect
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple
from weakref import WeakKeyDictionary

from irkit.dialects.products import as_product
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC
from irkit.rkernels.work import Part

LEAD = 1
"""Which group of loops is the leading columns: of these the first loop alone is cut."""


class Step(NamedTuple):
    """A grid of so many parts, and by what its largest one is compared."""

    parts: int
    grid: tuple[int, ...]
    longest: float


def cut_largest(longest: Callable[[Part], float], whole: int = 0):
    """At most `tasks` parts: of each group of loops the first that is longer than one is cut, and of all but
    leading columns also the next, where that is in single elements, so that what the largest part does one
    after another is the least. `whole`: so many of the last columns are never cut."""

    known: WeakKeyDictionary[Root, Ladder] = WeakKeyDictionary()

    def grid(root: Root, tasks: int) -> list[int]:
        if root not in known:
            known[root] = Ladder()
        return known[root].grid(tasks, partial(_offered, root, longest, whole))

    return grid


class Ladder:
    """The grids whose largest part is less than that of all with fewer parts; of equal ones the first.

    Grids of many sizes are asked for of a product: those of fewer parts are among those of more.
    """

    def __init__(self) -> None:
        self._most = 0
        self._steps: list[Step] = []

    def grid(self, tasks: int, offered: Callable[[int], Iterable[Step]]) -> list[int]:
        """The grid of at most so many parts, among those that are `offered` of so many at most."""
        if tasks > self._most:
            self._steps, self._most = _rising(offered(tasks)), tasks
        found = bisect.bisect_right(self._steps, tasks, key=lambda step: step.parts)
        return list(self._steps[found - 1].grid)


def _rising(offered: Iterable[Step]) -> list[Step]:
    found: list[Step] = []
    for step in sorted(offered, key=lambda step: (step.parts, step.longest)):
        if not found or step.longest < found[-1].longest:
            found.append(step)
    return found


def _offered(
    root: Root, longest: Callable[[Part], float], whole: int, tasks: int
) -> Iterator[Step]:
    product = as_product(root)
    assert product is not None
    columns = product.columns[: len(product.columns) - whole]
    groups = product.batch, product.lead, product.m, columns
    for parts, grid in grids(groups, root.parallel, tasks):
        yield Step(parts, grid, longest(Part(root, grid)))


# Dozens of rKernels are weighed on each product, and products of equal loops are many.
@functools.lru_cache(maxsize=256)
def grids(
    groups: tuple[tuple[int, ...], ...], sizes: tuple[int, ...], tasks: int
) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """All ways to cut the groups batch, lead, m and columns of loops of these sizes, in at most `tasks` parts
    together: the number of parts, and of those of each loop."""
    found: list[tuple[int, dict[int, int]]] = [(1, {})]
    for number, group in enumerate(groups):
        options = [(math.prod(c.values()), c) for c in _cuts(sizes, group, tasks, number != LEAD)]
        found = [
            (parts * more, {**cuts, **cut})
            for parts, cuts in found
            for more, cut in options
            if parts * more <= tasks
        ]
    return tuple((p, tuple(cuts.get(d, 1) for d in range(len(sizes)))) for p, cuts in found)


def _cuts(
    sizes: Sequence[int], dims: Sequence[int], tasks: int, deep: bool
) -> Iterator[dict[int, int]]:
    """Into how many parts the first loop of a group, or if `deep` also the next ones, is cut: each part is in
    one piece."""
    yield {}
    singles: dict[int, int] = {}
    for d in (d for d in dims if sizes[d] != 1):
        if sizes[d] == DYNAMIC:
            return
        for count in _counts(sizes[d], tasks):
            if count > 1:
                yield {**singles, d: count}
        singles[d] = sizes[d]
        if not deep or math.prod(singles.values()) > tasks:
            return


def _counts(size: int, tasks: int) -> list[int]:
    """The counts of parts that make a difference: each the least with its longest part."""
    longest = {math.ceil(size / n): n for n in range(min(size, tasks), 0, -1)}
    return sorted(longest.values())
