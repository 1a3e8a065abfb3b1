"""In which precision a contraction computes its products: the attribute `irkit.precision`.

A contraction of f32 (an op of the graph level with `CONTRACTS`, a contracting `linalg.generic`) may say

- `float32`, the same as saying nothing: every product and sum to at most plain fp32's error, by whatever method,
  products split into parts on tensor cores among them. That is so of sums to which many terms contribute: of fewer
  than 64 they may be off by up to 1e-7 where plain ones are by half of it (`irkit/runtime/intrinsics/cuda_mma.py`),
  and where one term is nearly all of a longer sum, by up to 4.7e-7, by 1.2e-7 where one of its factors is a power
  of two (`irkit/scaled_rows.py`: 22 bits of each factor are kept; the plain product is right to 24 bits);
- `ieee`: plain fp32 multiplications and additions alone;
- `tf32`, `bf16`, `f16`: both factors are rounded to that format first (to nearest, ties to even; tf32 has fp32's
  exponent and 10 bits of mantissa; what f16 cannot hold is infinite), products and sums are those of float32.

An rKernel may be more exact than asked, never less: what computes plain fp32 is legal for all of them, so that every
target runs every precision. It reads what is asked off its root, `precision_of(root.op)`; the contractions of a
chain (`root.chain`) all say the same. The interpreters round, so that they are the least exact answer that is right.
Contractions of other elements (f64, integers, 16-bit floats) have the arithmetic of those, and no such attribute.

The same attribute on a `func.func` asks for it in all of the function's contractions that say nothing themselves;
`set-precision` writes it on them. An op that is made anew out of others `inherits` it.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import numpy as np
from xdsl.dialects.builtin import StringAttr, f32
from xdsl.dialects.func import FuncOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation

from irkit.dialects.inference import InferredOp
from irkit.dialects.linalg_generic import is_contraction
from irkit.dialects.loop import SCHEDULE
from irkit.dialects.types import tensor_type
from irkit.errors import InvalidModelError
from irkit.weights import Array

PRECISION = "irkit.precision"
"""The attribute's name; its value is the string of a `Precision`."""


class Precision(Enum):
    """What the products of a contraction are computed in."""

    FLOAT32 = "float32"
    IEEE = "ieee"
    TF32 = "tf32"
    BF16 = "bf16"
    F16 = "f16"

    @property
    def strict(self) -> bool:
        """Whether factors stay as they are."""
        return self in (Precision.FLOAT32, Precision.IEEE)

    @property
    def unit_roundoff(self) -> float:
        """The largest relative error of a factor (of a normal number, in range)."""
        return _ROUNDOFF[self]


_ROUNDOFF = {
    Precision.FLOAT32: 0.0,
    Precision.IEEE: 0.0,
    Precision.TF32: 2.0**-11,
    Precision.BF16: 2.0**-8,
    Precision.F16: 2.0**-11,
}
NAMES: tuple[str, ...] = tuple(p.value for p in Precision)


def precision_of(op: Operation | None) -> Precision:
    """What `op` says, FLOAT32 where it says nothing.

    Raises InvalidModelError for what is no precision.
    """
    found = None if op is None else op.attributes.get(PRECISION)
    if found is None:
        return Precision.FLOAT32
    if not isinstance(found, StringAttr) or found.data not in NAMES:
        raise InvalidModelError(f"'{PRECISION}' is {found}; expected {', '.join(NAMES)}")
    return Precision(found.data)


def set_precision(op: Operation, precision: Precision) -> None:
    """Write what `op` computes in."""
    op.attributes[PRECISION] = StringAttr(precision.value)


def inherit(op: Operation, source: Operation) -> None:
    """`op`, made anew in place of `source`, says what that said."""
    for name in (PRECISION, SCHEDULE):
        if name in source.attributes:
            op.attributes[name] = source.attributes[name]


def contracts(op: Operation) -> bool:
    """Whether `op` is a contraction of f32: what may have a precision."""
    if isinstance(op, InferredOp):
        return op.CONTRACTS and tensor_type(op.results[0]).element_type == f32
    if not isinstance(op, linalg.GenericOp) or not is_contraction(op):
        return False
    return tensor_type(op.results[0]).element_type == f32


def precision_fault(op: Operation) -> str | None:
    """What is wrong with the attribute on `op`, in words that follow its name; None if nothing is."""
    if PRECISION not in op.attributes:
        return None
    try:
        precision_of(op)
    except InvalidModelError as error:
        return f"says no precision: {error}"
    if isinstance(op, FuncOp) or contracts(op):
        return None
    return f"has '{PRECISION}', but is no contraction of f32"


def coarsest(module: Operation) -> float:
    """The largest `unit_roundoff` of a contraction in `module`; 0 if all are strict."""
    return max((precision_of(op).unit_roundoff for op in module.walk()), default=0.0)


def rounded_to_bits(x: Array, mantissa: int) -> Array:
    """float32 `x` with `mantissa` bits of mantissa left: to nearest, ties to even; NaN stays NaN."""
    drop = 23 - mantissa
    bits = np.ascontiguousarray(x).view(np.uint32)
    odd = (bits >> np.uint32(drop)) & np.uint32(1)
    up = bits + (np.uint32((1 << drop - 1) - 1) + odd)
    kept = up & np.uint32(0xFFFFFFFF >> drop << drop)
    return np.where(np.isnan(x), x, kept.view(np.float32).reshape(np.shape(x)))


def _half(x: Array) -> Array:
    with np.errstate(over="ignore"):
        return x.astype(np.float16).astype(np.float32)


_ROUND: dict[Precision, Callable[[Array], Array]] = {
    Precision.TF32: lambda x: rounded_to_bits(x, 10),
    Precision.BF16: lambda x: rounded_to_bits(x, 7),
    Precision.F16: _half,
}


def rounded(x: Array, precision: Precision) -> Array:
    """A factor as a contraction of `precision` reads it; what is no float32 stays as it is."""
    function = _ROUND.get(precision)
    return x if function is None or x.dtype != np.float32 else function(x)
