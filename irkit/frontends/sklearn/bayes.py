"""Naive Bayes and quadratic discriminants: joint log likelihoods of classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from irkit.dialects.graph import AndOp, CastOp, GatherOp, MulOp, ReduceOp, SubOp
from irkit.frontends.sklearn.importer import Importer, Outputs, Predictor, element
from irkit.frontends.sklearn.kernels import differences, squared_norm, summed
from irkit.frontends.sklearn.outputs import from_log_likelihoods


def _wide(importer: Importer, x: SSAValue, *arrays: Any) -> SSAValue:
    """x in the dtype that NumPy takes for it and the arrays."""
    return importer.cast(x, np.result_type(importer.dtype(x), *(np.asarray(a) for a in arrays)))


def _gaussian(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    x = _wide(importer, x, step.theta_, step.var_)
    far = differences(importer, x, step.theta_)
    ratio = importer.div(importer.builder(MulOp, far, far), step.var_[None], "var")
    # Class by class, as scikit-learn: sums of float32 hang on their order.
    row = np.array([_normaliser(p, v) for p, v in zip(step.class_prior_, step.var_, strict=True)])
    joint = importer.add(importer.mul(summed(importer, ratio), [-0.5], "half"), row, "prior")
    return from_log_likelihoods(importer, step, joint)


def _normaliser(prior: Any, variance: Any) -> Any:
    return float(np.log(prior)) + float(-0.5 * np.sum(np.log(2.0 * np.pi * variance)))


def _product(importer: Importer, x: SSAValue, weights: Any, row: Any) -> SSAValue:
    x = _wide(importer, x, weights)
    joint = importer.matmul(x, np.asarray(weights).T, "feature_log_prob")
    return importer.add(_wide(importer, joint, row), row, "class_log_prior")


def _multinomial(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    joint = _product(importer, x, step.feature_log_prob_, step.class_log_prior_)
    return from_log_likelihoods(importer, step, joint)


def _complement(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    row = step.class_log_prior_ if len(step.classes_) == 1 else np.zeros(len(step.classes_))
    joint = _product(importer, x, step.feature_log_prob_, row)
    return from_log_likelihoods(importer, step, joint)


def _bernoulli(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    if step.binarize is not None:
        above = importer.compare(x, "gt", [step.binarize], "binarize")
        x = importer.builder(CastOp, above, to=element(importer.dtype(x)))
    absent = np.log(1 - np.exp(step.feature_log_prob_))
    row = step.class_log_prior_ + absent.sum(axis=1)
    joint = _product(importer, x, step.feature_log_prob_ - absent, row)
    return from_log_likelihoods(importer, step, joint)


def _categorical(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    """Rows of one table of all features' categories, summed in the order of features."""
    counts = np.array([table.shape[1] for table in step.feature_log_prob_])
    # scikit-learn cuts off what is behind the point.
    low = importer.compare(x, "gt", np.full(len(counts), -1.0), "low")
    high = importer.compare(x, "lt", counts, "counts")
    message = "CategoricalNB found a category below 0 or beyond those it was fitted on"
    importer.require(importer.builder(AndOp, low, high), message)
    code = importer.builder(CastOp, x, to=i64)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    code = importer.add(code, starts, "starts")
    table = np.concatenate([table.T for table in step.feature_log_prob_])
    found = importer.builder(
        GatherOp, importer.builder.constant(table, "feature_log_prob"), code, axis=0
    )
    total = importer.builder(ReduceOp, found, kind="sum", axes=[1], keepdims=False)
    return from_log_likelihoods(
        importer, step, importer.add(total, step.class_log_prior_, "class_log_prior")
    )


def _quadratic(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    norms: list[SSAValue] = []
    for mean, rotation, scaling in zip(step.means_, step.rotations_, step.scalings_, strict=True):
        apart = importer.sub(_wide(importer, x, mean), mean, "mean")
        matrix = rotation * scaling**-0.5
        norms.append(
            squared_norm(
                importer, importer.matmul(_wide(importer, apart, matrix), matrix, "rotation")
            )
        )
    row = np.array([np.sum(np.log(s)) for s in step.scalings_])
    far = importer.mul(importer.add(importer.concat(norms), row, "log_det"), [-0.5], "half")
    priors = np.log(step.priors_)
    joint = importer.add(_wide(importer, far, priors), priors, "priors")
    margin = joint
    if len(step.classes_) == 2:
        second, first = (importer.columns(joint, [k]) for k in (1, 0))
        margin = importer.flat(importer.builder(SubOp, second, first))
    return from_log_likelihoods(importer, step, joint, margin)


def _why_not_finite(step: Any) -> list[str]:
    """0 times infinity is NaN in a sum over all columns, and left out of one over those of a sparse row."""
    if np.isfinite(step.feature_log_prob_).all():
        return []
    return [f"parameter alpha={step.alpha} and columns that a class never has, of infinite weight"]


PREDICTORS: dict[str, Predictor] = {
    "BernoulliNB": Predictor(_bernoulli, why_not_fitted=_why_not_finite),
    "CategoricalNB": Predictor(_categorical),
    "ComplementNB": Predictor(_complement, why_not_fitted=_why_not_finite),
    "GaussianNB": Predictor(_gaussian),
    "MultinomialNB": Predictor(_multinomial, why_not_fitted=_why_not_finite),
    "QuadraticDiscriminantAnalysis": Predictor(_quadratic),
}
