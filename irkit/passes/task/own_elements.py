"""Whether each element of a result needs, of an operand, only its own: what stands where it is written."""

from __future__ import annotations

from xdsl.dialects import tensor
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineMap

from irkit.dialects.linalg_generic import is_elementwise, maps
from irkit.dialects.task import YieldOp
from irkit.dialects.types import ints, tensor_type

Place = tuple[tuple[int, int], ...]
"""By dimension (offset, step): element i of a value is for element offset + step * i of the result."""


def reads_elementwise(value: SSAValue, target: SSAValue) -> bool:
    """Whether an element of `target`, which a body yields, needs its own element of `value` alone, an
    argument of its shape."""
    return _reads_own(value, _everywhere(target), target)


def _everywhere(value: SSAValue) -> Place:
    return tuple((0, 1) for _ in tensor_type(value).get_shape())


def _reads_own(value: SSAValue, place: Place, target: SSAValue) -> bool:
    """The same of a value whose elements have a place in `target`."""
    return all(_use(use.operation, use.index, place, target) for use in value.uses)


def _use(op: Operation, operand: int, place: Place, target: SSAValue) -> bool:
    if isinstance(op, YieldOp):
        return place == _everywhere(target)
    if isinstance(op, tensor.ExtractSliceOp):
        inner = _slice_place(op)
        if inner is None or len(inner) != len(place):
            return False
        of = zip(place, inner, strict=True)
        composed = tuple((o + s * first, s * step) for (o, s), (first, step) in of)
        return _reads_own(op.result, composed, target)
    if isinstance(op, tensor.InsertSliceOp):
        # Inserted, an element has to go where it is from; inserted into, it stays where it is.
        whole = _everywhere(target)
        same = tensor_type(op.result).get_shape() == tensor_type(target).get_shape()
        given = _slice_place(op) if operand == 0 else whole
        return same and operand < 2 and place == given and _reads_own(op.result, whole, target)
    return isinstance(op, linalg.GenericOp) and _by_generic(op, operand, place, target)


def _by_generic(op: linalg.GenericOp, operand: int, place: Place, target: SSAValue) -> bool:
    if not is_elementwise(op):
        return False
    if operand >= len(op.inputs):
        # What it is written over is not read.
        return not op.body.block.args[operand].uses
    identity = AffineMap.identity(len(place))
    used = [maps(op)[operand], *maps(op)[len(op.inputs) :]]
    return all(amap == identity for amap in used) and all(
        _reads_own(r, place, target) for r in op.results
    )


def _slice_place(op: tensor.ExtractSliceOp | tensor.InsertSliceOp) -> Place | None:
    """Where a slice lies; None where that is computed, or dimensions are left out."""
    if op.offsets or op.sizes or op.strides:
        return None
    if tensor_type(op.source).get_num_dims() != tensor_type(op.result).get_num_dims():
        return None
    return tuple(zip(ints(op.static_offsets), ints(op.static_strides), strict=True))
