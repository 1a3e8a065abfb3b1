"""What every row of a tensor is, where all rows are alike: what sums start from."""

from __future__ import annotations

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr

from irkit.dialects.constants import constant_array
from irkit.dialects.linalg_generic import is_elementwise, is_projection, maps
from irkit.dialects.types import tensor_type
from irkit.weights import Array, WeightStore


def constant_row(value: SSAValue, weights: WeightStore) -> Array | None:
    """The constant that `value` is for each index of its first dimension; None if it is none."""
    op, shape = value.owner, tensor_type(value).get_shape()[1:]
    if isinstance(op, linalg.FillOp):
        number = constant_array(op.inputs[0], weights)
        return None if number is None else np.full(shape, number)
    if not isinstance(op, linalg.GenericOp) or not is_elementwise(op) or len(op.results) != 1:
        return None
    block = op.body.block
    assert block.last_op is not None
    (yielded,) = block.last_op.operands
    if isinstance(yielded.owner, arith.ConstantOp):
        number = constant_array(yielded, weights)
        return None if number is None else np.full(shape, number)
    if len(op.inputs) != 1 or yielded is not block.args[0]:
        return None
    return _read(op, shape, weights)


def _read(op: linalg.GenericOp, shape: tuple[int, ...], weights: WeightStore) -> Array | None:
    """What a copy of a constant, in any order of its dimensions, has in each row."""
    read, written = maps(op)
    array = constant_array(op.inputs[0], weights)
    loops = [AffineDimExpr(d) for d in range(written.num_dims)]
    if array is None or list(written.results) != loops or not is_projection(read):
        return None
    if any(e == loops[0] and n != 1 for e, n in zip(read.results, array.shape, strict=True)):
        return None
    where = [np.zeros((), np.int64), *np.indices(shape, sparse=True)]
    places = [
        where[e.position] if isinstance(e, AffineDimExpr) else e.eval([], []) for e in read.results
    ]
    return np.broadcast_to(array[tuple(places)], shape)
