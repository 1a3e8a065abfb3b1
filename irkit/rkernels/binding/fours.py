"""`FETCH_FOUR` and `STORE_FOUR`: what `FETCH` and `STORE` do, of four neighbours in a row.

What lies side by side in an operand is read by one access, and so are results written: a compiler joins
single accesses by chance, and stores of a warp that are not joined touch each sector of memory four times.
Where operands are not at multiples of 16 bytes, they are four accesses after all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from copy import copy
from dataclasses import dataclass, field, fields

from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, BlockArgument, SSAValue

from irkit.dialects.tensor_ops.interface import Index
from irkit.dialects.types import is_float, tensor_type
from irkit.errors import UnsupportedError
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.elements import ElementPrinter, linear, strides
from irkit.rkernels.binding.inserted import inserted_of
from irkit.rkernels.binding.read_ahead import read_ahead
from irkit.rkernels.binding.scalars import numba_type

TOGETHER = 4
_LANES = ("j", "j1", "j2", "j3")
SUMS = ("a0", "a1", "a2", "a3")
"""What `STORE_FOUR` is given of the root's elements."""


@dataclass
class FourPrinter(ElementPrinter):
    """Prints an element of each lane; what lies side by side in an operand is read at once."""

    vector: int = 0
    numbers: set[int] = field(default_factory=set[int])
    _bound: dict[str, str] = field(default_factory=dict[str, str])

    def _bind(self, expression: str) -> str:
        # Lanes have the index of a row in common, and what is computed of it.
        if expression not in self._bound:
            self._bound[expression] = super()._bind(expression)
        return self._bound[expression]

    def variable(self, start: str, element: Attribute) -> str:
        # Branches of each lane assign to its own.
        text = f"{'bool' if element == i1 else numba_type(element)}({start})"
        return super()._bind(text)

    def beside(self, index: Index, dims: Collection[int]) -> Sequence[Index]:
        lane, by = self.moved_from(index[-1]) if index else ("", 0)
        if lane not in _LANES or len(index) - 1 in dims:
            return [index]
        return [(*index[:-1], self._moved(lane, by)) for lane in _LANES]

    def branch(self, together: bool = False) -> ElementPrinter:
        inner = super().branch()
        if not together:
            # A lane's own: no other reads what it reads.
            return inner
        found = copy(self)
        for one in fields(ElementPrinter):
            setattr(found, one.name, getattr(inner, one.name))
        found._bound = dict(self._bound)
        return found

    def _element(self, value: SSAValue, index: Index) -> str:
        computed = not isinstance(value, BlockArgument) or value in self.known
        if computed or not index:
            return super()._element(value, index)
        lane, by = self.moved_from(index[-1])
        if lane not in _LANES or by % TOGETHER or not _runs(value, index):
            return super()._element(value, index)
        assert isinstance(value, BlockArgument)
        t = tensor_type(value)
        pointer = self.results.get(value.index, f"p{value.index}")
        first = linear((*index[:-1], self._moved(_LANES[0], by)), t.get_shape())
        four = self._bind(f"load_four({pointer}, {first}, {self.vector})")
        for n, lane in enumerate(_LANES):
            text = f"{four}[{n}] != 0" if t.element_type == i1 else f"{four}[{n}]"
            self.remember(value, (*index[:-1], self._moved(lane, by)), self._bind(text))
        self.numbers.add(value.index)
        return self.element(value, index)


def in_vectors(element: Attribute) -> bool:
    """Whether an access of vectors knows elements of this type: of 16 bits it takes all for floats."""
    return is_float(element) or getattr(element, "bitwidth", 64) != 16


def _runs(value: SSAValue, index: Index) -> bool:
    """Whether lanes side by side in the last dimension read a whole four of an operand."""
    t = tensor_type(value)
    shape, steps = t.get_shape(), zip(index[:-1], strides(t.get_shape()), strict=False)
    return (
        in_vectors(t.element_type)
        and shape[-1] % TOGETHER == 0
        and all(i == "0" or step % TOGETHER == 0 for i, step in steps)
    )


def fours(b: Binder, index: Callable[[ElementPrinter], Index], of_sums: bool = False) -> None:
    """`FETCH_FOUR(OPERANDS, r, j)` reads what elements j to j + 3 need of operands, and
    `STORE_FOUR(OPERANDS, r, j, known)`, to which that is given, does the rest; or if `of_sums`
    `STORE_FOUR(OPERANDS, r, j, a0, a1, a2, a3)` does all, the root's elements being these. Where rows are no
    whole fours, or cannot be written so, they `STORE` one by one."""
    operands, given = b.binding.operands, ", ".join(SUMS) if of_sums else "known"
    if _written_in_fours(b):
        before, after = _lines(b, index, of_sums)
    else:
        store, sums = b.binding.names["STORE"], [f", {a}" if of_sums else "" for a in SUMS]
        before = ["return ()"]
        after = [f"{store}({operands}, r, j + {n}{a})" for n, a in enumerate(sums)]
    if not of_sums:
        b.binding.needed("FETCH_FOUR", "r, j", before)
    b.binding.needed("STORE_FOUR", f"r, j, {given}", after)


def _written_in_fours(b: Binder) -> bool:
    types = [tensor_type(v) for v in b.op.terminator.values]
    if not b.split or b.last <= 0 or b.last % TOGETHER:
        return False
    if any(
        tuple(t.get_shape()) != b.root.parallel or not in_vectors(t.element_type) for t in types
    ):
        return False
    return all(inserted_of(v) is None for v in b.op.terminator.values)


def _lines(
    b: Binder, index: Callable[[ElementPrinter], Index], of_sums: bool
) -> tuple[list[str], list[str]]:
    """The bodies of `FETCH_FOUR` and `STORE_FOUR`."""
    vector = int(b.op.vector_bytes is not None)
    printer = FourPrinter(results=b.written_over(), vector=vector)
    for n, lane in enumerate(_LANES[1:], 1):
        printer.line(f"{lane} = j + {n}")
    places: list[Index] = [(*index(printer)[:-1], lane) for lane in _LANES]
    if b.root.value is not None:
        printer.known[b.root.value] = dict(zip(places, SUMS, strict=True)).__getitem__
    stores: list[str] = []
    for number, value in enumerate(b.op.terminator.values, len(b.block.args)):
        texts = [_stored(printer, value, place) for place in places]
        first = linear(places[0], b.root.parallel)
        stores.append(f"store_four(p{number}, {first}, {', '.join(texts)}, {vector})")
        b.binding.wide.add(number)
    b.binding.wide |= printer.numbers
    if of_sums:
        return [], [*printer.lines, *stores]
    # What is written in place is read where it is written.
    own = {number for number, _ in b.op.in_place_pairs}
    pointers = {f"p{a.index}" for a in b.block.args if a.index not in own}
    found = read_ahead([*printer.lines, *stores], pointers)
    names = "".join(f"{name}, " for name in found.names)
    lanes = printer.lines[: TOGETHER - 1]
    after = [*([f"{names}= known"] if names else []), *found.after]
    return [*lanes, *found.before, f"return ({names})"], after


def _stored(printer: FourPrinter, value: SSAValue, place: Index) -> str:
    try:
        text = printer.element(value, place)
    except KeyError:
        raise UnsupportedError("an epilogue that reads another element of the root") from None
    if tensor_type(value).element_type == i1:
        return printer.name(f"uint8(1) if {text} else uint8(0)")
    return text
