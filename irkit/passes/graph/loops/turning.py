"""The order of dimensions in which slices of a web lie side by side, and the rewrite to it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import DenseArrayBase
from xdsl.dialects.func import FuncOp
from xdsl.dialects.tensor import ExtractSliceOp, InsertSliceOp
from xdsl.ir import Block, Operation, SSAValue, Use
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.dialects.graph import ReshapeOp, SliceOp, TransposeOp
from irkit.dialects.loop_places import is_run, offsets_of
from irkit.dialects.loops import LoopOp, first_start, is_body, is_loop
from irkit.dialects.types import DYNAMIC, int_array, ints, tensor, tensor_type
from irkit.passes.graph.loops.webs import Part, Web, in_loop, is_part, trips_around

GATHERED = 4
"""What an element costs that is gathered, or stored among others, in elements that are copied in a row."""


def order_for(web: Web) -> tuple[int, ...] | None:
    """The order of dimensions in which the moving slices of a web cost least, turning it there and back
    counted; None where that is the order it has, or where an iteration needs all of the array as it is."""
    if not can_turn(web):
        return None
    moving = web.moving()
    rank = len(web.type.get_shape())
    own = tuple(range(rank))
    orders = dict.fromkeys([own, *(_leading(op, rank) for op in moving)])
    turns = len(web.sources()) + len(_loop_starts(web)) + len(web.others())
    turned = 2 * prod(web.type.get_shape()) * turns
    costs = {o: _cost(moving, o) + (turned if o != own else 0) for o in orders}
    best = min(costs, key=lambda o: costs[o])
    return None if best == own else best


def can_turn(web: Web) -> bool:
    """Whether iterations take nothing but parts of an array, of sizes that are known."""
    if any(op.sizes or op.strides for op in web.moving()):
        return False
    return not (any(map(in_loop, web.sources())) or any(map(_in_body, web.others())))


def _in_body(use: Use) -> bool:
    return is_body(use.operation.parent)


def _loop_starts(web: Web) -> list[tuple[LoopOp, int]]:
    """Loops, and which of their operands is another array before it is this one."""
    found = [
        (v.owner, first_start(v.owner) + n)
        for v in web.values
        if is_loop(v.owner)
        for n, r in enumerate(v.owner.results)
        if r is v
    ]
    return [(loop, n) for loop, n in found if loop.operands[n] not in web.values]


def _leading(op: Part, rank: int) -> tuple[int, ...]:
    """Dimensions of which a slice has one element first, those that it has in part next."""
    sizes, shape = _sizes(op), tensor_type(op.operands[int(isinstance(op, InsertSliceOp))])
    moves = [bool(p.terms) for p in offsets_of(op)]

    def key(d: int) -> tuple[bool, bool, bool]:
        whole = sizes[d] == shape.get_shape()[d]
        return whole, sizes[d] != 1, not moves[d]

    return tuple(sorted(range(rank), key=key))


def _sizes(op: Part) -> list[int]:
    return ints(op.static_sizes)


def _cost(moving: Sequence[Part], order: Sequence[int]) -> int:
    return sum(_cost_of(op, order) for op in moving)


def _cost_of(op: Part, order: Sequence[int]) -> int:
    inserts = isinstance(op, InsertSliceOp)
    shape, sizes = tensor_type(op.operands[int(inserts)]).get_shape(), _sizes(op)
    steps = any(s != 1 and n > 1 for s, n in zip(ints(op.static_strides), sizes, strict=True))
    if not steps and is_run([shape[d] for d in order], [sizes[d] for d in order]):
        return 0
    # What is inserted otherwise is chosen among all elements.
    touched = prod(shape) if inserts else GATHERED * prod(sizes)
    return touched * trips_around(op)


Place = tuple[Operation, int]
"""An operand of an op."""


class Turner:
    """Rewrites one web, in place."""

    def __init__(self, function: FuncOp, web: Web, order: Sequence[int]) -> None:
        self.function, self.web, self.order = function, web, list(order)
        self.back = [self.order.index(d) for d in range(len(self.order))]
        self.type = tensor(web.type.element_type, self._turned(web.type.get_shape()))

    def _turned(self, per_dimension: Sequence[int]) -> list[int]:
        return [per_dimension[d] for d in self.order]

    def run(self) -> None:
        """What comes in, the types, what goes out, and then the parts."""
        sources, starts = self.web.sources(), _loop_starts(self.web)
        parts = dict.fromkeys(u.operation for v in self.web.values for u in v.uses if is_part(u))
        leaving: list[Place] = []
        for value in self.web.values:
            others = [(u.operation, u.index) for u in self.web.others_of(value)]
            if value in sources:
                self._source(value, others)
            else:
                leaving += others
        for loop, operand in starts:
            start = self._transposed(loop.operands[operand], self.order, InsertPoint.before(loop))
            loop.operands[operand] = start
        for value in self.web.values:
            if value not in sources:
                Rewriter.replace_value_with_new_type(value, self.type)
        for op, operand in leaving:
            back = self._transposed(op.operands[operand], self.back, InsertPoint.before(op))
            op.operands[operand] = back
        for op in parts:
            self._part(op)

    def _source(self, value: SSAValue, others: Sequence[Place]) -> None:
        """A value that is made as a whole: turned where it is made, for all but its other uses."""
        ours = [(u.operation, u.index) for u in value.uses]
        block, owner = self.function.body.block, value.owner
        first = isinstance(owner, Block)
        place = InsertPoint.at_start(block) if first else InsertPoint.after(owner)
        turned = self._transposed(value, self.order, place)
        for op, operand in ours:
            if (op, operand) not in others:
                op.operands[operand] = turned

    def _transposed(self, value: SSAValue, order: Sequence[int], place: InsertPoint) -> SSAValue:
        op = TransposeOp.make([value], {"permutation": int_array(order)})
        Rewriter.insert_op(op, place)
        return op.results[0]

    def _part(self, op: Operation) -> None:
        if isinstance(op, SliceOp):
            props = {
                name: int_array(self._turned(ints(op.properties[name])))
                for name in ("offsets", "sizes", "strides")
            }
            self._read(op, SliceOp.make([op.operands[0]], props))
        elif isinstance(op, ExtractSliceOp):
            sizes = tensor(self.type.element_type, self._turned(_sizes(op)))
            operands = [op.source, self._offsets(op), [], []]
            made = ExtractSliceOp.build(
                operands=operands, properties=self._places(op), result_types=[sizes]
            )
            self._read(op, made)
        elif isinstance(op, InsertSliceOp):
            self._write(op)

    def _offsets(self, op: Part) -> list[SSAValue]:
        """The computed offsets, in the order of the turned dimensions."""
        computed = iter(op.offsets)
        found = [next(computed) if o == DYNAMIC else None for o in ints(op.static_offsets)]
        return [v for v in (found[d] for d in self.order) if v is not None]

    def _places(self, op: Part) -> dict[str, DenseArrayBase]:
        return {
            name: int_array(self._turned(ints(op.properties[name])))
            for name in ("static_offsets", "static_sizes", "static_strides")
        }

    def _read(self, op: Operation, made: Operation) -> None:
        """A part of the turned array, as the op had it."""
        Rewriter.insert_op(made, InsertPoint.before(op))
        value = self._moved(made.results[0], self.back, op)
        op.results[0].replace_all_uses_with(self._shaped(value, op.results[0], op))
        Rewriter.erase_op(op)

    def _write(self, op: InsertSliceOp) -> None:
        source = self._reshaped(op.source, _sizes(op), op)
        turned = self._moved(source, self.order, op)
        made = InsertSliceOp.build(
            operands=[turned, op.dest, self._offsets(op), [], []],
            properties=self._places(op),
            result_types=[self.type],
        )
        Rewriter.replace_op(op, made)

    def _moved(self, value: SSAValue, order: Sequence[int], before: Operation) -> SSAValue:
        """A value with its dimensions in another order; a reshape, where only those of extent 1 move."""
        shape = tensor_type(value).get_shape()
        longer = [d for d in order if shape[d] != 1]
        if longer == sorted(longer):
            return self._reshaped(value, [shape[d] for d in order], before)
        return self._transposed(value, order, InsertPoint.before(before))

    def _shaped(self, value: SSAValue, like: SSAValue, before: Operation) -> SSAValue:
        return self._reshaped(value, tensor_type(like).get_shape(), before)

    def _reshaped(self, value: SSAValue, shape: Sequence[int], before: Operation) -> SSAValue:
        if tensor_type(value).get_shape() == tuple(shape):
            return value
        op = ReshapeOp.make([value], {"shape": int_array(shape)})
        Rewriter.insert_op(op, InsertPoint.before(before))
        return op.results[0]
