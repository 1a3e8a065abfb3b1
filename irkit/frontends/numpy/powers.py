"""Powers, of which NumPy has two kinds that differ in one exponent, 0.5: C's `pow`, and the root.

Its loops over arrays take the root where one exponent holds for all elements: NaN of -infinity, -0.0 of -0.0.
`pow` has infinity and 0.0 there, and so have powers of numbers by an operator, and those whose exponents
are as many as their results.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from irkit.dialects import graph
from irkit.frontends.numpy.arrays import fresh, is_traced
from irkit.frontends.numpy.operands import WEAK, Operand, operand
from irkit.frontends.numpy.places import refused
from irkit.frontends.numpy.recorder import recorder
from irkit.frontends.numpy.records import Value
from irkit.weights import Array


def check_power(exponent: Operand, dtype: np.dtype[Any]) -> None:
    """Of powers that are integers of `dtype` NumPy makes an error where an exponent is below 0."""
    if dtype.kind != "i" or exponent.kind in (np.uint8, np.uint16, np.uint32):
        return
    known = exponent.known
    if known is None:
        raise refused("integers to powers that are computed: NumPy refuses those below 0")
    if (known < 0).any():
        raise ValueError("Integers to negative integer powers are not allowed.")


def is_uniform(base: Operand, exponent: Operand) -> bool:
    """Whether NumPy's loop walks all elements with one exponent, or has two arrays of no dimensions."""
    return exponent.shape == () or int(np.prod(exponent.shape)) == 1 != int(np.prod(base.shape))


def uniform_power(known: Array | None, base: Value, exponent: Value) -> Value:
    """Powers of floats by one exponent: roots, if it is 0.5."""
    o = recorder().compose
    if known is not None:
        return o(graph.SqrtOp, base) if known.item() == 0.5 else o(graph.PowOp, base, exponent)
    half = o.compare(exponent, o.like(0.5, exponent), "eq")
    return o.where(half, o(graph.SqrtOp, base), o(graph.PowOp, base, exponent))


def number_power(base: Any, exponent: Any) -> Any:
    """`base ** exponent`: of two numbers that are floats by C's `pow`, all else as np.power."""
    if not all(_is_number(x) for x in (base, exponent)):
        return np.power(base, exponent)
    operands = [operand(x) for x in (base, exponent)]
    kinds = [o.kind for o in operands]
    kinds = [np.dtype(k) for k in kinds] if all(k in WEAK for k in kinds) else kinds
    resolve: Any = np.power.resolve_dtypes
    dtypes = resolve((*kinds, None))
    if dtypes[-1].kind != "f":
        return np.power(base, exponent)
    values = [o.value(t) for o, t in zip(operands, dtypes, strict=False)]
    o = recorder().compose
    return fresh(recorder().cast(o(graph.PowOp, *values), dtypes[-1]), scalar=True)


def _is_number(value: Any) -> bool:
    """Whether it is a number of NumPy's or Python's, or stands for one."""
    if is_traced(value):
        return value.spot.scalar
    return type(value) in WEAK or isinstance(value, np.generic)
