"""HistGradientBoosting: float64 comparisons, NaN and categories; sums in float64, in tree order.

For float32 input, thresholds rounded down to float32 decide alike, so such a program stays in float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from irkit.dialects.graph import ExpOp
from irkit.frontends.categories import CategorySets
from irkit.frontends.sklearn.encoders import encodable, ordinal_codes
from irkit.frontends.sklearn.importer import Importer, Outputs, Predictor
from irkit.frontends.sklearn.outputs import from_margins, regressor
from irkit.frontends.trees import Trees, floor32, join


def _raw(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    columns = int(step.n_trees_per_iteration_)
    base = np.ascontiguousarray(
        np.broadcast_to(np.asarray(step._baseline_prediction, np.float64).reshape(-1), (columns,))
    )
    x = _ordered(importer, step, x)
    sets = CategorySets(importer.width(x))
    narrow = importer.dtype(x) == np.float32
    parts = [
        _tree(predictor, column, base, sets, narrow)
        for iteration in step._predictors
        for column, predictor in enumerate(iteration)
    ]
    trees = join(parts) if parts else None
    assert trees is not None
    return trees.build(importer.builder, sets.extend(importer.builder, x))


def _ordered(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    """What the estimator's own preprocessor makes: categories as codes, and those columns first."""
    if step._preprocessor is None:
        return x
    mask = np.asarray(step.is_categorical_)
    cells = importer.columns(x, np.flatnonzero(mask))
    importer.require_finite(cells, "OrdinalEncoder", nan=True, infinite=False)
    codes = ordinal_codes(importer, _encoder(step), cells, importer.dtype(x))
    if mask.all():
        return codes
    return importer.concat([codes, importer.columns(x, np.flatnonzero(~mask))])


def _encoder(step: Any) -> Any:
    return step._preprocessor.named_transformers_["encoder"]


def _tree(predictor: Any, column: int, base: Any, sets: CategorySets, narrow: bool) -> Trees:
    found = predictor.nodes
    nodes = np.arange(len(found))
    leaf = found["is_leaf"].astype(np.bool_)
    missing = found["missing_go_to_left"].astype(np.bool_) & ~leaf
    feature = np.where(leaf, 0, found["feature_idx"].astype(np.int64))
    threshold = np.where(leaf, 0.0, found["num_threshold"])
    for node in np.flatnonzero(found["is_categorical"].astype(np.bool_) & ~leaf):
        words = predictor.raw_left_cat_bitsets[found["bitset_idx"][node]]
        bits = np.unpackbits(np.asarray(words, np.uint32).view(np.uint8), bitorder="little")
        members = np.flatnonzero(bits).tolist()
        feature[node] = sets.column(int(feature[node]), members, bool(missing[node]))
        threshold[node], missing[node] = 0.5, False
    return Trees(
        feature,
        floor32(threshold) if narrow else threshold,
        np.where(leaf, nodes, found["left"].astype(np.int64)),
        np.where(leaf, nodes, found["right"].astype(np.int64)),
        missing,
        found["value"][:, None].astype(np.float64),
        np.array([0]),
        np.array([column]),
        base,
    )


def _regressor(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    y = _raw(importer, step, x)
    if type(step._loss.link).__name__ == "LogLink":
        y = importer.builder(ExpOp, y)
    return regressor(importer, y)


def _classifier(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    return from_margins(importer, step, _raw(importer, step, x), at_zero=False, log=False)


def _why_not(step: Any) -> list[str]:
    reasons: list[str] = []
    if step._preprocessor is not None:
        reasons += encodable(_encoder(step))
    link = type(step._loss.link).__name__
    if link not in ("IdentityLink", "LogLink", "LogitLink", "MultinomialLogit"):
        reasons.append(f"link {link}")
    if not step._predictors:
        reasons.append("a model without trees")
    if np.asarray(step._baseline_prediction).dtype != np.float64:
        reasons.append("sums that are not float64")
    return reasons


PREDICTORS: dict[str, Predictor] = {
    "HistGradientBoostingClassifier": Predictor(_classifier, why_not_fitted=_why_not),
    "HistGradientBoostingRegressor": Predictor(_regressor, why_not_fitted=_why_not),
}
