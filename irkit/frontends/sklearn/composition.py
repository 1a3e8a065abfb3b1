"""Pipeline, ColumnTransformer and FeatureUnion, as deep as they are nested; what each step accepts."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from xdsl.ir import SSAValue

from irkit.frontends.module import refused_labels
from irkit.frontends.sklearn import (
    bayes,
    clusters,
    columns,
    encoders,
    histogram,
    linear,
    neural,
    preprocessing,
    svm,
    trees,
)
from irkit.frontends.sklearn.importer import (
    Importer,
    Outputs,
    Predictor,
    Transformer,
    Values,
    kind_of,
)

TRANSFORMERS: dict[str, Transformer] = {
    **clusters.TRANSFORMERS,
    **columns.TRANSFORMERS,
    **encoders.TRANSFORMERS,
    **neural.TRANSFORMERS,
    **preprocessing.TRANSFORMERS,
}
PREDICTORS: dict[str, Predictor] = {
    **bayes.PREDICTORS,
    **clusters.PREDICTORS,
    **histogram.PREDICTORS,
    **linear.PREDICTORS,
    **neural.PREDICTORS,
    **svm.PREDICTORS,
    **trees.PREDICTORS,
}
COMPOSITIONS = ("ColumnTransformer", "FeatureUnion", "Pipeline")


def does_nothing(step: Any) -> bool:
    """Whether a step stands for "nothing to do here"."""
    return step is None or (isinstance(step, str) and step in ("drop", "passthrough"))


def pipeline_steps(model: Any) -> list[tuple[str, Any]]:
    """Name and estimator of each step that does something, nested pipelines flattened."""
    if kind_of(model) != "Pipeline":
        return [(type(model).__name__, model)]
    steps: list[tuple[str, Any]] = []
    for name, step in model.steps:
        if kind_of(step) == "Pipeline":
            steps += [(f"{name}: {n}", s) for n, s in pipeline_steps(step)]
        elif not does_nothing(step):
            steps.append((name, step))
    return steps


def members(step: Any, fitted: bool) -> list[tuple[str, Any]]:
    """Name and estimator of each part of a ColumnTransformer or FeatureUnion that does something."""
    if kind_of(step) == "FeatureUnion":
        found = list(step.transformer_list)
    elif fitted:
        indices = step._transformer_to_input_indices
        found = [(name, part) for name, part, _ in step.transformers_ if len(indices[name])]
    else:
        found = [(name, part) for name, part, _ in step.transformers]
        found.append(("remainder", step.remainder))
    return [(name, part) for name, part in found if not does_nothing(part)]


# Reasons


def why_not(name: str, step: Any, last: bool = False) -> list[str]:
    """Reasons why a step cannot be imported that it shows before it is fitted."""
    kind = kind_of(step)
    if kind in COMPOSITIONS:
        parts = pipeline_steps(step) if kind == "Pipeline" else members(step, fitted=False)
        return [r for n, part in parts for r in why_not(f"{name}: {n}", part)]
    if kind in PREDICTORS and kind not in TRANSFORMERS and not last:
        return [f"step '{name}': {kind} before the last step"]
    entry = _entry(kind, last)
    if entry is None:
        known = ", ".join(sorted({*COMPOSITIONS, *TRANSFORMERS, *PREDICTORS}))
        return [f"step '{name}': estimator {kind} (supported: {known})"]
    return [f"step '{name}': {reason}" for reason in entry.why_not(step)]


def _entry(kind: str, last: bool) -> Transformer | Predictor | None:
    """How a kind of estimator is imported at its place."""
    found = [PREDICTORS.get(kind), TRANSFORMERS.get(kind)]
    return next((e for e in (found if last else found[::-1]) if e is not None), None)


def why_not_fitted(name: str, step: Any) -> list[str]:
    """Reasons that only a fitted step shows."""
    kind = kind_of(step)
    if kind in COMPOSITIONS:
        parts = pipeline_steps(step) if kind == "Pipeline" else members(step, fitted=True)
        reasons = [r for n, part in parts for r in why_not_fitted(f"{name}: {n}", part)]
        empty = kind != "Pipeline" and not _has_columns(step)
        return [*reasons, f"step '{name}': no output columns"] if empty else reasons
    entry = TRANSFORMERS.get(kind) or PREDICTORS[kind]
    reasons = [*entry.why_not_fitted(step), *_why_not_classes(step)]
    return [f"step '{name}': {kind} with {reason}" for reason in reasons]


def _why_not_classes(step: Any) -> list[str]:
    classes: Any = getattr(step, "classes_", ())
    several = cast(list[Any], classes) if isinstance(classes, list) else [classes]
    return sorted({r for part in several for r in refused_labels(np.asarray(part))})


def _has_columns(step: Any) -> bool:
    if kind_of(step) == "FeatureUnion":
        return any(part != "drop" for _, part in step.transformer_list)
    return bool(_parts(step))


# Building


def accepts(step: Any) -> tuple[bool, bool]:
    """Whether a step takes NaN, and infinity."""
    kind = kind_of(step)
    if kind in (*COMPOSITIONS, *histogram.PREDICTORS, "IsolationForest"):
        return True, True
    if kind == "FunctionTransformer":
        return not step.validate, not step.validate
    if kind in encoders.TRANSFORMERS:
        return True, False
    nan = bool(step.__sklearn_tags__().input_tags.allow_nan)
    return nan, nan and kind in columns.SELECTORS


def transform(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    """What a fitted transformer or composition of them makes of x."""
    match kind_of(step):
        case "Pipeline":
            for _, part in pipeline_steps(step):
                x = transform(importer, part, x)
            return x
        case "ColumnTransformer":
            y = _side_by_side(importer, x, _parts(step), step.transformer_weights)
        case "FeatureUnion":
            every = np.arange(importer.width(x))
            found = [(n, part, every) for n, part in step.transformer_list if part != "drop"]
            y = _side_by_side(importer, x, found, step.transformer_weights)
        case kind:
            return _one(importer, TRANSFORMERS[kind], step, x)
    return y


def _one(importer: Importer, entry: Transformer, step: Any, x: SSAValue) -> SSAValue:
    nan, infinite = accepts(step)
    importer.require_finite(x, type(step).__name__, nan, infinite)
    known = importer.known.get(x, Values())
    y = entry.build(importer, step, x)
    if y is not x:
        importer.known[y] = Values(
            entry.nan == "makes" or (entry.nan == "keeps" and known.nan and nan),
            not entry.bounded or (known.infinite and infinite),
        )
    return y


def _parts(step: Any) -> list[tuple[str, Any, Any]]:
    """Name, transformer and column numbers of each part of a fitted ColumnTransformer."""
    indices = step._transformer_to_input_indices
    return [
        (name, part, np.asarray(indices[name], np.int64))
        for name, part, _ in step.transformers_
        if len(indices[name]) and not (isinstance(part, str) and part == "drop")
    ]


def _side_by_side(
    importer: Importer, x: SSAValue, parts: list[tuple[str, Any, Any]], weights: Any
) -> SSAValue:
    made: list[SSAValue] = []
    weight_of = cast(dict[str, float], weights or {})
    for name, part, numbers in parts:
        y = importer.columns(x, numbers)
        importer.known.setdefault(y, importer.known.get(x, Values()))
        if not does_nothing(part):
            y = transform(importer, part, y)
        weight = weight_of.get(name)
        made.append(y if weight is None else importer.mul(y, [weight], "weight"))
    wide = importer.concat(made)
    known = [importer.known.get(y, Values()) for y in made]
    importer.known.setdefault(
        wide, Values(any(k.nan for k in known), any(k.infinite for k in known))
    )
    return wide


def last(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    """The methods of the last step."""
    entry = PREDICTORS.get(kind_of(step))
    if entry is None:
        y = transform(importer, step, x)
        return Outputs("transformer", [("transformed", y)], {"transform": "transformed"})
    if entry.trees:
        narrow = importer.cast(x, np.float32)
        known = importer.known.get(x, Values())
        # A float64 may be too large for the float32 copy that trees make.
        importer.known.setdefault(narrow, Values(known.nan, True))
        x = narrow
    importer.require_finite(x, type(step).__name__, *accepts(step))
    outputs = entry.build(importer, step, x)
    also = TRANSFORMERS.get(kind_of(step))
    if also is not None:
        outputs.values.append(("transformed", also.build(importer, step, x)))
        outputs.methods["transform"] = "transformed"
    return outputs
