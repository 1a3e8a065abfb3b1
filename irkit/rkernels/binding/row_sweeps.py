"""`ROW`: the sweeps over a row that the body of a `te.rowwise` takes, as statements of either target.

What later sweeps need of an element, and is read from memory or takes long, is kept: on a GPU in registers,
on a CPU in scratch. All else is computed anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import i1
from xdsl.ir import BlockArgument, Operation, SSAValue

from irkit.dialects.roperator_root import Root
from irkit.dialects.rowwise import CHEAP, RowReduceOp, RowwiseOp, Sweeps
from irkit.dialects.tensor_ops.interface import Index
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.elements import ElementPrinter
from irkit.rkernels.binding.fours import FourPrinter
from irkit.rkernels.binding.scalars import COMBINE, numba_type

START = {"add": "0.0", "max": "-math.inf", "min": "math.inf"}
"""What the terms of a sum are added to."""
LANES = ("j", "j1", "j2", "j3")


def sweeps_of(root: Root) -> Sweeps:
    """Of a root that the family takes."""
    assert isinstance(root.op, RowwiseOp)
    return Sweeps(root.op)


def kept(sweeps: Sweeps) -> list[SSAValue]:
    """Values of single elements that are kept from the sweep that has them first; what is read from memory,
    from the first sweep on, so that all of it is on its way together."""
    terms = sweeps.terms
    behind = [v for later in terms[1:] for v in later]
    read = {v for v in sweeps.needed(behind, set()) if isinstance(v, BlockArgument)}
    found: set[SSAValue] = set()
    for number, values in enumerate(terms[:-1]):
        dear = {v for v in sweeps.needed(values, found) if _is_dear(v)} - found
        dear |= {v for v in read if _is_dear(v)} if number == 0 else set()
        behind = [v for later in terms[number + 1 :] for v in later]
        found |= dear & sweeps.needed(behind, dear | found)
    return sweeps.in_order(found)


def _is_dear(value: SSAValue) -> bool:
    # A truth is a byte in memory, and one comparison.
    if value.type == i1:
        return False
    return isinstance(value, BlockArgument) or not isinstance(value.owner, CHEAP)


def place(binder: Binder, row: str, printer: ElementPrinter) -> Index:
    """The index of element j of a row."""
    found = binder.index(row, "j", printer)
    return found if binder.root.family == "rowwise" else (*found, "j")


def combined(kind: str, acc: str, term: str) -> str:
    """The text of a sum and a term together."""
    names = {"acc": acc, "term": term}
    return re.sub(r"\b(acc|term)\b", lambda m: names[m[0]], COMBINE[kind])


@dataclass
class RowElements:
    """Prints what the elements at some places of a row are: `known` are kept ones and sums, by value and
    lane."""

    sweeps: Sweeps
    printer: ElementPrinter
    places: Sequence[Index]
    known: dict[tuple[SSAValue, int], str]
    made: dict[tuple[SSAValue, int], str] = field(default_factory=dict[tuple[SSAValue, int], str])

    def of(self, value: SSAValue, lane: int = 0) -> str:
        """A name of a value of the body, in one lane."""
        # What is alike in a row is computed once.
        lane = 0 if self.sweeps.is_same(value, self.sweeps.same) else lane
        key = (value, lane)
        if key in self.known:
            return self.known[key]
        if key not in self.made:
            self.made[key] = self._compute(value, lane)
        return self.made[key]

    def _compute(self, value: SSAValue, lane: int) -> str:
        op = self.sweeps.op
        if isinstance(value, BlockArgument):
            place, amap = self.places[lane], op.maps[value.index]
            index = tuple(self.printer.affine(e, place) for e in amap.results)
            return self.printer.element(op.inputs[value.index], index)
        inner = value.owner
        assert isinstance(inner, Operation)
        scope = {v: self.of(v, lane) for v in inner.operands}
        return self.printer.name(self.printer.expression(inner, scope, ()))


@dataclass
class RowPrinter:
    """Statements for `rows` rows from `r` on, of which there are none from `end` on.

    `lanes` threads share a row, whose number is `first`; each has `pieces` times `together` neighbours of it,
    or, without `pieces`, reads them anew in each sweep.
    """

    binder: Binder
    sweeps: Sweeps
    lanes: int
    pieces: int
    together: int
    rows: int
    join: Callable[[str, str, int], str]
    """The sum over all lanes: of its kind, of a lane's, and by its number."""
    lines: list[str] = field(default_factory=list[str])
    _count: list[int] = field(default_factory=lambda: [0])

    @property
    def columns(self) -> int:
        """Elements of a row."""
        return self.sweeps.op.columns

    @property
    def guarded(self) -> bool:
        """Whether some of a warp's rows may not be there."""
        return self.rows > 1 or 1 < self.lanes < 32

    def print(self) -> list[str]:
        """All statements."""
        held = kept(self.sweeps) if self.pieces else []
        self._held = {v: f"h{n}" for n, v in enumerate(held)}
        self._sums = {op.y: f"s{n}" for n, op in enumerate(self._every_sum())}
        self._there: set[SSAValue] = set()
        for value, name in self._held.items():
            count = self.rows * self.pieces * self.together
            self._line(0, f"{name} = cuda.local.array({count}, {numba_type(value.type)})")
        for value, name in self._sums.items():
            self._line(0, f"{name} = cuda.local.array({self.rows}, {numba_type(value.type)})")
        if self.lanes > 32 and len(self._sums) == 1:
            # What the warps found of the row before is read before it is written again.
            self._line(0, "cuda.syncthreads()")
        for reductions in self.sweeps.reductions:
            self._sum(reductions)
        self._store()
        return self.lines

    def _every_sum(self) -> list[RowReduceOp]:
        return [op for reductions in self.sweeps.reductions for op in reductions]

    def _line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    # One sweep

    def _sum(self, reductions: Sequence[RowReduceOp]) -> None:
        self._row()
        kinds = [(op, self._sums[op.y].replace("s", "t")) for op in reductions]
        for op, total in kinds:
            start = f"{numba_type(op.y.type)}({START[op.kind.data]})"
            self._line(1, f"{total} = {start}")
        wanted = [op.x for op in reductions]
        self._uniform(wanted)
        depth = self._piece("")
        elements = self._elements(depth)
        self._keep(elements, wanted)
        for op, total in kinds:
            for lane in range(self.together):
                text = combined(op.kind.data, total, elements.of(op.x, lane))
                elements.printer.line(f"{total} = {text}")
        self._take(elements.printer, depth)
        for op, total in kinds:
            self._line(1, f"{self._sums[op.y]}[i] = {total}")
        if self.lanes > 1:
            self._line(0, f"for i in range({self.rows}):")
        for op, _ in kinds if self.lanes > 1 else ():
            name = self._sums[op.y]
            number = int(name[1:])
            self._line(1, f"{name}[i] = {self.join(op.kind.data, f'{name}[i]', number)}")

    def _store(self) -> None:
        (wanted,) = self.sweeps.terms[-1]
        self._row()
        self._uniform([wanted])
        if self.sweeps.op.sums_up:
            return self._store_row(wanted)
        depth = self._piece("r + i < end" if self.guarded else "")
        elements = self._elements(depth)
        values = [elements.of(wanted, lane) for lane in range(self.together)]
        name = self.binder.binding.names["STORE_FOUR" if self.together > 1 else "STORE"]
        given = f"{self.binder.binding.operands}, row, j, {', '.join(values)}"
        elements.printer.line(f"{name}({given})")
        self._take(elements.printer, depth)

    def _store_row(self, wanted: SSAValue) -> None:
        conditions = ["first == 0"] if self.lanes > 1 else []
        conditions += ["r + i < end"] if self.guarded else []
        depth = self._under(1, " and ".join(conditions))
        name, operands = self.binder.binding.names["STORE"], self.binder.binding.operands
        printer = ElementPrinter(_count=self._count)
        value = RowElements(self.sweeps, printer, [()], self._alike).of(wanted)
        printer.line(f"{name}({operands}, row, {value})")
        self._take(printer, depth)

    def _row(self) -> None:
        self._line(0, f"for i in range({self.rows}):")
        # What is not there is read where something is, and not stored.
        self._line(1, "row = min(r + i, end - 1)" if self.guarded else "row = r")

    def _uniform(self, wanted: Sequence[SSAValue]) -> None:
        """What is alike in a row, before its elements."""
        printer = ElementPrinter(_count=self._count)
        index = place(self.binder, "row", printer)
        known: dict[tuple[SSAValue, int], str] = {
            (value, 0): f"{name}[i]" for value, name in self._sums.items()
        }
        elements = RowElements(self.sweeps, printer, [index], known)
        every = self.sweeps.needed(wanted, set(self._held) & self._there)
        used = {
            v
            for value in every - (set(self._held) & self._there)
            if isinstance(value.owner, Operation)
            for v in value.owner.operands
        }
        same = self.sweeps.same
        for value in self.sweeps.in_order((used | set(wanted)) & same):
            elements.of(value)
        self._alike = {**known, **elements.made}
        self._take(printer, 1)

    def _piece(self, more: str) -> int:
        """The head of the loop over the elements of a lane; returns how deep its body is."""
        step = self.together * self.lanes
        first = "first" if self.together == 1 else f"{self.together} * first"
        if not self.pieces:
            start = "0" if self.lanes == 1 else first
            self._line(1, f"for j in range({start}, {self.columns}, {step}):")
            return self._under(2, more)
        self._line(1, f"for n in range({self.pieces}):")
        lane = "n" if self.lanes == 1 else f"n * {self.lanes} + first"
        self._line(2, f"j = {self.together} * ({lane})" if self.together > 1 else f"j = {lane}")
        whole = self.columns % step == 0
        return self._under(
            2, " and ".join(filter(None, [more, "" if whole else f"j < {self.columns}"]))
        )

    def _under(self, depth: int, condition: str) -> int:
        if condition:
            self._line(depth, f"if {condition}:")
        return depth + bool(condition)

    def _elements(self, depth: int) -> RowElements:
        if self.together > 1:
            vector = int(self.binder.op.vector_bytes is not None)
            printer: ElementPrinter = FourPrinter(_count=self._count, vector=vector)
            for n, lane in enumerate(LANES[1:], 1):
                printer.line(f"{lane} = j + {n}")
        else:
            printer = ElementPrinter(_count=self._count)
        index = place(self.binder, "row", printer)
        places = [(*index[:-1], lane) for lane in LANES[: self.together]]
        known = dict(self._alike)
        for value in self._there:
            for lane in range(self.together):
                known[value, lane] = self._slot(value, lane)
        return RowElements(self.sweeps, printer, places, known)

    def _slot(self, value: SSAValue, lane: int) -> str:
        piece = f"i * {self.pieces} + n" if self.rows > 1 else "n"
        place = piece if self.together == 1 else f"({piece}) * {self.together} + {lane}"
        return f"{self._held[value]}[{place}]"

    def _keep(self, elements: RowElements, wanted: Sequence[SSAValue]) -> None:
        needed = self.sweeps.needed(wanted, self._there)
        # The first sweep reads all that is kept.
        needed |= set() if self._there else set(self.sweeps.op.body.block.args)
        for value in self._held:
            if value in self._there or value not in needed:
                continue
            for lane in range(self.together):
                elements.printer.line(f"{self._slot(value, lane)} = {elements.of(value, lane)}")
            self._there.add(value)

    def _take(self, printer: ElementPrinter, depth: int) -> None:
        for line in printer.lines:
            self._line(depth, line)
        if isinstance(printer, FourPrinter):
            self.binder.binding.wide |= printer.numbers
