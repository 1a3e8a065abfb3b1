"""Whether a model takes sparse rows, as scikit-learn's tags have it, and what an absent element is to it."""

from __future__ import annotations

from typing import Any

from irkit.frontends.sklearn.boosters import LIGHTGBM, XGBOOST
from irkit.frontends.sklearn.composition import (
    COMPOSITIONS,
    answering,
    estimators_within,
    members,
    pipeline_steps,
)
from irkit.frontends.sklearn.importer import kind_of

_DENSE = (
    "IncrementalPCA",
    "NMF",
    "Nystroem",
    "PCA",
    "RBFSampler",
    "TruncatedSVD",
)
"""Steps that make dense rows of sparse ones."""


def sparse_facts(steps: list[tuple[str, Any]], counted: bool = False) -> dict[str, Any]:
    """The fields of ModelInfo that say of sparse rows: `absent`, `dense_only`, `sparse_nan`.

    `counted`: the rows are counts of words, of which none that is stored is 0.
    """
    before = next((n for n, (_, s) in enumerate(steps) if kind_of(s) in _DENSE), len(steps))
    seen = steps[: before + 1]
    for name, step in seen:
        if not step.__sklearn_tags__().input_tags.sparse:
            return {"dense_only": f"step '{name}' ({kind_of(step)}) takes none"}
        if kind_of(step) == "TfidfTransformer" and step.sublinear_tf and not counted:
            reason = f"step '{name}' (TfidfTransformer with sublinear_tf) takes a stored 0 for no 0"
            return {"dense_only": reason}
    if len(steps) == 1 and kind_of(steps[0][1]) in XGBOOST and not counted:
        return {"absent": "nan"}
    if any(_asks_xgboost(step) for _, step in seen):
        # XGBoost takes for missing what a sparse row does not have, and not what a dense one has as 0.
        return {"dense_only": "XGBoost within a model, to which what is absent is missing and no 0"}
    takes_nan = bool(steps) and kind_of(steps[0][1]) in (*LIGHTGBM, "SimpleImputer")
    return {"absent": "zero", "sparse_nan": takes_nan}


def _asks_xgboost(model: Any) -> bool:
    """Whether one of XGBoost's estimators stands anywhere in a fitted model."""
    model = answering(model)
    kind = kind_of(model)
    if kind in COMPOSITIONS:
        parts = pipeline_steps(model) if kind == "Pipeline" else members(model, fitted=True)
    else:
        parts = estimators_within(model)
    return kind in XGBOOST or any(_asks_xgboost(part) for _, part in parts)
