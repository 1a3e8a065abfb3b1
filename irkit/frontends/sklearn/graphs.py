"""What is known of a new row from the fitted rows near it: graphs of neighbours, labels that spread along
them, embeddings that they span, and densities."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from irkit.dialects.graph import (
    AddOp,
    CastOp,
    CosOp,
    DivOp,
    ExpOp,
    GatherOp,
    LogOp,
    MatmulOp,
    MulOp,
    ReduceOp,
    ReshapeOp,
    SubOp,
    TransposeOp,
    WhereOp,
)
from irkit.dialects.types import DYNAMIC
from irkit.frontends.sklearn import kernels
from irkit.frontends.sklearn.importer import Importer, Outputs, Predictor, Transformer, element
from irkit.frontends.sklearn.metrics import METRICS, distance_of, ranked
from irkit.frontends.sklearn.neighbours import nearest_k, why_not, within_radius
from irkit.frontends.sklearn.outputs import classifier, largest
from irkit.frontends.sklearn.projections import kernel_components
from irkit.weights import Array

LARGEST_SYSTEM = 32
"""Neighbours up to which the equations of a LocallyLinearEmbedding are written out."""


def _spread(importer: Importer, numbers: SSAValue, count: int) -> SSAValue:
    """rows×neighbours×fitted rows of i1: which fitted row each neighbour is."""
    build, near = importer.builder, importer.width(numbers)
    places = build(ReshapeOp, numbers, shape=[DYNAMIC, near, 1])
    return importer.compare(places, "eq", np.arange(count)[None, None], "fitted")


def _over_neighbours(importer: Importer, x: SSAValue, kind: str = "sum") -> SSAValue:
    return importer.builder(ReduceOp, x, kind=kind, axes=[1], keepdims=False)


# Graphs of neighbours. scikit-learn stores zeros of the distance 0; dense rows do not tell them apart.


def _nearest_graph(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    build, far = importer.builder, step.mode == "distance"
    distance, numbers = nearest_k(importer, step, x, step.n_neighbors + far)
    here = build(CastOp, _spread(importer, numbers, step._fit_X.shape[0]), to=element(np.float64))
    if far:
        each = build(ReshapeOp, distance, shape=[DYNAMIC, importer.width(distance), 1])
        here = build(MulOp, here, each)
    return _over_neighbours(importer, here)


def _radius_graph(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    power = ranked(importer, step, x)
    within = within_radius(importer, step, power)
    if step.mode == "connectivity":
        return importer.builder(CastOp, within, to=element(np.float64))
    none = importer.builder.constant(np.zeros((1, 1)), "zero")
    return importer.builder(WhereOp, within, distance_of(importer, step, power), none)


# Labels


def _propagated(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    labels = np.asarray(step.label_distributions_, np.float64)
    if step.kernel == "knn":
        _, numbers = nearest_k(importer, step.nn_fit, x, int(step.n_neighbors))
        table = importer.builder.constant(labels, "labels")
        found = importer.builder(GatherOp, table, numbers, axis=0)
        total = _over_neighbours(importer, found)
    else:
        kernel = kernels.Kernel("rbf", float(step.gamma))
        near = kernels.apply(importer, kernel, x, kernels.fitted_rows(step.X_))
        total = importer.matmul(importer.cast(near, np.float64), labels, "labels")
    share = importer.builder(DivOp, total, importer.reduce("sum", total))
    return classifier(step, largest(importer, share), share, None, log=False)


def _why_no_labels(step: Any) -> list[str]:
    if step.kernel not in ("knn", "rbf"):
        return ["parameter kernel=a function"]
    return why_not(step.nn_fit) if step.kernel == "knn" else []


# Embeddings


def _isomap(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    """The shortest way to every fitted row, through one of the nearest; then the kernel's components."""
    build, fitted = importer.builder, np.asarray(step.dist_matrix_)
    distance, numbers = nearest_k(importer, step.nbrs_, x, int(step.n_neighbors))
    onward = build(GatherOp, build.constant(fitted.astype(np.float64), "ways"), numbers, axis=0)
    first = build(ReshapeOp, distance, shape=[DYNAMIC, importer.width(distance), 1])
    way = _over_neighbours(importer, build(AddOp, onward, first), "min")
    way = importer.cast(way, importer.dtype(x))
    way = importer.mul(build(MulOp, way, way), [-0.5], "half")
    importer.require_finite(way, "the kernel of Isomap", nan=False, infinite=False)
    return kernel_components(importer, step.kernel_pca_, way)


def _why_no_isomap(step: Any) -> list[str]:
    if step.n_neighbors is None:
        return ["parameter radius (supported: n_neighbors)"]
    return why_not(step.nbrs_)


def _local(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    """Weights by which the neighbours make the row, and the point of the embedding that they make."""
    build, count = importer.builder, int(step.n_neighbors)
    _, numbers = nearest_k(importer, step.nbrs_, x, count)
    points = build.constant(kernels.fitted_rows(step.nbrs_._fit_X, np.float64), "fitted")
    rows = build(ReshapeOp, importer.cast(x, np.float64), shape=[DYNAMIC, 1, importer.width(x)])
    apart = build(SubOp, build(GatherOp, points, numbers, axis=0), rows)
    gram = build(MatmulOp, apart, build(TransposeOp, apart, permutation=[0, 2, 1]))
    weights = importer.cast(_barycentric(importer, gram, count, float(step.reg)), importer.dtype(x))
    table = build.constant(np.asarray(step.embedding_, np.float64), "embedding")
    parts = build(
        MulOp,
        build(GatherOp, table, numbers, axis=0),
        build(ReshapeOp, importer.cast(weights, np.float64), shape=[DYNAMIC, count, 1]),
    )
    return _over_neighbours(importer, parts)


def _barycentric(importer: Importer, gram: SSAValue, count: int, reg: float) -> SSAValue:
    """rows×count: what solves (gram + ridge) w = 1, divided by its sum; by elimination, which needs no pivots
    as the matrix is positive definite."""
    build = importer.builder
    unit = np.eye(count)[None]
    trace = importer.mul(gram, unit, "diagonal")
    trace = build(ReduceOp, trace, kind="sum", axes=[1, 2], keepdims=True)
    ridge = importer.mul(trace, [[[reg]]], "reg")
    flat = importer.compare(trace, "gt", [[[0.0]]], "zero")
    ridge = build(WhereOp, flat, ridge, build.constant(np.full((1, 1, 1), reg), "reg"))
    system = build(AddOp, gram, importer.mul(ridge, unit, "diagonal"))
    right = importer.add(importer.mul(_at(importer, system, 0, 2), [[[0.0]]], "zero"), [[[1.0]]])
    for number in range(count):
        row, column = _at(importer, system, number, 1), _at(importer, system, number, 2)
        pivot = _at(importer, row, number, 2)
        others = importer.mul(column, 1.0 - np.eye(count)[:, number][None, :, None], "others")
        factor = build(DivOp, others, pivot)
        own = _at(importer, right, number, 1)
        system = build(SubOp, system, build(MulOp, factor, row))
        right = build(SubOp, right, build(MulOp, factor, own))
    diagonal = importer.builder(
        ReduceOp, importer.mul(system, unit, "diagonal"), kind="sum", axes=[2], keepdims=False
    )
    weights = build(DivOp, build(ReshapeOp, right, shape=[DYNAMIC, count]), diagonal)
    return build(DivOp, weights, importer.reduce("sum", weights))


def _at(importer: Importer, x: SSAValue, number: int, axis: int) -> SSAValue:
    """One slice of a dimension, which stays as one of extent 1."""
    place = importer.builder.constant(np.array([number], np.int64), "place")
    return importer.builder(GatherOp, x, place, axis=axis)


def _why_no_local(step: Any) -> list[str]:
    if step.n_neighbors > LARGEST_SYSTEM:
        return [f"parameter n_neighbors={step.n_neighbors} (supported: up to {LARGEST_SYSTEM})"]
    return why_not(step.nbrs_)


# Densities


def _gaussian(importer: Importer, ratio: SSAValue) -> SSAValue:
    return importer.mul(importer.builder(MulOp, ratio, ratio), [[-0.5]], "half")


def _epanechnikov(importer: Importer, ratio: SSAValue) -> SSAValue:
    return _log_less(importer, importer.builder(MulOp, ratio, ratio))


def _exponential(importer: Importer, ratio: SSAValue) -> SSAValue:
    return importer.mul(ratio, [[-1.0]], "minus_one")


def _linear(importer: Importer, ratio: SSAValue) -> SSAValue:
    return _log_less(importer, ratio)


def _cosine(importer: Importer, ratio: SSAValue) -> SSAValue:
    angle = importer.mul(ratio, [[0.5 * np.pi]], "half_pi")
    return importer.builder(LogOp, importer.builder(CosOp, angle))


def _tophat(importer: Importer, ratio: SSAValue) -> SSAValue:
    return importer.mul(ratio, [[0.0]], "zero")


def _log_less(importer: Importer, x: SSAValue) -> SSAValue:
    return importer.builder(LogOp, importer.builder(SubOp, importer.constant(x, [[1.0]], "one"), x))


DENSITIES: dict[str, tuple[Callable[[Importer, SSAValue], SSAValue], bool]] = {
    "cosine": (_cosine, True),
    "epanechnikov": (_epanechnikov, True),
    "exponential": (_exponential, False),
    "gaussian": (_gaussian, False),
    "linear": (_linear, True),
    "tophat": (_tophat, True),
}
"""Kernels by name: the logarithm of the distance in bandwidths, and whether there is none from 1 on."""


def _density(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    trees: Any = importlib.import_module("sklearn.neighbors._kd_tree")
    build, width = importer.builder, float(step.bandwidth_)
    points, metric = np.asarray(step.tree_.data), _metric(step)
    far = METRICS[step.metric](importer, metric, x, points)
    far = distance_of(importer, metric, far)
    log_of, ends = DENSITIES[step.kernel]
    ratio = importer.div(far, [[width]], "bandwidth")
    if ends:
        inside = importer.compare(far, "lt", [[width]], "bandwidth")
        zero, never = (build.constant(np.full((1, 1), v), "end") for v in (0.0, -np.inf))
        ratio = build(WhereOp, inside, ratio, zero)
        logs = build(WhereOp, inside, log_of(importer, ratio), never)
    else:
        logs = log_of(importer, ratio)
    given = step.tree_.sample_weight
    weights: Array = np.ones(len(points)) if given is None else np.asarray(given)
    norm = trees.kernel_norm(width, points.shape[1], step.kernel, True)
    total = importer.add(_log_sum(importer, logs, weights), [float(norm - np.log(weights.sum()))])
    return Outputs("clusterer", [("score", importer.flat(total))], {"score_samples": "score"})


def _log_sum(importer: Importer, logs: SSAValue, weights: Array) -> SSAValue:
    """The logarithm of the weighed sum of exp, rows×1; of nothing -infinity."""
    build = importer.builder
    top = importer.reduce("max", logs)
    none = importer.compare(top, "eq", [[-np.inf]], "nothing")
    top = importer.where(none, top, [[0.0]], "zero")
    each = build(ExpOp, build(SubOp, logs, top))
    total = importer.matmul(each, weights[:, None], "weights")
    return build(AddOp, top, build(LogOp, total))


def _metric(step: Any) -> Any:
    """A metric as estimators of neighbours name it."""
    found = dict(step.metric_params or {})
    return SimpleNamespace(effective_metric_=step.metric, effective_metric_params_=found)


def _why_no_density(step: Any) -> list[str]:
    known = sorted(METRICS)
    reasons: list[str] = []
    if step.metric not in METRICS:
        reasons.append(f"parameter metric={step.metric!r} (supported: {', '.join(known)})")
    if set(step.metric_params or {}) - {"p"}:
        reasons.append(f"parameter metric_params={step.metric_params!r}")
    reasons += [f"parameter {n}={getattr(step, n)}" for n in ("atol", "rtol") if getattr(step, n)]
    return reasons


PREDICTORS: dict[str, Predictor] = {
    "KernelDensity": Predictor(_density, _why_no_density),
    "LabelPropagation": Predictor(_propagated, why_not_fitted=_why_no_labels),
    "LabelSpreading": Predictor(_propagated, why_not_fitted=_why_no_labels),
}
TRANSFORMERS: dict[str, Transformer] = {
    "Isomap": Transformer(_isomap, why_not_fitted=_why_no_isomap),
    "KNeighborsTransformer": Transformer(_nearest_graph, why_not_fitted=why_not),
    "LocallyLinearEmbedding": Transformer(_local, why_not_fitted=_why_no_local),
    "RadiusNeighborsTransformer": Transformer(_radius_graph, why_not_fitted=why_not),
}
