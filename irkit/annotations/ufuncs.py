"""Universal functions of any library: what they return is known of them all, and how they are split."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irkit.annotations.annotation import Annotation
from irkit.annotations.split_types import Elementwise
from irkit.annotations.structures import Argument, ArrayType

_MADE: dict[np.ufunc, Annotation] = {}


def ufunc_annotation(ufunc: np.ufunc) -> Annotation:
    """That of a universal function: elementwise, of its inputs and, if they are given, its outputs."""
    known = _MADE.get(ufunc)
    if known is None:
        known = _MADE[ufunc] = _made(ufunc)
    return known


def _made(ufunc: np.ufunc) -> Annotation:
    names = tuple(f"x{n}" for n in range(ufunc.nin))
    outs = tuple(f"out{n}" for n in range(ufunc.nout))
    types = {name: Elementwise() for name in (*names, *outs)}
    return Annotation(
        ufunc,
        (*names, *outs),
        types,
        Elementwise(),
        outs,
        _results(ufunc),
        why=f"irkit has no form of universal function '{ufunc.__name__}'",
    )


def _results(ufunc: np.ufunc) -> Callable[..., Any]:
    def result(*operands: Any) -> Any:
        inputs, outs = operands[: ufunc.nin], operands[ufunc.nin :]
        given = [o.dtype if isinstance(o, ArrayType) else _kind(o) for o in inputs]
        resolve: Any = ufunc.resolve_dtypes
        dtypes = resolve((*given, *((None,) * ufunc.nout)))
        shape = np.broadcast_shapes(*(o.shape for o in inputs if isinstance(o, ArrayType)))
        if outs:
            return Argument("out0")
        made = [ArrayType(shape, t) for t in dtypes[ufunc.nin :]]
        return made[0] if ufunc.nout == 1 else tuple(made)

    return result


def _kind(value: Any) -> Any:
    weak = next((t for t in (int, float, complex) if type(value) is t), None)
    return weak or np.asarray(value).dtype
