"""Element types and shapes shared by irkit's dialects: NumPy on one side, IR types on the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    BFloat16Type,
    DenseArrayBase,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    Signedness,
    TensorType,
    bf16,
    f16,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.ir import Attribute, SSAValue

from irkit.bfloat16 import BFLOAT16
from irkit.errors import UnsupportedError

Tensor = TensorType[Attribute]
DYNAMIC = DYNAMIC_INDEX

ui8, ui16, ui32, ui64 = (IntegerType(width, Signedness.UNSIGNED) for width in (8, 16, 32, 64))

_TO_IR: dict[np.dtype[Any], Attribute] = {
    np.dtype(np.float16): f16,
    np.dtype(np.float32): f32,
    np.dtype(np.float64): f64,
    np.dtype(np.bool_): i1,
    np.dtype(np.int8): i8,
    np.dtype(np.int16): i16,
    np.dtype(np.int32): i32,
    np.dtype(np.int64): i64,
    np.dtype(np.uint8): ui8,
    np.dtype(np.uint16): ui16,
    np.dtype(np.uint32): ui32,
    np.dtype(np.uint64): ui64,
}
if BFLOAT16 is not None:
    _TO_IR[BFLOAT16] = bf16
_TO_NUMPY: dict[Attribute, np.dtype[Any]] = {
    **{element: dtype for dtype, element in _TO_IR.items()},
    IndexType(): np.dtype(np.int64),
}

_SIGNLESS: dict[Attribute, Attribute] = {ui8: i8, ui16: i16, ui32: i32, ui64: i64}


def element_type(dtype: np.dtype[Any] | type) -> Attribute:
    """IR element type of a NumPy dtype. Raises KeyError for a dtype irkit has no type for."""
    return _TO_IR[np.dtype(dtype)]


def numpy_dtype(element: Attribute) -> np.dtype[Any]:
    """NumPy dtype of an IR element type (i1 is bool; bf16 is ml_dtypes'). Raises UnsupportedError if there is
    none."""
    if element == bf16 and BFLOAT16 is None:
        raise UnsupportedError("elements of type bf16 without the package ml_dtypes")
    if element not in _TO_NUMPY:
        raise UnsupportedError(f"elements of type {element}: NumPy has no such type")
    return _TO_NUMPY[element]


def tensor_of(array: np.ndarray[Any, Any]) -> Tensor:
    """The tensor type of a NumPy array."""
    return TensorType(element_type(array.dtype), array.shape)


def tensor(element: Attribute, shape: Sequence[int]) -> Tensor:
    """`tensor<shape x element>`; a dimension of DYNAMIC prints as `?`."""
    return TensorType(element, shape)


def tensor_type(value: SSAValue) -> Tensor:
    """The type of `value`, known to be a tensor."""
    return cast(Tensor, value.type)


def is_float(element: Attribute) -> bool:
    """Whether an element type is floating point."""
    return isinstance(element, Float16Type | BFloat16Type | Float32Type | Float64Type)


def is_half(element: Attribute) -> bool:
    """Whether an element type is a float of 16 bits."""
    return isinstance(element, Float16Type | BFloat16Type)


def is_integer(element: Attribute) -> bool:
    """Whether an element type is an integer; `i1` is not."""
    return element in _TO_NUMPY and _TO_NUMPY[element].kind in "iu"


def is_unsigned(element: Attribute) -> bool:
    """Whether an element type is an unsigned integer; `i1` and signless integers are not."""
    return element in _SIGNLESS


def signless(element: Attribute) -> Attribute:
    """The type that `arith` ops take instead of an unsigned integer: they carry the signedness."""
    return _SIGNLESS.get(element, element)


def ints(attr: Attribute | None) -> list[int]:
    """The values of an `array<i64: ...>`; none for an absent one."""
    if attr is None:
        return []
    return [int(v) for v in cast(DenseArrayBase[IntegerType], attr).get_values()]


def int_array(values: Sequence[int]) -> DenseArrayBase[IntegerType]:
    """`array<i64: values>`"""
    return DenseArrayBase.from_list(i64, [int(v) for v in values])
