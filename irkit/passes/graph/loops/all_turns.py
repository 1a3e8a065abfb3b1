"""What turns of a loop compute, for all turns at once: values of one dimension more, the first, of the turns.

The rules are vmap's batching rules, of the ops that loops of array programs have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects import scf, tensor
from xdsl.dialects.builtin import IntegerAttr, TensorType, UnknownLoc, i64
from xdsl.ir import Attribute, Operation, SSAValue

from irkit.dialects.constants import constant
from irkit.dialects.graph import (
    ArgmaxOp,
    CumSumOp,
    ExpandOp,
    GatherOp,
    GraphOp,
    MatmulOp,
    ReduceOp,
    ReshapeOp,
    SliceOp,
    SoftmaxOp,
    TransposeOp,
    elementwise,
    functions,
    integer,
    logic,
)
from irkit.dialects.loop_places import Affine, affine, offsets_of, trips_of
from irkit.dialects.types import DYNAMIC, int_array, ints, numpy_dtype, tensor_type
from irkit.dialects.types import tensor as tensor_like
from irkit.weights import WeightStore

ELEMENTWISE = tuple(op for group in (elementwise, functions, integer, logic) for op in group.OPS)


class OneByOne(Exception):
    """Why the turns of a loop are not computed at once."""


@dataclass
class Emitter:
    """Makes ops, which nothing has yet: of all turns, or of none if there is a reason against it."""

    weights: WeightStore
    ops: list[Operation] = field(default_factory=list[Operation])
    location: Attribute = field(default_factory=UnknownLoc)

    def __call__(self, op: Operation) -> SSAValue:
        op.location = self.location  # pyright: ignore[reportAttributeAccessIssue]
        self.ops.append(op)
        return op.results[0]

    def give_up(self) -> None:
        """Erase what was made: ops that stand nowhere would still be uses of what they read."""
        while self.ops:
            self.ops.pop().erase()

    def constant(self, array: np.ndarray[Any, Any]) -> SSAValue:
        """A constant tensor."""
        return self(constant(array, self.weights))

    def reshaped(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """A value in another shape."""
        if shape_of(value) == tuple(shape):
            return value
        return self(ReshapeOp.make([value], {"shape": int_array(shape)}))

    def expanded(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """A value broadcast to a shape."""
        if shape_of(value) == tuple(shape):
            return value
        return self(ExpandOp.make([value], {"shape": int_array(shape)}))

    def transposed(self, value: SSAValue, order: Sequence[int]) -> SSAValue:
        """A value with its dimensions in another order."""
        if list(order) == sorted(order):
            return value
        return self(TransposeOp.make([value], {"permutation": int_array(order)}))

    def to_front(self, value: SSAValue, axis: int) -> SSAValue:
        """A value with dimension `axis` first."""
        rest = [d for d in range(len(shape_of(value))) if d != axis]
        return self.transposed(value, [axis, *rest])

    def gathered(self, value: SSAValue, rows: np.ndarray[Any, Any], axis: int) -> SSAValue:
        """Elements of a value along an axis, at constant places."""
        taken = self.constant(rows.astype(np.int64))
        return self(GatherOp.make([value, taken], {"axis": IntegerAttr(axis, i64)}))


def shape_of(value: SSAValue) -> tuple[int, ...]:
    """Extents of a tensor."""
    return tensor_type(value).get_shape()


@dataclass
class AllTurns:
    """Values of a loop's body for all of its turns. `same`: what each turn has, as it is outside of the loop;
    `turned`: what turns have of their own, n x shape. Raises OneByOne where there is no rule."""

    loop: scf.ForOp
    emit: Emitter
    same: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    turned: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])

    def __post_init__(self) -> None:
        self.count = trips_of(self.loop).count

    def add(self, op: Operation) -> None:
        """Compute what an op of the body gives, whose operands were computed before."""
        self.emit.location = op.location
        if isinstance(op, tensor.FromElementsOp | tensor.SplatOp):
            self._number(op)
        elif isinstance(op, tensor.ExtractSliceOp):
            self._slice(op)
        elif not any(v in self.turned for v in op.operands) and self._is_value(op):
            for result, made in zip(op.results, self._hoisted(op), strict=True):
                self.same[result] = made
        elif isinstance(op, GraphOp) and type(op) in RULES:
            self.turned[op.results[0]] = RULES[type(op)](self, op)
        else:
            raise OneByOne(f"'{op.name}' has no rule for all turns at once")

    def of_all(self, value: SSAValue) -> SSAValue:
        """A value for all turns, the same one for each where it hangs on none."""
        if value in self.turned:
            return self.turned[value]
        return self.emit.expanded(self.outside(value), [self.count, *shape_of(value)])

    def outside(self, value: SSAValue) -> SSAValue:
        """A value that hangs on no turn, as it is outside. Raises OneByOne for one that is the loop's."""
        found = self.same.get(value, value)
        if found is value and self.is_inside(value):
            raise OneByOne("a place hangs on what the loop computes")
        return found

    def place(self, index: SSAValue) -> SSAValue:
        """An index that hangs on no turn, as it is outside. Raises OneByOne where it does."""
        if index in self.same or not self.is_inside(index):
            return self.same.get(index, index)
        op = index.owner
        if not isinstance(op, Operation) or not op.name.startswith("arith."):
            raise OneByOne("a place hangs on what the loop computes")
        self.same[index] = self.emit(op.clone({v: self.place(v) for v in op.operands}))
        return self.same[index]

    def is_inside(self, value: SSAValue) -> bool:
        """Whether a value is made in the loop."""
        owner: Any = value.owner
        while owner is not None and owner is not self.loop:
            owner = owner.parent_op()
        return owner is self.loop

    @staticmethod
    def _is_value(op: Operation) -> bool:
        return isinstance(op, GraphOp) or op.name == "arith.constant"

    def _hoisted(self, op: Operation) -> Sequence[SSAValue]:
        made = op.clone({v: self.outside(v) for v in op.operands})
        self.emit(made)
        return made.results

    def _number(self, op: tensor.FromElementsOp | tensor.SplatOp) -> None:
        """A loop's variable as a number."""
        if len(op.operands) != 1:
            raise OneByOne(f"'{op.name}' of several scalars")
        place, result = affine(op.operands[0]), op.results[0]
        if set(place.terms) != {self.loop}:
            raise OneByOne("a number hangs on another loop")
        kind = numpy_dtype(tensor_type(result).element_type)
        numbers = place.constant + place.terms[self.loop] * np.arange(self.count, dtype=np.int64)
        rank = len(shape_of(result))
        made = self.emit.constant(numbers.astype(kind).reshape(self.count, *[1] * rank))
        self.turned[result] = self.emit.expanded(made, [self.count, *shape_of(result)])

    def _slice(self, op: tensor.ExtractSliceOp) -> None:
        """A part of what hangs on no turn: rows of it, or windows that are gathered."""
        source, places = self.outside(op.source), offsets_of(op)
        moving = [d for d, p in enumerate(places) if self.loop in p.terms]
        if len(moving) > 1 and set(ints(op.static_sizes)) == {1}:
            self._elements(op, source, places)
            return
        if op.sizes or op.strides or len(moving) != 1 or len(places[moving[0]].terms) > 1:
            raise OneByOne("a slice moves in several dimensions, with another loop, or not at all")
        (axis,), steps = moving, ints(op.static_strides)
        sizes = ints(op.static_sizes)
        source = self._along_axis(op, source, places, axis)
        turns = places[axis].constant + places[axis].terms[self.loop] * np.arange(self.count)
        rows = turns[:, None] + steps[axis] * np.arange(sizes[axis])
        made = self._rows(source, rows, axis)
        self.turned[op.result] = self.emit.reshaped(made, [self.count, *shape_of(op.result)])

    def _along_axis(
        self, op: tensor.ExtractSliceOp, source: SSAValue, places: Sequence[Affine], axis: int
    ) -> SSAValue:
        """What a slice is of, cut in all dimensions but the one in which turns move it."""
        given = iter(op.offsets)
        found = [next(given) if o == DYNAMIC else None for o in ints(op.static_offsets)]
        others = {
            d: self.place(v)
            for d, v in enumerate(found)
            if d != axis and places[d].terms and v is not None
        }
        shape = list(shape_of(source))
        kept = [0 if d == axis else p.constant for d, p in enumerate(places)]
        taken = [shape[d] if d == axis else s for d, s in enumerate(ints(op.static_sizes))]
        along = [1 if d == axis else s for d, s in enumerate(ints(op.static_strides))]
        if taken == shape:
            return source
        if not others:
            props = {"offsets": kept, "sizes": taken, "strides": along}
            return self.emit(SliceOp.make([source], {k: int_array(v) for k, v in props.items()}))
        moved = [DYNAMIC if d in others else n for d, n in enumerate(kept)]
        part = tensor.ExtractSliceOp.build(
            operands=[source, list(others.values()), [], []],
            properties={
                "static_offsets": int_array(moved),
                "static_sizes": int_array(taken),
                "static_strides": int_array(along),
            },
            result_types=[tensor_like(tensor_type(source).element_type, taken)],
        )
        return self.emit(part)

    def _elements(
        self, op: tensor.ExtractSliceOp, source: SSAValue, places: Sequence[Affine]
    ) -> None:
        """An element of each turn, as those of a diagonal are."""
        if any(set(p.terms) - {self.loop} for p in places):
            raise OneByOne("a slice moves with another loop")
        turns = np.zeros(self.count, np.int64)
        for place, extent in zip(places, shape_of(source), strict=True):
            turns = turns * extent + place.constant
            turns += place.terms.get(self.loop, 0) * np.arange(self.count)
        line = self.emit.reshaped(source, [prod(shape_of(source))])
        found = self._rows(line, turns[:, None], 0)
        self.turned[op.result] = self.emit.reshaped(found, [self.count, *shape_of(op.result)])

    def _rows(self, source: SSAValue, rows: np.ndarray[Any, Any], axis: int) -> SSAValue:
        """turns x taken rows of a dimension, which the turns lead."""
        begin, step = int(rows[0, 0]), int(rows[1, 0] - rows[0, 0])
        if rows.shape[1] > 1 or step < 1:
            return self.emit.to_front(self.emit.gathered(source, rows, axis), axis)
        shape = list(shape_of(source))
        if (begin, step, len(rows)) != (0, 1, shape[axis]):
            rank = len(shape)
            props = {
                "offsets": [begin if d == axis else 0 for d in range(rank)],
                "sizes": [len(rows) if d == axis else s for d, s in enumerate(shape)],
                "strides": [step if d == axis else 1 for d in range(rank)],
            }
            source = self.emit(SliceOp.make([source], {k: int_array(v) for k, v in props.items()}))
        return self.emit.to_front(source, axis)


Rule = Callable[[AllTurns, GraphOp], SSAValue]


def _made(
    turns: AllTurns, op: GraphOp, operands: Sequence[SSAValue], **changed: Attribute
) -> SSAValue:
    return turns.emit(type(op).make(operands, {**op.properties, **changed}))


def _with_rank(turns: AllTurns, value: SSAValue, rank: int) -> SSAValue:
    """What turns have of a value, aligned with one of `rank` dimensions a turn; others as they are."""
    if value not in turns.turned:
        return turns.outside(value)
    shape = shape_of(value)
    return turns.emit.reshaped(
        turns.turned[value], [turns.count, *[1] * (rank - len(shape)), *shape]
    )


def _elementwise(turns: AllTurns, op: GraphOp) -> SSAValue:
    if len(op.results) != 1:
        raise OneByOne(f"'{op.name}' has several results")
    rank = len(shape_of(op.results[0]))
    return _made(turns, op, [_with_rank(turns, v, rank) for v in op.operands])


def _reshape(turns: AllTurns, op: GraphOp) -> SSAValue:
    shape = [turns.count, *shape_of(op.results[0])]
    return turns.emit.reshaped(turns.turned[op.operands[0]], shape)


def _expand(turns: AllTurns, op: GraphOp) -> SSAValue:
    shape = [turns.count, *shape_of(op.results[0])]
    return turns.emit.expanded(_with_rank(turns, op.operands[0], len(shape) - 1), shape)


def _transpose(turns: AllTurns, op: GraphOp) -> SSAValue:
    order = [0, *(d + 1 for d in ints(op.properties["permutation"]))]
    return turns.emit.transposed(turns.turned[op.operands[0]], order)


def _slice(turns: AllTurns, op: GraphOp) -> SSAValue:
    first = {"offsets": 0, "sizes": turns.count, "strides": 1}
    changed = {k: int_array([n, *ints(op.properties[k])]) for k, n in first.items()}
    return _made(turns, op, [turns.turned[op.operands[0]]], **changed)


def _reduce(turns: AllTurns, op: GraphOp) -> SSAValue:
    axes = int_array([d + 1 for d in ints(op.properties["axes"])])
    return _made(turns, op, [turns.turned[op.operands[0]]], axes=axes)


def _along(turns: AllTurns, op: GraphOp) -> SSAValue:
    axis = op.properties["axis"]
    assert isinstance(axis, IntegerAttr)
    behind = IntegerAttr(axis.value.data + 1, i64)
    return _made(turns, op, [turns.turned[op.operands[0]]], axis=behind)


def _gather(turns: AllTurns, op: GraphOp) -> SSAValue:
    """Of an array of each turn, at places that are the same in each."""
    x, places = op.operands
    if places in turns.turned:
        raise OneByOne("each turn gathers at places of its own")
    axis = op.properties["axis"]
    assert isinstance(axis, IntegerAttr)
    behind = IntegerAttr(axis.value.data + 1, i64)
    return _made(turns, op, [turns.turned[x], turns.outside(places)], axis=behind)


def _matmul(turns: AllTurns, op: GraphOp) -> SSAValue:
    """Where one factor is the same in each turn, one product of all rows, or columns; else one a turn."""
    a, b = op.operands
    emit, n = turns.emit, turns.count
    rows, columns = shape_of(op.results[0])[-2:]
    if b not in turns.turned and len(shape_of(a)) == len(shape_of(b)) == 2:
        left = emit.reshaped(turns.turned[a], [n * rows, shape_of(a)[1]])
        product = _made(turns, op, [left, turns.outside(b)])
        return emit.reshaped(product, [n, rows, columns])
    if a not in turns.turned and len(shape_of(a)) == len(shape_of(b)) == 2:
        # Columns of all turns side by side.
        inner = shape_of(b)[0]
        right = emit.transposed(turns.turned[b], [1, 0, 2])
        right = emit.reshaped(right, [inner, n * columns])
        product = _made(turns, op, [turns.outside(a), right])
        return emit.transposed(emit.reshaped(product, [rows, n, columns]), [1, 0, 2])
    rank = len(shape_of(op.results[0]))
    return _made(turns, op, [_with_rank(turns, v, rank) for v in op.operands])


RULES: Mapping[type[Operation], Rule] = {
    **{op: _elementwise for op in ELEMENTWISE},
    ArgmaxOp: _along,
    CumSumOp: _along,
    ExpandOp: _expand,
    GatherOp: _gather,
    MatmulOp: _matmul,
    ReduceOp: _reduce,
    ReshapeOp: _reshape,
    SliceOp: _slice,
    SoftmaxOp: _along,
    TransposeOp: _transpose,
}
"""Graph ops that are known for all turns at once, of one result each."""


def elements(ops: Sequence[Operation]) -> int:
    """Elements of the largest result of any of these."""
    results = [r for op in ops for r in op.results if isinstance(r.type, TensorType)]
    shapes = [shape_of(r) for r in results]
    return max((prod(s) for s in shapes), default=0)
