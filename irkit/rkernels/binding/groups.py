"""`PART`, `INIT` and `STORE` of a contraction seen as a matrix product, by its groups of loops."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

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
    """`STORE(OPERANDS, b, m, l, c, acc)`: the initial value added, and the epilogue; on a CPU
    `STORE_COLUMNS` does for several columns."""
    whole = columns_run_on(product, b.root, b.block)

    def index_of(columns: Sequence[str]) -> Callable[[ElementPrinter], Index]:
        def index(printer: ElementPrinter) -> Index:
            names = ["0"] * len(b.root.parallel)
            for letter, dims in groups(product).items():
                where = columns
                if letter != "c":
                    where = delinearised(letter, product.extents(dims))
                for d, i in zip(dims, where, strict=True):
                    names[d] = i if letter == "c" and whole else printer.name(i)
            return tuple(names)

        return index

    extents = product.extents(product.columns)
    index = index_of(_counted_through(extents) if whole else delinearised("c", extents))
    b.init("b, m, l, c", index)
    b.store("b, m, l, c, acc", index, b.accumulated)
    if b.target == "cuda":
        store_run(b, product, index, grid_of(b.op, b.root))
        return
    width = 1 if whole or DYNAMIC in extents else extents[-1]
    if width > 1:
        rows = delinearised("y", extents[:-1])
        b.store("b, m, l, y, x, acc", index_of([*rows, "x"]), b.accumulated, placeholder="STORE_AT")
    _store_columns(b, width)


def _store_columns(b: Binder, width: int) -> None:
    """`STORE_COLUMNS(OPERANDS, b, m, l, first, last, sums, at)`: columns `first` to `last`, whose sums are
    `sums[at + c]`. Where their place has to be taken apart, that is done once for each row of `width`:
    no vector divides."""
    names, operands = b.binding.names, b.binding.operands
    if width == 1:
        lines = [
            "for c in range(first, last):",
            f"    total = sums[at + c] + {names['INIT']}({operands}, b, m, l, c)",
            f"    {names['STORE']}({operands}, b, m, l, c, total)",
        ]
    else:
        lines = [
            f"for y in range(first // {width}, (last - 1) // {width} + 1):",
            f"    row = y * {width}",
            f"    for x in range(max(first - row, 0), min(last - row, {width})):",
            f"        total = sums[at + row + x] + {names['INIT']}({operands}, b, m, l, row + x)",
            f"        {names['STORE_AT']}({operands}, b, m, l, y, x, total)",
        ]
    arguments = f"{operands}, b, m, l, first, last, sums, at"
    b.binding.function("STORE_COLUMNS", arguments, lines)
