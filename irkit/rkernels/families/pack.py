"""`pack`: terms of products laid out for tensor cores, group by group of 8 rows."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import f32

from irkit.dialects import te
from irkit.dialects.access_boxes import grid_of
from irkit.dialects.packed_terms import FORMATS, ROWS
from irkit.dialects.roperator_root import Root
from irkit.dialects.tensor_ops.registry import in_memory
from irkit.dialects.types import tensor_type
from irkit.errors import UnsupportedError
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.elements import ElementPrinter, literal
from irkit.rkernels.family import Family


class Pack(Family):
    """`TILES(task)`, `TERMS(OPERANDS, row, k)` of a piece of 16 bytes, pointers `PACKED` and, where it
    can be read in vectors, `X`.

    `GROUPS` (of 8 rows), `TERM_BLOCKS`, `PARTS`, `PIECES` (of a row), `DEPTH` (all terms of a row) and
    `BY_K`: whether terms lie side by side in memory.
    """

    name = "pack"

    def refuses(self, root: Root) -> str | None:
        """Another root, or one that something is computed behind."""
        if not isinstance(root.op, te.PackOp):
            return "its root packs no terms"
        last = root.body.last_op if root.body is not None else None
        if last is not None and list(last.operands) != [root.op.y]:
            return "something is computed behind the packed terms"
        return None

    def grid(self, root: Root, tasks: int) -> list[int]:
        """Groups are shared out first, then blocks."""
        blocks, _, groups, _, _ = root.parallel
        down = min(groups, tasks)
        return [max(1, min(blocks, tasks // down)), 1, down, 1, 1]

    def refuses_grid(self, root: Root, grid: Sequence[int]) -> str | None:
        """Parts, and the terms of a group in a block, stay together."""
        if any(grid[d] != 1 for d in (1, 3, 4)):
            return "a group's terms in a block are packed together: only those two can be cut"
        return None

    def bind(self, binder: Binder) -> None:
        """The operand is read through what is fused before it."""
        op = binder.root.op
        if not isinstance(op, te.PackOp):
            raise UnsupportedError("packed terms of another root")
        blocks, parts, groups, _, _ = binder.root.parallel
        form = FORMATS[op.precision.data]
        binder.binding.names["PACKED"] = binder.binding.pointers[-1]
        for name, value in (
            ("GROUPS", groups), ("PARTS", parts), ("PIECES", form.pieces), ("BY_K", int(op.by_k)),
            ("TERM_BLOCKS", blocks - form.headers), ("DEPTH", op.depth.value.data),
        ):  # fmt: skip
            binder.literal(name, value)
        down = grid_of(binder.op, binder.root)
        lines = [f"across, part = divide(task, {down[2]})"]
        for letter, size, cut, number in (
            ("t", blocks, down[0], "across"),
            ("g", groups, down[2], "part"),
        ):
            lines.append(f"{letter}0 = {size} * {number} // {cut}")
            lines.append(f"{letter}1 = {size} * ({number} + 1) // {cut}")
        binder.binding.function("TILES", "task", [*lines, "return t0, t1, g0, g1"])
        source = in_memory(op.x)
        fours = source is not None and op.by_k and op.depth.value.data % 4 == 0
        # What is no pointer is read element by element.
        found = source is not None and fours and tensor_type(op.x).element_type == f32
        binder.binding.names["X"] = f"p{source.index}" if source is not None and found else ""
        count = form.width // form.pieces
        if binder.binding.names["X"] and binder.op.vector_bytes is not None:
            return _vectors(binder, op, count)
        _terms(binder, op, count)


def _vectors(binder: Binder, op: te.PackOp, count: int) -> None:
    """`TERMS` where four terms lie side by side in memory, all of them inside the matrix or none."""
    rows, terms = op.matrix
    zero, lines, found = literal(0.0, f32), list[str](), list[str]()
    for n in range(0, count, 4):
        lines.append(f"inside{n} = k + {n} < {terms} and row < {rows}")
        place = f"fixed(row * {terms} + k + {n}) if inside{n} else fixed(0)"
        lines.append(f"four{n} = load4({binder.binding.names['X']}, {place})")
        found += [f"four{n}[{i}] if inside{n} else {zero}" for i in range(4)]
    lines.append(f"return ({', '.join(found)},)")
    binder.binding.function("TERMS", f"{binder.binding.operands}, row, k", lines)


def _terms(binder: Binder, op: te.PackOp, count: int) -> None:
    """`TERMS`: `count` terms of a row from the k-th on, zero beyond the matrix."""
    source = tensor_type(op.x)
    rows, terms = op.matrix if op.by_k else reversed(op.matrix)
    printer, found = ElementPrinter(), list[str]()
    whole = rows % ROWS == 0
    row = "row" if whole else printer.name(f"min(row, {rows - 1})")
    zero = literal(0.0, source.element_type)
    # Where pieces are inside or outside as a whole, they begin within.
    aligned = terms % count == 0
    start = printer.name(f"min(k, {terms - count})") if aligned else "k"
    for n in range(count):
        k = f"({start} + {n})" if aligned else printer.name(f"min(k + {n}, {terms - 1})")
        place = (row, k) if op.by_k else (k, row)
        # Read whether it counts or not: what is read where something else is true comes one by one.
        value = printer.name(
            printer.element(op.x, printer.reshaped(place, op.matrix, source.get_shape()))
        )
        inside = f"k + {0 if aligned else n} < {terms}" + ("" if whole else f" and row < {rows}")
        found.append(printer.name(f"{value} if {inside} else {zero}"))
    printer.line(f"return ({', '.join(found)},)")
    binder.binding.function("TERMS", f"{binder.binding.operands}, row, k", printer.lines)
