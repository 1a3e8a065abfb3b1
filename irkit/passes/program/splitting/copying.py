"""Ops of a function again, for some rows of their results."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.tensor import InsertSliceOp
from xdsl.ir import Block, Operation, SSAValue

from irkit.dialects.constants import constant_array
from irkit.dialects.graph import ExpandOp, SliceOp
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.types import int_array, ints
from irkit.passes.program.emitter import Emitter
from irkit.passes.program.splitting.bands import Band
from irkit.passes.program.splitting.demands import Demands, operand_rows
from irkit.passes.program.splitting.rules import resized, shape_of
from irkit.weights import WeightStore


class RowCopy:
    """Copies ops to the end of `block`: for `units` units where rows of their results are needed, as they are
    where all is.

    `rows` and `wholes`: what is there of values already.
    """

    def __init__(self, block: Block, weights: WeightStore, demands: Demands, units: int) -> None:
        self.emitter = Emitter(block, weights)
        self.rows: dict[SSAValue, SSAValue] = {}
        self.wholes: dict[SSAValue, SSAValue] = {}
        self._weights, self._demands, self._units = weights, demands, units
        self._cut: dict[tuple[SSAValue, Band], SSAValue] = {}

    def copy(self, op: Operation) -> None:
        """An op of the function, in the order of its text."""
        self.emitter.location = op.location
        demands = self._demands
        for number, result in enumerate(op.results):
            if result in demands.bands and result not in self.rows:
                self.rows[result] = self._of_rows(op, number, demands.bands[result])
        needed = [r for r in op.results if r in demands.wholes and r not in demands.given]
        if needed and any(r not in self.wholes for r in needed):
            self.whole(op)

    def whole(self, op: Operation) -> None:
        """An op as it is."""
        made = self.emitter.add(op.clone(dict(self.wholes)))
        self.wholes.update(zip(op.results, made.results, strict=True))

    def part(self, value: SSAValue, band: Band) -> SSAValue:
        """Rows of a value, of which at least these are there."""
        have, there = self._demands.bands[value], self.rows[value]
        if have == band:
            return there
        if (value, band) not in self._cut:
            shape = list(shape_of(there))
            offsets, sizes = [0] * len(shape), shape
            offsets[band.axis] = band.low - have.low
            sizes[band.axis] = band.count(self._units)
            self._cut[value, band] = self.emitter.graph(
                SliceOp, there, offsets=offsets, sizes=sizes, strides=[1] * len(shape)
            )
        return self._cut[value, band]

    def inserted(self, op: InsertSliceOp, part: SSAValue, under: SSAValue, axis: int) -> SSAValue:
        """A part put into as many rows of what is under it."""
        offsets, sizes = list(ints(op.static_offsets)), list(ints(op.static_sizes))
        offsets[axis], sizes[axis] = 0, shape_of(part)[axis]
        made = InsertSliceOp.build(
            operands=[part, under, [], [], []],
            properties={
                "static_offsets": int_array(offsets),
                "static_sizes": int_array(sizes),
                "static_strides": op.static_strides,
            },
            result_types=[under.type],
        )
        return self.emitter.add(made).results[0]

    def _of_rows(self, op: Operation, result: int, band: Band) -> SSAValue:
        if isinstance(op, ConstantOp):
            return self._splat(op, band)
        bands = operand_rows(op, result, band)
        if isinstance(op, SliceOp):
            # It starts elsewhere in the rows that are there.
            operands, first = [self.rows[op.x]], self._demands.bands[op.x]
        else:
            pairs = zip(op.operands, bands, strict=True)
            operands = [self.wholes[v] if b is None else self.part(v, b) for v, b in pairs]
            first = bands[0] if bands else None
        if isinstance(op, InsertSliceOp):
            return self.inserted(op, operands[0], operands[1], band.axis)
        assert isinstance(op, GraphOp)
        made = type(op).make(operands, resized(op, band, first, self._units))
        made.attributes.update(op.attributes)
        return self.emitter.add(made).results[result]

    def _splat(self, op: ConstantOp, band: Band) -> SSAValue:
        array = constant_array(op.result, self._weights)
        assert array is not None
        one = self.emitter.constant(np.asarray(array.reshape(-1)[0]))
        shape = list(shape_of(op.result))
        shape[band.axis] = band.count(self._units)
        return self.emitter.graph(ExpandOp, one, shape=shape)


def shape_of_rows(value: SSAValue, band: Band, units: int) -> tuple[int, ...]:
    """The shape of so many units of rows of a value."""
    shape = list(shape_of(value))
    shape[band.axis] = band.count(units)
    return tuple(shape)
