"""KNNImputer: what is missing from the nearest fitted rows that have it.

Distances are sums of squared differences in float64 over what both rows have. Of rows that are equally
near the first that was fitted is taken; scikit-learn leaves that order open.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from irkit.dialects.graph import (
    CastOp,
    CompareOp,
    DivOp,
    GatherOp,
    IsNanOp,
    MaxOp,
    MulOp,
    ReshapeOp,
    SqrtOp,
    SubOp,
    TopKOp,
    WhereOp,
)
from irkit.dialects.types import DYNAMIC
from irkit.frontends.sklearn import kernels
from irkit.frontends.sklearn.columns import is_nan
from irkit.frontends.sklearn.importer import Importer, Transformer, element
from irkit.frontends.sklearn.neighbours import inverse
from irkit.weights import Array


def absent(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    """Which cells are `missing_values`, as i1."""
    if is_nan(step.missing_values):
        return importer.builder(IsNanOp, x)
    return importer.compare(x, "eq", [step.missing_values], "missing")


def _distances(importer: Importer, step: Any, x: SSAValue, missing: SSAValue) -> SSAValue:
    """rows×fitted rows of float64, as `nan_euclidean_distances`; infinite where no feature is in both."""
    build, width = importer.builder, importer.width(x)
    known: Array = (~np.asarray(step._mask_fit_X)).astype(np.float64)
    points = np.where(known > 0, np.asarray(step._fit_X, np.float64), 0.0)
    gone = build(CastOp, missing, to=element(np.float64))
    present = build(SubOp, importer.constant(gone, [[1.0]], "one"), gone)
    filled = importer.where(missing, importer.cast(x, np.float64), [0.0], "zero")
    apart = kernels.differences(importer, filled, points)
    mine = build(ReshapeOp, present, shape=[DYNAMIC, 1, width])
    both = importer.mul(mine, known[None], "known")
    square = kernels.summed(importer, build(MulOp, build(MulOp, apart, apart), both))
    count = importer.matmul(present, known.T, "known")
    safe = build(MaxOp, count, importer.constant(count, [[1.0]], "one"))
    far = build(SqrtOp, importer.mul(build(DivOp, square, safe), [[float(width)]], "features"))
    return importer.where(importer.compare(count, "eq", [[0.0]], "zero"), far, [[np.inf]], "none")


def _filled(importer: Importer, step: Any, far: SSAValue, kept: Array) -> SSAValue:
    """rows×columns of float64: what the nearest fitted rows that have a column have in it, on average."""
    build, has = importer.builder, ~np.asarray(step._mask_fit_X)[:, kept].T
    fitted = np.asarray(step._fit_X, np.float64)[:, kept].T
    count = min(int(step.n_neighbors), int(has.sum(axis=1).max()))
    far = build(ReshapeOp, far, shape=[DYNAMIC, 1, has.shape[1]])
    never = build.constant(np.full((1, 1, 1), np.inf), "infinity")
    far = build(WhereOp, build.constant(has[None], "donors"), far, never)
    distance, places = build.ops(TopKOp, far, k=count, axis=2, largest=False)
    within = build(CompareOp, distance, never, predicate="lt")
    weight = build(CastOp, within, to=element(np.float64))
    if step.weights == "distance":
        weight = inverse(importer, distance, within)
    places = importer.add(places, (np.arange(len(kept)) * has.shape[1])[None, :, None], "columns")
    values = build.constant(np.where(has, fitted, 0.0).reshape(-1), "values")
    found = build(GatherOp, values, places, axis=0)
    total = kernels.summed(importer, build(MulOp, found, weight))
    sums = kernels.summed(importer, weight)
    none = importer.compare(sums, "eq", [[0.0]], "zero")
    mean = build(DivOp, total, importer.where(none, sums, [[1.0]], "one"))
    means = np.where(has, fitted, 0.0).sum(axis=1) / has.sum(axis=1)
    return importer.where(none, mean, means[None], "means")


def _imputed(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    gone, valid = absent(importer, step, x), np.asarray(step._valid_mask)
    kept, dtype = np.flatnonzero(valid), importer.dtype(x)
    parts: list[SSAValue] = []
    if len(kept):
        far = _distances(importer, step, x, gone)
        filled = importer.cast(_filled(importer, step, far, kept), dtype)
        here = importer.columns(gone, kept)
        parts.append(importer.builder(WhereOp, here, filled, importer.columns(x, kept)))
    if step.keep_empty_features and not valid.all():
        parts.append(importer.full(x, 0.0, dtype))
        # All columns that were never there are the last one.
        places = np.where(valid, np.cumsum(valid) - 1, len(kept))
        parts = [importer.columns(importer.concat(parts), places)]
    if step.add_indicator and len(step.indicator_.features_):
        parts.append(importer.cast(importer.columns(gone, step.indicator_.features_), dtype))
    return importer.concat(parts)


def _why_not(step: Any) -> list[str]:
    reasons: list[str] = []
    if step.metric != "nan_euclidean":
        reasons.append("parameter metric=a function")
    if callable(step.weights):
        reasons.append("parameter weights=a function")
    if not np.isscalar(step.missing_values):
        reasons.append(
            f"parameter missing_values={step.missing_values!r} (supported: numbers, nan)"
        )
    return reasons


def _why_no_columns(step: Any) -> list[str]:
    kept = bool(np.any(step._valid_mask)) or step.keep_empty_features
    return [] if kept else ["no output columns"]


TRANSFORMERS: dict[str, Transformer] = {
    "KNNImputer": Transformer(_imputed, _why_not, _why_no_columns, nan="clears", bounded=True)
}
