"""Values that are parts of another in another order: slices, transpositions and reshapes, composed.

The index in the source is an affine function of the index in the value, one sum for each dimension: what
PyTorch's strided views are, but for the bounds of each dimension being known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import tensor
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

from irkit.dialects.linalg_generic import is_elementwise, maps
from irkit.dialects.products import linear_factors
from irkit.dialects.reassociation import groups_of
from irkit.dialects.tensor_ops.reshape import RESHAPES
from irkit.dialects.types import DYNAMIC, ints, tensor_type


@dataclass(frozen=True)
class Sum:
    """offset + the sum of factors[d] * (index in dimension d of the view)."""

    factors: dict[int, int] = field(default_factory=dict[int, int])
    offset: int = 0

    def __mul__(self, by: int) -> Sum:
        return Sum({d: f * by for d, f in self.factors.items()}, self.offset * by)

    def __add__(self, other: Sum) -> Sum:
        both = {**self.factors, **other.factors}
        summed = {d: self.factors.get(d, 0) + other.factors.get(d, 0) for d in both}
        return Sum(summed, self.offset + other.offset)

    def affine(self) -> AffineExpr:
        """As an expression of the view's dimensions."""
        total: AffineExpr | None = AffineConstantExpr(self.offset) if self.offset else None
        for d, factor in sorted(self.factors.items()):
            term = AffineDimExpr(d) if factor == 1 else AffineDimExpr(d) * factor
            total = term if total is None else total + term
        return total if total is not None else AffineConstantExpr(0)


@dataclass(frozen=True)
class View:
    """`value[index]` is `source` at the sums; `moved` says that more than the shape is another."""

    source: SSAValue
    index: tuple[Sum, ...]
    moved: bool = False


def view_of(value: SSAValue) -> View:
    """As far back as the index stays affine."""
    sizes = tensor_type(value).get_shape()
    start = (Sum({d: 1}) if s != 1 else Sum() for d, s in enumerate(sizes))
    view = View(value, tuple(start))
    while (before := _before(view, sizes)) is not None:
        view = before
    return view


def _before(view: View, sizes: Sequence[int]) -> View | None:
    """One op further back; None where the source is computed, or its index would not be affine."""
    op = view.source.owner
    if isinstance(op, tensor.ExtractSliceOp):
        return _of_slice(view, op)
    if isinstance(op, linalg.GenericOp):
        return _of_copy(view, op)
    if isinstance(op, RESHAPES):
        index = _of_reshape(view.index, op, sizes)
        return None if index is None else View(op.src, index, view.moved)
    return None


def _of_slice(view: View, op: tensor.ExtractSliceOp) -> View | None:
    offsets, steps = ints(op.static_offsets), ints(op.static_strides)
    if op.offsets or op.strides or len(offsets) != len(view.index):
        return None
    index = (s * step + Sum({}, o) for s, o, step in zip(view.index, offsets, steps, strict=True))
    return View(op.source, tuple(index), True)


def _read_by_copy(op: linalg.GenericOp) -> AffineMap | None:
    """How a generic that only moves its one input reads it; None for any other."""
    body = op.body.block
    copies = is_elementwise(op) and len(op.inputs) == 1 and len(op.results) == 1
    if not copies or body.last_op is None or list(body.last_op.operands) != [body.args[0]]:
        return None
    read, written = maps(op)
    return read if written == AffineMap.identity(written.num_dims) else None


def permutation_of(op: linalg.GenericOp) -> list[int] | None:
    """Dimension d of the result is dimension permutation[d] of the input; None if it is no transposition."""
    read = _read_by_copy(op)
    if read is None:
        return None
    loops = [e.position for e in read.results if isinstance(e, AffineDimExpr)]
    if len(loops) != len(read.results) or sorted(loops) != list(range(read.num_dims)):
        return None
    return [loops.index(d) for d in range(len(loops))]


def _of_copy(view: View, op: linalg.GenericOp) -> View | None:
    read = _read_by_copy(op)
    if read is None:
        return None
    index: list[Sum] = []
    for expr in read.results:
        factors = linear_factors(expr, read.num_dims)
        if factors is None:
            return None
        total = Sum({}, expr.eval([0] * read.num_dims, []))
        for d, factor in factors.items():
            total = total + view.index[d] * factor
        index.append(total)
    return View(op.inputs[0], tuple(index), True)


def _of_reshape(
    index: tuple[Sum, ...],
    op: tensor.CollapseShapeOp | tensor.ExpandShapeOp,
    sizes: Sequence[int],
) -> tuple[Sum, ...] | None:
    groups = groups_of(op)
    if isinstance(op, tensor.ExpandShapeOp):
        shape = tensor_type(op.result).get_shape()
        return tuple(_joined([(index[d], shape[d]) for d in group]) for group in groups)
    shape = tensor_type(op.src).get_shape()
    found: list[Sum] = []
    for total, group in zip(index, groups, strict=True):
        digits = _digits(total, [shape[d] for d in group], sizes)
        if digits is None:
            return None
        found += digits
    return tuple(found)


def _joined(parts: Sequence[tuple[Sum, int]]) -> Sum:
    """The index in dimensions joined, row-major; the first size does not matter."""
    total = Sum()
    for position, (part, _) in enumerate(parts):
        total = total + part * math.prod(size for _, size in parts[position + 1 :])
    return total


def _digits(total: Sum, shape: Sequence[int], sizes: Sequence[int]) -> list[Sum] | None:
    """An index in joined dimensions as one in each of them; None where one would carry into another."""
    if DYNAMIC in shape[1:]:
        return None
    strides = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
    digits = [Sum() for _ in shape]
    rest = total.offset
    for d, stride in enumerate(strides):
        digits[d] = Sum({}, rest // stride)
        rest %= stride
    for loop, factor in total.factors.items():
        # The last dimension whose step is as far, or the nearest that divides it: sizes of 1 have none.
        d = next((d for d, s in enumerate(strides) if shape[d] != 1 and factor % s == 0), None)
        if d is None or factor < 0:
            return None
        digits[d] = digits[d] + Sum({loop: factor // strides[d]})
    fits = all(largest(s, sizes) < n or n == DYNAMIC for s, n in zip(digits, shape, strict=True))
    return digits if fits or not shape else None


def largest(total: Sum, sizes: Sequence[int]) -> float:
    """The largest index, factors being positive."""
    return total.offset + sum(
        f * (math.inf if sizes[d] == DYNAMIC else sizes[d] - 1) for d, f in total.factors.items()
    )
