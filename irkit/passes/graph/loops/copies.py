"""Copies of what slices at moving places are read from, or inserted into, where these cannot be in place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from xdsl.dialects import tensor
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.dialects.graph import ReshapeOp
from irkit.dialects.loop_places import moves
from irkit.dialects.loops import body_of, is_body, is_loop, starts_of
from irkit.dialects.types import int_array, tensor_type
from irkit.passes.graph.loops.segments import (
    Item,
    Node,
    Segment,
    apart,
    is_constant,
    position,
    root_of,
)


def blocks_of(function: FuncOp) -> list[Block]:
    """The blocks of a function and of its loops."""
    inner = [body_of(op) for op in function.body.walk() if is_loop(op)]
    return [function.body.block, *inner]


def copy_where_read(block: Block) -> None:
    """Have each insertion at a moving place go into a value of its own, which nothing reads behind it, and
    each slice be of no constant."""
    for op in list(block.ops):
        if isinstance(op, tensor.ExtractSliceOp) and moves(op) and is_constant(op.source):
            op.operands[0] = _copied(op.source, _outermost(op))
        elif isinstance(op, tensor.InsertSliceOp) and moves(op) and not _in_place(op, block):
            op.operands[1] = _copied(op.dest, op)


def copy_where_written(block: Block, items: Sequence[Item]) -> None:
    """Have what is read of a slice in a later segment than its own be a copy, where something is inserted in
    its place before or there."""
    for number, item, op in _slices(items):
        first = _first_written(op, items[number:])
        if first is not None:
            _copy_for(op, item, items, number + max(first, 1), block)


def copy_where_replaced(
    block: Block, items: Sequence[Item], place_of: Callable[[Node], Node]
) -> None:
    """Have what is read of a slice be a copy from the segment on that writes all of the array that it is of.

    Nodes of one `place_of` lie in one place. A segment that has a slice itself writes no such array.
    """
    for number, item, op in _slices(items):
        place = place_of(op.source)
        for later in range(number + 1, len(items)):
            if any(place_of(node) == place for node in _made(items[later])):
                _copy_for(op, item, items, later, block)
                break


def _slices(items: Sequence[Item]) -> Iterator[tuple[int, Segment, tensor.ExtractSliceOp]]:
    """All slices that segments read, with these and their numbers."""
    for number, item in enumerate(items):
        if isinstance(item, Segment):
            yield from ((number, item, op) for op in item.before)


def _made(item: Item) -> list[Node]:
    """What a segment makes as a whole."""
    if not isinstance(item, Segment):
        return []
    return [*(r for op in item.ops for r in op.results), *item.copied]


def _copy_for(
    op: tensor.ExtractSliceOp, item: Segment, items: Sequence[Item], start: int, block: Block
) -> None:
    """Have all readers of a slice from item `start` on read a copy, which its own segment makes."""
    later = [u for u in op.result.uses if position(items, u.operation, block) >= start]
    if not later:
        return
    shape = int_array(tensor_type(op.result).get_shape())
    copy = ReshapeOp.make([op.result], {"shape": shape})
    Rewriter.insert_op(copy, InsertPoint.after(op))
    item.ops.append(copy)
    for use in later:
        use.operation.operands[use.index] = copy.results[0]


def _first_written(op: tensor.ExtractSliceOp, items: Sequence[Item]) -> int | None:
    """Which of these items is the first to insert anything into bytes of a slice."""
    root = root_of(op.source)
    for number, item in enumerate(items):
        if not isinstance(item, Segment):
            written = any(root_of(v) is root for v in starts_of(item))
        else:
            written = any(root_of(o.dest) is root and not apart(o, op) for o in item.behind)
        if written:
            return number
    return None


def _copied(value: SSAValue, before: Operation) -> SSAValue:
    """The same value again, made before an op."""
    copy = ReshapeOp.make([value], {"shape": int_array(tensor_type(value).get_shape())})
    Rewriter.insert_op(copy, InsertPoint.before(before))
    return copy.results[0]


def _outermost(op: Operation) -> Operation:
    """The outermost loop that an op is in, or the op itself."""
    found, parent = op, op.parent_op()
    while is_loop(parent):
        found, parent = parent, parent.parent_op()
    return found


def _in_place(op: tensor.InsertSliceOp, block: Block) -> bool:
    """Whether nothing reads what a slice is inserted into behind that, and it is the block's own."""
    dest = op.dest
    if is_constant(dest):
        return False
    if isinstance(dest, BlockArgument):
        own = dest.owner is block and is_body(block)
    else:
        own = isinstance(dest.owner, Operation) and dest.owner.parent is block
    order = {inner: number for number, inner in enumerate(block.ops)}
    users = [_in_block(use.operation, block) for use in dest.uses if use.operation is not op]
    return own and all(u is not None and order[u] < order[op] for u in users)


def _in_block(op: Operation, block: Block) -> Operation | None:
    """The op of the block that an op is, or is in."""
    found: Operation | None = op
    while found is not None and found.parent is not block:
        found = found.parent_op()
    return found
