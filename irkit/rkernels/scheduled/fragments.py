"""What tensor cores multiply of a nest that is tensorised for a GPU, and what of one they cannot."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from xdsl.dialects.builtin import f32
from xdsl.dialects.linalg import ops as linalg

from irkit.dialects.linalg_generic import is_contraction
from irkit.dialects.precision import Precision, precision_of
from irkit.dialects.types import tensor_type
from irkit.expressions.loops import Axis, Nest
from irkit.expressions.syntax import ExpressionError, Place
from irkit.rkernels.scheduled.shared_copy import SharedCopy

MOST_FRAGMENT = 4096
"""Sums of a warp that its registers hold."""
KINDS = {Precision.TF32: 1, Precision.BF16: 2, Precision.F16: 3}
"""What tensor cores round to, by their number in `irkit.runtime.intrinsics.cuda_mma`."""
_LANES, _BYTES = 32, 4
_WHOLE = (16, 8, 16)
"""Rows, columns and terms that an operation takes multiples of."""


@dataclass(frozen=True)
class Fragment:
    """Sums of a warp: rows of input `left` by columns of input `right`, so many terms at once. `kind`: to
    what both are rounded."""

    left: int
    right: int
    rows: Axis
    columns: Axis
    terms: Axis
    kind: int

    def axes(self, number: int) -> tuple[Axis, Axis]:
        """How a copy of an input ends: terms lie side by side."""
        return (self.rows if number == self.left else self.columns), self.terms

    @property
    def sums(self) -> tuple[Axis, Axis]:
        """The loops of the result."""
        return self.rows, self.columns

    @property
    def held(self) -> int:
        """Sums of a thread."""
        return self.rows.extent * self.columns.extent // _LANES

    def added(self, copies: Mapping[int, SharedCopy], place: Callable[[int], str]) -> str:
        """A statement: the products of both copies, from `place` of an input on, are added."""
        numbers = (self.left, self.right)
        places = [f"{copies[n].offset // _BYTES} + {place(n)}" for n in numbers]
        steps = [copies[n].strides[-2] for n in numbers]
        extents = [a.extent for a in (self.rows, self.columns, self.terms)]
        given = [*places, "lane", *steps, *extents, 1, self.kind]
        return f"sums = mma_sums(sums, staged, {', '.join(map(str, given))})"

    def stored(self, first: str, cells: Sequence[Axis]) -> str:
        """A statement: the sums go to shared memory, from `first` on, as `cells` lie there."""
        step = math.prod(a.extent for a in cells[cells.index(self.rows) + 1 :])
        return f"mma_store(meeting, {first}, {step}, sums, {self.columns.extent}, lane)"


def fragment_of(
    op: linalg.GenericOp, nest: Nest, names: tuple[str, str, str], moved: list[set[str]]
) -> Fragment:
    """What the loops of these names are, whose operands move with the indices `moved`.

    Raises ExpressionError for what no tensor core can, or may.
    """
    rows, columns, terms = axes = [nest.order[nest.position(n)] for n in names]
    types = [tensor_type(v).element_type for v in (*op.inputs, *op.results)]
    if not is_contraction(op) or any(t != f32 for t in types):
        refuse(nest, rows, "of what is no sum of products of float32")
    precision = precision_of(op)
    if precision not in KINDS:
        known = ", ".join(p.value for p in KINDS)
        what = f"of products in {precision.value}"
        refuse(nest, rows, f"{what}: tensor cores round factors, to {known} (`set-precision`)")
    for axis, whole in zip(axes, _WHOLE, strict=True):
        if axis.extent % whole:
            reason = f"of {axis.extent} turns: an operation takes multiples of {whole}"
            refuse(nest, axis, reason)
    if rows.extent * columns.extent > MOST_FRAGMENT:
        sums = f"{rows.extent} by {columns.extent} sums"
        refuse(nest, rows, f"of {sums}, of {MOST_FRAGMENT} that a warp's registers hold")
    for axis in nest.threads:
        if axis.reduced:
            refuse(nest, axis, "is bound to threads, which share sums")
    owners: Mapping[str, list[int]] = {
        a.name: [n for n in (0, 1) if moved[n] & nest.sources(a.name)] for a in (rows, columns)
    }
    if sorted(owners[rows.name] + owners[columns.name]) != [0, 1]:
        refuse(nest, columns, "and the rows are not one operand's each")
    (left,), (right,) = owners[rows.name], owners[columns.name]
    return Fragment(left, right, rows, columns, terms, KINDS[precision])


def refuse(nest: Nest, axis: Axis, reason: str) -> NoReturn:
    """Raises ExpressionError, where the loop is tensorised."""
    place = nest.marks.get(axis.name, Place())
    raise ExpressionError(f"'tensorise': '{axis.name}' {reason}", place)
