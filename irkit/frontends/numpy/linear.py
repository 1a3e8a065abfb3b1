"""Products of matrices and vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from irkit.dialects import graph
from irkit.errors import UnsupportedError
from irkit.frontends.array_ops import einstein
from irkit.frontends.numpy.arrays import TracedArray, fresh
from irkit.frontends.numpy.library import LIBRARY
from irkit.frontends.numpy.operands import WEAK, array_of, operand, promoted
from irkit.frontends.numpy.places import refused
from irkit.frontends.numpy.recorder import Recorder, recorder
from irkit.frontends.numpy.records import ComplexValue, Value
from irkit.frontends.numpy.shaping import conjugated
from irkit.frontends.numpy.ufunc_calls import output_of, resolved, store


def product_call(
    ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """`np.matmul`, `np.vecdot` and their like. Raises UnsupportedError for others, ValueError as NumPy."""
    axis = kwargs.get("axis", -1)
    odd = set(kwargs) - {"out", "casting", "dtype", "axis" if ufunc is np.vecdot else "out"}
    if (
        method != "__call__"
        or ufunc.__name__ not in ("matmul", "vecdot", "matvec", "vecmat")
        or odd
    ):
        raise refused(f"{ufunc.__name__}{'' if method == '__call__' else '.' + method}")
    out = output_of(kwargs.get("out"))
    operands = [operand(x) for x in inputs]
    given = {name: value for name, value in kwargs.items() if name != "axis"}
    dtype = resolved(ufunc, operands, out, given)[0]
    if ufunc.__name__ == "matmul":
        return matmul(inputs[0], inputs[1], dtype, out)
    left, right = (array_of(x) for x in inputs)
    _check_dimensions(ufunc, left, right)
    if axis != -1:
        left, right = (LIBRARY.moveaxis(x, axis, -1) for x in (left, right))
    if ufunc.__name__ in ("vecdot", "vecmat"):
        left = conjugated(left)
    if ufunc.__name__ == "vecdot":
        return _squeezed(left[..., None, :], right[..., :, None], dtype, out, (-2, -1))
    if ufunc.__name__ == "matvec":
        return _squeezed(left, right[..., :, None], dtype, out, (-1,))
    return _squeezed(left[..., None, :], right, dtype, out, (-2,))


def _check_dimensions(ufunc: np.ufunc, *arrays: Any) -> None:
    """Raises NumPy's ValueError for an array of fewer dimensions than the function takes."""
    left, right = {"vecdot": (1, 1), "matvec": (2, 1), "vecmat": (1, 2)}[ufunc.__name__]
    for number, (array, least) in enumerate(zip(arrays, (left, right), strict=True)):
        if array.ndim < least:
            raise ValueError(
                f"{ufunc.__name__}: Input operand {number} does not have enough dimensions (has "
                f"{array.ndim}, gufunc core with signature {ufunc.signature} requires {least})"
            )


def _squeezed(a: Any, b: Any, dtype: np.dtype[Any], out: Any, axes: tuple[int, ...]) -> Any:
    result = LIBRARY.squeeze(matmul(a, b, dtype, None), axes)
    return _finished(array_of(result), out)


def _finished(result: Any, out: Any) -> Any:
    value = recorder().read(result.spot.view)
    return fresh(value, scalar=True) if out is None else store(value, out)


def matmul(a: Any, b: Any, dtype: np.dtype[Any] | None = None, out: Any = None) -> Any:
    """`a @ b` in `dtype`: of vectors too. Raises ValueError where shapes do not fit."""
    left, right = operand(a), operand(b)
    dtype = dtype if dtype is not None else promoted([left, right])
    if () in (left.shape, right.shape):
        raise ValueError("matmul: Input operand does not have enough dimensions")
    shape = _product_shape(left.shape, right.shape)
    r = recorder()
    rows, columns = len(left.shape) == 1, len(right.shape) == 1
    x, y = left.value(dtype), right.value(dtype)
    if dtype.kind == "b":
        wide = np.dtype(np.int32)
        x, y = r.cast(x, wide), r.cast(y, wide)
    x = r.reshape(x, (1, *x.shape)) if rows else x
    y = r.reshape(y, (*y.shape, 1)) if columns else y
    if 0 in (*shape, x.shape[-1]):
        result = r.splat(0, dtype, shape)
    else:
        result = r.reshape(_multiplied(r, x, y), shape)
    result = r.cast(result, dtype)
    return fresh(result, scalar=True) if out is None else store(result, out)


def _multiplied(r: Recorder, x: Value, y: Value) -> Value:
    """The product of matrices; of complex ones by those of their parts."""
    if not isinstance(x, ComplexValue) or not isinstance(y, ComplexValue):
        return r.op(graph.MatmulOp, x, y)
    parts = [[r.op(graph.MatmulOp, p, q) for q in y.parts] for p in x.parts]
    real = r.op(graph.SubOp, parts[0][0], parts[1][1])
    return ComplexValue(real, r.op(graph.AddOp, parts[0][1], parts[1][0]))


def _product_shape(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    """What NumPy's matmul makes of these. Raises ValueError where they do not fit."""
    matrix = len(right) > 1
    rows, columns = left[:-1], (*right[:-2], *right[-1:]) if matrix else ()
    inner = right[-2 if matrix else -1]
    if left[-1] != inner:
        raise ValueError(
            f"matmul: Input operand 1 has a mismatch in its core dimension 0 (size {inner} is different "
            f"from {left[-1]})"
        )
    lead = np.broadcast_shapes(rows[:-1], columns[:-1])
    return (*lead, *rows[-1:], *columns[-1:])


def dot(a: Any, b: Any, out: Any = None) -> Any:
    """`np.dot`: of matrices and vectors as matmul, of a number as multiply."""
    left, right = array_of(a), array_of(b)
    target = output_of(out)
    if 0 in (left.ndim, right.ndim):
        return LIBRARY.multiply(left, right, out=target)
    if right.ndim <= 2 and left.ndim <= 2:
        return matmul(left, right, None, target)
    if right.ndim == 1:
        return _finished(matmul(left, right), target)
    # Sums over the last axis of a and the last but one of b, all other axes side by side.
    k = left.shape[-1]
    moved = LIBRARY.moveaxis(right, -2, 0)
    flat = matmul(LIBRARY.reshape(left, (-1, k)), LIBRARY.reshape(moved, (k, -1)))
    shape = (*left.shape[:-1], *right.shape[:-2], right.shape[-1])
    return _finished(array_of(LIBRARY.reshape(flat, shape)), target)


def vdot(a: Any, b: Any) -> Any:
    """`np.vdot`"""
    return matmul(LIBRARY.ravel(conjugated(array_of(a))), LIBRARY.ravel(array_of(b)))


def inner(a: Any, b: Any) -> Any:
    """`np.inner`: sums over the last axes."""
    left, right = array_of(a), array_of(b)
    if 0 in (left.ndim, right.ndim):
        return LIBRARY.multiply(left, right)
    return dot(left, right if right.ndim == 1 else LIBRARY.swapaxes(right, -1, -2))


def einsum(subscripts: Any, *operands: Any, out: Any = None, **rest: Any) -> Any:
    """`np.einsum` of a text such as "ij,jk->ik". Raises UnsupportedError for its other forms."""
    if len(operands) == 1 and out is None and not set(rest) - {"optimize"} and _turns(subscripts):
        array = array_of(operands[0])
        return TracedArray(array.spot.viewed(np.einsum(subscripts, array.spot.layout)))
    if not isinstance(subscripts, str) or set(rest) - {"optimize"}:
        raise refused("np.einsum other than of a text")
    # Numbers of Python's are arrays here, whose dtype counts.
    found = [operand(np.asarray(x) if type(x) in WEAK else x) for x in operands]
    r, dtype = recorder(), promoted(found)
    try:
        result = einstein.einsum(r.compose, subscripts, [x.value(dtype) for x in found])
    except UnsupportedError as error:
        raise refused(str(error)) from None
    return _finished(fresh(result), output_of(out))


def _turns(subscripts: Any) -> bool:
    """Whether nothing of one operand is summed: what NumPy returns is a view."""
    if not isinstance(subscripts, str) or "," in subscripts:
        return False
    given, arrow, output = subscripts.replace(" ", "").partition("->")
    if not arrow:
        return bool(given) and len({*given} - {"."}) == len(given.replace(".", ""))
    return bool(output) and {*given} == {*output}


def outer(a: Any, b: Any, out: Any = None) -> Any:
    """`np.outer`"""
    left, right = LIBRARY.ravel(array_of(a)), LIBRARY.ravel(array_of(b))
    return LIBRARY.multiply(left[:, None], right[None, :], out=output_of(out))
