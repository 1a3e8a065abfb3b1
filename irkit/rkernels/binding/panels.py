"""`PACK_A` and `PACK_B`: part of an operand's terms into a panel, windows and padding resolved.

As `packing.py`, but for a range of k, and along whichever loop the operand's elements lie side by side.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import Float64Type
from xdsl.ir import Attribute

from irkit.dialects.linalg_generic import maps
from irkit.dialects.products import Product, Window, windows
from irkit.dialects.tensor_ops.interface import Index
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.elements import ElementPrinter, delinearised, strides
from irkit.rkernels.work import TYPICAL_ROWS

_VECTOR_BYTES = 64
_SHORT = 8
"""Fewer neighbours than a vector has are no run worth while."""


@dataclass(frozen=True)
class Walk:
    """The order in which an operand in memory is copied.

    `along` are the loops that one step of `step` elements moves on in, the last of k or of the columns, as
    `by_k` says; none of them is in a padded dimension unless it is the only one. `outer` are those before.
    """

    by_k: bool
    outer: tuple[int, ...]
    along: tuple[int, ...]
    step: int
    length: int


def _moved(window: Window, names: Mapping[int, str], rest: str) -> str:
    """How far these loops move in a dimension, and `rest`."""
    return " + ".join(
        [*(f"{n} * {window.factors[d]}" for d, n in names.items() if d in window.factors), rest]
    )


def walk_of(product: Product) -> Walk | None:
    """How B is copied; None where it is computed."""
    found = windows(product)
    if found is None:
        return None
    steps = _steps(product)
    columns = _walk(product, False, product.columns, found[1], steps)
    terms = _walk(product, True, product.k, found[1], steps)
    if any(w.guarded and min(w.factors.values(), default=0) < 0 for w in found[1]):
        return None
    if columns.step in (0, 1) and (columns.length >= _SHORT or columns.length >= terms.length):
        return columns
    near = terms.step in (0, 1) and columns.step not in (0, 1)
    longer = terms.length > columns.length and (terms.step in (0, 1) or columns.step not in (0, 1))
    return terms if near or longer else columns


def turns(product: Product, walk: Walk) -> bool:
    """Whether runs of terms become rows of a panel in registers: elements side by side, of the sums' type."""
    found = windows(product)
    assert found is not None
    sums = tensor_type(product.op.results[0]).element_type
    return walk.by_k and walk.step == 1 and tensor_type(found[0]).element_type == sums


def _steps(product: Product) -> list[int]:
    """By how many elements of memory one step of each loop moves."""
    found = windows(product)
    assert found is not None
    each = strides(tensor_type(found[0]).get_shape())
    return [
        sum(s * w.factors.get(loop, 0) for s, w in zip(each, found[1], strict=True))
        for loop in range(len(product.sizes))
    ]


def _walk(
    product: Product, by_k: bool, loops: tuple[int, ...], dims: Sequence[Window], steps: list[int]
) -> Walk:
    padded = {d for w in dims if w.guarded for d in w.factors}
    first, length = len(loops) - 1, _length(product, loops[-1])
    step = steps[loops[-1]]
    while first and not padded & {loops[first], loops[first - 1]}:
        if steps[loops[first - 1]] != step * length:
            break
        first -= 1
        length *= _length(product, loops[first])
    return Walk(by_k, loops[:first], loops[first:], step, length)


def _length(product: Product, loop: int) -> int:
    """Iterations of a loop; of the batch, which nothing stands before, as many as may be."""
    size = product.sizes[loop]
    return TYPICAL_ROWS if size == DYNAMIC else size


def pack_panel(b: Binder, product: Product, placeholder: str, width: int) -> None:
    """`placeholder(OPERANDS, b, l, first, count, k, depth, panel, at)`: terms k.. of columns first.. of B, at
    most `width` of them, so that term k + t of column first + i is panel[at + t * width + i]."""
    text = _Panel(b, product, width)
    walk = walk_of(product)
    text.pack(walk)
    arguments = f"{b.binding.operands}, b, l, first, count, k, depth, panel, at"
    b.binding.function(placeholder, arguments, [*text.lines, "return"])


@dataclass
class _Panel:
    """Prints the function."""

    binder: Binder
    product: Product
    width: int
    lines: list[str] = field(default_factory=list[str])
    depth: int = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def open(self, head: str) -> None:
        self.line(head)
        self.depth += 1

    def pack(self, walk: Walk | None) -> None:
        names = dict[int, str]()
        for letter, dims in (("b", self.product.batch), ("l", self.product.lead)):
            parts = delinearised(letter, self.product.extents(dims))
            names |= {d: f"({p})" for d, p in zip(dims, parts, strict=True)}
        if walk is None:
            self._elements(names)
            return
        terms = ("t", "depth", "k", self.product.k)
        columns = ("i", "count", "first", self.product.columns)
        if turns(self.product, walk):
            self._turn(walk, names)
            return
        inner, other = (terms, columns) if walk.by_k else (columns, terms)
        letter, end, start, loops = other
        self.open(f"for {letter} in range({end}):")
        self.line(f"at_{letter} = {start} + {letter}")
        names |= self._split(f"at_{letter}", loops)
        self._run(walk, inner, names)

    def _split(self, position: str, loops: tuple[int, ...]) -> dict[int, str]:
        """Names of the loops of a group at a position."""
        parts = delinearised(position, self.product.extents(loops))
        found = dict[int, str]()
        for d, part in zip(loops, parts, strict=True):
            found[d] = part
            if not part.isidentifier() and not part.isdigit():
                found[d] = f"x{d}"
                self.line(f"x{d} = {part}")
        return found

    def _run(
        self, walk: Walk, inner: tuple[str, str, str, tuple[int, ...]], names: dict[int, str]
    ) -> None:
        """Run by run along the inner letter."""
        letter, end, start, _ = inner
        found = windows(self.product)
        assert found is not None
        padded = any(w.guarded for w in found[1])
        if not walk.outer and not padded:
            self.line(f"base = {self._address(names)} + {start} * {walk.step}")
            self._copy(walk, letter, "0", end, f"p{found[0].index}")
            return
        self.line("done = 0")
        self.open(f"while done < {end}:")
        if walk.outer:
            self.line(f"run = ({start} + done) // {walk.length}")
            self.line(f"x = {start} + done - run * {walk.length}")
            self.line(f"n = min({walk.length} - x, {end} - done)")
            names = names | self._split("run", walk.outer)
        else:
            self.line(f"x = {start} + done")
            self.line(f"n = {end} - done")
        self.line(f"base = {self._address(names)} + x * {walk.step}")
        if not padded:
            self._copy(walk, letter, "done", "n", f"p{found[0].index}")
        else:
            self._bounds(walk, names, found[1])
            for a, z, source in (
                ("0", "low", ""), ("low", "high", f"p{found[0].index}"), ("high", "n", ""),
            ):  # fmt: skip
                self._part(walk, letter, a, z, source)
        self.line("done += n")

    def _turn(self, walk: Walk, names: dict[int, str]) -> None:
        """Runs of terms of several columns at once, that become rows of the panel in registers.

        Where a column begins, and how far it is in padded dimensions, is kept for all its runs.
        """
        found = windows(self.product)
        assert found is not None
        source, dims = found
        padded = [(f"far{n}", w) for n, w in enumerate(dims) if w.guarded]
        lanes = _VECTOR_BYTES // (8 if isinstance(self._sums(), Float64Type) else 4)
        rows = min(self.width, lanes)
        for kept in ("starts", "begins", "lows", "highs", *(name for name, _ in padded)):
            self.line(f"{kept} = stack_int64({rows})")
        self.open(f"for group in range(0, count, {rows}):")
        self._columns(rows, names, padded)
        self.line("done = 0")
        self.open("while done < depth:")
        outer = dict[int, str]()
        if walk.outer:
            self.line(f"run = (k + done) // {walk.length}")
            self.line(f"x = k + done - run * {walk.length}")
            self.line(f"n = min({walk.length} - x, depth - done)")
            outer = self._split("run", walk.outer)
        else:
            self.line("x = k + done")
            self.line("n = depth - done")
        self.line(f"base = {self._address(outer, False)} + x")
        for name, window in padded:
            moving = "x" if window.factors.get(walk.along[0], 0) else "0"
            self.line(f"{name}_run = {_moved(window, outer, moving)}")
        self.open(f"for part in range(0, n, {lanes}):")
        self.line(f"length = min({lanes}, n - part)")
        place = f"at + (done + part) * {self.width} + group"
        if not padded:
            self.open(f"if length == {lanes}:")
            if math.prod(_length(self.product, d) for d in self.product.columns) > rows:
                self.line(f"expect_runs({rows}, p{source.index}, starts, base + part)")
            self.line(
                f"turn_whole_runs({rows}, {lanes}, {self.width}, panel, {place}, p{source.index}, starts, "
                "base + part)"
            )
            self.line("continue")
            self.depth -= 1
        self.open(f"for i in range({rows}):")
        self.line("begins[i] = starts[i] + base + part")
        self.line("low, high = 0, length")
        for name, window in padded:
            self.line(f"y = {name}[i] + {name}_run")
            if window.factors.get(walk.along[0], 0):
                # Along it an element a term: as many as lie before the first and behind the last.
                self.line("low = max(low, -(y + part))")
                self.line(f"high = min(high, {window.size} - (y + part))")
            else:
                self.line(f"high = high if y >= 0 and y < {window.size} else 0")
        self.line("lows[i] = low")
        self.line("highs[i] = high")
        self.depth -= 1
        self.line(
            f"turn_runs({rows}, {lanes}, {self.width}, panel, {place}, p{source.index}, begins, lows, "
            "highs, length)"
        )
        self.depth -= 1
        self.line("done += n")
        self.depth -= 2

    def _columns(
        self, rows: int, names: dict[int, str], padded: Sequence[tuple[str, Window]]
    ) -> None:
        """Of each column of a group where it begins; behind the last stands that once more."""
        self.open(f"for i in range({rows}):")
        self.line("at_i = first + min(group + i, count - 1)")
        names = names | self._split("at_i", self.product.columns)
        self.line(f"starts[i] = {self._address(names)}")
        for name, window in padded:
            self.line(f"{name}[i] = {_moved(window, names, str(window.offset))}")
        self.depth -= 1

    def _place(self, letter: str, offset: str) -> str:
        if letter == "t":
            return f"panel[at + ({offset}) * {self.width} + i]"
        return f"panel[at + t * {self.width} + {offset}]"

    def _copy(self, walk: Walk, letter: str, offset: str, end: str, source: str) -> None:
        """Runs as long as the panel is wide are whole vectors."""
        if walk.by_k or walk.step != 1 or offset != "0" or not self._as_summed():
            self._part(walk, letter, "0", end, source, offset)
            return
        self.open(f"if {end} == {self.width}:")
        vector = f"load_vector({self.width}, {source}, base)"
        self.line(f"store_vector(panel, at + t * {self.width}, {vector})")
        self.depth -= 1
        self.open("else:")
        self._part(walk, letter, "0", end, source, offset)
        self.depth -= 1

    def _as_summed(self) -> bool:
        """Whether the operand's elements are of the type of the sums."""
        found = windows(self.product)
        assert found is not None
        return tensor_type(found[0]).element_type == self._sums()

    def _sums(self) -> Attribute:
        """The type of the sums."""
        return tensor_type(self.product.op.results[0]).element_type

    def _part(
        self, walk: Walk, letter: str, begin: str, end: str, source: str, offset: str = "done"
    ) -> None:
        """Elements `begin` to `end` of a run; zeros where there is no source."""
        where = "e" if offset == "0" else f"{offset} + e"
        value = f"{source}[base + e * {walk.step}]" if source else "0"
        self.open(f"for e in range({begin}, {end}):")
        self.line(f"{self._place(letter, where)} = {value}")
        self.depth -= 1

    def _address(self, names: dict[int, str], begun: bool = True) -> str:
        """Position of the element at these loops, as far as they are named; if not `begun`, from where the
        others begin."""
        found = windows(self.product)
        assert found is not None
        each, steps = strides(tensor_type(found[0]).get_shape()), _steps(self.product)
        offset = sum(s * w.offset for s, w in zip(each, found[1], strict=True)) if begun else 0
        return " + ".join(
            [*(f"{n} * {steps[d]}" for d, n in names.items() if steps[d]), str(offset)]
        )

    def _bounds(self, walk: Walk, names: dict[int, str], dims: Sequence[Window]) -> None:
        """`low` and `high`: the part of this run of n elements that lies inside the operand."""
        self.line("low, high = 0, n")
        for window in dims:
            if not window.guarded:
                continue
            terms = [f"{n} * {window.factors[d]}" for d, n in names.items() if d in window.factors]
            self.line(f"y = {' + '.join([*terms, str(window.offset)])}")
            moving = window.factors.get(walk.along[0], 0)
            if moving:
                # As many as lie before the first and behind the last element.
                self.line(f"low = max(low, min(n, -(y // {moving}) - x))")
                self.line(f"high = min(high, ({window.size - 1} - y) // {moving} + 1 - x)")
                continue
            self.open(f"if y < 0 or y >= {window.size}:")
            self.line("low, high = n, n")
            self.depth -= 1
        self.line("low = min(low, n)")
        self.line("high = max(high, low)")

    def _elements(self, names: dict[int, str]) -> None:
        """Element by element: for an operand that is computed."""
        self.open("for t in range(depth):")
        self.line("at_t = k + t")
        names = names | self._split("at_t", self.product.k)
        self.open("for i in range(count):")
        printer = ElementPrinter(lines=self.lines, indent=self.depth)
        column = printer.name("first + i")
        where = [
            printer.name(p)
            for p in delinearised(column, self.product.extents(self.product.columns))
        ]
        names |= dict(zip(self.product.columns, where, strict=True))
        loops = tuple(printer.name(names.get(d, "0")) for d in range(len(self.product.sizes)))
        index: Index = tuple(
            printer.affine(e, loops) for e in maps(self.product.op)[self.product.b].results
        )
        element = printer.element(self.product.op.inputs[self.product.b], index)
        self.line(f"panel[at + t * {self.width} + i] = {element}")
