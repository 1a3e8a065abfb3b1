"""`attention_gradient`: gradients of queries, or of keys and values, of an attention.

Rows of one side, the outer one, are cut into parts; each meets all rows of the other, the inner one. For the
gradient of queries the outer side has queries and cotangents and the inner one keys and values; for that of
keys and values it is the other way round. So both gradients have the same templates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from irkit.dialects import te
from irkit.dialects.access_boxes import grid_of
from irkit.dialects.attention_gradient import AttentionGradientOp
from irkit.dialects.roperator_root import Root
from irkit.dialects.tensor_ops.interface import Index
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.rkernels.approximations import APPROXIMATE, may_be_approximate
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.elements import ElementPrinter, delinearised, literal
from irkit.rkernels.binding.longest import Longest
from irkit.rkernels.families.attention import cut_rows, part_lines
from irkit.rkernels.families.attention_rows import in_words, rows_of
from irkit.rkernels.family import Family, leading_parts, of_floats
from irkit.rkernels.work import Part, Work, work


@dataclass(frozen=True)
class Sides:
    """The two sides of a gradient: extents of `lead` (batch, heads), and of outer and inner rows."""

    op: AttentionGradientOp

    @staticmethod
    def of(root: Root) -> Sides:
        """Of a root that the family takes."""
        assert isinstance(root.op, AttentionGradientOp)
        return Sides(root.op)

    @property
    def of_keys(self) -> bool:
        """Whether the outer rows are keys."""
        return isinstance(self.op, te.AttentionKeyGradientOp)

    @cached_property
    def sizes(self) -> list[int]:
        """Extents of lead, outer rows and what is stored of each."""
        return list(tensor_type(self.op.y).get_shape())

    @property
    def lead(self) -> list[int]:
        """Extents of the leading loops."""
        return self.sizes[:-2]

    @property
    def others(self) -> int:
        """Inner rows."""
        inner = self.op.query if self.of_keys else self.op.key
        return tensor_type(inner).get_shape()[-2]

    @property
    def size(self) -> int:
        """Elements of a query."""
        return tensor_type(self.op.query).get_shape()[-1]

    @property
    def columns(self) -> int:
        """Elements of a value."""
        return tensor_type(self.op.value).get_shape()[-1]

    @property
    def second(self) -> int:
        """Elements of the second sum of an outer row: of keys, or of cotangents."""
        return self.columns if self.of_keys else self.size

    @property
    def operands(self) -> tuple[tuple[str, SSAValue, str], ...]:
        """(placeholder, operand, its row) of both sides."""
        op = self.op
        queries = (op.query, op.cotangent)
        keys = (op.key, op.value)
        outer, inner = (keys, queries) if self.of_keys else (queries, keys)
        return (
            ("LOAD_X", outer[0], "i"),
            ("LOAD_XX", outer[1], "i"),
            ("LOAD_Y", inner[0], "j"),
            ("LOAD_YY", inner[1], "j"),
        )


def met(part: Part) -> tuple[float, float, float]:
    """Leading elements and outer rows of a part, and how many inner ones a row meets on average, in the part
    whose rows meet the most."""
    sides = Sides.of(part.root)
    *lead, rows, _ = part.sizes
    others, diagonal = float(sides.others), sides.op.diagonal
    if diagonal is not None and not sides.of_keys:
        last = min(others, max(1.0, sides.sizes[-2] + diagonal))
        others = (min(others, max(1.0, last - rows)) + last) / 2
    elif diagonal is not None:
        first = min(others, max(1.0, others + diagonal))
        others = (first + min(others, max(1.0, first - rows))) / 2
    return math.prod(lead), rows, others


def score(part: Part) -> Work:
    """What it takes to have one score's mask and its exponential."""
    op = Sides.of(part.root).op
    power = work(approximate=part.lanes) if may_be_approximate(op) else work(exp=1)
    return power if op.mask is None else power + part.load(op.mask)


def read(part: Part) -> Work:
    """What it takes to have an inner row."""
    sides = Sides.of(part.root)
    _, _, (_, first, _), (_, second, _) = sides.operands
    return part.load(first) * sides.size + part.load(second) * sides.columns


class AttentionGradient(Family):
    """`PART`, `LOAD_X`, `LOAD_XX`, `LOAD_Y`, `LOAD_YY`, `LOAD_S`, `SCORE`, `EXP`, `PORTION`, `STORE`; `ROWS`,
    `OTHERS`, `SIZE`, `COLUMNS`, `SECOND`, `SCALE`, `CAUSAL`, `DIAGONAL`, `MASKED`, `OF_KEYS`; on a GPU `ROW`,
    `FETCH_X`, `FETCH_XX`, `FETCH_Y`, `FETCH_YY`, `FETCH_S`, and `X`, `XX`, `Y`, `YY`, which these read."""

    name = "attention_gradient"

    def refuses(self, root: Root) -> str | None:
        """Only gradients of attention."""
        if not isinstance(root.op, AttentionGradientOp):
            return "its root is no gradient of an attention"
        return of_floats(root)

    def grid(self, root: Root, tasks: int) -> list[int]:
        """Leading loops and outer rows are cut, what is stored of a row is not."""
        if DYNAMIC in root.parallel:
            return leading_parts(root, tasks, whole_rows=True)
        sides = Sides.of(root)
        return cut_rows(sides.lead, sides.sizes[-2], tasks, lambda lead, rows: lead * (rows + 6))

    def refuses_grid(self, root: Root, grid: Sequence[int]) -> str | None:
        """Rows stay whole, and leading loops before one that is cut are cut into single elements."""
        sides = Sides.of(root)
        *lead, _, across = grid
        if across > 1:
            return "a row stays whole: the last dimension cannot be cut"
        cut = max((d for d, n in enumerate(lead) if n > 1), default=0)
        if list(lead[:cut]) != sides.lead[:cut]:
            return f"grid {list(grid)}: leading dimensions before the last that is cut are single elements"
        return None

    def operations(self, root: Root, rows: int) -> float:
        """Scores, their cotangents, and two sums."""
        sides = Sides.of(root)
        known = [rows if s == DYNAMIC else s for s in sides.sizes[:-1]]
        each = 2 * sides.size + sides.columns + sides.second
        return 2.0 * math.prod(known) * sides.others * each

    def bind(self, binder: Binder) -> None:
        """Operands are read through what is fused before them."""
        sides, op = Sides.of(binder.root), Sides.of(binder.root).op
        element = tensor_type(op.y).element_type
        grid = grid_of(binder.op, binder.root)
        lines = part_lines(grid, sides.sizes)
        if op.diagonal is not None and DYNAMIC not in sides.sizes:
            # Later queries see more keys, and later keys are seen by fewer queries.
            binder.binding.longest = Longest.of(grid, len(grid) - 2, last=not sides.of_keys)
        binder.binding.function("PART", "task, tasks, rows", lines)
        for name, number in {
            "ROWS": max(sides.sizes[-2], 0),
            "OTHERS": sides.others,
            "SIZE": sides.size,
            "COLUMNS": sides.columns,
            "SECOND": sides.second,
            "CAUSAL": int(op.diagonal is not None),
            "DIAGONAL": op.diagonal or 0,
            "MASKED": int(op.mask is not None),
            "OF_KEYS": int(sides.of_keys),
        }.items():
            binder.literal(name, number)
        binder.binding.names["SCALE"] = literal(op.factor, element)
        exact = not may_be_approximate(op)
        binder.binding.names["EXP"] = (
            "math.exp" if exact else APPROXIMATE[math_dialect.ExpOp, element]
        )
        operands = binder.binding.operands
        for placeholder, value, row in sides.operands:
            printer = ElementPrinter()
            where = (*_lead_index(printer, sides, value), row, "e")
            printer.line(f"return {printer.element(value, where)}")
            binder.binding.function(placeholder, f"{operands}, b, {row}, e", printer.lines)
        _sums(binder, sides)
        _score(binder, sides)
        binder.binding.function("PORTION", "sums, total", ["return sums / total"])

        def index(printer: ElementPrinter) -> Index:
            return (*(printer.name(n) for n in delinearised("b", sides.lead)), "i", "e")

        binder.store("b, i, e, acc", index, binder.accumulated)
        if binder.target == "cuda":
            _memory(binder, sides)
            binder.binding.part("ROW", f"{_TEMPLATES}_row", "attention_gradient_row")


_TEMPLATES = "irkit.rkernels.cuda.attention_gradient"


def _memory(binder: Binder, sides: Sides) -> None:
    """`FETCH_X(OPERANDS, staged, place, b, first, last, rows, depth, row, thread, threads, vector)`: a block
    brings rows from `first` on, those before `last`, to staged[place], `row` elements apart and `depth` of
    each. `FETCH_S(OPERANDS, staged, place, b, first, last, rows, thread, threads)`: both sums of queries."""
    op, names = sides.op, binder.binding.names
    known = dict(zip(op.operands, rows_of(op, 5 if sides.of_keys else 4), strict=False))
    given = [(p.removeprefix("LOAD_"), value) for p, value, _ in sides.operands]
    if isinstance(op, te.AttentionKeyGradientOp):
        given.append(("S", op.sums))
    before = dict(names)
    for letter, value in given:
        # 16-bit floats are widened where they are read.
        rows, printer = known[value] if in_words(known[value]) else None, ElementPrinter()
        extent = tensor_type(value).get_shape()[-1]
        if rows is None:
            printer.line("return 0")
        else:
            index = zip(_lead_index(printer, sides, value), rows.lead, strict=True)
            parts = [f"{n} * {f}" for n, f in index if f]
            printer.line(f"return {' + '.join([str(rows.offset), *parts])}")
        binder.binding.needed(f"OFFSET_{letter}", "b", printer.lines)
        source = "p0" if rows is None else f"p{rows.source.index}"
        names |= {
            "OFFSET": names[f"OFFSET_{letter}"],
            "LOAD": names[f"LOAD_{letter}"],
            "SOURCE": source,
            "EXTENT": str(sides.size if letter == "S" else extent),
            "STEP": str(0 if rows is None else rows.step),
            "COPIED": str(int(rows is not None)),
            "CHUNKS": str(int(rows is not None and rows.together >= 4)),
        }
        function = "attention_gradient_sums" if letter == "S" else "attention_gradient_rows"
        binder.binding.part(f"FETCH_{letter}", f"{_TEMPLATES}_copies", function)
        # It alone calls the other.
        parts = binder.binding.parts
        parts[f"FETCH_{letter}"] = f"{parts.pop(f'OFFSET_{letter}')}\n{parts[f'FETCH_{letter}']}"
        before |= {letter: source, f"FETCH_{letter}": names[f"FETCH_{letter}"]}
    if not sides.of_keys:
        binder.binding.needed(
            "FETCH_S", "staged, place, b, first, last, rows, thread, threads", ["return"]
        )
        before["FETCH_S"] = names["FETCH_S"]
    names.clear()
    names |= before


def _lead_index(printer: ElementPrinter, sides: Sides, value: SSAValue) -> Index:
    """Where leading element b is in the leading dimensions of an operand, which broadcast."""
    names = delinearised("b", sides.lead)
    lead = tensor_type(value).get_shape()[:-2]
    own = names[len(names) - len(lead) :]
    return tuple("0" if s == 1 else printer.name(n) for s, n in zip(lead, own, strict=True))


def _sums(binder: Binder, sides: Sides) -> None:
    """`LOAD_S(OPERANDS, b, j, e)`: what the gradient of the queries says of row j, where it is read."""
    op, printer = sides.op, ElementPrinter()
    if isinstance(op, te.AttentionKeyGradientOp):
        where = (*_lead_index(printer, sides, op.sums), "j", "e")
        printer.line(f"return {printer.element(op.sums, where)}")
    else:
        printer.line(f"return {binder.binding.names['FLOAT']}(0)")
    binder.binding.function("LOAD_S", f"{binder.binding.operands}, b, j, e", printer.lines)


def _score(binder: Binder, sides: Sides) -> None:
    """`SCORE(OPERANDS, b, i, j, s)`: the score of query i and key j with its mask."""
    printer, mask = ElementPrinter(), sides.op.mask
    text = "s"
    if mask is not None:
        t = tensor_type(mask)
        padded = (1, 1, *t.get_shape())[-2:]
        last = ["0" if s == 1 else n for s, n in zip(padded, "ij", strict=True)]
        where = (*_lead_index(printer, sides, mask), *last)[-t.get_num_dims() :]
        element = printer.element(mask, where if t.get_num_dims() else ())
        lowest = f"{binder.binding.names['FLOAT']}(-math.inf)"
        text = f"s if {element} else {lowest}" if t.element_type == i1 else f"s + {element}"
    printer.line(f"return {text}")
    binder.binding.function("SCORE", f"{binder.binding.operands}, b, i, j, s", printer.lines)
