"""`PART`, `INIT` and `STORE` of a contraction seen as a matrix product, by its groups of loops."""

from __future__ import annotations

import math
from collections.abc import Sequence

from irkit.dialects.access_boxes import grid_of
from irkit.dialects.products import Product, columns_run_on
from irkit.dialects.tensor_ops.interface import Index
from irkit.dialects.types import DYNAMIC
from irkit.errors import UnsupportedError
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.elements import ElementPrinter, delinearised
from irkit.rkernels.binding.runs import store_run

_GROUPS = ("b", "m", "l", "c")


def groups(product: Product) -> dict[str, tuple[int, ...]]:
    """Loops of each group by the letter that templates use."""
    return dict(
        zip(_GROUPS, (product.batch, product.m, product.lead, product.columns), strict=True)
    )


def part(b: Binder, product: Product) -> None:
    """`PART(task, tasks, rows)`: this rTask's range of each group, flattened."""
    grid = grid_of(b.op, b.root)
    lines: list[str] = []
    for letter, dims in groups(product).items():
        singles, cut = _cut_dimensions(product, dims, grid)
        inner = math.prod(product.sizes[d] for d in dims if cut is None or d > cut)
        if cut is None:
            lines.append(f"{letter}0, {letter}1 = 0, {inner}")
            continue
        size = "rows" if product.sizes[cut] == DYNAMIC else str(product.sizes[cut])
        lines.append("first = 0")
        for d in singles:
            number = f"(task // {math.prod(grid[d + 1 :])}) % {grid[d]}"
            lines.append(f"first = first * {product.sizes[d]} + {number}")
        lines.append(f"n = (task // {math.prod(grid[cut + 1 :])}) % {grid[cut]}")
        for end, part_number in (("0", "n"), ("1", "(n + 1)")):
            place = f"first * {size} + ({size} * {part_number}) // {grid[cut]}"
            lines.append(f"{letter}{end} = ({place}) * {inner}")
    lines.append("return b0, b1, m0, m1, l0, l1, c0, c1")
    b.binding.function("PART", "task, tasks, rows", lines)


def rows_of_parts(product: Product, grid: Sequence[int]) -> int:
    """The largest number of rows that all parts begin and end at multiples of; 1 where they are not known."""
    if DYNAMIC in product.extents(product.m):
        return 1
    singles, cut = _cut_dimensions(product, product.m, grid)
    if cut is None:
        return product.extent(product.m)
    inner = math.prod(product.sizes[d] for d in product.m if d > cut)
    size, parts = product.sizes[cut], grid[cut]
    starts = [size * n // parts * inner for n in range(parts + 1)]
    return math.gcd(*starts, *(size * inner for _ in singles))


def _cut_dimensions(
    product: Product, dims: Sequence[int], grid: Sequence[int]
) -> tuple[list[int], int | None]:
    """The loops of a group that the grid cuts: those cut into single elements, and the one behind them, if
    any, that is cut into parts; the batch is one."""
    cut = [d for d in dims if grid[d] > 1 or product.sizes[d] == DYNAMIC]
    if not cut:
        return [], None
    before = [d for d in dims if d < cut[-1] and product.sizes[d] != 1]
    if any(product.sizes[d] == DYNAMIC or grid[d] != product.sizes[d] for d in before):
        raise UnsupportedError(f"grid {list(grid)}: a group's parts are not in one piece")
    return before, cut[-1]


def _counted_through(extents: Sequence[int]) -> list[str]:
    """Indices of columns that are counted through: by the last dimension of more than one. In others an index
    is taken for 0."""
    last = max((d for d, extent in enumerate(extents) if extent != 1), default=len(extents) - 1)
    return ["c" if d == last else "0" for d in range(len(extents))]


def store(b: Binder, product: Product) -> None:
    """`STORE(OPERANDS, b, m, l, c, acc)`: the initial value added, and the epilogue."""
    whole = columns_run_on(product, b.root, b.block)

    def index(printer: ElementPrinter) -> Index:
        names = ["0"] * len(b.root.parallel)
        for letter, dims in groups(product).items():
            extents = product.extents(dims)
            if letter == "c" and whole:
                where = _counted_through(extents)
            else:
                where = [printer.name(i) for i in delinearised(letter, extents)]
            for d, i in zip(dims, where, strict=True):
                names[d] = i
        return tuple(names)

    b.init("b, m, l, c", index)
    b.store("b, m, l, c, acc", index, b.accumulated)
    if b.target == "cuda":
        store_run(b, product, index, grid_of(b.op, b.root))
