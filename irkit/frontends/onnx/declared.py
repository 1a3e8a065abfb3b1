"""What a model declares of its inputs and outputs must hold."""

from __future__ import annotations

import numpy as np
from onnx import ValueInfoProto, helper

from irkit.dialects.types import DYNAMIC, Tensor
from irkit.errors import InvalidInputError, InvalidModelError
from irkit.weights import Array


def fitting(value: ValueInfoProto, array: Array) -> Array:
    """A constant for an input. Raises InvalidInputError if it is not of the declared type."""
    declared, array = value.type.tensor_type, np.asarray(array)
    wanted = helper.tensor_dtype_to_np_dtype(declared.elem_type)
    sizes = [d.dim_value if d.HasField("dim_value") else None for d in declared.shape.dim]
    fits = len(sizes) == array.ndim and all(
        s in (None, n) for s, n in zip(sizes, array.shape, strict=False)
    )
    if array.dtype != wanted or (declared.HasField("shape") and not fits):
        raise InvalidInputError(
            f"constants['{value.name}'] is {array.dtype} of shape {array.shape}: "
            f"the model declares {wanted} of {sizes}"
        )
    return array


def check_declared(declared: ValueInfoProto, actual: Tensor) -> None:
    """The file's own statement of an output's shape must hold."""
    if not declared.type.tensor_type.HasField("shape"):
        return
    dims = [d.dim_value if d.HasField("dim_value") else None
            for d in declared.type.tensor_type.shape.dim]  # fmt: skip
    shape = actual.get_shape()
    agrees = len(dims) == len(shape) and all(
        d is None or s in (d, DYNAMIC) for d, s in zip(dims, shape, strict=True)
    )
    if not agrees:
        raise InvalidModelError(f"output '{declared.name}' is declared as {dims} but is {actual}")
