"""Kernels and distances between rows and the points of a fitted model, as matrix products.

The formulas are those of `sklearn.metrics.pairwise`: a squared distance is |x|^2 - 2 x.y + |y|^2, and
not below 0.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from irkit.dialects.graph import (
    AbsOp,
    AddOp,
    ArgmaxOp,
    DivOp,
    ExpOp,
    MaxOp,
    MulOp,
    NegOp,
    PowOp,
    ReduceOp,
    ReshapeOp,
    SqrtOp,
    TanhOp,
)
from irkit.dialects.types import DYNAMIC
from irkit.frontends.sklearn.importer import Importer
from irkit.weights import Array


def squared_norm(importer: Importer, x: SSAValue) -> SSAValue:
    """|x|^2 of each row, rows×1."""
    return importer.reduce("sum", importer.builder(MulOp, x, x))


def squared_distances(importer: Importer, x: SSAValue, points: Array) -> SSAValue:
    """rows×points, in float64, as `euclidean_distances(squared=True)`."""
    wide, points = importer.cast(x, np.float64), np.asarray(points, np.float64)
    cross = importer.matmul(wide, (-2 * points).T, "points")
    far = importer.builder(AddOp, cross, squared_norm(importer, wide))
    far = importer.add(far, (points * points).sum(axis=1)[None, :], "norms")
    return importer.builder(MaxOp, far, importer.constant(far, [0.0], "zero"))


def distances(importer: Importer, x: SSAValue, points: Array) -> SSAValue:
    """rows×points, as `euclidean_distances`: in float32 if both are that, else in float64."""
    far = importer.builder(SqrtOp, squared_distances(importer, x, points))
    return importer.cast(far, np.result_type(importer.dtype(x), np.asarray(points).dtype))


def differences(importer: Importer, x: SSAValue, points: Array) -> SSAValue:
    """x - point, rows×points×features, in x's dtype."""
    return importer.sub(_apart(importer, x), np.asarray(points)[None], "points")


def _apart(importer: Importer, x: SSAValue) -> SSAValue:
    """rows×1×features"""
    return importer.builder(ReshapeOp, x, shape=[DYNAMIC, 1, importer.width(x)])


def summed(importer: Importer, x: SSAValue, kind: str = "sum") -> SSAValue:
    """rows×points of rows×points×features."""
    return importer.builder(ReduceOp, x, kind=kind, axes=[2], keepdims=False)


def nearest(importer: Importer, x: SSAValue, points: Array) -> SSAValue:
    """The first of the nearest points, as rows of i64."""
    far = importer.builder(NegOp, squared_distances(importer, x, points))
    return importer.builder(ArgmaxOp, far, axis=1, keepdims=False)


def nearest_mean(importer: Importer, x: SSAValue, points: Array) -> SSAValue:
    """As `nearest`, by what k-means computes: |p|^2 - 2xp, since |x|^2 is the same for all points."""
    wide, points = importer.cast(x, np.float64), np.asarray(points, np.float64)
    cross = importer.matmul(wide, (2 * points).T, "points")
    near = importer.sub(cross, (points * points).sum(axis=1)[None, :], "norms")
    return importer.builder(ArgmaxOp, near, axis=1, keepdims=False)


# Kernels


@dataclass(frozen=True)
class Kernel:
    """A kernel with its parameters."""

    name: str
    gamma: float = 1.0
    degree: float = 3
    coef0: float = 1.0


def whole_power(importer: Importer, x: SSAValue, power: int) -> SSAValue:
    """x to a whole power of 1 or more, by squaring."""
    found: SSAValue | None = None
    while power:
        if power % 2:
            found = x if found is None else importer.builder(MulOp, found, x)
        power //= 2
        x = importer.builder(MulOp, x, x) if power else x
    assert found is not None
    return found


def _linear(importer: Importer, kernel: Kernel, x: SSAValue, points: Array) -> SSAValue:
    return importer.matmul(x, points.T, "points")


def _affine(importer: Importer, kernel: Kernel, x: SSAValue, points: Array) -> SSAValue:
    scaled = importer.mul(_linear(importer, kernel, x, points), [kernel.gamma], "gamma")
    return importer.add(scaled, [kernel.coef0], "coef0")


def _polynomial(importer: Importer, kernel: Kernel, x: SSAValue, points: Array) -> SSAValue:
    y, degree = _affine(importer, kernel, x, points), kernel.degree
    if degree == int(degree) and degree >= 1:
        return whole_power(importer, y, int(degree))
    return importer.builder(PowOp, y, importer.constant(y, [[degree]], "degree"))


def _sigmoid(importer: Importer, kernel: Kernel, x: SSAValue, points: Array) -> SSAValue:
    return importer.builder(TanhOp, _affine(importer, kernel, x, points))


def _decayed(importer: Importer, kernel: Kernel, far: SSAValue, dtype: Any) -> SSAValue:
    near = importer.builder(ExpOp, importer.mul(far, [-kernel.gamma], "gamma"))
    return importer.cast(near, dtype)


def _rbf(importer: Importer, kernel: Kernel, x: SSAValue, points: Array) -> SSAValue:
    return _decayed(importer, kernel, squared_distances(importer, x, points), points.dtype)


def _laplacian(importer: Importer, kernel: Kernel, x: SSAValue, points: Array) -> SSAValue:
    apart = differences(importer, importer.cast(x, np.float64), points)
    far = summed(importer, importer.builder(AbsOp, apart))
    return _decayed(importer, kernel, far, points.dtype)


def _cosine(importer: Importer, kernel: Kernel, x: SSAValue, points: Array) -> SSAValue:
    norms = np.linalg.norm(points, axis=1, keepdims=True)
    unit = points / np.where(norms == 0, 1, norms)
    return importer.matmul(normalised_rows(importer, x), unit.T, "points")


def _chi2(importer: Importer, kernel: Kernel, x: SSAValue, points: Array) -> SSAValue:
    x = importer.cast(x, np.float64)
    both = importer.add(_apart(importer, x), points[None], "points")
    far = differences(importer, x, points)
    none = importer.compare(both, "eq", [0.0], "zero")
    safe = importer.where(none, both, [1.0], "one")
    ratio = importer.builder(DivOp, importer.builder(MulOp, far, far), safe)
    total = summed(importer, importer.where(none, ratio, [0.0], "zero"))
    return importer.cast(importer.builder(NegOp, total), points.dtype)


def _exponential_chi2(importer: Importer, kernel: Kernel, x: SSAValue, points: Array) -> SSAValue:
    far = importer.mul(_chi2(importer, kernel, x, points), [kernel.gamma], "gamma")
    return importer.builder(ExpOp, far)


def normalised_rows(importer: Importer, x: SSAValue) -> SSAValue:
    """Rows of Euclidean length 1; those next to nothing stay."""
    norm = importer.builder(SqrtOp, squared_norm(importer, x))
    tiny = importer.compare(norm, "lt", [10 * np.finfo(importer.dtype(x)).eps], "tiny")
    return importer.builder(DivOp, x, importer.where(tiny, norm, [1.0], "one"))


KERNELS: Mapping[str, Callable[[Importer, Kernel, SSAValue, Array], SSAValue]] = {
    "additive_chi2": _chi2,
    "chi2": _exponential_chi2,
    "cosine": _cosine,
    "laplacian": _laplacian,
    "linear": _linear,
    "poly": _polynomial,
    "polynomial": _polynomial,
    "rbf": _rbf,
    "sigmoid": _sigmoid,
}


def apply(importer: Importer, kernel: Kernel, x: SSAValue, points: Array) -> SSAValue:
    """rows×points: the kernel of each row and each point, in the wider of their dtypes."""
    dtype = np.result_type(importer.dtype(x), points.dtype)
    return KERNELS[kernel.name](importer, kernel, importer.cast(x, dtype), points.astype(dtype))


def fitted_rows(rows: Any, dtype: Any = None) -> Array:
    """Rows that a step was fitted on, of a sparse matrix too."""
    return np.asarray(rows.toarray() if hasattr(rows, "tocsr") else rows, dtype)


def why_not(step: Any, known: Collection[str] = tuple(KERNELS)) -> list[str]:
    """Reasons that lie in the kernel of a step."""
    if isinstance(step.kernel, str) and step.kernel in known:
        return []
    name = repr(step.kernel) if isinstance(step.kernel, str) else "a function"
    return [f"parameter kernel={name} (supported: {', '.join(known)})"]
