"""Rows of an attention's operands that lie in memory, element after element: what can be copied as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard
from weakref import WeakKeyDictionary

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineMap

from irkit.dialects.linalg_generic import is_elementwise, maps
from irkit.dialects.products import linear_factors
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.dialects.views import Sum, View, view_of


@dataclass(frozen=True)
class Rows:
    """Row j of leading element (l0, l1, ...) starts at `offset` + lead[0] l0 + ... + `step` j of `source`.

    16-bit floats are widened where they are read. `together`: how many elements, 8, 4, 2 or 1, can be read at
    once, all of them of one row and at a multiple of their number.
    """

    source: BlockArgument
    lead: tuple[int, ...]
    step: int
    offset: int
    together: int

    @property
    def element(self) -> Attribute:
        """What lies in memory."""
        return tensor_type(self.source).element_type


def in_words(rows: Rows | None) -> TypeGuard[Rows]:
    """Whether they lie in memory as float32."""
    return rows is not None and isinstance(rows.element, Float32Type)


# Many grids are tried of a root, and the cost of each asks.
_known: WeakKeyDictionary[Operation, tuple[Rows | None, ...]] = WeakKeyDictionary()


def rows_of(op: Operation, count: int = 3) -> tuple[Rows | None, ...]:
    """How the first `count` operands of an attention or its gradient lie in memory; queries, keys and values
    are the first three. None for those that are computed where they are read."""
    if op not in _known or len(_known[op]) < count:
        _known[op] = tuple(_rows(v) for v in op.operands[:count])
    return _known[op][:count]


def _rows(value: SSAValue) -> Rows | None:
    shape = tensor_type(value).get_shape()
    view = view_of(value)
    narrow = _widened(view)
    if narrow is not None:
        inner = view_of(narrow.source)
        view = View(inner.source, tuple(_within(s, narrow.index) for s in inner.index))
    source = view.source
    if not isinstance(source, BlockArgument):
        return None
    extents = tensor_type(source).get_shape()
    if DYNAMIC in (*shape, *extents):
        return None
    place = Sum()
    for index, extent in zip(view.index, extents, strict=True):
        place = place * extent + index
    *lead, step, along = (place.factors.get(d, 0) for d in range(len(shape)))
    if along != 1 and shape[-1] > 1:
        return None
    numbers = (*lead, step, place.offset, shape[-1])
    together = next(n for n in (8, 4, 2, 1) if all(x % n == 0 for x in numbers))
    return Rows(source, tuple(lead), step, place.offset, together)


def _within(inner: Sum, outer: Sequence[Sum]) -> Sum:
    """An index of indices."""
    total = Sum({}, inner.offset)
    for d, factor in inner.factors.items():
        total = total + outer[d] * factor
    return total


def _widened(view: View) -> View | None:
    """What a view reads, as 16-bit floats, each widened where it is read; None if it is something else."""
    op = view.source.owner
    if not isinstance(op, linalg.GenericOp) or not is_elementwise(op) or len(op.inputs) != 1:
        return None
    end = op.body.block.last_op
    cast = end.operands[0].owner if end is not None and end.operands else None
    if not isinstance(cast, arith.ExtFOp) or cast.input is not op.body.block.args[0]:
        return None
    read, written = maps(op)
    factors = [linear_factors(e, read.num_dims) for e in read.results]
    if written != AffineMap.identity(written.num_dims):
        return None
    zero = [0] * read.num_dims
    index = [
        _within(Sum(f, e.eval(zero, [])), view.index)
        for f, e in zip(factors, read.results, strict=True)
        if f is not None
    ]
    return View(op.inputs[0], tuple(index)) if len(index) == len(factors) else None
