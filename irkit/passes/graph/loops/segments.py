"""What stands in a block between its loops, as segments that become functions of their own.

A segment is a run of ops, with the slices at moving places that it reads (before it) and writes (behind it).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from irkit.dialects.loop_places import Affine, first_byte, moves, trips_of, why_no_run
from irkit.dialects.loops import LoopOp, asked_of, is_loop
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.errors import UnsupportedError


@dataclass(eq=False)
class Segment:
    """`before`: moving slices that `ops` read; `behind`: insertions at moving places of what they make.

    `copied`: operands (op, number) that get a copy of what they are, which the segment makes.
    """

    before: list[tensor.ExtractSliceOp] = field(default_factory=list[tensor.ExtractSliceOp])
    ops: list[Operation] = field(default_factory=list[Operation])
    behind: list[tensor.InsertSliceOp] = field(default_factory=list[tensor.InsertSliceOp])
    copied: list[tuple[Operation, int]] = field(default_factory=list[tuple[Operation, int]])

    def all_ops(self) -> Iterator[Operation]:
        """All of it, in program order."""
        yield from (*self.before, *self.ops, *self.behind)

    @property
    def live_ins(self) -> list[SSAValue]:
        """What it reads from outside, each once: constants are none, they are copied into it."""
        found: dict[SSAValue, None] = {}
        inside = set(self.ops)
        reads = [v for op in self.ops for v in _operands(op)]
        reads += [op.operands[n] for op, n in self.copied]
        for value in reads:
            if value.owner not in inside and not is_constant(value):
                found[value] = None
        return list(found)


Item = Segment | LoopOp
Node = SSAValue | tuple[Operation, int]
"""A value, or the copy that an operand gets."""


def _operands(op: Operation) -> Iterator[SSAValue]:
    for inner in op.walk():
        yield from inner.operands


def is_constant(value: SSAValue) -> bool:
    """Whether a tensor is a constant."""
    return isinstance(value.owner, arith.ConstantOp) and isinstance(value.type, TensorType)


def _is_index(op: Operation) -> bool:
    """Arithmetic of places, which stays outside of segments."""
    return op.name.startswith("arith.") and not isinstance(op.results[0].type, TensorType)


def items_of(block: Block) -> list[Item]:
    """A block's loops, each with a segment before it, and a segment at the end.

    Raises UnsupportedError for a slice at a moving place that is no run of bytes, and for a loop that
    computes where it asks.
    """
    items: list[Item] = [Segment()]
    for op in block.ops:
        current = items[-1]
        assert isinstance(current, Segment)
        if is_loop(op):
            if isinstance(op, scf.WhileOp):
                asked_of(op)
            _end(items)
            items += [op, Segment()]
        elif _is_index(op) or is_constant_op(op) or op.has_trait(IsTerminator):
            continue
        elif isinstance(op, tensor.ExtractSliceOp | tensor.InsertSliceOp) and moves(op):
            _add_slice(items, current, op)
        else:
            if any(v.owner in current.behind for v in _operands(op)):
                items.append(current := Segment())
            current.ops.append(op)
    _end(items)
    return items


def _end(items: list[Item]) -> None:
    """Have a segment at the end that can copy what stands before it, to where slices of it are read."""
    current = items[-1]
    if isinstance(current, Segment) and (current.before or current.behind):
        items.append(Segment())


def is_constant_op(op: Operation) -> bool:
    """Whether an op is a constant."""
    return isinstance(op, arith.ConstantOp)


def _add_slice(
    items: list[Item], current: Segment, op: tensor.ExtractSliceOp | tensor.InsertSliceOp
) -> None:
    reason = why_no_run(op)
    if reason is not None:
        raise UnsupportedError(f"'{op.name}' at a place that hangs on a loop: {reason}")
    first_byte(op)
    if isinstance(op, tensor.ExtractSliceOp):
        if op.source.owner in (*current.ops, *current.behind):
            items.append(current := Segment())
        current.before.append(op)
        return
    if op.source.owner in current.behind or _clashes(current, op):
        items.append(current := Segment())
    current.behind.append(op)


def root_of(value: SSAValue) -> SSAValue:
    """What a value is, before slices were inserted into it at moving places."""
    while isinstance(op := value.owner, tensor.InsertSliceOp) and moves(op):
        value = op.dest
    return value


def _clashes(segment: Segment, op: tensor.InsertSliceOp) -> bool:
    """Whether a segment reads or writes anything of what a slice is inserted into but other bytes, and, as
    a slice, these very bytes."""
    root = root_of(op.dest)
    if root.owner in segment.ops:
        return True
    if any(root_of(v) is root for inner in segment.ops for v in _operands(inner)):
        return True
    others = [o for o in segment.before if root_of(o.source) is root]
    if any(not same_place(o, op) and not apart(o, op) for o in others):
        return True
    return any(root_of(o.dest) is root and not apart(o, op) for o in segment.behind)


Slice = tensor.ExtractSliceOp | tensor.InsertSliceOp


def bytes_of(op: Slice) -> int:
    """Bytes of a slice."""
    part = tensor_type(op.result if isinstance(op, tensor.ExtractSliceOp) else op.source)
    count = 1
    for size in part.get_shape():
        count *= size
    return count * numpy_dtype(part.element_type).itemsize


def same_place(a: Slice, b: Slice) -> bool:
    """Whether two slices of one tensor are the same bytes in every iteration."""
    return first_byte(a) == first_byte(b) and bytes_of(a) == bytes_of(b)


def apart(a: Slice, b: Slice) -> bool:
    """Whether two slices of one tensor have no byte in common in any iteration."""
    return are_apart(first_byte(a), bytes_of(a), first_byte(b), bytes_of(b))


def are_apart(a: Affine, a_bytes: int, b: Affine, b_bytes: int) -> bool:
    """Whether [a, a + a_bytes) and [b, b + b_bytes) are disjoint in every iteration of the loops."""
    distance = b.plus(a.times(-1))
    low = high = distance.constant
    for loop, factor in distance.terms.items():
        reach = factor * (trips_of(loop).count - 1)
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low >= a_bytes or high <= -b_bytes


def position(items: Sequence[Item], op: Operation, block: Block) -> int:
    """The number of the item that an op is in; of the terminator, behind all."""
    outer: Operation | None = op
    while outer is not None and outer.parent is not block:
        outer = outer.parent_op()
    for number, item in enumerate(items):
        if outer is item or (isinstance(item, Segment) and outer in list(item.all_ops())):
            return number
    return len(items)
