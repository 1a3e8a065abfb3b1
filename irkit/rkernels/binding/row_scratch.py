"""`ROW` on a CPU: what is kept of a row, and the terms of its sums, lie in scratch, row behind row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.ir import Operation, SSAValue

from irkit.dialects.roperator_root import Root
from irkit.dialects.rowwise import RowReduceOp, Sweeps
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.elements import ElementPrinter
from irkit.rkernels.binding.row_sweeps import RowElements, kept, place, sweeps_of
from irkit.rkernels.binding.scalars import numba_type

WIDEST = 8
"""Bytes that an element has in scratch."""
_SUMS = {"add": "row_sum", "max": "row_maximum", "min": "row_minimum"}


def scratch_rows(root: Root) -> int:
    """How many rows lie in scratch: what is kept, and the terms of one sweep."""
    sweeps = sweeps_of(root)
    return len(kept(sweeps)) + max(map(len, sweeps.reductions), default=0)


@dataclass
class ScratchRows:
    """Statements for row `r`."""

    binder: Binder
    sweeps: Sweeps
    lines: list[str] = field(default_factory=list[str])
    _count: list[int] = field(default_factory=lambda: [0])

    def print(self) -> list[str]:
        """All statements."""
        columns = self.sweeps.op.columns
        self._loop = f"for j in range({columns}):"
        self._columns = columns
        self._held = {v: f"h{n}" for n, v in enumerate(kept(self.sweeps))}
        self._there: set[SSAValue] = set()
        self._sums: dict[SSAValue, str] = {}
        for number, (value, name) in enumerate(self._held.items()):
            self._row_at(name, value, number)
        for reductions in self.sweeps.reductions:
            self._sum(reductions)
        (wanted,) = self.sweeps.terms[-1]
        elements = self._sweep([wanted])
        if self.sweeps.op.sums_up:
            return self._stored_row(elements, wanted)
        name, operands = self.binder.binding.names["STORE"], self.binder.binding.operands
        elements.printer.line(f"{name}({operands}, r, j, {elements.of(wanted)})")
        self._take(elements)
        return self.lines

    def _stored_row(self, elements: RowElements, wanted: SSAValue) -> list[str]:
        name, operands = self.binder.binding.names["STORE"], self.binder.binding.operands
        elements.printer.lines.clear()
        value = elements.of(wanted)
        return [*self.lines, *elements.printer.lines, f"{name}({operands}, r, {value})"]

    def _row_at(self, name: str, value: SSAValue, number: int) -> None:
        at = number * self._columns * WIDEST
        self.lines.append(f"{name} = {numba_type(value.type)}p(scratch + {at})")

    def _sum(self, reductions: Sequence[RowReduceOp]) -> None:
        wanted = [op.x for op in reductions]
        rows = {
            op: f"t{len(self._sums) + n}"
            for n, op in enumerate(reductions)
            if op.x not in self._held
        }
        for number, (op, name) in enumerate(rows.items(), len(self._held)):
            self._row_at(name, op.x, number)
        elements = self._sweep(wanted)
        needed = self.sweeps.needed(wanted, self._there)
        # The first sweep reads all that is kept.
        needed |= set() if self._sums else set(self.sweeps.op.body.block.args)
        for value in [v for v in self._held if v in needed and v not in self._there]:
            elements.printer.line(f"{self._held[value]}[j] = {elements.of(value)}")
            self._there.add(value)
        for op, name in rows.items():
            elements.printer.line(f"{name}[j] = {elements.of(op.x)}")
        self._take(elements)
        for op in reductions:
            row = rows.get(op) or self._held[op.x]
            name = f"s{len(self._sums)}"
            # Terms are added to 0, which two zeros without a sign are.
            start = f"{numba_type(op.x.type)}(0.0) + " if op.kind.data == "add" else ""
            self.lines.append(f"{name} = {start}{_SUMS[op.kind.data]}({row}, {self._columns})")
            self._sums[op.y] = name

    def _sweep(self, wanted: Sequence[SSAValue]) -> RowElements:
        """A printer of elements; what is alike in a row stands before their loop."""
        same, before = self.sweeps.same, ElementPrinter(_count=self._count)
        sums = {(value, 0): name for value, name in self._sums.items()}
        alike = RowElements(self.sweeps, before, [place(self.binder, "r", before)], sums)
        every = self.sweeps.needed(wanted, set(self._there)) - self._there
        used = {v for x in every if isinstance(x.owner, Operation) for v in x.owner.operands}
        for value in self.sweeps.in_order((used | set(wanted)) & same):
            alike.of(value)
        self.lines += before.lines
        printer = ElementPrinter(_count=self._count)
        known = {**sums, **alike.made, **{(v, 0): f"{self._held[v]}[j]" for v in self._there}}
        return RowElements(self.sweeps, printer, [place(self.binder, "r", printer)], known)

    def _take(self, elements: RowElements) -> None:
        self.lines += [self._loop, *(f"    {line}" for line in elements.printer.lines)]
