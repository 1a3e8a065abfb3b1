"""Neighbours by brute force, for any batch: distances to all fitted rows, from differences in float64.

Equal distances are exactly equal, and the row that was fitted first is then the nearer; scikit-learn's
trees leave that order open.
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
    MaxOp,
    MulOp,
    NegOp,
    ReduceOp,
    ReshapeOp,
    TopKOp,
    WhereOp,
)
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.frontends.sklearn.importer import Importer, Outputs, Predictor, element
from irkit.frontends.sklearn.metrics import (
    distance_of,
    euclidean,
    manhattan,
    radius_power,
    ranked,
    why_no_metric,
)
from irkit.frontends.sklearn.outputs import (
    classes_of,
    classifier,
    from_log_likelihoods,
    largest,
    regressor,
    several_classifiers,
)
from irkit.frontends.sklearn.svm import outliers
from irkit.weights import Array


def nearest_k(importer: Importer, step: Any, x: SSAValue, count: int) -> tuple[SSAValue, SSAValue]:
    """Distances (float64) and numbers of the nearest rows, rows×count, in order."""
    far, numbers = importer.builder.ops(
        TopKOp, ranked(importer, step, x), k=count, axis=1, largest=False
    )
    return distance_of(importer, step, far), numbers


def inverse(importer: Importer, distance: SSAValue, within: SSAValue | None = None) -> SSAValue:
    """1 / distance, `within` only; 1 and 0 for others where one along the last dimension is 0."""
    build, rank = importer.builder, tensor_type(distance).get_num_dims()
    weight = build(DivOp, importer.constant(distance, np.ones((1,) * rank), "one"), distance)
    none = build.constant(np.zeros((1,) * rank), "zero")
    if within is not None:
        weight = build(WhereOp, within, weight, none)
    infinity = build.constant(np.full((1,) * rank, np.inf), "infinity")
    same = build(CompareOp, weight, infinity, predicate="eq")
    marks = build(CastOp, same, to=element(np.float64))
    most = build(ReduceOp, marks, kind="max", axes=[rank - 1], keepdims=True)
    some = importer.compare(most, "gt", [0.0], "zero")
    return build(WhereOp, some, marks, weight)


def _gathered(importer: Importer, table: Any, numbers: SSAValue) -> SSAValue:
    return importer.builder(
        GatherOp, importer.builder.constant(np.asarray(table), "fitted"), numbers, axis=0
    )


# The k nearest


def _k_classifier(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    distance, numbers = nearest_k(importer, step, x, step.n_neighbors)
    if not step.outputs_2d_:
        codes = np.asarray(step._y).reshape(-1)
        label, share = _votes(importer, step, distance, numbers, codes, len(step.classes_))
        return classifier(step, label, share, None, log=False)
    each = [
        _votes(importer, step, distance, numbers, np.asarray(step._y)[:, k], len(classes))
        for k, classes in enumerate(step.classes_)
    ]
    return several_classifiers(step, [n for n, _ in each], [s for _, s in each], log=False)


def _votes(
    importer: Importer, step: Any, distance: SSAValue, numbers: SSAValue, codes: Array, classes: int
) -> tuple[SSAValue, SSAValue]:
    """The number of each row's class, and the classes' shares, by the fitted rows' `codes`."""
    count = step.n_neighbors
    label = _gathered(importer, codes.astype(np.int64), numbers)
    label = importer.builder(ReshapeOp, label, shape=[DYNAMIC, count, 1])
    own = importer.compare(label, "eq", np.arange(classes)[None, None], "classes")
    votes = importer.builder(CastOp, own, to=element(np.float64))
    if step.weights == "distance":
        weight = importer.builder(ReshapeOp, inverse(importer, distance), shape=[DYNAMIC, count, 1])
        none = importer.builder.constant(np.zeros((1, 1, 1)), "zero")
        votes = importer.builder(WhereOp, own, weight, none)
    total = importer.builder(ReduceOp, votes, kind="sum", axes=[1], keepdims=False)
    return largest(importer, total), importer.builder(DivOp, total, importer.reduce("sum", total))


def _k_regressor(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    distance, numbers = nearest_k(importer, step, x, step.n_neighbors)
    flat, count = np.ndim(step._y) == 1, step.n_neighbors
    values = _values(step)
    found = _gathered(importer, values, numbers)
    if step.weights == "distance":
        weight = inverse(importer, distance)
        sums = importer.reduce("sum", weight)
        apart = importer.builder(ReshapeOp, weight, shape=[DYNAMIC, count, 1])
        weighed = importer.builder(MulOp, importer.cast(found, np.float64), apart)
        total = importer.builder(ReduceOp, weighed, kind="sum", axes=[1], keepdims=False)
        return regressor(importer, importer.builder(DivOp, total, sums), flat)
    total = importer.builder(ReduceOp, found, kind="sum", axes=[1], keepdims=False)
    return regressor(importer, importer.div(total, [float(count)], "neighbours"), flat)


def _values(step: Any) -> Array:
    """What was fitted, rows×outputs; whole numbers as float64."""
    y = np.asarray(step._y).reshape(len(step._y), -1)
    return y if y.dtype.kind == "f" else y.astype(np.float64)


# All within a radius


def within_radius(importer: Importer, step: Any, far: SSAValue) -> SSAValue:
    """rows×fitted rows of i1: of powers of distances, which are within the radius."""
    return importer.compare(far, "le", [[radius_power(step)]], "radius")


def _within(importer: Importer, step: Any, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """rows×fitted rows: which are within the radius (i1), and what they weigh (float64)."""
    far = ranked(importer, step, x)
    within = within_radius(importer, step, far)
    if step.weights == "distance":
        return within, inverse(importer, distance_of(importer, step, far), within)
    return within, importer.builder(CastOp, within, to=element(np.float64))


def _radius_classifier(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    within, weight = _within(importer, step, x)
    count = len(step.classes_)
    one_hot = np.asarray(step._y).reshape(-1)[:, None] == np.arange(count)
    total = importer.matmul(weight, one_hot.astype(np.float64), "classes")
    some = importer.reduce("max", importer.builder(CastOp, within, to=element(np.float64)))
    if step.outlier_label_ is None:
        message = "RadiusNeighborsClassifier found no neighbors, and has no outlier_label"
        importer.require(importer.compare(some, "gt", [0.0], "zero"), message)
        share = importer.builder(DivOp, total, importer.reduce("sum", total))
        return classifier(step, largest(importer, share), share, None, log=False)
    return _with_outliers(importer, step, total, importer.compare(some, "eq", [0.0], "zero"))


def _with_outliers(importer: Importer, step: Any, total: SSAValue, alone: SSAValue) -> Outputs:
    """Rows without neighbours get the outliers' label, which may be none of the classes."""
    count, build = len(step.classes_), importer.builder
    label = np.asarray(step.outlier_label_[0])
    here = np.flatnonzero(np.asarray(step.classes_) == label)
    row = np.zeros((1, count))
    row[:, here] = 1.0
    sums = importer.reduce("sum", total)
    safe = importer.where(alone, sums, [1.0], "one")
    share = build(WhereOp, alone, build.constant(row, "outlier"), build(DivOp, total, safe))
    number = importer.column(largest(importer, share))
    if not len(here):
        number = importer.where(alone, number, [count], "outlier")
    outputs = classifier(step, importer.flat(number), share, None, log=False)
    classes, dtype = classes_of(step)
    outputs.classes = (*classes, label.item()) if not len(here) else classes
    outputs.labels = dtype
    return outputs


def _radius_regressor(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    _, weight = _within(importer, step, x)
    values = _values(step)
    total = importer.matmul(weight, values.astype(np.float64), "fitted")
    sums = importer.reduce("sum", weight)
    mean = importer.builder(DivOp, total, sums)
    # Without neighbours NaN, or what NumPy makes of it as a target.
    with np.errstate(invalid="ignore"):
        nothing = np.full_like(np.asarray(step._y).reshape(len(step._y), -1)[:1], np.nan)
    alone = importer.compare(sums, "eq", [[0.0]], "zero")
    mean = importer.where(alone, mean, nothing, "nothing")
    dtype = np.float64 if step.weights == "distance" else values.dtype
    return regressor(importer, importer.cast(mean, dtype), flat=np.ndim(step._y) == 1)


# Outliers


def _local_factor(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    """Reachability of each row beside that of its neighbours."""
    count, build, given = int(step.n_neighbors_), importer.builder, importer.dtype(x)
    distance, numbers = nearest_k(importer, step, x, count)
    fitted = np.asarray(step._distances_fit_X_)[:, count - 1]
    distance = importer.cast(distance, np.result_type(given, fitted))
    reach = build(
        MaxOp, distance, _gathered(importer, fitted.astype(importer.dtype(distance)), numbers)
    )
    density = importer.div(importer.reduce("sum", reach), [float(count)], "neighbours")
    density = importer.add(density, [1e-10], "tiny")
    theirs = _gathered(importer, np.asarray(step._lrd), numbers)
    wide = np.result_type(importer.dtype(theirs), importer.dtype(density))
    ratio = build(MulOp, importer.cast(theirs, wide), importer.cast(density, wide))
    score = importer.div(importer.reduce("sum", ratio), [-float(count)], "neighbours")
    margins = importer.sub(score, [float(step.offset_)], "offset")
    return outliers(importer, margins, "ge", float(step.offset_))


def _why_no_novelty(step: Any) -> list[str]:
    return [] if step.novelty else ["parameter novelty=False, which knows no new rows"]


# Centroids


def _centroids(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    centres, spread = np.asarray(step.centroids_), np.asarray(step.within_class_std_dev_)
    scale = np.where(spread != 0, spread, 1.0)
    scaled = importer.div(importer.cast(x, np.float64), scale, "std_dev")
    joint = importer.add(
        importer.builder(NegOp, _between(importer, step, scaled, centres / scale)),
        2.0 * np.log(step.class_prior_),
        "prior",
    )
    margin = joint
    if len(step.classes_) == 2:
        signs = np.array([[-1.0], [1.0]])
        margin = importer.flat(importer.matmul(joint, signs, "signs"))
    outputs = from_log_likelihoods(importer, step, joint, margin)
    if np.isclose(step.class_prior_, 1 / len(step.classes_)).all():
        far = _between(importer, step, importer.cast(x, np.float64), centres)
        label = largest(importer, importer.builder(NegOp, far))
        outputs.values = [(n, label if n == "label" else v) for n, v in outputs.values]
    # Of Manhattan distances there are no probabilities.
    outputs.methods = {m: n for m, n in outputs.methods.items() if hasattr(step, m)}
    outputs.values = [(n, v) for n, v in outputs.values if n in outputs.methods.values()]
    return outputs


def _between(importer: Importer, step: Any, x: SSAValue, points: Array) -> SSAValue:
    """Squared distances."""
    if step.metric == "euclidean":
        return euclidean(importer, step, x, points)
    far = manhattan(importer, step, x, points)
    return importer.builder(MulOp, far, far)


# Reasons


def why_not(step: Any) -> list[str]:
    """Reasons that lie in a metric, in weights, in what was fitted."""
    reasons = why_no_metric(step)
    if callable(getattr(step, "weights", None)):
        reasons.append("parameter weights=a function")
    if not _asked(step) and getattr(step, "radius", 1.0) is None:
        reasons.append("parameter radius=None")
    asked, fitted = _asked(step), int(step.n_samples_fit_)
    if asked > fitted:
        reasons.append(f"n_neighbors={asked} and n_samples={fitted}, of which it finds none")
    return reasons


def _asked(step: Any) -> int:
    """How many neighbours a step asks for; 0 if all within a radius."""
    found = getattr(step, "n_neighbors_", None) or getattr(step, "n_neighbors", None) or 0
    return int(found) + (getattr(step, "mode", "") == "distance" and found > 0)


def _why_no_radius(step: Any) -> list[str]:
    """scikit-learn's brute force takes the outliers' label for the number of a class."""
    reasons = why_not(step) + (["several outputs"] if step.outputs_2d_ else [])
    wrong = step._fit_method == "brute" and step.weights == "uniform"
    if step.outlier_label is None or not wrong:
        return reasons
    return [*reasons, "parameter outlier_label with brute force and uniform weights"]


def _why_no_factor(step: Any) -> list[str]:
    return _why_no_novelty(step) or why_not(step)


PREDICTORS: dict[str, Predictor] = {
    "KNeighborsClassifier": Predictor(_k_classifier, why_not_fitted=why_not),
    "KNeighborsRegressor": Predictor(_k_regressor, why_not_fitted=why_not),
    "LocalOutlierFactor": Predictor(_local_factor, why_not_fitted=_why_no_factor),
    "NearestCentroid": Predictor(_centroids),
    "RadiusNeighborsClassifier": Predictor(_radius_classifier, why_not_fitted=_why_no_radius),
    "RadiusNeighborsRegressor": Predictor(_radius_regressor, why_not_fitted=why_not),
}
