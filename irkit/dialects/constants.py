"""Constants: small ones are `dense<...>`, the rest `dense_resource<name>` with bytes in the store."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    FloatAttr,
    IntegerAttr,
)
from xdsl.ir import SSAValue

from irkit.context import resource_name
from irkit.dialects.types import numpy_dtype, tensor_of, tensor_type
from irkit.weights import Array, WeightStore


def constant(array: Array, weights: WeightStore, hint: str = "w") -> ConstantOp:
    """`arith.constant dense_resource<...>` for `array`, whose bytes go to `weights`."""
    array = np.asarray(array)
    return ConstantOp(DenseResourceAttr.from_params(weights.add(array, hint), tensor_of(array)))


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
        return (
            np.broadcast_to(flat, t.get_shape()) if flat.size == 1 else flat.reshape(t.get_shape())
        )
    if isinstance(op.value, IntegerAttr | FloatAttr):
        return np.array(op.value.value.data, dtype=numpy_dtype(value.type))
    return None
