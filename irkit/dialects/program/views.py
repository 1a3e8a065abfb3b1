"""Arrays of a program: buffers, and strided views of them, as data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import cast

from xdsl.dialects import affine, arith, memref, scf
from xdsl.dialects.builtin import (
    IndexType,
    IntegerAttr,
    MemRefType,
    NoneAttr,
    StridedLayoutAttr,
)
from xdsl.ir import Attribute, BlockArgument, SSAValue

from irkit.dialects.bufferization import Array
from irkit.dialects.products import linear_factors
from irkit.dialects.types import DYNAMIC, ints
from irkit.errors import InvalidModelError

# Elements of a view that are looked at one by one, where its strides alone do not say that they are distinct.
_ENUMERATED = 1 << 20


@dataclass(frozen=True)
class Affine:
    """`constant` + the sum of factors[v] * v over induction variables v."""

    constant: int = 0
    factors: Mapping[SSAValue, int] = field(default_factory=dict[SSAValue, int])

    @property
    def is_constant(self) -> bool:
        """Whether it is the same in every iteration."""
        return not self.factors

    def plus(self, other: Affine, times: int = 1) -> Affine:
        """The sum of this and so many times another."""
        factors = dict(self.factors)
        for variable, factor in other.factors.items():
            factors[variable] = factors.get(variable, 0) + times * factor
        kept = {v: f for v, f in factors.items() if f}
        return Affine(self.constant + times * other.constant, kept)

    def bounds(self) -> tuple[int, int]:
        """Its least and largest value over the iterations of the loops, which are at least one each."""
        low = high = self.constant
        for variable, factor in self.factors.items():
            ends = [factor * end for end in ends_of(variable)]
            low, high = low + min(ends), high + max(ends)
        return low, high


@dataclass(frozen=True)
class StridedView:
    """Element `index` is element `offset + sum(index * strides)` of `buffer`, counted in row-major order."""

    buffer: SSAValue
    offset: Affine
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def is_empty(self) -> bool:
        """Whether it has no elements."""
        return 0 in self.sizes

    def reach(self) -> tuple[int, int]:
        """The least and the largest element of the buffer, from the offset on; of views that are not empty."""
        ends = [(n - 1) * s for n, s in zip(self.sizes, self.strides, strict=True)]
        return sum(min(e, 0) for e in ends), sum(max(e, 0) for e in ends)

    def is_whole(self) -> bool:
        """Whether it is the buffer as it lies."""
        shape = array_type(self.buffer).get_shape()
        own = zip(self.sizes, self.strides, row_major(shape), strict=False)
        return (
            self.offset == Affine()
            and self.sizes == shape
            and all(size == 1 or have == want for size, have, want in own)
        )

    def repeats(self) -> bool:
        """Whether two of its elements are, or are not known not to be, one element of the buffer."""
        if self.is_empty:
            return False
        dims = [(abs(s), n) for n, s in zip(self.sizes, self.strides, strict=True) if n > 1]
        reached = 0
        for stride, size in sorted(dims):
            if stride <= reached:
                return _have_equal_places(dims)
            reached += stride * (size - 1)
        return False


def _have_equal_places(dims: Sequence[tuple[int, int]]) -> bool:
    """Whether two of the elements that are so far apart are one; or there are too many to look at."""
    if any(stride == 0 for stride, _ in dims) or math.prod(n for _, n in dims) > _ENUMERATED:
        return True
    places = [sum(index) for index in product(*(range(0, n * s, s) for s, n in dims))]
    return len(set(places)) < len(places)


def array_type(value: SSAValue) -> Array:
    """The type of `value`, known to be an array."""
    return cast(Array, value.type)


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of an array as it lies, in elements."""
    return tuple(math.prod(shape[d + 1 :]) for d in range(len(shape)))


def buffer_type(element: Attribute, shape: Sequence[int]) -> Array:
    """The type of a buffer."""
    return MemRefType(element, shape)


def view_type(element: Attribute, view: StridedView) -> Array:
    """The type of a view."""
    offset = view.offset.constant if view.offset.is_constant else None
    space = array_type(view.buffer).memory_space
    return MemRefType(element, view.sizes, StridedLayoutAttr(view.strides, offset), space)


def is_buffer(value: SSAValue) -> bool:
    """Whether an array is an argument of a function or was allocated, and is no view."""
    return isinstance(value.type, MemRefType) and (
        isinstance(value, BlockArgument) or isinstance(value.owner, memref.AllocOp)
    )


def view_of(value: SSAValue) -> StridedView:
    """An array as a view of its buffer: a buffer is a view of itself.

    Raises InvalidModelError for what is none, in words that follow the name of the op that makes it.
    """
    shape = array_type(value).get_shape()
    if is_buffer(value):
        return StridedView(value, Affine(), shape, row_major(shape))
    op = value.owner
    if not isinstance(op, memref.ReinterpretCastOp):
        raise InvalidModelError("is no view of a buffer")
    if not is_buffer(op.source):
        raise InvalidModelError("is a view of a view: views are of buffers")
    offsets, strides = ints(op.static_offsets), ints(op.static_strides)
    if len(offsets) != 1:
        raise InvalidModelError(f"expected 1 offset, got {len(offsets)}")
    (offset,) = offsets
    if op.sizes or op.strides:
        raise InvalidModelError("has sizes or strides that are not numbers")
    at = Affine(offset) if offset != DYNAMIC else affine_of(op.offsets[0])
    return StridedView(op.source, at, tuple(ints(op.static_sizes)), tuple(strides))


def affine_of(value: SSAValue) -> Affine:
    """An index as an affine function of induction variables. Raises InvalidModelError for what is none."""
    op = value.owner
    if is_induction_variable(value):
        return Affine(0, {value: 1})
    if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr):
        return Affine(op.value.value.data)
    if not isinstance(op, affine.ApplyOp):
        raise InvalidModelError("has an offset that is not affine in induction variables")
    amap = op.map.data
    factors = linear_factors(amap.results[0], amap.num_dims) if not amap.num_symbols else None
    if factors is None:
        raise InvalidModelError("has an offset that is not affine in induction variables")
    total = Affine(amap.results[0].eval([0] * amap.num_dims, []))
    for d, factor in factors.items():
        total = total.plus(affine_of(op.mapOperands[d]), factor)
    return total


def is_induction_variable(value: SSAValue) -> bool:
    """Whether a value counts a loop."""
    owner = value.owner.parent_op() if isinstance(value, BlockArgument) else None
    return isinstance(owner, scf.ForOp) and isinstance(value.type, IndexType)


def trips_of(loop: scf.ForOp) -> range:
    """What the induction variable of a loop is, one after another. Raises InvalidModelError where bounds are no
    constants, or the step is not positive."""
    ends: list[int] = []
    for value in (loop.lb, loop.ub, loop.step):
        op = value.owner
        if not isinstance(op, arith.ConstantOp) or not isinstance(op.value, IntegerAttr):
            raise InvalidModelError("has bounds or a step that are no constants")
        ends.append(op.value.value.data)
    if ends[2] < 1:
        raise InvalidModelError(f"expected a step of 1 or more, got {ends[2]}")
    return range(*ends)


def ends_of(variable: SSAValue) -> tuple[int, int]:
    """The first and the last value of an induction variable; of a loop that is never run, its bound twice."""
    loop = cast(BlockArgument, variable).owner.parent_op()
    assert isinstance(loop, scf.ForOp)
    trips = trips_of(loop)
    return (trips[0], trips[-1]) if len(trips) else (trips.start, trips.start)


def first_of(variable: SSAValue) -> int:
    """What an induction variable is first."""
    return ends_of(variable)[0]


def has_layout(array: Array) -> bool:
    """Whether an array is anything but contiguous and row-major by its type."""
    return not isinstance(array.layout, NoneAttr)
