"""Distances between rows and fitted rows: what grows with them, and what brings that to a distance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from irkit.dialects.graph import AbsOp, ClipOp, DivOp, MulOp, PowOp, SqrtOp, SubOp
from irkit.frontends.sklearn.importer import Importer
from irkit.frontends.sklearn.kernels import differences, fitted_rows, summed
from irkit.weights import Array


def _absolute(importer: Importer, x: SSAValue, points: Array) -> SSAValue:
    return importer.builder(AbsOp, differences(importer, importer.cast(x, np.float64), points))


def euclidean(importer: Importer, step: Any, x: SSAValue, points: Array) -> SSAValue:
    apart = differences(importer, importer.cast(x, np.float64), points)
    return summed(importer, importer.builder(MulOp, apart, apart))


def manhattan(importer: Importer, step: Any, x: SSAValue, points: Array) -> SSAValue:
    return summed(importer, _absolute(importer, x, points))


def _chebyshev(importer: Importer, step: Any, x: SSAValue, points: Array) -> SSAValue:
    return summed(importer, _absolute(importer, x, points), "max")


def _minkowski(importer: Importer, step: Any, x: SSAValue, points: Array) -> SSAValue:
    power = importer.builder.constant(np.full((1, 1, 1), _p(step)), "p")
    parts = importer.builder(PowOp, _absolute(importer, x, points), power)
    weights = step.effective_metric_params_.get("w")
    if weights is not None:
        parts = importer.mul(parts, np.asarray(weights)[None, None], "w")
    return summed(importer, parts)


def _p(step: Any) -> float:
    return float(step.effective_metric_params_.get("p", 2))


def _scaled(importer: Importer, step: Any, x: SSAValue, points: Array) -> SSAValue:
    apart = differences(importer, importer.cast(x, np.float64), points)
    variances = np.asarray(step.effective_metric_params_["V"], np.float64)
    squares = importer.builder(MulOp, apart, apart)
    return summed(importer, importer.div(squares, variances[None, None], "variances"))


def _mahalanobis(importer: Importer, step: Any, x: SSAValue, points: Array) -> SSAValue:
    apart = differences(importer, importer.cast(x, np.float64), points)
    given: dict[str, Any] = step.effective_metric_params_
    own = np.asarray(given["VI" if "VI" in given else "V"], np.float64)
    matrix = own if "VI" in given else np.linalg.inv(own)
    turned = importer.matmul(apart, np.ascontiguousarray(matrix.T), "inverse")
    return summed(importer, importer.builder(MulOp, apart, turned))


def _cosine(importer: Importer, step: Any, x: SSAValue, points: Array) -> SSAValue:
    """1 less the product of rows of length 1; rows of zeros stay."""
    wide = importer.cast(x, np.float64)
    size = importer.builder(SqrtOp, importer.reduce("sum", importer.builder(MulOp, wide, wide)))
    none = importer.compare(size, "eq", [0.0], "zero")
    unit = importer.builder(DivOp, wide, importer.where(none, size, [1.0], "one"))
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    others = points / np.where(lengths == 0, 1.0, lengths)
    alike = importer.matmul(unit, np.ascontiguousarray(others.T), "points")
    far = importer.builder(SubOp, importer.constant(alike, [1.0], "one"), alike)
    return importer.builder(ClipOp, far, min=0.0, max=2.0)


def _canberra(importer: Importer, step: Any, x: SSAValue, points: Array) -> SSAValue:
    wide = importer.cast(x, np.float64)
    apart = _absolute(importer, x, points)
    size = differences(importer, importer.builder(AbsOp, wide), -np.abs(points))
    none = importer.compare(size, "eq", [0.0], "zero")
    return summed(
        importer, importer.builder(DivOp, apart, importer.where(none, size, [1.0], "one"))
    )


METRICS: dict[str, Callable[[Importer, Any, SSAValue, Array], SSAValue]] = {
    "chebyshev": _chebyshev,
    "cityblock": manhattan,
    "euclidean": euclidean,
    "l1": manhattan,
    "l2": euclidean,
    "manhattan": manhattan,
    "minkowski": _minkowski,
}
"""Those of which fitted trees know."""
MORE: dict[str, Callable[[Importer, Any, SSAValue, Array], SSAValue]] = {
    **METRICS,
    "canberra": _canberra,
    "cosine": _cosine,
    "infinity": _chebyshev,
    "mahalanobis": _mahalanobis,
    "p": _minkowski,
    "seuclidean": _scaled,
    "sqeuclidean": euclidean,
}
_SQUARED = ("euclidean", "l2", "mahalanobis", "seuclidean")
_POWERS = ("minkowski", "p")


def ranked(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    """rows×fitted rows: powers of distances."""
    points = fitted_rows(step._fit_X, np.float64)
    return MORE[step.effective_metric_](importer, step, x, points)


def distance_of(importer: Importer, step: Any, far: SSAValue) -> SSAValue:
    """Distances of powers of them."""
    if step.effective_metric_ in _SQUARED:
        return importer.builder(SqrtOp, far)
    if step.effective_metric_ in _POWERS:
        root = importer.builder.constant(np.full((1, 1), 1.0 / _p(step)), "root")
        return importer.builder(PowOp, far, root)
    return far


def radius_power(step: Any) -> float:
    """What the radius of a step is among powers of distances."""
    radius = float(step.radius)
    if step.effective_metric_ in _SQUARED:
        return radius * radius
    return radius ** _p(step) if step.effective_metric_ in _POWERS else radius


def why_no_metric(step: Any) -> list[str]:
    """Reasons that lie in a fitted step's metric."""
    name, given = step.effective_metric_, step.effective_metric_params_
    if name not in MORE:
        return [f"parameter metric={name!r} (supported: {', '.join(MORE)})"]
    if name == "seuclidean" and "V" not in given:
        return ["parameter metric='seuclidean' without V, which hangs on the batch"]
    if name == "mahalanobis" and not {"V", "VI"} & set(given):
        return ["parameter metric='mahalanobis' without VI, which hangs on the batch"]
    return []
