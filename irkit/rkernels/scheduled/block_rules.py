"""Default schedules for a GPU's blocks by rule, in the manner of Roller (OSDI 2022).

A product's tile grows level by level. In registers, a thread's sums grow along the side that saves more reads
of shared memory for each multiply-add; in shared memory, a block's tile grows along the side that saves more
traffic, while its copies fit in as many buffers as hide their way, and while the grid leaves no vEU without
work that a smaller tile would have. Of what this comes by, the cost of the largest rTask ranks.

What is no product of two sides is shared out over threads: along the terms where these lie side by side in
memory, along the results where those do.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from irkit.dialects.linalg_generic import combiner, is_contraction, maps
from irkit.dialects.loop import ScheduleAttr
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC, is_float, numpy_dtype, tensor_type
from irkit.expressions.steps import schedule_of
from irkit.expressions.syntax import ExpressionError
from irkit.rkernels.scheduled.block_layout import THREADS, BlockLayout
from irkit.rkernels.scheduled.layout import VECTORS
from irkit.schedule.block_memory import WALKER_ROOM
from irkit.schedule.model import VDevice

SIDES = (4, 8)
"""Rows and columns of sums in a thread's registers."""
_TERMS = (8, 16, 32, 64)
"""Terms of a tile that are copied together."""
_WRITTEN_OUT = 1024
"""Multiply-adds of a thread between two copies: more are no straight text, or too long a one."""
_COPY, _COUNTED = 0.12, 0.06
"""Cycles of a block that a copied element takes, and more for each loop that is counted with another."""
_OFFERED = 6


@dataclass(frozen=True)
class BlockTile:
    """Sums of a block, rows by columns, those of a thread, and terms that are copied together, of which each
    of `groups` of threads takes its share."""

    rows: int
    columns: int
    thread_rows: int
    thread_columns: int
    terms: int
    buffers: int = 2

    @property
    def traffic(self) -> float:
        """Elements copied for each multiply-add."""
        return 1 / self.rows + 1 / self.columns

    @property
    def threads(self) -> int:
        """That have sums of their own."""
        return (self.rows // self.thread_rows) * (self.columns // self.thread_columns)

    def nbytes(self, element_bytes: int) -> int:
        """Of all copies."""
        return self.buffers * self.terms * (self.rows + self.columns + 8) * element_bytes

    def grown(self) -> list[BlockTile]:
        """The same, larger by one side, that which saves more traffic first."""
        made = [replace(self, rows=2 * self.rows), replace(self, columns=2 * self.columns)]
        return sorted(made, key=lambda t: t.traffic)


@dataclass(frozen=True)
class Sides:
    """Loops of a product by number: of both operands, of input 0, of input 1, reduced."""

    batch: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    terms: tuple[int, ...]


def sides_of(root: Root) -> Sides | None:
    """A contraction's loops; None where an operand has none of its own. Columns are the result's last."""
    op = root.chain[-1]
    if not is_contraction(op) or len(op.inputs) != 2:
        return None
    first, second = ({d for e in m.results for d in e.used_dims()} for m in maps(op)[:2])
    parallel = range(len(root.parallel))
    batch = tuple(d for d in parallel if (d in first) == (d in second))
    rows = tuple(d for d in parallel if d in first and d not in second)
    columns = tuple(d for d in parallel if d in second and d not in first)
    if not rows or not columns:
        return None
    if rows[-1] > columns[-1]:
        rows, columns = columns, rows
    terms = tuple(range(len(parallel), len(parallel) + len(root.reduction)))
    return Sides(batch, rows, columns, terms)


def default_block_schedules(root: Root, tasks: int, device: VDevice) -> list[ScheduleAttr]:
    """Schedules of a root in at most `tasks` parts, the one of least estimated time first."""
    op = root.chain[-1]
    if DYNAMIC in root.parallel or not root.parallel or not root.reduction:
        return []
    if tensor_type(op.results[0]).element_type not in VECTORS or combiner(op) is None:
        return []
    sides = sides_of(root)
    found = list(_products(root, tasks, device, sides)) if sides is not None else []
    return list(dict.fromkeys(found)) or list(dict.fromkeys(_reductions(root, tasks)))


# Products


def _products(root: Root, tasks: int, device: VDevice, sides: Sides) -> Iterator[ScheduleAttr]:
    if not is_float(tensor_type(root.chain[-1].results[0]).element_type):
        return
    offered: list[tuple[float, list[int], BlockTile]] = []
    grids: dict[tuple[int, int], list[int] | None] = {}
    for tile in _tiles(root, device, sides):
        shape = (tile.rows, tile.columns)
        if shape not in grids:
            grids[shape] = grid_of_tile(root, tasks, sides, tile)
        grid = grids[shape]
        if grid is not None:
            offered.append((_time(root, grid, sides, tile), grid, tile))
    offered.sort(key=lambda found: found[0])
    for _, grid, tile in offered[:_OFFERED]:
        made = tiled(root, grid, sides, tile)
        if made is not None:
            yield made


def _tiles(root: Root, device: VDevice, sides: Sides) -> Iterator[BlockTile]:
    """From the smallest on, each grown along the side that saves more traffic, while it fits."""
    element = tensor_type(root.chain[-1].results[0]).element_type
    # Sums of 16-bit floats are float32's.
    size = max(numpy_dtype(element).itemsize, 4)
    room = device.shared_bytes - WALKER_ROOM
    terms = math.prod(root.reduction)

    def fits(tile: BlockTile) -> bool:
        needed = max(tile.nbytes(size), tile.rows * tile.columns * size)
        return tile.threads <= THREADS and needed <= room

    for down, across, copied, buffers in itertools.product(SIDES, SIDES, _TERMS, (2, 3)):
        if copied > max(terms, 8):
            continue
        first = BlockTile(8, 8, down, across, min(copied, terms), buffers)
        for tile in _grown(first, fits):
            if tile.terms // _groups(root, tile) * down * across <= _WRITTEN_OUT:
                yield tile


def _grown(tile: BlockTile, fits: Callable[[BlockTile], bool]) -> Iterator[BlockTile]:
    """A tile, and what it grows to while that fits."""
    found: BlockTile | None = tile
    while found is not None:
        yield found
        found = next(filter(fits, found.grown()), None)


def _extent(root: Root, dims: Sequence[int], grid: Sequence[int]) -> int:
    """The largest part of a group of loops."""
    sizes = (*root.parallel, *root.reduction)
    cuts = (*grid, *(1 for _ in root.reduction))
    return math.prod(-(-sizes[d] // cuts[d]) for d in dims)


def grid_of_tile(root: Root, tasks: int, sides: Sides, tile: BlockTile) -> list[int] | None:
    """The first long loop of each group cut, into even parts where others are counted with it, so that the
    largest part has the fewest tiles."""
    groups = (sides.batch, sides.rows, sides.columns)
    cuts = [next((d for d in g if root.parallel[d] > 1), None) for g in groups]
    options = [[1] if d is None else _counts(root.parallel[d], tasks) for d in cuts]
    best: tuple[float, int, list[int]] | None = None
    for counts in itertools.product(*options):
        if math.prod(counts) > tasks:
            continue
        grid = [1] * len(root.parallel)
        for d, count in zip(cuts, counts, strict=True):
            if d is not None:
                grid[d] = count
        if not _fits(root, grid, sides, tile):
            continue
        rows, columns = (_extent(root, g, grid) for g in (sides.rows, sides.columns))
        tiles = -(-rows // tile.rows) * -(-columns // tile.columns)
        found = (tiles * _extent(root, sides.batch, grid), math.prod(counts), grid)
        best = found if best is None or found < best else best
    return None if best is None else best[2]


def _fits(root: Root, grid: Sequence[int], sides: Sides, tile: BlockTile) -> bool:
    """Whether a part has whole tiles, and loops that are counted together are whole."""
    for dims, extent in ((sides.rows, tile.rows), (sides.columns, tile.columns)):
        uneven = any(root.parallel[d] % grid[d] for d in dims)
        if uneven and len(dims) > 1:
            return False
        if math.prod(root.parallel[d] // grid[d] for d in dims) < extent:
            return False
    return True


def _counts(size: int, tasks: int) -> list[int]:
    """The counts of parts that make a difference."""
    longest = {math.ceil(size / n): n for n in range(min(size, tasks), 0, -1)}
    even = {n for n in range(1, min(size, tasks) + 1) if size % n == 0}
    return sorted({*longest.values(), *even})


def _time(root: Root, grid: Sequence[int], sides: Sides, tile: BlockTile) -> float:
    """Cycles of the largest part: what its tiles multiply, read of copies and wait for."""
    rows, columns = (_extent(root, g, grid) for g in (sides.rows, sides.columns))
    tiles = -(-rows // tile.rows) * -(-columns // tile.columns) * _extent(root, sides.batch, grid)
    groups = _groups(root, tile)
    threads = min(tile.threads * groups, THREADS)
    turns = -(-math.prod(root.reduction) // tile.terms)
    sums = tile.rows * tile.columns
    # 128 multiply-adds a cycle, of which few threads reach fewer; 32 words of shared memory.
    products = sums * tile.terms / 128 * max(1.0, 128 / threads)
    words = sums * tile.terms * (1 / tile.thread_rows + 1 / tile.thread_columns) / 32
    copied = sum(
        extent * tile.terms * (_COPY + _COUNTED * (len(dims) + len(sides.terms) - 2))
        for extent, dims in ((tile.rows, sides.rows), (tile.columns, sides.columns))
    )
    waited = 60 + 1000 / tile.buffers
    each = max(products + 0.3 * words, words, waited) + copied + 40
    return tiles * (turns * each + 800 + sums * (2 + groups) / 32)


def _groups(root: Root, tile: BlockTile) -> int:
    """So many groups of threads share a tile's terms: as a block has room for, of whole parts."""
    room = THREADS // tile.threads
    if math.prod(root.reduction) % tile.terms:
        return 1
    return next((g for g in (16, 8, 4, 2) if g <= room and tile.terms % (4 * g) == 0), 1)


def tiled(root: Root, grid: Sequence[int], sides: Sides, tile: BlockTile) -> ScheduleAttr | None:
    """The steps that make a tile of the loops; None where they may not be taken."""
    names = names_of(root)
    steps = [f"bind {names[d]} to veu in {n}" for d, n in enumerate(grid) if n > 1]
    ordered = [*sides.batch, *sides.rows, *sides.columns, *sides.terms]
    if ordered != sorted(ordered):
        steps.append(f"reorder {', '.join(names[d] for d in ordered)}")
    fused = [
        _fused(steps, [names[d] for d in dims], name)
        for dims, name in ((sides.rows, "m"), (sides.columns, "n"), (sides.terms, "k"))
    ]
    m, n, k = fused
    groups = _groups(root, tile)
    steps += [
        f"split {m} by {tile.rows} as mo, mb",
        f"split mb by {tile.thread_rows} as mt, mi",
        f"split {n} by {tile.columns} as no, nb",
        f"split nb by {tile.thread_columns} as nt, ni",
        f"split {k} by {tile.terms} as ko, kb",
    ]
    inner = ["kb"]
    if groups > 1:
        steps.append(f"split kb by {tile.terms // groups} as kg, ki")
        inner = ["kg", "ki"]
    batch = [names[d] for d in sides.batch]
    steps.append(f"reorder {', '.join([*batch, 'mo', 'no', 'ko', *inner, 'mt', 'nt', 'mi', 'ni'])}")
    steps += ["bind kg to thread"] if groups > 1 else []
    steps += ["bind mt to thread", "bind nt to thread", "unroll mi", "unroll ni"]
    steps += [f"cache {name} at ko in {tile.buffers}" for name in ("a", "b")]
    return _legal(root, "a, b", steps)


def _fused(steps: list[str], names: Sequence[str], made: str) -> str:
    """One loop of several."""
    found = names[0]
    for number, name in enumerate(names[1:]):
        fresh = made if number == len(names) - 2 else f"{made}_{number}"
        steps.append(f"fuse {found}, {name} as {fresh}")
        found = fresh
    return found


def names_of(root: Root) -> list[str]:
    """Of a root's loops."""
    parallel, reduced = len(root.parallel), len(root.reduction)
    return [*(f"i{d}" for d in range(parallel)), *(f"k{d}" for d in range(reduced))]


def _legal(root: Root, operands: str, steps: Sequence[str]) -> ScheduleAttr | None:
    of = f" of {operands}" if operands else ""
    text = "; ".join([f"for {', '.join(names_of(root))}{of}", *steps])
    made = ScheduleAttr.of(schedule_of(text))
    try:
        BlockLayout.of(root, made)
    except ExpressionError:
        return None
    return made


# Reductions


def _reductions(root: Root, tasks: int) -> Iterator[ScheduleAttr]:
    """By threads along the terms, along the results, or both."""
    grid = _even_grid(root, tasks)
    terms = math.prod(root.reduction)
    sizes = [s // g for s, g in zip(root.parallel, grid, strict=True)]
    results = math.prod(sizes)
    along = _along_terms(root)
    wanted = [1, 32, 256] if not along else [256 if results < 8 else 32, 32, 256, 8]
    for lanes in dict.fromkeys(wanted):
        width = min(lanes, 1 << (terms.bit_length() - 1))
        made = _reduction(root, grid, sizes, results, width)
        if made is not None:
            yield made


def _along_terms(root: Root) -> bool:
    """Whether what lies side by side in the first input are terms of one sum."""
    used = [e.used_dims() for e in maps(root.chain[-1])[0].results]
    return bool(used) and max(used[-1], default=0) >= len(root.parallel)


def _even_grid(root: Root, tasks: int) -> list[int]:
    """Leading loops cut into as many even parts as there may be."""
    grid, left = [1] * len(root.parallel), tasks
    for d, size in enumerate(root.parallel):
        grid[d] = max(n for n in range(1, min(size, left) + 1) if size % n == 0)
        left //= grid[d]
    return grid


def _reduction(
    root: Root, grid: Sequence[int], sizes: Sequence[int], results: int, width: int
) -> ScheduleAttr | None:
    """`width` threads of a sum; as many sums at once as there are threads left."""
    names, terms = names_of(root), math.prod(root.reduction)
    steps = [f"bind {names[d]} to veu in {n}" for d, n in enumerate(grid) if n > 1]
    i = _fused(steps, names[: len(sizes)], "i")
    k = _fused(steps, names[len(sizes) :], "k")
    beside = min(THREADS // width, results)
    steps.append(f"split {i} by {beside} as io, it")
    order, at_once = ["io"], 1
    if width > 1:
        at_once = next((n for n in (16, 8, 4, 2) if terms % (n * width) == 0), 1)
        steps.append(f"split {k} by {width * at_once} as ko, kb")
        order.append("ko")
        whole = terms % width == 0
        steps += [f"split kb by {width} as ku, kt"] if whole else []
        lane = "kt" if whole else "kb"
        order += ["it", *(["ku"] if whole else []), lane]
        steps.append(f"reorder {', '.join(order)}")
        steps += ["bind it to thread", f"bind {lane} to thread"]
        steps += ["unroll ku"] if whole else []
    else:
        steps += [f"reorder io, {k}, it", "bind it to thread"]
    return _legal(root, "", steps)
