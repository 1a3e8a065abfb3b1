"""`PACK`: columns of B into a panel, windows and padding resolved (docs/emission.md)."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from irkit.dialects.linalg_generic import maps
from irkit.dialects.products import Product, Window, padding_of, windows
from irkit.dialects.types import tensor_type
from irkit.errors import UnsupportedError
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.elements import ElementPrinter, delinearised, strides
from irkit.rkernels.binding.groups import groups


@dataclass
class _Text:
    """Lines of a function under construction."""

    lines: list[str] = field(default_factory=list[str])
    depth: int = 0
    pairs: bool = False

    def row(self, k: str) -> str:
        """Where term `k` of the first column is."""
        return f"({k}) // 2 * 2 * width + ({k}) % 2" if self.pairs else f"({k}) * width"

    def place(self, i: str) -> str:
        """How far column `i` is from the first."""
        return f"({i}) * 2" if self.pairs else i

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def block(self, head: str) -> Generator[None]:
        self.line(head)
        self.depth += 1
        yield
        self.depth -= 1


def pack(b: Binder, product: Product, pairs: bool = False) -> None:
    """`PACK(OPERANDS, b, l, c, count, panel, width)`: columns c.. of B into panel[k * width + i].

    In `pairs`, terms 2n and 2n + 1 of a column lie side by side.
    """
    names: dict[int, str] = {}
    for letter, dims in groups(product).items():
        if letter in "bl":
            parts = delinearised(letter, product.extents(dims))
            names |= {d: f"({p})" for d, p in zip(dims, parts, strict=True)}
    names |= {d: f"k{n}" for n, d in enumerate(product.k)}
    text, found = _Text(pairs=pairs), windows(product)
    if found is None:
        _pack_elements(b, product, text, names)
    else:
        packer = _Packer(product, text, names, f"p{found[0].index}", found[1])
        packer.strides = strides(tensor_type(found[0]).get_shape())
        packer.pack()
    text.line("return")
    arguments = f"{b.binding.operands}, b, l, c, count, panel, width"
    b.binding.function("PACK", arguments, text.lines)


def column_step(product: Product, source: SSAValue, windows: list[Window]) -> int | None:
    """Distance of neighbouring columns of an operand in memory, if it is one and nothing is padded."""
    return _column_step(product, windows, strides(tensor_type(source).get_shape()))


def _column_step(product: Product, windows: list[Window], strides: list[int]) -> int | None:
    if any(w.guarded for w in windows):
        return None
    step = _factor(strides, windows, product.columns[-1])
    whole = step
    for d in reversed(product.columns):
        if product.sizes[d] != 1 and _factor(strides, windows, d) != whole:
            return None
        whole *= product.sizes[d]
    return step


def _factor(strides: list[int], windows: list[Window], loop: int) -> int:
    """By how many elements one step of a loop moves."""
    return sum(s * w.factors.get(loop, 0) for s, w in zip(strides, windows, strict=True))


@contextmanager
def _k_loops(product: Product, text: _Text) -> Generator[None]:
    """Loops over k; `at` is where the panel's row begins."""
    depth, position = text.depth, "0"
    for n, size in enumerate(product.extents(product.k)):
        text.line(f"for k{n} in range({size}):")
        text.depth += 1
        position = f"k{n}" if n == 0 else f"({position}) * {size} + k{n}"
    text.line(f"at = {text.row(position)}")
    yield
    text.depth = depth


def _pack_elements(b: Binder, product: Product, text: _Text, names: dict[int, str]) -> None:
    """Element by element: for an operand that is computed."""
    with _k_loops(product, text), text.block("for i in range(count):"):
        printer = ElementPrinter(lines=text.lines, indent=text.depth)
        column = printer.name("c + i")
        where = [printer.name(p) for p in delinearised(column, product.extents(product.columns))]
        known = names | dict(zip(product.columns, where, strict=True))
        loops = tuple(known.get(d, "0") for d in range(len(product.sizes)))
        bound = tuple(printer.name(i) for i in loops)
        index = tuple(printer.affine(e, bound) for e in maps(product.op)[product.b].results)
        element = printer.element(product.op.inputs[product.b], index)
        text.line(f"panel[at + {text.place('i')}] = {element}")


@dataclass
class _Packer:
    """Prints the packing of an operand in memory. `names` has every loop but the columns."""

    product: Product
    text: _Text
    names: dict[int, str]
    pointer: str
    windows: list[Window]
    strides: list[int] = field(default_factory=list[int])

    def pack(self) -> None:
        """By runs as long as the operand allows."""
        step = _column_step(self.product, self.windows, self.strides)
        if step is None:
            self._segments()
        elif step != 1 and len(self.product.k) == 1 and self._factor(self.product.k[0]) == 1:
            self._transposed(step)
        else:
            with _k_loops(self.product, self.text):
                self.text.line(f"base = {self._address(self.names)} + c * {step}")
                with self.text.block("for i in range(count):"):
                    place = self.text.place("i")
                    self.text.line(f"panel[at + {place}] = {self.pointer}[base + i * {step}]")

    def _transposed(self, step: int) -> None:
        """B lies column by column: read along k."""
        names = {d: n for d, n in self.names.items() if d not in self.product.k}
        with self.text.block("for i in range(count):"):
            self.text.line(f"base = {self._address(names)} + (c + i) * {step}")
            with self.text.block(f"for k in range({self.product.extent(self.product.k)}):"):
                place = f"{self.text.row('k')} + {self.text.place('i')}"
                self.text.line(f"panel[{place}] = {self.pointer}[base + k]")

    def _factor(self, loop: int) -> int:
        """By how many elements one step of a loop moves."""
        return _factor(self.strides, self.windows, loop)

    def _address(self, names: dict[int, str]) -> str:
        """Position of the element at these loops, as far as they are named."""
        terms = [f"{n} * {f}" for d, n in names.items() if (f := self._factor(d))]
        offset = sum(s * w.offset for s, w in zip(self.strides, self.windows, strict=True))
        return " + ".join([*terms, str(offset)])

    def _inside(self, window: Window, names: dict[int, str]) -> str:
        terms = [f"{n} * {window.factors[d]}" for d, n in names.items() if d in window.factors]
        return " + ".join([*terms, str(window.offset)])

    def _segments(self) -> None:
        """Row by row of the output: what lies outside the operand is zero."""
        columns, text, fill = self.product.columns, self.text, padding_of(self.product)
        width = self.product.sizes[columns[-1]]
        across = [w for w in self.windows if columns[-1] in w.factors]
        if len(across) != 1:
            raise UnsupportedError("a product whose last column moves several dimensions")
        with _k_loops(self.product, text):
            text.line("i = 0")
            with text.block("while i < count:"):
                text.line(f"row = (c + i) // {width}")
                text.line(f"x = c + i - row * {width}")
                text.line(f"n = min({width} - x, count - i)")
                parts = delinearised("row", self.product.extents(columns[:-1]))
                outer = dict(zip(columns[:-1], (f"({p})" for p in parts), strict=True))
                names = self.names | outer
                self._bounds(across[0], names)
                step = self._factor(columns[-1])
                text.line(f"base = {self._address(names)} + x * {step}")
                with text.block("for t in range(first):"):
                    text.line(f"panel[at + {text.place('i + t')}] = {fill}")
                with text.block("for t in range(first, last):"):
                    text.line(
                        f"panel[at + {text.place('i + t')}] = {self.pointer}[base + t * {step}]"
                    )
                with text.block("for t in range(last, n):"):
                    text.line(f"panel[at + {text.place('i + t')}] = {fill}")
                text.line("i += n")

    def _bounds(self, across: Window, names: dict[int, str]) -> None:
        """`first` and `last`: the part of this run of n columns that lies inside the operand."""
        text, step = self.text, across.factors[self.product.columns[-1]]
        text.line("first, last = 0, n")
        if across.guarded:
            text.line(f"off = {self._inside(across, names)}")
            text.line(f"first = min(max(-(off // {step}) - x, 0), n)")
            text.line(f"last = min(max(({across.size - 1} - off) // {step} + 1 - x, first), n)")
        for window in self.windows:
            if window.guarded and window is not across:
                text.line(f"y = {self._inside(window, names)}")
                with text.block(f"if y < 0 or y >= {window.size}:"):
                    text.line("first, last = n, n")
