"""What scikit-learn says of sparse rows, what is absent of them to a model; what becomes of integers."""

from __future__ import annotations

from typing import Any, Literal

from irkit.frontends.sklearn.boosters import LIGHTGBM, XGBOOST
from irkit.frontends.sklearn.composition import (
    COMPOSITIONS,
    answering,
    estimators_within,
    members,
    pipeline_steps,
)
from irkit.frontends.sklearn.forms import Form
from irkit.frontends.sklearn.importer import kind_of
from irkit.frontends.sklearn.sparsity import form_after

_OF_ALL_STORED = {
    "AdditiveChi2Sampler": "AdditiveChi2Sampler",
    "TfidfTransformer": "TfidfTransformer with sublinear_tf",
}
"""Steps that take logarithms of all that a sparse matrix stores."""
_OTHERWISE = {
    "NMF": "takes all rows of a batch at once",
    "QuantileTransformer": "leaves what is absent at 0, and moves a 0 that is there",
}
"""Steps that do otherwise with sparse rows than a program does, and what."""
_TREES = ("kd_tree", "ball_tree")
"""Of which scikit-learn asks for neighbours of dense rows alone."""
_FLOATS = ("MaxAbsScaler", "MinMaxScaler", "PCA", "RobustScaler", "StandardScaler")
"""Steps that make float64 of integers."""


def sparse_facts(steps: list[tuple[str, Any]], counted: bool = False) -> dict[str, Any]:
    """The fields of ModelInfo that say of sparse rows: `absent`, `dense_only`, `sparse_nan`, `sparse_zeros`,
    `sparse_order`.

    `counted`: the rows are counts of words, of which none that is stored is 0.
    """
    before = next((n for n, (_, s) in enumerate(steps) if _makes_dense(s)), len(steps))
    seen = steps[: before + 1]
    for name, step in seen:
        if not step.__sklearn_tags__().input_tags.sparse:
            return {"dense_only": f"step '{name}' ({kind_of(step)}) takes none"}
        if getattr(step, "_sparse", True) is False:
            return {"dense_only": f"step '{name}' ({kind_of(step)}) was fitted on dense rows"}
        if (tree := _tree_of_points([("", step)])) is not None:
            return {
                "dense_only": f"step '{name}' looks for neighbours in a {tree}, which takes none"
            }
        for kind, does in _OTHERWISE.items():
            if _meets([("", step)], kind):
                return {"dense_only": f"step '{name}' ({kind}) {does}"}
        first = step is steps[0][1] and kind_of(step) in _OF_ALL_STORED
        if _logarithms(step) and not counted and not first:
            what = _OF_ALL_STORED.get(kind_of(step), "logarithms within")
            reason = f"step '{name}' ({what}) takes a stored 0 for no 0"
            return {"dense_only": f"{reason}, which steps before it may make"}
    if len(steps) == 1 and kind_of(steps[0][1]) in XGBOOST and not counted:
        return {"absent": "nan"}
    if not counted and any(_asks(step, XGBOOST) for _, step in seen):
        # XGBoost takes for missing what a sparse row does not have, and not what a dense one has as 0.
        return {"dense_only": "XGBoost within a model, to which what is absent is missing and no 0"}
    takes_nan = bool(steps) and kind_of(steps[0][1]) in (*LIGHTGBM, "SimpleImputer")
    # Of a first step the host sees what is stored.
    zeros = counted or not (steps and _logarithms(steps[0][1]))
    ordered = any(_meets([part], "PolynomialFeatures") for part in seen)
    return {
        "absent": "zero", "sparse_nan": takes_nan, "sparse_zeros": zeros, "sparse_order": ordered
    }  # fmt: skip


def _logarithms(step: Any) -> bool:
    """Whether a step takes logarithms of all that is stored, of a 0 too, or one within it does."""
    if kind_of(step) in _OF_ALL_STORED:
        return kind_of(step) == "AdditiveChi2Sampler" or bool(step.sublinear_tf)
    return any(_logarithms(part) for _, part in _parts(step))


def integers(steps: list[tuple[str, Any]]) -> Literal["", "float32", "narrow"]:
    """The field `integers` of ModelInfo: LightGBM rounds arrays of integers, wherever they reach it."""
    kinds = [kind_of(step) for _, step in steps]
    if len(kinds) == 1 and kinds[0] in LIGHTGBM:
        return "float32"
    if not kinds or kinds[0] in _FLOATS:
        return ""
    return "narrow" if any(_asks(step, LIGHTGBM) for _, step in steps) else ""


def _asks(model: Any, asked: tuple[str, ...]) -> bool:
    """Whether an estimator of one of the kinds stands anywhere in a fitted model."""
    parts = _parts(model)
    return kind_of(answering(model)) in asked or any(_asks(part, asked) for _, part in parts)


def _makes_dense(step: Any) -> bool:
    """Whether a step makes dense rows of sparse ones."""
    return form_after(kind_of(step), step, Form.UNCLEAR) is Form.DENSE


def _tree_of_points(steps: list[tuple[str, Any]]) -> str | None:
    """The tree of points, by scikit-learn's name, of an estimator that is given sparse rows where steps one
    after another are; None if there is none."""
    for _, step in steps:
        fitted = answering(step)
        method = getattr(getattr(fitted, "nbrs_", fitted), "_fit_method", None)
        if method in _TREES:
            return method
        for _, part in _parts(step):
            if (found := _tree_of_points(pipeline_steps(part))) is not None:
                return found
        if _makes_dense(step):
            return None
    return None


def _meets(steps: list[tuple[str, Any]], kind: str) -> bool:
    """Whether an estimator of a kind is given sparse rows where steps one after another are."""
    for _, step in steps:
        if kind_of(step) == kind or any(_meets(pipeline_steps(p), kind) for _, p in _parts(step)):
            return True
        if _makes_dense(step):
            return False
    return False


def _parts(model: Any) -> list[tuple[str, Any]]:
    """The estimators of which a fitted model consists, by name."""
    model = answering(model)
    kind = kind_of(model)
    if kind not in COMPOSITIONS:
        return estimators_within(model)
    return pipeline_steps(model) if kind == "Pipeline" else members(model, fitted=True)
