"""For each graph op, the rows of its operands that some rows of a result need.

Most is read off the rules of the batch (`irkit/dialects/graph/batch/rules.py`): where they say that a
dimension of operands goes through an op and that its rows do not mix, rows of the result need the same
rows of those operands. Ops that move rows, or that say sizes, have rules of their own here.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from xdsl.ir import Attribute, SSAValue

from irkit.dialects.graph import ExpandOp, PadOp, ReshapeOp, SliceOp
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.batch.dims import BatchDim, Dim, RowsMix, Rule
from irkit.dialects.graph.batch.rules import RULES
from irkit.dialects.types import int_array, ints, tensor_type
from irkit.passes.program.splitting.bands import Band, Unsplittable

Needs = list[Band | None]
"""Of each operand the rows, or None for all of it."""


def needs(op: GraphOp, result: int, band: Band) -> Needs:
    """What rows `band` of a result need of the operands. Raises Unsplittable."""
    own = _OWN.get(type(op))
    return _by_batch_rule(op, result, band) if own is None else own(op, band)


def resized(op: GraphOp, band: Band, operand: Band | None, units: int) -> dict[str, Attribute]:
    """The properties of an op whose result is the rows `band` of `units`, its first operand the rows
    `operand`."""
    fix = _RESIZED.get(type(op))
    properties: dict[str, Attribute] = dict(op.properties)
    return properties if fix is None else {**properties, **fix(op, band, operand, units)}


def shape_of(value: SSAValue) -> tuple[int, ...]:
    """The shape of a tensor."""
    return tensor_type(value).get_shape()


# -- from the rules of the batch


def _by_batch_rule(op: GraphOp, result: int, band: Band) -> Needs:
    rule = RULES.get(type(op))
    if rule is None:
        raise Unsplittable("what it does to rows is not known")
    extent = shape_of(op.results[result])[band.axis]
    found: list[int | None] = []
    reasons: list[str] = []
    for number in range(len(op.operands)):
        found.append(_axis_of(op, rule, number, result, band.axis, extent, reasons))
    if all(axis is None for axis in found):
        raise Unsplittable(reasons[0] if reasons else "its rows are those of no operand")
    dims: list[Dim] = [None if axis is None else BatchDim(axis) for axis in found]
    try:
        joint = rule(op, dims)[result]
    except RowsMix as mix:
        raise Unsplittable(_of_rows(mix)) from None
    if joint != BatchDim(band.axis):
        raise Unsplittable("its rows are those of several operands one behind the other")
    return [None if axis is None else band.at(axis) for axis in found]


def _axis_of(
    op: GraphOp, rule: Rule, number: int, result: int, axis: int, extent: int, reasons: list[str]
) -> int | None:
    """The dimension of an operand that alone becomes `axis` of the result."""
    shape = shape_of(op.operands[number])
    for candidate, size in enumerate(shape):
        if size != extent:
            continue
        dims: list[Dim] = [None] * len(op.operands)
        dims[number] = BatchDim(candidate)
        try:
            if rule(op, dims)[result] == BatchDim(axis):
                return candidate
        except RowsMix as mix:
            reasons.append(_of_rows(mix))
    return None


def _of_rows(mix: RowsMix) -> str:
    return mix.reason.replace("which is the batch", "along which chunks are cut")


# -- ops that move rows, or say sizes


def _slice(op: GraphOp, band: Band) -> Needs:
    assert isinstance(op, SliceOp)
    offset, stride = ints(op.offsets)[band.axis], ints(op.strides)[band.axis]
    if stride < 1:
        raise Unsplittable(f"it goes backward along dimension {band.axis}")
    low, high = offset + stride * band.low, offset + stride * band.high
    return [Band(band.axis, stride * band.scale, low, high)]


def _slice_resized(
    op: GraphOp, band: Band, operand: Band | None, units: int
) -> dict[str, Attribute]:
    assert isinstance(op, SliceOp)
    assert operand is not None
    offsets, sizes = list(ints(op.offsets)), list(ints(op.sizes))
    offsets[band.axis] += ints(op.strides)[band.axis] * band.low - operand.low
    sizes[band.axis] = band.count(units)
    return {"offsets": int_array(offsets), "sizes": int_array(sizes)}


def _expand(op: GraphOp, band: Band) -> Needs:
    assert isinstance(op, ExpandOp)
    if op.like is not None:
        raise Unsplittable("it is as long as another value")
    have, want = shape_of(op.x), ints(op.shape)
    axis = band.axis - (len(want) - len(have))
    if axis < 0 or have[axis] != want[band.axis]:
        return [None]
    return [band.at(axis)]


def _reshape(op: GraphOp, band: Band) -> Needs:
    """Rows of the result are whole rows of the operand, under the same dimensions before them."""
    assert isinstance(op, ReshapeOp)
    have, want = shape_of(op.x), ints(op.shape)
    before, row = math.prod(want[: band.axis]), math.prod(want[band.axis + 1 :])
    for axis, size in enumerate(have):
        inner = math.prod(have[axis + 1 :])
        if size == 1 or math.prod(have[:axis]) != before or not inner:
            continue
        edges = [band.scale * row, band.low * row, (band.high + 1) * row]
        if any(edge % inner for edge in edges):
            continue
        scale, low, end = (edge // inner for edge in edges)
        return [Band(axis, scale, low, end - 1)]
    raise Unsplittable("chunks of its result are no whole rows of its operand")


def _sized(op: GraphOp, band: Band, operand: Band | None, units: int) -> dict[str, Attribute]:
    assert isinstance(op, ExpandOp | ReshapeOp)
    shape = list(ints(op.shape))
    shape[band.axis] = band.count(units)
    return {"shape": int_array(shape)}


def _pad(op: GraphOp, band: Band) -> Needs:
    assert isinstance(op, PadOp)
    if ints(op.low)[band.axis] or ints(op.high)[band.axis]:
        raise Unsplittable(f"it pads dimension {band.axis}, along which chunks are cut")
    return [band]


_OWN: dict[type[GraphOp], Callable[[GraphOp, Band], Needs]] = {
    ExpandOp: _expand,
    PadOp: _pad,
    ReshapeOp: _reshape,
    SliceOp: _slice,
}
_RESIZED: dict[type[GraphOp], Callable[[GraphOp, Band, Band | None, int], dict[str, Attribute]]] = {
    ExpandOp: _sized,
    ReshapeOp: _sized,
    SliceOp: _slice_resized,
}
