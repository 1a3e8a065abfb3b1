"""Where the elements of a product's B lie in memory: its runs, and the matrices that these make."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from xdsl.ir import SSAValue

from irkit.dialects.products import Product, Window, windows
from irkit.dialects.types import tensor_type


def matrix_of_b(product: Product) -> bool | None:
    """Whether B is, element by element in order of memory, a matrix of columns×terms, and not one of
    terms×columns; None if it is neither."""
    found, run = windows(product), run_of_b(product)
    if found is None or run is None or product.batch or product.lead:
        return None
    source, dims = found
    if any(w.guarded or w.offset for w in dims):
        return None
    factors = _in_memory_order(source, dims)
    slow, fast = (product.columns, product.k) if run.by_k else (product.k, product.columns)
    wanted, step = dict[int, int](), 1
    for d in reversed((*slow, *fast)):
        wanted[d], step = step, step * product.sizes[d]
    right = all(factors.get(d, 0) == n for d, n in wanted.items() if product.sizes[d] > 1)
    return run.by_k if right else None


@dataclass(frozen=True)
class Run:
    """How B lies in memory: `by_k` where its terms, or those of the last loop of k, lie side by side, else (if
    at all) its columns do.

    `together`: how many of its elements, 16, 8, 4 or 1, can be read at once along the run, all of them whole and at
    multiples of their number.
    """

    by_k: bool
    together: int

    @property
    def fours(self) -> bool:
        """Whether they can be read four at a time."""
        return self.together >= 4


# As of `as_product`, whose products last as long as their roots.
_runs: WeakKeyDictionary[Product, Run | None] = WeakKeyDictionary()


def run_of_b(product: Product) -> Run | None:
    """How B can be read from memory; None if it is computed."""
    if product not in _runs:
        _runs[product] = _find_run(product)
    return _runs[product]


def _find_run(product: Product) -> Run | None:
    found = windows(product)
    if found is None:
        return None
    source, dims = found
    factors = _in_memory_order(source, dims)
    last = next((d for d in reversed(product.k) if product.sizes[d] > 1), None)
    if last is not None and (run := _run_of_loop(product, last, source, dims)).fours:
        return run
    by_k = _lie_together(product, product.k, factors)
    run = product.k if by_k else product.columns
    others = [f for loop, f in factors.items() if loop not in run]
    apart = any(w.guarded or w.offset for w in dims)
    if apart or not (by_k or _lie_together(product, run, factors)):
        return Run(by_k, 1)
    return Run(by_k, _together((product.extent(run), *others)))


def _run_of_loop(product: Product, last: int, source: SSAValue, dims: Sequence[Window]) -> Run:
    """How B can be read along the last of the loops of k, as channels that lie side by side are: each run of
    them is whole, wherever in padded dimensions it lies."""
    steps = _row_major(tensor_type(source).get_shape())
    factors = _in_memory_order(source, dims)
    own = [w for w in dims if last in w.factors]
    if factors.get(last) != 1 or any(w.guarded or w.offset or len(w.factors) > 1 for w in own):
        return Run(True, 1)
    offsets = [w.offset * step for w, step in zip(dims, steps, strict=True)]
    others = [f for loop, f in factors.items() if loop != last]
    return Run(True, _together((product.sizes[last], *offsets, *others)))


def _together(steps: Sequence[int]) -> int:
    """How many elements can be read at once where runs have these lengths, and begin at these multiples."""
    return next((n for n in (16, 8, 4) if all(f % n == 0 for f in steps)), 1)


def pitch_of_runs(product: Product) -> int | None:
    """How far apart in memory B's runs are: columns where its terms lie side by side, else terms; None where that is
    no one distance, or windows or padding lie between."""
    found, run = windows(product), run_of_b(product)
    if found is None or run is None or any(w.guarded for w in found[1]):
        return None
    factors = _in_memory_order(*found)
    return _pitch(product, product.columns if run.by_k else product.k, factors)


def _pitch(product: Product, group: Sequence[int], factors: dict[int, int]) -> int | None:
    """What a step of a group of loops is, counted through; None where it is no one distance."""
    dims = [d for d in group if product.sizes[d] > 1]
    if not dims:
        return 0
    pitch = expected = factors.get(dims[-1], 0)
    for d in reversed(dims):
        if factors.get(d, 0) != expected:
            return None
        expected *= product.sizes[d]
    return pitch


@dataclass(frozen=True)
class MatrixInMemory:
    """B as matrices in memory: the element it begins at, how far apart its runs are, and its matrices."""

    first: int
    pitch: int
    between: int


def matrices_of_b(product: Product) -> MatrixInMemory | None:
    """How B lies, where the whole group of terms or of columns runs side by side and all other loops are one
    step each; None where windows or padding lie between, or columns are led by others."""
    found, run, pitch = windows(product), run_of_b(product), pitch_of_runs(product)
    if found is None or run is None or pitch is None or product.lead:
        return None
    source, dims = found
    factors = _in_memory_order(source, dims)
    between = _pitch(product, product.batch, factors)
    if between is None or not _lie_together(
        product, product.k if run.by_k else product.columns, factors
    ):
        return None
    steps = _row_major(tensor_type(source).get_shape())
    first = sum(w.offset * step for w, step in zip(dims, steps, strict=True))
    return MatrixInMemory(first, pitch, between)


def _in_memory_order(source: SSAValue, dims: Sequence[Window]) -> dict[int, int]:
    """How many elements of memory a step of each loop is."""
    steps = _row_major(tensor_type(source).get_shape())
    factors: dict[int, int] = {}
    for window, step in zip(dims, steps, strict=True):
        for loop, factor in window.factors.items():
            factors[loop] = factors.get(loop, 0) + factor * step
    return factors


def _lie_together(product: Product, dims: tuple[int, ...], factors: dict[int, int]) -> bool:
    """Whether the elements of a group of loops follow one another."""
    expected = 1
    for d in reversed(dims):
        if product.sizes[d] > 1 and factors.get(d, 0) != expected:
            return False
        expected *= product.sizes[d]
    return product.extent(dims) > 1


def _row_major(shape: Sequence[int]) -> list[int]:
    return [math.prod(shape[d + 1 :]) for d in range(len(shape))]
