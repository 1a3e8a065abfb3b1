"""Clusters and mixtures: the nearest centre, distances to centres, densities of components."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from irkit.dialects.graph import AddOp, ExpOp, GatherOp, MulOp, SubOp, WhereOp
from irkit.frontends.module import Methods
from irkit.frontends.sklearn.importer import Importer, Outputs, Predictor, Transformer
from irkit.frontends.sklearn.kernels import (
    distances,
    fitted_rows,
    nearest,
    nearest_mean,
    squared_norm,
)
from irkit.frontends.sklearn.outputs import largest, log_sum_exp
from irkit.weights import Array


def _labels(importer: Importer, label: SSAValue, dtype: Any) -> Outputs:
    return Outputs("clusterer", [("label", importer.cast(label, dtype))], {"predict": "label"})


# Centres


def _means(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    return _labels(importer, nearest_mean(importer, x, step.cluster_centers_), np.int32)


def _nearest_centre(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    return _labels(importer, nearest(importer, x, fitted_rows(step.cluster_centers_)), np.int64)


def _birch(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    number = nearest(importer, x, step.subcluster_centers_)
    labels = np.asarray(step.subcluster_labels_)
    table = importer.builder.constant(labels.astype(np.int64), "labels")
    return _labels(importer, importer.builder(GatherOp, table, number, axis=0), labels.dtype)


def _bisecting(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    """Down the tree of bisections: at each, the nearer of two centres."""

    def labels(node: Any) -> SSAValue:
        if node.left is None:
            return importer.full(x, node.label, np.int64)
        centres = np.stack([node.left.center, node.right.center]) + getattr(step, "_X_mean", 0)
        side = importer.column(nearest_mean(importer, x, centres))
        first = importer.compare(side, "eq", [0], "left")
        return importer.builder(WhereOp, first, labels(node.left), labels(node.right))

    return _labels(importer, importer.flat(labels(step._bisecting_tree)), np.int32)


def _to_centres(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    return distances(importer, x, step.cluster_centers_)


def _to_subclusters(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    return distances(importer, x, step.subcluster_centers_)


def _why_no_centres(step: Any) -> list[str]:
    if not hasattr(step, "cluster_centers_"):
        return ["parameter affinity='precomputed'"]
    return [] if step.cluster_centers_.shape[0] else ["no cluster centers"]


# Mixtures


def _far(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    """rows×components: squared distances that precisions weigh, rounded to x's dtype where
    scikit-learn's array of them has it."""
    means, factors = np.asarray(step.means_), np.asarray(step.precisions_cholesky_)
    wide = importer.cast(x, np.result_type(importer.dtype(x), means))
    match step.covariance_type:
        case "full" | "tied":
            full = step.covariance_type == "full"
            each = list(factors) if full else [factors] * len(means)
            parts = [_weighed(importer, wide, m, f) for m, f in zip(means, each, strict=True)]
            return importer.cast(
                importer.cast(importer.concat(parts), importer.dtype(x)), importer.dtype(wide)
            )
        case "diag":
            precisions = factors**2
            cross = importer.matmul(wide, (-2.0 * means * precisions).T, "cross")
            square = importer.matmul(_square(importer, wide), precisions.T, "precisions")
            far = importer.builder(AddOp, cross, square)
            return importer.add(far, np.sum(means**2 * precisions, axis=1), "norms")
        case _:
            precisions = factors**2
            cross = importer.matmul(wide, -2.0 * means.T * precisions, "cross")
            square = importer.mul(squared_norm(importer, wide), precisions[None], "precisions")
            far = importer.builder(AddOp, cross, square)
            return importer.add(far, np.sum(means**2, axis=1) * precisions, "norms")


def _square(importer: Importer, x: SSAValue) -> SSAValue:
    return importer.builder(MulOp, x, x)


def _weighed(importer: Importer, x: SSAValue, mean: Array, factor: Array) -> SSAValue:
    y = importer.sub(importer.matmul(x, factor, "factor"), mean @ factor, "mean")
    return squared_norm(importer, y)


def _constants(step: Any, dtype: np.dtype[Any]) -> Array:
    """What the estimator adds to each component's -0.5 * distance: all that hangs on no row. `dtype`: of
    distances."""
    means = np.asarray(step.means_).astype(dtype)
    rows = np.asarray(step._estimate_weighted_log_prob(means))
    # A component's own mean is at no distance from it.
    return np.diagonal(rows)


def _mixture(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    far = importer.mul(_far(importer, step, x), [-0.5], "half")
    joint = importer.add(far, _constants(step, importer.dtype(far)), "weights")
    total = log_sum_exp(importer, joint)
    values = [
        ("label", largest(importer, joint)),
        ("probabilities", importer.builder(ExpOp, importer.builder(SubOp, joint, total))),
        ("score", importer.flat(total)),
    ]
    methods: Methods = {
        "predict": "label",
        "predict_proba": "probabilities",
        "score_samples": "score",
    }
    return Outputs("clusterer", values, methods)


PREDICTORS: dict[str, Predictor] = {
    "AffinityPropagation": Predictor(_nearest_centre, why_not_fitted=_why_no_centres),
    "BayesianGaussianMixture": Predictor(_mixture),
    "Birch": Predictor(_birch),
    "BisectingKMeans": Predictor(_bisecting),
    "GaussianMixture": Predictor(_mixture),
    "KMeans": Predictor(_means),
    "MeanShift": Predictor(_nearest_centre),
    "MiniBatchKMeans": Predictor(_means),
}
TRANSFORMERS: dict[str, Transformer] = {
    "Birch": Transformer(_to_subclusters),
    "BisectingKMeans": Transformer(_to_centres),
    "KMeans": Transformer(_to_centres),
    "MiniBatchKMeans": Transformer(_to_centres),
}
