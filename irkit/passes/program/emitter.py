"""Ops that read and write parts of tensors, put at the end of a block."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import IndexType, LocationAttr, UnknownLoc
from xdsl.ir import Attribute, Block, Operation, SSAValue

from irkit.dialects import graph
from irkit.dialects.constants import constant
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.program.views import Affine, StridedView
from irkit.dialects.properties import attribute
from irkit.dialects.types import DYNAMIC, int_array, numpy_dtype, tensor_type
from irkit.dialects.types import tensor as tensor_of
from irkit.passes.program.decode import Box
from irkit.passes.program.places import Place
from irkit.weights import Array, WeightStore


class Emitter:
    """Appends to `block`. `variables`: induction variables of the program as those of what is made."""

    def __init__(self, block: Block, weights: WeightStore) -> None:
        self.block = block
        self.location: LocationAttr = UnknownLoc()
        self.variables: dict[SSAValue, SSAValue] = {}
        self._weights = weights

    def add(self, op: Operation) -> Operation:
        """Append an op."""
        op.location = self.location
        self.block.add_op(op)
        return op

    def graph(self, op: type[GraphOp], *operands: SSAValue, **props: Any) -> SSAValue:
        """Append a graph op of one result."""
        made = op.make(operands, {k: attribute(v) for k, v in props.items()})
        return self.add(made).results[0]

    def constant(self, array: Array) -> SSAValue:
        """A constant tensor."""
        return self.add(constant(array, self._weights)).results[0]

    def index(self, number: int) -> SSAValue:
        """A constant index."""
        return self.add(arith.ConstantOp.from_int_and_width(number, IndexType())).results[0]

    def zeros(self, element: Attribute, shape: Sequence[int]) -> SSAValue:
        """A tensor of what was never written."""
        return self.expanded(self.constant(np.zeros((), numpy_dtype(element))), shape)

    def expanded(self, one: SSAValue, shape: Sequence[int]) -> SSAValue:
        """A tensor that is one element everywhere."""
        return self.graph(graph.ExpandOp, one, shape=list(shape)) if shape else one

    def reshape(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """The same elements under another shape."""
        if isinstance(value.owner, graph.ReshapeOp):
            value = value.owner.x
        if tensor_type(value).get_shape() == tuple(shape):
            return value
        return self.graph(graph.ReshapeOp, value, shape=list(shape))

    def extract(self, value: SSAValue, place: Place) -> SSAValue:
        """What is at a place of a tensor of any shape with as many elements."""
        value = self.reshape(value, place.shape)
        if place.is_whole():
            return value
        if place.is_static():
            return self._slice(value, [s.constant for s in place.starts], place.counts, place.steps)
        offsets, static = self._offsets(place)
        made = tensor.ExtractSliceOp.build(
            operands=[value, offsets, [], []],
            properties=_slice_properties(static, place),
            result_types=[tensor_of(tensor_type(value).element_type, place.counts)],
        )
        return self.add(made).results[0]

    def insert(self, part: SSAValue, value: SSAValue, place: Place) -> SSAValue:
        """A tensor with `part` at a place; of its own shape."""
        shape = tensor_type(value).get_shape()
        if place.is_whole():
            return self.reshape(part, shape)
        under = self.reshape(value, place.shape)
        offsets, static = self._offsets(place)
        made = tensor.InsertSliceOp.build(
            operands=[part, under, offsets, [], []],
            properties=_slice_properties(static, place),
            result_types=[under.type],
        )
        return self.reshape(self.add(made).results[0], shape)

    def shown(self, part: SSAValue, box: Box) -> SSAValue:
        """What is at the place of a box as the view shows it."""
        inner = sorted(box.axes)
        value = self.reshape(part, [box.place.counts[a] for a in inner])
        value = self._transpose(value, [inner.index(a) for a in box.axes])
        value = self.reshape(self._reversed(value, box.reverse), box.joined)
        if box.joined != box.broadcast:
            value = self.graph(graph.ExpandOp, value, shape=list(box.broadcast))
        return self.reshape(value, box.sizes)

    def unshown(self, value: SSAValue, box: Box) -> SSAValue:
        """What a view that shows `value`, and has no element twice, has at the place of its box."""
        counts = box.place.counts
        value = self.reshape(value, [counts[a] for a in box.axes])
        value = self._reversed(value, box.reverse)
        value = self._transpose(value, [box.axes.index(a) for a in sorted(box.axes)])
        return self.reshape(value, counts)

    def gather(self, value: SSAValue, view: StridedView) -> SSAValue:
        """What a view shows that is no box, whose place does not move."""
        flat = self.reshape(value, (math.prod(tensor_type(value).get_shape()),))
        return self.graph(graph.GatherOp, flat, self.constant(_places(view)), axis=0)

    def scatter(self, part: SSAValue, value: SSAValue, view: StridedView) -> SSAValue:
        """A tensor in which a view that is no box, whose place does not move, shows `part`."""
        shape = tensor_type(value).get_shape()
        places, elements = _places(view).reshape(-1), math.prod(shape)
        sources, marks = np.zeros(elements, np.int64), np.zeros(elements, np.bool_)
        sources[places], marks[places] = np.arange(len(places)), True
        flat = self.reshape(part, (len(places),))
        moved = self.graph(graph.GatherOp, flat, self.constant(sources), axis=0)
        mask, old = self.constant(marks), self.reshape(value, (elements,))
        return self.reshape(self.graph(graph.WhereOp, mask, moved, old), shape)

    def place_of(self, at: Affine) -> SSAValue:
        """An index that hangs on loops."""
        total: SSAValue | None = None
        for variable, factor in at.factors.items():
            term = self.variables[variable]
            if factor != 1:
                term = self.add(arith.MuliOp(term, self.index(factor))).results[0]
            total = term if total is None else self.add(arith.AddiOp(total, term)).results[0]
        assert total is not None
        if at.constant == 0:
            return total
        return self.add(arith.AddiOp(total, self.index(at.constant))).results[0]

    def _offsets(self, place: Place) -> tuple[list[SSAValue], list[int]]:
        moving = [self.place_of(s) for s in place.starts if not s.is_constant]
        return moving, [s.constant if s.is_constant else DYNAMIC for s in place.starts]

    def _slice(
        self, value: SSAValue, offsets: list[int], sizes: Sequence[int], strides: Sequence[int]
    ) -> SSAValue:
        return self.graph(
            graph.SliceOp, value, offsets=offsets, sizes=list(sizes), strides=list(strides)
        )

    def _transpose(self, value: SSAValue, permutation: list[int]) -> SSAValue:
        if permutation == sorted(permutation):
            return value
        return self.graph(graph.TransposeOp, value, permutation=permutation)

    def _reversed(self, value: SSAValue, reverse: Sequence[bool]) -> SSAValue:
        if not any(reverse):
            return value
        shape = tensor_type(value).get_shape()
        offsets = [n - 1 if back else 0 for n, back in zip(shape, reverse, strict=True)]
        return self._slice(value, offsets, shape, [-1 if back else 1 for back in reverse])


def _slice_properties(offsets: list[int], place: Place) -> dict[str, Attribute]:
    return {
        "static_offsets": int_array(offsets),
        "static_sizes": int_array(place.counts),
        "static_strides": int_array(place.steps),
    }


def _places(view: StridedView) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The number of each element in the buffer."""
    index = np.indices(view.sizes, np.int64).reshape(len(view.sizes), math.prod(view.sizes))
    places = view.offset.constant + np.asarray(view.strides, np.int64) @ index
    return places.reshape(view.sizes)
