"""How the elements of a result are stored that slices were inserted into.

Of the slices the largest has loops of its own, in which nothing is asked that holds for all of it (index set
splitting: Banerjee, Loop Transformations for Restructuring Compilers, 1993). Where a result is written over
what was inserted into, what lies outside of all slices is there already, and is not stored.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import i1
from xdsl.dialects.tensor import InsertSliceOp
from xdsl.ir import SSAValue

from irkit.dialects.tensor_ops.interface import Index
from irkit.dialects.tensor_ops.slices import inserted_index, insertion_guards
from irkit.dialects.types import ints, tensor_type
from irkit.rkernels.binding.elements import ElementPrinter, linear


@dataclass(frozen=True)
class Inserted:
    """Slices that were inserted, the last first, into `dest`; `value` is what that makes."""

    value: SSAValue
    slices: tuple[InsertSliceOp, ...]
    dest: SSAValue

    @property
    def largest(self) -> InsertSliceOp:
        """The one that has most elements."""
        return max(self.slices, key=lambda op: math.prod(ints(op.static_sizes)))

    def beside(self, op: InsertSliceOp) -> list[InsertSliceOp]:
        """Those that have elements in the box of `op`, which is one of them, as far as they hide it."""
        last = self.slices.index(op)
        return [other for other in self.slices[:last] if _meet(other, op)]


def inserted_of(value: SSAValue) -> Inserted | None:
    """How `value` was put together of slices at places that are known; None if it was not."""
    slices: list[InsertSliceOp] = []
    dest = value
    while isinstance(dest.owner, InsertSliceOp):
        slices.append(dest.owner)
        dest = dest.owner.dest
    if not slices or any(op.offsets or op.sizes or op.strides for op in slices):
        return None
    return Inserted(value, tuple(slices), dest)


def bounds(op: InsertSliceOp) -> list[tuple[int, int, int]]:
    """First place, place behind the last, and step, by dimension."""
    places = zip(
        ints(op.static_offsets), ints(op.static_sizes), ints(op.static_strides), strict=True
    )
    return [(o, o + (n - 1) * s + 1, s) for o, n, s in places]


def _meet(one: InsertSliceOp, other: InsertSliceOp) -> bool:
    pairs = zip(bounds(one), bounds(other), strict=True)
    return all(a < d and c < b for (a, b, _), (c, d, _) in pairs)


def step_of(inserted: Inserted, in_place: bool) -> int:
    """How far the elements of the largest slice lie apart in the last dimension, if nothing between them is
    stored."""
    op = inserted.largest
    step = bounds(op)[-1][2]
    others = (other for other in inserted.slices if other is not op)
    return step if in_place and not any(_meet(other, op) for other in others) else 1


def span(op: InsertSliceOp, lead: Index, step: int) -> list[str]:
    """The body of a function of a row at `lead` and columns [j0, j1): those of them in the box of a slice."""
    *rows, (low, high, _) = bounds(op)
    shape = tensor_type(op.result).get_shape()
    guards: list[str] = []
    for index, (a, b, s), size in zip(lead, rows, shape, strict=False):
        guards += [f"{index} >= {a}"] * (a > 0) + [f"{index} < {b}"] * (b < size)
        guards += [f"({index} - {a}) % {s} == 0"] * (s > 1)
    lines = [f"i0, i1 = max(j0, {low}), min(j1, {high})"]
    if step > 1:
        lines.append(f"i0 = {low} + (i0 - {low} + {step - 1}) // {step} * {step}")
    if guards:
        lines += [f"if not ({' and '.join(guards)}):", "    return j0, j0"]
    return [*lines, "if i0 >= i1:", "    return j0, j0", "return i0, i1"]


def store_slices(
    printer: ElementPrinter,
    where: Index,
    place: str,
    slices: Sequence[InsertSliceOp],
    known: Sequence[str] = (),
) -> bool:
    """Print what stores the element at `where` if it is in one of `slices`, `known` being true; whether it
    always is."""
    for number, op in enumerate(slices):
        left = [guard for guard in insertion_guards(op, where) if guard not in known]
        target = printer
        if left:
            printer.line(f"{'elif' if number else 'if'} {' and '.join(left)}:")
        elif number:
            printer.line("else:")
        if left or number:
            target = printer.branch()
        inner = inserted_index(op, target, where)
        target.line(f"{place} = {stored(target, op.source, inner)}")
        if not left:
            return True
    return False


def stored(printer: ElementPrinter, value: SSAValue, where: Index) -> str:
    """An element of a value as it is stored."""
    text = printer.element(value, where)
    return f"uint8(1) if {text} else uint8(0)" if tensor_type(value).element_type == i1 else text


def store_within(
    printer: ElementPrinter,
    inserted: Inserted,
    where: Index,
    pointer: str,
    in_place: bool,
    step: int,
) -> None:
    """Print what stores an element in the box of the largest slice, every `step`-th of a row."""
    op = inserted.largest
    between = bounds(op)[-1][2] > step
    guards = insertion_guards(op, where)
    behind = inserted.slices[inserted.slices.index(op) + 1 :] if between else ()
    slices = [*inserted.beside(op), op, *behind]
    known = guards[:-1] if between else guards
    _store_all(printer, inserted, where, pointer, in_place, slices, known)


def store_outside(
    printer: ElementPrinter, inserted: Inserted, where: Index, pointer: str, in_place: bool
) -> None:
    """Print what stores an element outside of the box of the largest slice."""
    others = [op for op in inserted.slices if op is not inserted.largest]
    if in_place and not others:
        return printer.line("pass")
    _store_all(printer, inserted, where, pointer, in_place, others, ())


def _store_all(
    printer: ElementPrinter,
    inserted: Inserted,
    where: Index,
    pointer: str,
    in_place: bool,
    slices: Sequence[InsertSliceOp],
    known: Sequence[str],
) -> None:
    place = f"{pointer}[{linear(where, tensor_type(inserted.value).get_shape())}]"
    covered = store_slices(printer, where, place, slices, known)
    if covered or in_place:
        return
    branch = printer
    if slices:
        printer.line("else:")
        branch = printer.branch()
    branch.line(f"{place} = {stored(branch, inserted.dest, where)}")
