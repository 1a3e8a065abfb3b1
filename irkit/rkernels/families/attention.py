"""`attention`: softmax of the scores of one query after another, times values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from irkit.dialects import te
from irkit.dialects.access_boxes import grid_of
from irkit.dialects.roperator_root import Root
from irkit.dialects.tensor_ops.interface import Index
from irkit.dialects.types import DYNAMIC, numpy_dtype, tensor_type
from irkit.errors import UnsupportedError
from irkit.rkernels.approximations import APPROXIMATE, may_be_approximate
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.elements import ElementPrinter, delinearised, literal
from irkit.rkernels.binding.longest import Longest
from irkit.rkernels.families.attention_rows import rows_of
from irkit.rkernels.family import Family, leading_parts, of_floats
from irkit.rkernels.work import Part, Work, work

_T = TypeVar("_T")


@dataclass(frozen=True)
class Loops:
    """The loops of an attention: `lead` (batch, heads), rows, and columns of the values.

    `keys` and `size` (of a query) are summed over. Dimension d of the result is loop `order[d]`, the last
    being the columns."""

    op: te.AttentionOp

    @staticmethod
    def of(root: Root) -> Loops:
        """Of a root that the family takes."""
        assert isinstance(root.op, te.AttentionOp)
        return Loops(root.op)

    @cached_property
    def order(self) -> list[int]:
        """Loop of each dimension of the result."""
        return self.op.order

    @cached_property
    def sizes(self) -> list[int]:
        """Extents of lead, rows and columns, by loop."""
        shape = tensor_type(self.op.y).get_shape()
        return [shape[self.order.index(loop)] for loop in range(len(shape))]

    @property
    def lead(self) -> list[int]:
        """Extents of the leading loops."""
        return self.sizes[:-2]

    @property
    def keys(self) -> int:
        """Keys of a query, in a part of them."""
        return self.op.span

    @property
    def ragged(self) -> bool:
        """Whether the last part has fewer keys."""
        return self.op.count is not None and self.op.count * self.keys != self.every

    @property
    def every(self) -> int:
        """Keys of all parts."""
        return tensor_type(self.op.key).get_shape()[-2]

    @property
    def place(self) -> str:
        """Key j of the part that leading element b is of, among all."""
        return "j" if self.op.count is None else f"j + (b % {self.op.count}) * {self.keys}"

    @property
    def size(self) -> int:
        """Elements of a query."""
        return tensor_type(self.op.query).get_shape()[-1]

    @property
    def columns(self) -> int:
        """Elements of a value."""
        return tensor_type(self.op.value).get_shape()[-1]

    def by_loop(self, of_dimensions: Sequence[_T]) -> list[_T]:
        """What is given for each dimension of the result, for each loop."""
        return [of_dimensions[self.order.index(loop)] for loop in range(len(self.order))]

    def by_dimension(self, of_loops: Sequence[int]) -> list[int]:
        """What is given for each loop, for each dimension of the result."""
        return [of_loops[loop] for loop in self.order]


def seen(part: Part) -> tuple[float, float, float]:
    """Leading elements and rows of a part, and how many keys a row sees on average."""
    loops = Loops.of(part.root)
    *lead, rows, _ = loops.by_loop(part.sizes)
    keys, diagonal = float(loops.keys), loops.op.diagonal
    if diagonal is not None:
        # The last part has the rows that see the most.
        last = min(keys, max(1.0, loops.sizes[-2] + diagonal))
        first = min(keys, max(1.0, last - rows))
        keys = (first + last) / 2
    return math.prod(lead), rows, keys


def tile_blocks(part: Part, height: int, width: int) -> list[int]:
    """Blocks of `width` keys that tiles of `height` rows see, tile after tile: as many as its last row."""
    loops = Loops.of(part.root)
    *_, count, _ = loops.by_loop(part.sizes)
    rows, diagonal = loops.sizes[-2], loops.op.diagonal
    # The last part has the rows that see the most.
    ends = [min(rows, rows - int(count) + n) for n in range(height, int(count) + height, height)]
    keys = [
        loops.keys if diagonal is None else max(0, min(loops.keys, end + diagonal)) for end in ends
    ]
    return [math.ceil(n / width) for n in keys]


def score(part: Part) -> Work:
    """What it takes to have one score's mask and its exponential."""
    op = Loops.of(part.root).op
    power = work(approximate=part.lanes) if may_be_approximate(op) else work(exp=1)
    return power if op.mask is None else power + part.load(op.mask)


class Attention(Family):
    """`PART`, `LOAD_Q`, `LOAD_K`, `LOAD_V`, `SCORE`, `EXP`, `STORE`; `ROWS`, `KEYS`, `SIZE`, `COLUMNS`,
    `SCALE`, `CAUSAL`, `DIAGONAL`, `MASKED`, `PARTED`, `PORTION`; on a GPU `ROW`, and of each operand its
    `OFFSET_Q`, `STEP_Q`, `COPIED_Q` and `CHUNKS_Q`."""

    name = "attention"

    def refuses(self, root: Root) -> str | None:
        """Only `te.attention`."""
        if not isinstance(root.op, te.AttentionOp):
            return "its root is no attention"
        return of_floats(root)

    def grid(self, root: Root, tasks: int) -> list[int]:
        """Leading loops and rows are cut, columns are not: where the largest part is the least work. Each
        part reads all keys and values of its leading loops."""
        if DYNAMIC in root.parallel:
            return leading_parts(root, tasks, whole_rows=True)
        return cut(root, tasks, lambda lead, rows: lead * (math.ceil(rows / 4) * 4 + 6))

    def refuses_grid(self, root: Root, grid: Sequence[int]) -> str | None:
        """Columns stay whole, and leading loops before one that is cut are cut into single elements."""
        loops = Loops.of(root)
        *lead, _, across = (int(n) for n in loops.by_loop(grid))
        if across > 1:
            return "a row stays whole: the last dimension cannot be cut"
        cut = max((d for d, n in enumerate(lead) if n > 1), default=0)
        if lead[:cut] != loops.lead[:cut]:
            return f"grid {list(grid)}: leading dimensions before the last that is cut are single elements"
        return None

    def operations(self, root: Root, rows: int) -> float:
        """Products of queries and keys, and of weights and values."""
        loops = Loops.of(root)
        known = [rows if s == DYNAMIC else s for s in loops.sizes[:-1]]
        return 2.0 * math.prod(known) * loops.keys * (loops.size + loops.columns)

    def bind(self, binder: Binder) -> None:
        """Operands are read through what is fused before them."""
        if not isinstance(binder.root.op, te.AttentionOp):
            raise UnsupportedError("an attention of another root")
        loops, op = Loops.of(binder.root), binder.root.op
        element = tensor_type(op.y).element_type
        _part(binder, loops)
        numbers = {
            "ROWS": max(loops.sizes[-2], 0),
            "KEYS": loops.keys,
            "SIZE": loops.size,
            "COLUMNS": loops.columns,
            "CAUSAL": int(op.diagonal is not None),
            "DIAGONAL": op.diagonal or 0,
            "MASKED": int(op.mask is not None or loops.ragged),
            "PARTED": int(op.count is not None),
        }
        for name, number in numbers.items():
            binder.literal(name, number)
        binder.binding.names["SCALE"] = literal(op.factor, element)
        exact = not may_be_approximate(op)
        binder.binding.names["EXP"] = (
            "math.exp" if exact else APPROXIMATE[math_dialect.ExpOp, element]
        )
        for placeholder, value, row in (
            ("LOAD_Q", op.query, "i"),
            ("LOAD_K", op.key, loops.place),
            ("LOAD_V", op.value, loops.place),
        ):
            printer = ElementPrinter()
            name = "i" if row == "i" else "j"
            if row not in ("i", "j"):
                row = printer.name(f"min({row}, {loops.every - 1})" if loops.ragged else row)
            where = (*_lead_index(printer, loops, value), row, "e")
            printer.line(f"return {printer.element(value, where)}")
            arguments = f"{binder.binding.operands}, b, {name}, e"
            binder.binding.function(placeholder, arguments, printer.lines)
        _score(binder, loops)
        # A part of the keys that sees none has no weights to divide by.
        seen_none = " if total != 0 else total" if op.count is not None else ""
        binder.binding.function("PORTION", "sums, total", [f"return sums / total{seen_none}"])
        _store(binder, loops)
        if binder.target == "cuda":
            _memory(binder, loops)
            _row(binder)


def cut(root: Root, tasks: int, work_of: Callable[[int, int], float]) -> list[int]:
    """The grid of at most `tasks` parts in which the largest, of so many leading elements and rows, is the
    least work; of those that are alike, the one with the fewest parts."""
    loops = Loops.of(root)
    return loops.by_dimension(cut_rows(loops.lead, loops.sizes[-2], tasks, work_of))


def cut_rows(
    leading: Sequence[int], rows: int, tasks: int, work_of: Callable[[int, int], float]
) -> list[int]:
    """The same by loops: those of leading dimensions, of rows, and of what is not cut."""
    best, least = [1] * (len(leading) + 2), (math.inf, 0)
    for lead in _leading_cuts(leading, tasks):
        longest = math.prod(math.ceil(s / n) for s, n in zip(leading, lead, strict=True))
        parts = {math.ceil(rows / n): n for n in range(min(rows, tasks // math.prod(lead)), 0, -1)}
        for height, n in parts.items():
            found = (work_of(longest, height), math.prod(lead) * n)
            if found < least:
                best, least = [*lead, n, 1], found
    return best


def _leading_cuts(sizes: Sequence[int], tasks: int) -> list[list[int]]:
    """Ways to cut leading loops into at most `tasks` parts: single elements up to one loop, parts of that."""
    found: list[list[int]] = [[1] * len(sizes)]
    for d, size in enumerate(sizes):
        whole = list(sizes[:d])
        room = tasks // max(math.prod(whole), 1)
        parts = {math.ceil(size / n): n for n in range(min(size, room), 1, -1)}
        found += [[*whole, n, *(1,) * (len(sizes) - d - 1)] for n in parts.values()]
        if math.prod(sizes[: d + 1]) > tasks:
            break
    return found


def _part(binder: Binder, loops: Loops) -> None:
    """`PART(task, tasks, rows)`: this rTask's leading elements b0 to b1, flattened, and rows i0 to i1."""
    grid = grid_of(binder.op, binder.root)
    lines = part_lines(grid, loops.sizes, loops.order)
    if loops.op.diagonal is not None and DYNAMIC not in loops.sizes:
        # Later rows see more keys.
        rows = loops.order.index(len(grid) - 2)
        binder.binding.longest = Longest.of(grid, rows)
    binder.binding.function("PART", "task, tasks, rows", lines)


def part_lines(grid: Sequence[int], sizes: Sequence[int], order: Sequence[int] = ()) -> list[str]:
    """The body of `PART`, of a grid by dimension of the result; dimension d is loop order[d], or loop d, and
    `sizes` are extents by loop."""
    order = order or range(len(grid))
    steps = [math.prod(grid[d + 1 :]) for d in range(len(grid))]
    places = [list(order).index(loop) for loop in range(len(grid))]
    counts, steps = [grid[p] for p in places], [steps[p] for p in places]
    lead = sizes[:-2]
    lines: list[str] = []
    cells = [f"(task // {s}) % {n}" if n > 1 else "0" for n, s in zip(counts, steps, strict=True)]
    axis = max((d for d, n in enumerate(counts[:-2]) if n > 1), default=0)
    outer = "0"
    for d in range(axis):
        outer = f"({outer}) * {lead[d]} + {cells[d]}"
    if not lead:
        lines.append("b0, b1 = 0, 1")
    else:
        size = "rows" if lead[axis] == DYNAMIC else str(lead[axis])
        inner = math.prod(lead[axis + 1 :])
        lines.append(f"n = {cells[axis]}")
        lines.append(f"outer = {outer}")
        lines.append(f"b0 = (outer * {size} + ({size} * n) // {counts[axis]}) * {inner}")
        lines.append(f"b1 = (outer * {size} + ({size} * (n + 1)) // {counts[axis]}) * {inner}")
    size = "rows" if sizes[-2] == DYNAMIC else str(sizes[-2])
    lines.append(f"m = {cells[-2]}")
    lines.append(f"i0 = ({size} * m) // {counts[-2]}")
    lines.append(f"i1 = ({size} * (m + 1)) // {counts[-2]}")
    lines.append("return b0, b1, i0, i1")
    return lines


def _lead_index(printer: ElementPrinter, loops: Loops, value: SSAValue) -> Index:
    """Where leading element b is in the leading dimensions of an operand, which broadcast."""
    names = delinearised("b", loops.lead)
    if loops.op.count is not None:
        names = names[:-1]
    lead = tensor_type(value).get_shape()[:-2]
    own = names[len(names) - len(lead) :]
    return tuple("0" if s == 1 else printer.name(n) for s, n in zip(lead, own, strict=True))


def _score(binder: Binder, loops: Loops) -> None:
    """`SCORE(OPERANDS, b, i, j, s)`: a score with its mask."""
    printer, mask = ElementPrinter(), loops.op.mask
    text = "s"
    lowest = f"{binder.binding.names['FLOAT']}(-math.inf)"
    key = "j" if loops.op.count is None else printer.name(loops.place)
    # Behind the last key the mask is not read.
    inside = printer.name(f"min({key}, {loops.every - 1})") if loops.ragged else key
    if mask is not None:
        t = tensor_type(mask)
        padded = (1, 1, *t.get_shape())[-2:]
        last = ["0" if s == 1 else n for s, n in zip(padded, ("i", inside), strict=True)]
        where = (*_lead_index(printer, loops, mask), *last)[-t.get_num_dims() :]
        element = printer.element(mask, where if t.get_num_dims() else ())
        text = f"s if {element} else {lowest}" if t.element_type == i1 else f"s + {element}"
    if loops.ragged:
        text = f"({text}) if {key} < {loops.every} else {lowest}"
    printer.line(f"return {text}")
    binder.binding.function("SCORE", f"{binder.binding.operands}, b, i, j, s", printer.lines)


def _store(binder: Binder, loops: Loops) -> None:
    """`STORE(OPERANDS, b, i, e, acc)`: an element of the result, in its order."""

    def index(printer: ElementPrinter) -> Index:
        lead = [printer.name(n) for n in delinearised("b", loops.lead)]
        by_loop = [*lead, "i", "e"]
        return tuple(by_loop[loop] for loop in loops.order)

    binder.store("b, i, e, acc", index, binder.accumulated)


def _memory(binder: Binder, loops: Loops) -> None:
    """Of each operand whether it can be copied from memory (COPIED), and then its pointer, where its rows of
    leading element b start, how far they are from one another, and whether they can be read 16 bytes at once
    (CHUNKS)."""
    op = loops.op
    for letter, name, value, rows in zip(
        "QKV", ("QUERY", "KEY", "VALUE"), op.operands, rows_of(op), strict=False
    ):
        printer = ElementPrinter()
        rows = None if loops.ragged else rows
        if rows is None:
            printer.line("return 0")
        else:
            names = [f"{n} * {f}" for n, f in _own(printer, loops, value, rows.lead) if f]
            if op.count is not None and letter != "Q":
                names.append(f"(b % {op.count}) * {loops.keys * rows.step}")
            printer.line(f"return {' + '.join([str(rows.offset), *names])}")
        binder.binding.function(f"OFFSET_{letter}", "b", printer.lines)
        binder.binding.names[name] = "p0" if rows is None else f"p{rows.source.index}"
        width = 16 // numpy_dtype(rows.element).itemsize if rows is not None else 0
        for number, given in {
            "STEP": 0 if rows is None else rows.step,
            "COPIED": int(rows is not None),
            "CHUNKS": int(rows is not None and rows.together >= width),
        }.items():
            binder.literal(f"{number}_{letter}", given)


def _own(
    printer: ElementPrinter, loops: Loops, value: SSAValue, factors: Sequence[int]
) -> list[tuple[str, int]]:
    """The index of leading element b in an operand's leading dimensions, and a factor for each."""
    return list(zip(_lead_index(printer, loops, value), factors, strict=True))


def _row(binder: Binder) -> None:
    """`ROW(OPERANDS, staged, place, b, i, lane)`: a warp computes row i, in SIZE + COLUMNS elements of shared
    memory at staged[place]."""
    binder.binding.part("ROW", "irkit.rkernels.cuda.attention_row", "attention_row")
