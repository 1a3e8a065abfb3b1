"""Read what was inserted into an array from there, where it was made for the insertion.

`B[1:-1] = f(A); A[1:-1] = g(B[1:-1], B[:-2], B[2:])`: the value of f is inserted into B, and read besides.
Were it read in both places, it would need memory of its own, a launch that makes it and one that copies it
into B. Read from B alone, it is computed where it is written.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func, tensor
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, SSAValue

from irkit.dialects.linalg_generic import is_elementwise
from irkit.dialects.positions import Positions
from irkit.dialects.types import DYNAMIC, ints, tensor_type
from irkit.remarks import applied, missed

# This rule's name in remarks.
READ_BACK = "ReadBack"


def read_back(block: Block) -> None:
    """Make every elementwise value that is inserted into a tensor, which is needed as a whole, one that
    only the insertion reads."""
    order = _Order(block)
    for op in list(block.ops):
        if not isinstance(op, tensor.InsertSliceOp) or not _is_plain(op):
            continue
        if len({use.operation for use in op.source.uses}) < 2:
            continue
        if (reason := _why_not(op, order)) is not None:
            missed(op, READ_BACK, "{}", reason)
            continue
        applied(op, READ_BACK)
        _read_from(op, order.positions)


class _Order:
    """Where ops stand, and which insertions stand as far up as they can."""

    def __init__(self, block: Block) -> None:
        self.positions = Positions(block)
        self._hoisted = set[Operation]()

    def hoist(self, op: tensor.InsertSliceOp) -> None:
        """Move an insertion, and those into what it is inserted into, up to where what it needs is made."""
        chain: list[tensor.InsertSliceOp] = []
        above: Operation | Block = op
        while isinstance(above, tensor.InsertSliceOp) and above not in self._hoisted:
            chain.append(above)
            above = above.dest.owner
        for found in reversed(chain):
            self._hoisted.add(found)
            self._hoist(found)

    def _hoist(self, op: tensor.InsertSliceOp) -> None:
        made = [v.owner for v in op.operands if isinstance(v.owner, Operation)]
        if not made:
            return
        last = made[0]
        for other in made[1:]:
            last = other if self.positions.is_before(last, other) else last
        if last.next_op is not op:
            self.positions.move_after(op, last)


def _is_plain(op: tensor.InsertSliceOp | tensor.ExtractSliceOp) -> bool:
    """Whether a slice has its place in the text, and no fewer dimensions than what it is of."""
    ranks = {tensor_type(v).get_num_dims() for v in (op.source, op.result)}
    return not (op.offsets or op.sizes or op.strides) and len(ranks) == 1


def _why_not(op: tensor.InsertSliceOp, order: _Order) -> str | None:
    producer = op.source.owner
    if not isinstance(producer, linalg.GenericOp) or not is_elementwise(producer):
        return "what is inserted is no elementwise op's"
    if DYNAMIC in tensor_type(op.result).get_shape():
        return "it is inserted into a batch"
    if not _is_kept(op):
        return "the whole is not needed"
    order.hoist(op)
    others = [use.operation for use in op.source.uses if use.operation is not op]
    if any(user.parent is not op.parent or order.positions.is_before(user, op) for user in others):
        return "it is read before it could be inserted"
    if not all(_can_read_back(user, op.source) for user in others):
        return "it is read by what reads no slices"
    return None


def _is_kept(op: tensor.InsertSliceOp) -> bool:
    """Whether the array is needed as a whole, be it read back or not: returned, or read by several."""
    users = {use.operation for use in op.result.uses}
    return any(isinstance(user, func.ReturnOp) for user in users) or len(users) > 1


def _can_read_back(user: Operation, value: SSAValue) -> bool:
    if isinstance(user, tensor.ExtractSliceOp):
        return _is_plain(user)
    own = isinstance(user, linalg.GenericOp) and value not in user.outputs
    return own and is_elementwise(user)


def _read_from(op: tensor.InsertSliceOp, positions: Positions) -> None:
    """Every other reader of what is inserted reads it from the result."""
    source = op.source
    places = [ints(op.static_offsets), ints(op.static_sizes), ints(op.static_strides)]
    for user in [use.operation for use in source.uses if use.operation is not op]:
        if isinstance(user, tensor.ExtractSliceOp):
            _compose(user, op, places, positions)
    rest = [use for use in source.uses if use.operation is not op]
    if not rest:
        return
    slice_ = _slice(op.result, *places)
    positions.insert_after(slice_, op)
    for use in rest:
        use.operation.operands[use.index] = slice_.result


def _compose(
    user: tensor.ExtractSliceOp,
    op: tensor.InsertSliceOp,
    places: Sequence[Sequence[int]],
    positions: Positions,
) -> None:
    """A slice of what is inserted is a slice of the whole."""
    offsets, _, steps = places
    own = (ints(user.static_offsets), ints(user.static_strides))
    composed = [
        (offset + step * o, step * s)
        for offset, step, o, s in zip(offsets, steps, *own, strict=True)
    ]
    first, strides = [o for o, _ in composed], [s for _, s in composed]
    made = _slice(op.result, first, ints(user.static_sizes), strides)
    made.location = user.location
    positions.replace(user, made)


def _slice(
    value: SSAValue, offsets: Sequence[int], sizes: Sequence[int], strides: Sequence[int]
) -> tensor.ExtractSliceOp:
    return tensor.ExtractSliceOp.from_static_parameters(value, offsets, sizes, strides)
