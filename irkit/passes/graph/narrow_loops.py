"""`narrow-loops`: of arrays that a loop hands on, it hands on the part that it touches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import Final

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.tensor import ExtractSliceOp, InsertSliceOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint

from irkit.dialects.graph import SliceOp
from irkit.dialects.types import int_array, ints, tensor, tensor_type
from irkit.rewriting import Rule, rewrite

LEAST: Final = 16
"""Elements of an array that is worth it."""
SHARE: Final = 2
"""The part is at most one in so many of its elements."""


@dataclass(frozen=True)
class Box:
    """Elements of an array from `low` to below `high` in each dimension."""

    low: tuple[int, ...]
    high: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents."""
        return tuple(h - n for n, h in zip(self.low, self.high, strict=True))

    def around(self, other: Box) -> Box:
        """The smallest box that has both."""
        low = tuple(map(min, self.low, other.low))
        return Box(low, tuple(map(max, self.high, other.high)))


class KeepWhatIsTouched(Rule):
    """for n: x = x with f(x[2]) at 2  ->  y = x[2]; for n: y = f(y); x with y at 2"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: scf.ForOp, rewriter: PatternRewriter, /):
        found = next(_narrower(op), None)
        if found is None:
            return self.no_match(op, "it needs all, or most, of each array that it hands on")
        number, box = found
        _narrow(op, number, box, rewriter)


def _narrower(loop: scf.ForOp) -> Iterator[tuple[int, Box]]:
    """Arrays that a loop hands on and needs little of: their numbers, and what it needs."""
    for number, value in enumerate(loop.body.block.args[1:]):
        box = _touched(value, number)
        shape = tensor_type(value).get_shape()
        if box is not None and prod(shape) >= max(LEAST, SHARE * prod(box.shape)):
            yield number, box


def _touched(value: SSAValue, number: int) -> Box | None:
    """What of a carried array is read and written, at places that are the same in every turn; None where
    it is needed otherwise, or is not what the turn hands on as this array."""
    uses = list(_uses(value))
    slices = [use for use in uses if not isinstance(use[0], scf.YieldOp)]
    places = [index for op, index in uses if isinstance(op, scf.YieldOp)]
    boxes = [_box(op, index) for op, index in slices]
    known = [box for box in boxes if box is not None]
    if places != [number] or not known or len(known) < len(boxes):
        return None
    return reduce(Box.around, known)


def _uses(value: SSAValue) -> Iterator[tuple[Operation, int]]:
    """Uses of an array, and of it with parts inserted."""
    for use in value.uses:
        yield use.operation, use.index
        if isinstance(use.operation, InsertSliceOp) and use.index == 1:
            yield from _uses(use.operation.result)


def _box(op: Operation, operand: int) -> Box | None:
    """Which elements a slice is; None for what is none, or moves."""
    if isinstance(op, SliceOp):
        places = (ints(op.offsets), ints(op.sizes), ints(op.strides))
    elif isinstance(op, ExtractSliceOp) or (isinstance(op, InsertSliceOp) and operand == 1):
        if op.offsets or op.sizes or op.strides:
            return None
        places = (ints(op.static_offsets), ints(op.static_sizes), ints(op.static_strides))
    else:
        return None
    ends = [sorted((o, o + (n - 1) * s)) for o, n, s in zip(*places, strict=True)]
    return Box(tuple(low for low, _ in ends), tuple(high + 1 for _, high in ends))


def _narrow(loop: scf.ForOp, number: int, box: Box, rewriter: PatternRewriter) -> None:
    """Have a loop hand on a box of its array `number`."""
    start, body = loop.iter_args[number], loop.body.block
    props = {
        "offsets": int_array(box.low),
        "sizes": int_array(box.shape),
        "strides": int_array([1] * len(box.low)),
    }
    part = SliceOp.make([start], props)
    old = body.args[number + 1]
    new = body.insert_arg(tensor(tensor_type(old).element_type, box.shape), number + 1)
    new.name_hint = old.name_hint
    _replace(old, new, box, rewriter)
    body.erase_arg(old)
    starts = [*loop.iter_args]
    starts[number] = part.results[0]
    made = scf.ForOp(loop.lb, loop.ub, loop.step, starts, loop.detach_region(loop.body))
    behind = InsertSliceOp.from_static_parameters(made.results[number], start, box.low, box.shape)
    results: list[SSAValue] = list(made.results)
    results[number] = behind.result
    rewriter.replace(loop, [part, made, behind], results)


def _replace(old: SSAValue, new: SSAValue, box: Box, rewriter: PatternRewriter) -> None:
    """Have what uses an array use the box of it."""
    for use in list(old.uses):
        op = use.operation
        if isinstance(op, scf.YieldOp):
            op.operands[use.index] = new
            continue
        made: list[Operation] = []
        if not _is_all(op, box):
            made = [_moved(op, new, box)]
            found = made[0].results[0]
        else:
            found = op.source if isinstance(op, InsertSliceOp) else new
        rewriter.insert(made, InsertPoint.before(op))
        if isinstance(op, InsertSliceOp):
            _replace(op.result, found, box, rewriter)
            rewriter.erase(op)
        else:
            rewriter.replace(op, [], [found])


def _moved(op: Operation, new: SSAValue, box: Box) -> Operation:
    """A slice of an array as one of the box of it."""
    if isinstance(op, SliceOp):
        offsets = _less(ints(op.offsets), box)
        return SliceOp.make([new], {**op.properties, "offsets": int_array(offsets)})
    assert isinstance(op, ExtractSliceOp | InsertSliceOp)
    offsets = _less(ints(op.static_offsets), box)
    props = {**op.properties, "static_offsets": int_array(offsets)}
    first = [new] if isinstance(op, ExtractSliceOp) else [op.source, new]
    result = op.result.type if isinstance(op, ExtractSliceOp) else new.type
    return type(op).build(operands=[*first, [], [], []], result_types=[result], properties=props)


def _is_all(op: Operation, box: Box) -> bool:
    """Whether a slice is all of the box, element by element."""
    steps = op.properties["strides" if isinstance(op, SliceOp) else "static_strides"]
    part = op.source if isinstance(op, InsertSliceOp) else op.results[0]
    return set(ints(steps)) == {1} and tensor_type(part).get_shape() == box.shape


def _less(offsets: Sequence[int], box: Box) -> list[int]:
    return [o - low for o, low in zip(offsets, box.low, strict=True)]


@dataclass(frozen=True)
class NarrowLoops(ModulePass):
    """Have loops hand on, of an array that they read and write at fixed places only, the box of those.

    `a[0] += x[n]` in a loop hands on one element, whatever `a` has: as a whole array it would be made anew
    in each turn, since what is written is read too. Boxes of more than half of an array stay, as do arrays
    that are read at places that move. Exact.

    ```mlir
    %r = scf.for %i = %c0 to %c9 step %c1 iter_args(%a = %b) -> (tensor<99xf64>) {
      %y = graph.slice %a {offsets = array<i64: 4>, sizes = array<i64: 1>, strides = array<i64: 1>}
        : (tensor<99xf64>) -> tensor<1xf64>
      %z = graph.exp %y : (tensor<1xf64>) -> tensor<1xf64>
      %w = tensor.insert_slice %z into %a[4] [1] [1] : tensor<1xf64> into tensor<99xf64>
      scf.yield %w : tensor<99xf64>
    }
    ```
    becomes
    ```mlir
    %p = graph.slice %b {offsets = array<i64: 4>, sizes = array<i64: 1>, strides = array<i64: 1>}
      : (tensor<99xf64>) -> tensor<1xf64>
    %q = scf.for %i = %c0 to %c9 step %c1 iter_args(%a = %p) -> (tensor<1xf64>) {
      %z = graph.exp %a : (tensor<1xf64>) -> tensor<1xf64>
      scf.yield %z : tensor<1xf64>
    }
    %r = tensor.insert_slice %q into %b[4] [1] [1] : tensor<1xf64> into tensor<99xf64>
    ```
    """

    name = "narrow-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if any(isinstance(inner, scf.ForOp) for inner in op.walk()):
            rewrite(op, [KeepWhatIsTouched()])
