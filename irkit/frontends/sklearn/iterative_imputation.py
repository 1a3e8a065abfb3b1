"""IterativeImputer: what is missing is predicted from the other columns, by one estimator after another.

Of the estimators that were kept while it was fitted each is asked once, in their order; a row's answers
hang on no other row. The one exception is a batch in which nothing at all is there, which scikit-learn leaves
as it was filled at first: a row of which nothing is there is refused, since it hangs on those beside it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from irkit.dialects.graph import AbsOp, AndOp, CastOp, MaxOp, MinOp, WhereOp
from irkit.frontends.sklearn import columns
from irkit.frontends.sklearn.importer import Importer, Transformer, Values, element
from irkit.frontends.sklearn.imputation import absent
from irkit.frontends.sklearn.responses import labels, outputs_on
from irkit.weights import Array

_INITIAL = columns.TRANSFORMERS["SimpleImputer"]
_NOTHING = (
    "IterativeImputer found a row of which nothing is there: what scikit-learn makes of it hangs on "
    "the other rows"
)
_OVERFLOW = "IterativeImputer predicts a number that is not finite"


def _kept(step: Any) -> Array:
    """Columns of the input that are columns of the result."""
    empty = np.asarray(step._is_empty_feature)
    return np.arange(len(empty)) if step.keep_empty_features else np.flatnonzero(~empty)


def _imputed(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    gone, kept = absent(importer, step, x), _kept(step)
    filled = _INITIAL.build(importer, step.initial_imputer_, x)
    if step.n_iter_:
        missing = importer.columns(gone, kept)
        filled = _predicted(importer, step, filled, _to_fill(importer, step, missing, kept))
    if not step.add_indicator or not len(step.indicator_.features_):
        return filled
    marks = importer.columns(gone, step.indicator_.features_)
    return importer.concat([filled, importer.cast(marks, importer.dtype(x))])


def _to_fill(importer: Importer, step: Any, missing: SSAValue, kept: Array) -> SSAValue:
    """Which cells of the kept columns are predicted: not those of columns that were never there."""
    empty = np.asarray(step._is_empty_feature)[kept]
    if empty.any():
        return importer.builder(AndOp, missing, importer.constant(missing, [~empty], "fitted"))
    counts = importer.reduce("sum", importer.builder(CastOp, missing, to=element(np.float32)))
    importer.require(importer.compare(counts, "lt", [[float(len(kept))]], "all"), _NOTHING)
    return missing


def _predicted(importer: Importer, step: Any, x: SSAValue, missing: SSAValue) -> SSAValue:
    build, width, dtype = importer.builder, importer.width(x), importer.dtype(x)
    for column, neighbours, estimator in step.imputation_sequence_:
        importer.known[x] = Values(False, False)
        found = labels(importer, outputs_on(importer, estimator, x, neighbours))
        found = importer.cast(_limited(importer, step, found, int(column)), dtype)
        only = np.arange(width)[None] == column
        here = build(AndOp, missing, build.constant(only, "column"))
        x = build(WhereOp, here, found, x)
    # What is not finite goes into the predictions that follow, and so into the last ones.
    finite = importer.compare(build(AbsOp, x), "le", [[np.finfo(dtype).max]], "largest")
    importer.require(finite, _OVERFLOW)
    return x


def _limited(importer: Importer, step: Any, y: SSAValue, column: int) -> SSAValue:
    """Within `min_value` and `max_value` of a column, in float64 as these are."""
    low, high = float(step._min_value[column]), float(step._max_value[column])
    if low == -np.inf and high == np.inf:
        return y
    y = importer.cast(y, np.float64)
    y = importer.builder(MaxOp, y, importer.constant(y, [[low]], "low"))
    return importer.builder(MinOp, y, importer.constant(y, [[high]], "high"))


def _why_not(step: Any) -> list[str]:
    reasons = ["parameter sample_posterior=True"] if step.sample_posterior else []
    if not np.isscalar(step.missing_values):
        kinds = "(supported: numbers, nan)"
        reasons.append(f"parameter missing_values={step.missing_values!r} {kinds}")
    return reasons


def _why_not_fitted(step: Any) -> list[str]:
    reasons = _INITIAL.why_not(step.initial_imputer_)
    return reasons or _INITIAL.why_not_fitted(step.initial_imputer_)


def members(step: Any) -> list[tuple[str, Any]]:
    """The estimators, which share a name: what one of them is refused for, all are."""
    return [("imputation_sequence_", triplet.estimator) for triplet in step.imputation_sequence_]


TRANSFORMERS: dict[str, Transformer] = {
    "IterativeImputer": Transformer(
        _imputed, _why_not, _why_not_fitted, nan="clears", bounded=True, members=members
    )
}
