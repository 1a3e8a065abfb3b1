"""Trip counts of loops, and where slices lie whose place hangs on the iterations of loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, SSAValue

from irkit.dialects.types import DYNAMIC, Tensor, ints, numpy_dtype, tensor_type
from irkit.errors import UnsupportedError

SliceOp = tensor.ExtractSliceOp | tensor.InsertSliceOp


@dataclass(frozen=True)
class Affine:
    """`constant` and, of each loop, `terms[loop]` times the number of its iteration, which counts from 0."""

    constant: int = 0
    terms: Mapping[scf.ForOp, int] = field(default_factory=dict[scf.ForOp, int])

    def plus(self, other: Affine) -> Affine:
        """The sum."""
        terms = dict(self.terms)
        for loop, factor in other.terms.items():
            terms[loop] = terms.get(loop, 0) + factor
        kept = {loop: factor for loop, factor in terms.items() if factor}
        return Affine(self.constant + other.constant, kept)

    def times(self, factor: int) -> Affine:
        """The product with a number."""
        terms = {loop: f * factor for loop, f in self.terms.items() if f * factor}
        return Affine(self.constant * factor, terms)


@dataclass(frozen=True)
class Trips:
    """A loop's variable is `first`, `first + step`, ..., `count` times."""

    first: int
    step: int
    count: int


def trips_of(loop: scf.ForOp) -> Trips:
    """How often a loop runs. Raises UnsupportedError where that is not known."""
    low, high, step = (constant_index(v) for v in (loop.lb, loop.ub, loop.step))
    if low is None or high is None or step is None:
        raise UnsupportedError("'scf.for' with bounds that are no constants")
    if step < 1:
        raise UnsupportedError(f"'scf.for' with a step of {step}")
    return Trips(low, step, max(-(-(high - low) // step), 0))


def constant_index(value: SSAValue) -> int | None:
    """The number that a value is; None where it is no constant."""
    op = value.owner
    if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr):
        return op.value.value.data
    return None


def affine(value: SSAValue) -> Affine:
    """An index as a function of iterations. Raises UnsupportedError for one that is no affine function."""
    op = value.owner
    if isinstance(op, Block):
        loop = op.parent_op()
        if isinstance(loop, scf.ForOp) and value is op.args[0]:
            trips = trips_of(loop)
            return Affine(trips.first, {loop: trips.step})
        raise UnsupportedError("a slice at a place that is an argument")
    number = constant_index(value)
    if number is not None:
        return Affine(number)
    if isinstance(op, arith.IndexCastOp):
        return affine(op.input)
    if isinstance(op, arith.AddiOp):
        return affine(op.lhs).plus(affine(op.rhs))
    if isinstance(op, arith.SubiOp):
        return affine(op.lhs).plus(affine(op.rhs).times(-1))
    if isinstance(op, arith.MuliOp):
        lhs, rhs = affine(op.lhs), affine(op.rhs)
        if not lhs.terms or not rhs.terms:
            return lhs.times(rhs.constant) if not rhs.terms else rhs.times(lhs.constant)
    raise UnsupportedError(
        f"a slice at a place that '{op.name}' makes, which is no affine function"
    )


def offsets_of(op: SliceOp) -> list[Affine]:
    """Where a slice begins in each dimension."""
    dynamic = iter(op.offsets)
    return [affine(next(dynamic)) if o == DYNAMIC else Affine(o) for o in ints(op.static_offsets)]


def moves(op: SliceOp) -> bool:
    """Whether a slice lies at a computed place."""
    return bool(op.offsets or op.sizes or op.strides)


def whole_of(op: SliceOp) -> Tensor:
    """The type of what the slice is a part of."""
    return tensor_type(op.source if isinstance(op, tensor.ExtractSliceOp) else op.dest)


def why_no_run(op: SliceOp) -> str | None:
    """Why a slice's elements do not lie side by side; None if they do."""
    if op.sizes or op.strides:
        return "its size or its step is computed"
    shape, sizes = whole_of(op).get_shape(), ints(op.static_sizes)
    if any(s != 1 and n > 1 for s, n in zip(ints(op.static_strides), sizes, strict=True)):
        return "it has a step"
    return None if is_run(shape, sizes) else "its elements do not lie side by side"


def is_run(shape: Sequence[int], sizes: Sequence[int]) -> bool:
    """Whether so many elements in each dimension, in a row each, lie side by side in an array."""
    cut = [d for d, (s, n) in enumerate(zip(sizes, shape, strict=True)) if s != n]
    return not cut or all(sizes[d] == 1 for d in range(cut[-1]))


def first_byte(op: SliceOp) -> Affine:
    """The byte at which a slice begins. Raises UnsupportedError for one that leaves its tensor."""
    whole, found = whole_of(op), Affine()
    sizes, steps = ints(op.static_sizes), ints(op.static_strides)
    for d, (offset, extent) in enumerate(zip(offsets_of(op), whole.get_shape(), strict=True)):
        ends = [
            offset.constant
            + sum(pick(0, f * (trips_of(loop).count - 1)) for loop, f in offset.terms.items())
            for pick in (min, max)
        ]
        if ends[0] < 0 or ends[1] + (sizes[d] - 1) * steps[d] >= extent:
            raise UnsupportedError(
                f"'{op.name}' of {whole} at {ends[0]} to {ends[1]} of dimension {d}: it leaves the tensor"
            )
        found = found.times(extent).plus(offset)
    return found.times(numpy_dtype(whole.element_type).itemsize)
