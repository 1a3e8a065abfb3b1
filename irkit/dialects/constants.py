"""Constants: small ones are `dense<...>`, the rest `dense_resource<name>` with bytes in the store."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    FloatAttr,
    IntegerAttr,
    RankedStructure,
)
from xdsl.ir import SSAValue

from irkit.context import resource_name
from irkit.dialects.types import numpy_dtype, tensor_of, tensor_type
from irkit.weights import Array, WeightStore

SMALL = 16
"""Constants of up to this many elements stand in the text itself."""


def constant(
    array: Array, weights: WeightStore, hint: str = "w", digest: str | None = None
) -> ConstantOp:
    """`arith.constant` for `array`: `dense<...>` if it is small, else its bytes go to `weights`. With its
    `digest`, by `WeightStore.adopt`."""
    array = np.asarray(array)
    if (small := _dense(array)) is not None:
        return ConstantOp(small)
    name = weights.add(array, hint) if digest is None else weights.adopt(array, digest, hint)
    return ConstantOp(DenseResourceAttr.from_params(name, tensor_of(array)))


def _dense(array: Array) -> DenseIntOrFPElementsAttr | None:
    if not 0 < array.size <= SMALL:
        return None
    of_type = cast(RankedStructure[Any], tensor_of(array))
    values: DenseIntOrFPElementsAttr = DenseIntOrFPElementsAttr.from_list(
        of_type, array.ravel().tolist()
    )
    # xDSL prints NaN, infinities and some large floats in hexadecimal, and reads that as integers.
    return None if "0x" in str(values) else values


def constant_array(value: SSAValue, weights: WeightStore) -> Array | None:
    """The array behind a constant tensor; None if `value` is no constant or its bytes are absent."""
    if (name := resource_name(value)) is not None:
        return weights.get(name)
    op = value.owner
    if not isinstance(op, ConstantOp):
        return None
    if isinstance(op.value, DenseIntOrFPElementsAttr):
        t = tensor_type(value)
        flat = np.array(op.value.get_values(), dtype=numpy_dtype(t.element_type))
        if flat.size == math.prod(t.get_shape()):
            return flat.reshape(t.get_shape())
        return np.broadcast_to(flat, t.get_shape())  # a splat
    if isinstance(op.value, IntegerAttr | FloatAttr):
        return np.array(op.value.value.data, dtype=numpy_dtype(value.type))
    return None
