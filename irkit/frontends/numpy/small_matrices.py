"""Functions of `numpy.linalg` of one small matrix in a loop, as operations of the program.

LAPACK would be called by the host, in each round: that takes longer than all else in it. Elimination goes
over whole matrices, with the largest pivot of its column as LAPACK has it, so that results are LAPACK's but
for rounding; whether rounding leaves a pivot of exactly 0 may differ (Golub and Van Loan, "Matrix
Computations", 3.4 and 4.2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from irkit.frontends.numpy.arrays import value_of
from irkit.frontends.numpy.library import LIBRARY
from irkit.frontends.numpy.operands import array_of
from irkit.frontends.numpy.places import user_place
from irkit.frontends.numpy.recorder import recorder
from irkit.frontends.numpy.records import Check

LARGEST = 8
"""Rows of a matrix, and columns of right-hand sides, up to which a function is compiled."""


def solve(a: Any, b: Any) -> Any:
    """`np.linalg.solve` of a matrix; None where it is called."""
    matrix, given = _matrix(a), array_of(b)
    if matrix is None or given.ndim not in (1, 2) or given.shape[0] != matrix.shape[0]:
        return None
    if given.dtype.kind == "c" or 0 in given.shape or max(given.shape) > LARGEST:
        return None
    dtype = np.result_type(matrix.dtype, _real(given.dtype))
    sides = given.astype(dtype)
    found = _solved(matrix.astype(dtype), sides[:, None] if given.ndim == 1 else sides)
    return found[:, 0].copy() if given.ndim == 1 else found


def inv(a: Any) -> Any:
    """`np.linalg.inv` of a matrix; None where it is called."""
    matrix = _matrix(a)
    if matrix is None:
        return None
    return _solved(matrix, LIBRARY.eye(matrix.shape[0], dtype=matrix.dtype))


def det(a: Any) -> Any:
    """`np.linalg.det` of a matrix, from logarithms as NumPy has it; None where it is called."""
    matrix = _matrix(a)
    if matrix is None:
        return None
    eliminated, swaps = _eliminated(matrix, matrix.shape[0])
    pivots = eliminated.diagonal()
    sign = LIBRARY.prod(LIBRARY.sign(pivots)) * swaps
    found = sign * LIBRARY.exp(LIBRARY.sum(LIBRARY.log(LIBRARY.abs(pivots))))
    zero = matrix.dtype.type(0)
    return LIBRARY.where(LIBRARY.any(pivots == 0), zero, found).astype(matrix.dtype)[()]


def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    """`np.linalg.cholesky` of a matrix; None where it is called. Only one of its triangles is read."""
    matrix = _matrix(a)
    if matrix is None or type(upper) is not bool:
        return None
    rest, rows = matrix.T if upper else matrix, LIBRARY.arange(matrix.shape[0])
    columns: list[Any] = []
    for k in rows.tolist():
        _require(rest[k, k] > 0, "Matrix is not positive definite")
        root = LIBRARY.sqrt(rest[k, k])
        below = LIBRARY.where(rows > k, rest[:, k] / root, matrix.dtype.type(0))
        columns.append(LIBRARY.where(rows == k, root, below))
        rest = rest - below[:, None] * below
    return LIBRARY.stack(columns, axis=0 if upper else 1)


def _matrix(a: Any) -> Any:
    """A small square matrix of numbers in NumPy's dtype for them; None for anything else."""
    array = array_of(a)
    square = array.ndim == 2 and array.shape[0] == array.shape[1]
    if not square or not 0 < len(array) <= LARGEST or array.dtype.kind == "c":
        return None
    return None if array.dtype == np.float16 else array.astype(_real(array.dtype))


def _real(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Whole numbers and truths are computed with as float64."""
    return dtype if dtype.kind == "f" else np.dtype(np.float64)


def _solved(a: Any, b: Any) -> Any:
    """`x` of `a @ x = b`, of n×n and n×k."""
    count = a.shape[0]
    both, _ = _eliminated(LIBRARY.concatenate([a, b], axis=1), count)
    pivots, x, rows = both.diagonal(), both[:, count:], LIBRARY.arange(count)[:, None]
    _require(LIBRARY.all(pivots != 0), "Singular matrix")
    for k in reversed(range(count)):
        known = x[k] / pivots[k]
        above = x - both[:, k][:, None] * known
        x = LIBRARY.where(rows == k, known, LIBRARY.where(rows < k, above, x))
    return x


def _eliminated(m: Any, count: int) -> tuple[Any, Any]:
    """Rows in another order, with multiples of earlier ones taken away so that below the diagonal of the
    first `count` columns all is 0 (what is there in `m` is not), and the sign of the order."""
    rows, sign = LIBRARY.arange(count), m.dtype.type(1)
    for k in range(count):
        if k < count - 1:
            size = LIBRARY.where(rows >= k, LIBRARY.abs(m[:, k]), m.dtype.type(-1))
            best = LIBRARY.argmax(size)
            m = m[LIBRARY.where(rows == k, best, LIBRARY.where(rows == best, k, rows))]
            sign = LIBRARY.where(best == k, sign, -sign)
        pivot = m[k, k]
        factor = m[:, k] / LIBRARY.where(pivot == 0, m.dtype.type(1), pivot)
        m = LIBRARY.where((rows > k)[:, None], m - factor[:, None] * m[k], m)
    return m, sign


def _require(held: Any, message: str) -> None:
    """Whoever runs the program is told by NumPy's LinAlgError if a truth does not hold."""
    check = Check(user_place(), message, np.linalg.LinAlgError)
    recorder().require(check, value_of(array_of(held)))


SMALL: Mapping[str, Callable[..., Any]] = {
    "cholesky": cholesky,
    "det": det,
    "inv": inv,
    "solve": solve,
}
"""Name of a function of `numpy.linalg` → what it is of a small matrix."""
