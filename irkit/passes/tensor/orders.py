"""Values whose dimensions lie in memory in another order, and the ops that make them so.

An order lists the dimensions of a value as they lie, the fastest last. What an op computes hangs on no
order: a `linalg.generic` reads through its maps, and its loops may run in any order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects import tensor
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    IntegerAttr,
    TensorType,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.dialects.constants import constant, constant_array
from irkit.dialects.linalg_generic import is_elementwise, iterators, maps
from irkit.dialects.reassociation import groups_of
from irkit.dialects.types import DYNAMIC, int_array, ints, tensor_type
from irkit.weights import WeightStore

Order = tuple[int, ...]
Groups = ArrayAttr[ArrayAttr[IntegerAttr]]


def in_order(value: SSAValue, order: Sequence[int]) -> TensorType:
    """The type of `value` with its dimensions in another order."""
    t = tensor_type(value)
    shape = t.get_shape()
    return TensorType(t.element_type, [shape[d] for d in order])


def natural(order: Sequence[int]) -> bool:
    """Whether nothing moves."""
    return list(order) == list(range(len(order)))


def loops_of(expr: AffineExpr) -> list[int]:
    """Loops of an index, in the order in which it names them."""
    return list(dict.fromkeys(e.position for e in expr.dfs() if isinstance(e, AffineDimExpr)))


@dataclass
class Orders:
    """Values that were made anew in another order, and what makes more of them."""

    weights: WeightStore
    moved: dict[SSAValue, tuple[Order, SSAValue]] = field(
        default_factory=dict[SSAValue, tuple[Order, SSAValue]]
    )
    _copies: dict[tuple[SSAValue, Order], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, Order], SSAValue]
    )

    def order(self, value: SSAValue) -> Order | None:
        """In which order `value` was made anew; None if it was not."""
        found = self.moved.get(value)
        return None if found is None else found[0]

    def insert(self, op: Operation, before: Operation) -> SSAValue:
        """`op` in its place; its first result."""
        for inner in op.walk():
            inner.location = before.location
        Rewriter.insert_op(op, InsertPoint.before(before))
        return op.results[0]

    def wanted(self, value: SSAValue, order: Order, before: Operation) -> SSAValue:
        """`value` in an order: as it was made, or made anew where that is free, or else copied."""
        known, made = self.moved.get(value, (None, value))
        if known == order or (known is None and natural(order)):
            return made
        if (value, order) not in self._copies:
            free = self._free(value, order, before) if known is None else None
            if free is None:
                own = known if known is not None else tuple(range(len(order)))
                free = self.copied(made, tuple(own.index(d) for d in order), before)
            self._copies[value, order] = free
        return self._copies[value, order]

    def _free(self, value: SSAValue, order: Order, before: Operation) -> SSAValue | None:
        """A destination, a fill, a broadcast or a constant in an order; None for what would take a copy."""
        op, result = value.owner, in_order(value, order)
        array = constant_array(value, self.weights)
        if array is not None and array.shape:
            turned = np.ascontiguousarray(array.transpose(order))
            return self.insert(constant(turned, self.weights), before)
        if isinstance(op, tensor.EmptyOp):
            return self.insert(tensor.EmptyOp([], result), before)
        if isinstance(op, linalg.FillOp):
            empty = self.insert(tensor.EmptyOp([], result), before)
            return self.insert(linalg.FillOp(op.inputs, [empty]), before)
        if isinstance(op, linalg.GenericOp) and is_elementwise(op) and movable(op):
            return self.generic(op, order, before)
        return None

    def copied(self, value: SSAValue, order: Order, before: Operation) -> SSAValue:
        """`value` copied to another order."""
        result = in_order(value, order)
        empty = self.insert(tensor.EmptyOp([], result), before)
        block = Block(arg_types=[result.element_type, result.element_type])
        block.add_op(linalg.YieldOp(block.args[0]))
        rank = len(order)
        read = AffineMap(rank, 0, tuple(AffineDimExpr(order.index(d)) for d in range(rank)))
        copy = linalg.GenericOp(
            [value],
            [empty],
            Region(block),
            ArrayAttr(AffineMapAttr(m) for m in (read, AffineMap.identity(rank))),
            ArrayAttr([IteratorTypeAttr.parallel()] * rank),
            [result],
        )
        return self.insert(copy, before)

    def generic(
        self,
        op: linalg.GenericOp,
        order: Order,
        before: Operation,
        reduction: Sequence[int] | None = None,
        inputs: Sequence[tuple[Order, SSAValue] | None] = (),
    ) -> SSAValue:
        """`op` with its result in an order, its loops too; those that are summed in the order `reduction`.

        Inputs are read as they were made, or from `inputs`, where these say what to read and in which order.
        """
        own = [d for d, parallel in enumerate(iterators(op)) if not parallel]
        loops = [*order, *(own if reduction is None else reduction)]
        place = [AffineDimExpr(loops.index(d)) for d in range(len(loops))]
        given = [*inputs, *[None] * (len(op.inputs) - len(inputs))]
        read: list[SSAValue] = []
        indexing: list[AffineMap] = []
        for value, amap, said in zip(op.inputs, maps(op), given, strict=False):
            rank = range(tensor_type(value).get_num_dims())
            how, made = said or self.moved.get(value, (tuple(rank), value))
            read.append(made)
            indexing.append(_moved(amap, how, place))
        indexing.append(_moved(maps(op)[-1], order, place))
        kinds = [op.iterator_types.data[d] for d in loops]
        result = in_order(op.results[0], order)
        made = linalg.GenericOp(
            read,
            [self.wanted(op.outputs[0], order, before)],
            op.body.clone(),
            ArrayAttr(AffineMapAttr(m) for m in indexing),
            ArrayAttr(kinds),
            [result],
        )
        made.attributes.update(op.attributes)
        return self.insert(made, before)

    def pad(self, op: tensor.PadOp, order: Order, before: Operation) -> SSAValue:
        """`op` in the order of its source."""
        low, high = ([ints(sizes)[d] for d in order] for sizes in (op.static_low, op.static_high))
        source, result = self.wanted(op.source, order, before), in_order(op.result, order)
        made = tensor.PadOp(source, [], [], op.region.clone(), low, high, result)
        return self.insert(made, before)

    def sliced(self, op: tensor.ExtractSliceOp, order: Order, before: Operation) -> SSAValue:
        """`op`, of known offsets, sizes and strides, in the order of its source."""
        given = (op.static_offsets, op.static_sizes, op.static_strides)
        offsets, sizes, strides = ([ints(numbers)[d] for d in order] for numbers in given)
        source, result = self.wanted(op.source, order, before), in_order(op.result, order)
        made = tensor.ExtractSliceOp(source, offsets, sizes, strides, result)
        return self.insert(made, before)

    def concat(self, op: tensor.ConcatOp, order: Order, before: Operation) -> SSAValue:
        """`op` with its operands, and its result, in an order."""
        inputs = [self.wanted(v, order, before) for v in op.inputs]
        place = order.index(op.dim.value.data)
        return self.insert(tensor.ConcatOp(inputs, place, in_order(op.result, order)), before)

    def expanded(self, op: tensor.ExpandShapeOp, before: Operation) -> tuple[Order, SSAValue]:
        """Dimensions split where they lie."""
        own, source = self.moved[op.src]
        groups = groups_of(op)
        order = tuple(d for s in own for d in groups[s])
        result = in_order(op.result, order)
        made = tensor.ExpandShapeOp.create(
            operands=[source],
            result_types=[result],
            properties={
                "reassociation": _counted([len(groups[s]) for s in own]),
                "static_output_shape": int_array(result.get_shape()),
            },
        )
        return order, self.insert(made, before)

    def collapsed(
        self, op: tensor.CollapseShapeOp, before: Operation
    ) -> tuple[Order, SSAValue] | None:
        """Dimensions joined where they lie; None where they lie apart."""
        own, source = self.moved[op.src]
        groups = groups_of(op)
        order = sorted(range(len(groups)), key=lambda g: own.index(groups[g][0]))
        if [d for g in order for d in groups[g]] != list(own):
            return None
        made = tensor.CollapseShapeOp.create(
            operands=[source],
            result_types=[in_order(op.result, order)],
            properties={"reassociation": _counted([len(groups[g]) for g in order])},
        )
        return tuple(order), self.insert(made, before)


def movable(op: linalg.GenericOp) -> bool:
    """Whether a generic's loops may run in another order: one result, over all parallel loops in order, and
    nothing that asks where an element stands; sizes that are known."""
    rank = sum(iterators(op))
    first = list(maps(op)[-1].results) == [AffineDimExpr(d) for d in range(rank)]
    known = all(DYNAMIC not in tensor_type(v).get_shape() for v in op.operands)
    asks = any(isinstance(inner, linalg.IndexOp) for inner in op.body.walk())
    parallel_first = all(iterators(op)[:rank])
    return len(op.results) == 1 and first and known and parallel_first and not asks


def _moved(amap: AffineMap, order: Order, place: Sequence[AffineExpr]) -> AffineMap:
    """How an operand in another order is indexed by loops in other places."""
    results = [amap.results[d].replace_dims_and_symbols(list(place), []) for d in order]
    return AffineMap(len(place), 0, tuple(results))


def _counted(sizes: Sequence[int]) -> Groups:
    """Runs of so many dimensions each, one behind the other."""
    ends = [sum(sizes[: n + 1]) for n in range(len(sizes))]
    return ArrayAttr(
        ArrayAttr(IntegerAttr(d, i64) for d in range(end - size, end))
        for size, end in zip(sizes, ends, strict=True)
    )


def multiple(size: int, of: int) -> int:
    """The least multiple of a number that is no less than `size`."""
    return math.ceil(size / of) * of
