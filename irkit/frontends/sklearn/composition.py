"""Pipeline, ColumnTransformer and FeatureUnion, as deep as they are nested; what each step accepts."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from xdsl.ir import SSAValue

from irkit.errors import InvalidModelError, UnsupportedError
from irkit.frontends.module import refused_labels
from irkit.frontends.sklearn import (
    boosters,
    column_types,
    columns,
    documents,
    encoders,
    histogram,
    iterative_imputation,
)
from irkit.frontends.sklearn.consistency import check_methods
from irkit.frontends.sklearn.forms import Form
from irkit.frontends.sklearn.importer import (
    Importer,
    Outputs,
    Predictor,
    Transformer,
    Values,
    kind_of,
)
from irkit.frontends.sklearn.outputs import check_classes
from irkit.frontends.sklearn.reading import reading
from irkit.frontends.sklearn.sparsity import form_after, why_not_stored
from irkit.frontends.sklearn.tables import (
    COMPOSITIONS,
    DELEGATES,
    PREDICTORS,
    REFUSED,
    TRANSFORMERS,
)

_FINITE = (
    "AdaBoostClassifier",
    "AdaBoostRegressor",
    "ClassifierChain",
    "GradientBoostingClassifier",
    "GradientBoostingRegressor",
    "RegressorChain",
)
_ANYTHING = ("DummyClassifier", "DummyRegressor", "_ConstantPredictor")
_KEEPS_BOOLEANS = (
    *columns.SELECTORS, *encoders.TRANSFORMERS, "AdditiveChi2Sampler", "BayesianGaussianMixture", "Binarizer",
    "FunctionTransformer", "GaussianMixture", "LarsCV", "LassoLarsCV", "OrthogonalMatchingPursuitCV",
)  # fmt: skip
"""Steps that hand booleans on, or look at them, as they are; all others make float64 of them."""


def answering(model: Any) -> Any:
    """The estimator that answers for a model: mostly itself. Raises UnsupportedError if a method of it was
    replaced."""
    check_methods(model)
    name = DELEGATES.get(kind_of(model))
    found = None if name is None else getattr(model, name, None)
    return model if found is None else answering(found)


def does_nothing(step: Any) -> bool:
    """Whether a step stands for "nothing to do here"."""
    return step is None or (isinstance(step, str) and step in ("drop", "passthrough"))


def pipeline_steps(model: Any) -> list[tuple[str, Any]]:
    """Name and estimator of each step that does something, nested pipelines flattened."""
    model = answering(model)
    if kind_of(model) != "Pipeline":
        return [(type(model).__name__, model)]
    steps: list[tuple[str, Any]] = []
    for name, step in model.steps:
        step = answering(step)
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
    return [(name, answering(part)) for name, part in found if not does_nothing(part)]


def estimators_within(step: Any) -> list[tuple[str, Any]]:
    """Attribute and steps of each fitted estimator that a fitted one asks."""
    entry = PREDICTORS.get(kind_of(step)) or TRANSFORMERS.get(kind_of(step))
    return [] if entry is None else entry.members(step)


# Reasons


def why_not(name: str, step: Any, last: bool = False) -> list[str]:
    """Reasons why a step cannot be imported that it shows before it is fitted."""
    kind = kind_of(step)
    if kind in COMPOSITIONS:
        parts = pipeline_steps(step) if kind == "Pipeline" else members(step, fitted=False)
        return [r for n, part in parts for r in why_not(f"{name}: {n}", part)]
    if kind in PREDICTORS and kind not in TRANSFORMERS and not last:
        return [f"step '{name}': {kind} before the last step"]
    if kind in DELEGATES:
        return [f"step '{name}': {kind} without {DELEGATES[kind]} (is it fitted, with refit?)"]
    entry = _entry(kind, last)
    if kind in documents.VECTORIZERS:
        return documents.why_not(name, step)
    if entry is None:
        reason = REFUSED.get(kind, "irkit.supported_operators() has those that are")
        return [f"step '{name}': estimator {kind} ({reason})"]
    return [f"step '{name}': {reason}" for reason in entry.why_not(step)]


def _entry(kind: str, last: bool) -> Transformer | Predictor | None:
    """How a kind of estimator is imported at its place."""
    found = [PREDICTORS.get(kind), TRANSFORMERS.get(kind)]
    return next((e for e in (found if last else found[::-1]) if e is not None), None)


def why_not_fitted(name: str, step: Any, last: bool = False) -> list[str]:
    """Reasons that only a fitted step shows."""
    kind = kind_of(step)
    if kind in COMPOSITIONS:
        parts = pipeline_steps(step) if kind == "Pipeline" else members(step, fitted=True)
        reasons = [r for n, part in parts for r in why_not_fitted(f"{name}: {n}", part)]
        empty = kind != "Pipeline" and not _has_columns(step)
        return [*reasons, f"step '{name}': no output columns"] if empty else reasons
    if kind in documents.VECTORIZERS:
        return []
    entry = _entry(kind, last)
    assert entry is not None
    reasons = [*entry.why_not_fitted(step), *_why_not_classes(step)]
    found = [f"step '{name}': {kind} with {reason}" for reason in reasons]
    for attribute, estimator in entry.members(step):
        found += why_not_within(f"{name}: {attribute}", estimator)
    # Members of an ensemble have the same reasons.
    return list(dict.fromkeys(found))


def why_not_within(name: str, estimator: Any) -> list[str]:
    """Reasons why an estimator within another cannot be imported."""
    steps = [(name if n == kind_of(s) else f"{name}: {n}", s) for n, s in pipeline_steps(estimator)]
    early = [r for n, s in steps for r in why_not(n, s, s is steps[-1][1])]
    return early or [r for n, s in steps for r in why_not_fitted(n, s, s is steps[-1][1])]


def _why_not_classes(step: Any) -> list[str]:
    classes: Any = getattr(step, "classes_", None)
    if classes is None:
        return []
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
    if kind in _ANYTHING:
        return True, True
    # What an imputer asks has no gaps left.
    fills = kind in iterative_imputation.TRANSFORMERS
    seen = [e for name, e in estimators_within(step) if name != "final_estimator_" and not fills]
    if seen:
        each = [accepted([s for _, s in pipeline_steps(e)]) for e in seen]
        own = kind not in _FINITE
        return own and all(nan for nan, _ in each), own and all(inf for _, inf in each)
    if kind in boosters.PREDICTORS:
        return True, boosters.takes_infinity(step)
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
            if not step.sparse_output_:
                importer.forms[y] = Form.DENSE
        case "FeatureUnion":
            every = np.arange(importer.width(x))
            found = [(n, part, every) for n, part in step.transformer_list if part != "drop"]
            y = _side_by_side(importer, x, found, step.transformer_weights)
        case kind if kind in documents.VECTORIZERS:
            y = documents.counted(importer, step, x)
            for part in documents.behind(step):
                y = transform(importer, part, y)
            importer.forms[y] = form_after(kind, step, Form.DENSE)
        case kind:
            return _one(importer, TRANSFORMERS[kind], step, x)
    return y


def _check_width(importer: Importer, step: Any, x: SSAValue) -> None:
    """Raises InvalidModelError for a step that was fitted on other columns than it is given."""
    wanted, given = getattr(step, "n_features_in_", None), importer.width(x)
    if wanted is not None and wanted != given:
        raise InvalidModelError(
            f"{kind_of(step)} was fitted on {wanted} columns, and is given {given} of them"
        )


def _as_numbers(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    """`x`; marks of missing values as the float64 that scikit-learn makes of them in front of a step."""
    if importer.dtype(x) != np.bool_ or kind_of(step) in _KEEPS_BOOLEANS:
        return x
    return importer.cast(x, np.float64)


def _one(importer: Importer, entry: Transformer, step: Any, x: SSAValue) -> SSAValue:
    _check_width(importer, step, x)
    frame, x = x, column_types.as_given(importer, step, _as_numbers(importer, step, x))
    nan, infinite = accepts(step)
    importer.require_finite(x, type(step).__name__, nan, infinite)
    known = importer.known.get(x, Values())
    if not encoders.takes_words(step):
        importer.words.read_as_numbers(x, kind_of(step))
    given = importer.forms.get(x, Form.DENSE)
    if given is not Form.DENSE and (reason := why_not_stored(kind_of(step), step, given)):
        raise UnsupportedError(f"{type(step).__name__} {reason}")
    with reading(step):
        y = entry.build(importer, step, x)
    column_types.types_after(importer, step, frame, y)
    if y is not x:
        importer.forms[y] = form_after(kind_of(step), step, given)
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
        y = y if does_nothing(part) else transform(importer, part, y)
        weight = weight_of.get(name)
        if weight is not None:
            importer.words.read_as_numbers(y, f"transformer_weights of {name}")
            y = _weighed(importer, y, weight)
        made.append(y)
    wide = column_types.side_by_side(importer, made)
    kinds = ("passthrough" if does_nothing(part) else kind_of(part) for _, part, _ in parts)
    importer.words.beside(made, kinds, wide)
    known = [importer.known.get(y, Values()) for y in made]
    importer.known.setdefault(
        wide, Values(any(k.nan for k in known), any(k.infinite for k in known))
    )
    return wide


def _weighed(importer: Importer, y: SSAValue, weight: float) -> SSAValue:
    if y in importer.types:
        whole = [t for t in importer.types[y] if t != "bool"] if isinstance(weight, int) else []
        return column_types.function_by_column(
            importer, y, lambda part: importer.mul(part, [weight], "weight"), whole
        )
    form = importer.forms.get(y)
    # What is stored is a 0 then.
    form = Form.UNCLEAR if form is not None and weight == 0 else form
    # Marks of what is missing become numbers.
    wide = importer.cast(y, np.float64) if importer.dtype(y) == np.bool_ else y
    return importer.of_form(importer.mul(wide, [weight], "weight"), form)


def last(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    """The methods of the last step."""
    entry = PREDICTORS.get(kind_of(step))
    if entry is None:
        y = transform(importer, step, x)
        importer.words.read_as_numbers(y, "the caller of transform")
        y = importer.cast(y, step.dtype) if encoders.gives_integers(step) else y
        return Outputs("transformer", [("transformed", y)], {"transform": "transformed"})
    _check_width(importer, step, x)
    name, (nan, infinite) = kind_of(step), accepts(step)
    if name not in HANDED_ON:
        x = column_types.as_given(importer, step, _as_numbers(importer, step, x))
    if name not in histogram.PREDICTORS and name not in HANDED_ON:
        importer.words.read_as_numbers(x, name)
    if entry.trees:
        x = importer.tree_input(x, name, nan, infinite)
    else:
        importer.require_finite(x, name, nan, infinite)
    with reading(step):
        outputs = entry.build(importer, step, x)
    outputs.source = name
    check_classes(outputs)
    also = TRANSFORMERS.get(kind_of(step))
    if also is not None and not (also.why_not(step) or also.why_not_fitted(step)):
        outputs.values.append(("transformed", also.build(importer, step, x)))
        outputs.methods["transform"] = "transformed"
    return outputs


HANDED_ON = frozenset((
    "CalibratedClassifierCV",
    "FixedThresholdClassifier",
    "MultiOutputClassifier",
    "MultiOutputRegressor",
    "OneVsRestClassifier",
    "StackingClassifier",
    "StackingRegressor",
    "TransformedTargetRegressor",
    "TunedThresholdClassifierCV",
    "VotingClassifier",
    "VotingRegressor",
))  # fmt: skip
"""What gives its members the columns as they come, strings too: these say what they read of them."""


def predict(importer: Importer, estimator: Any, x: SSAValue) -> Outputs:
    """The methods of a fitted estimator or Pipeline, wherever it stands."""
    *before, (_, final) = pipeline_steps(estimator)
    for _, step in before:
        x = transform(importer, step, x)
    return last(importer, final, x)


def accepted(steps: list[Any]) -> tuple[bool, bool]:
    """Whether steps one after another take NaN, and infinity, in their input."""
    infinite = accepts(steps[0])[1]
    for step in steps:
        if not accepts(step)[0]:
            return False, infinite
        entry = TRANSFORMERS.get(kind_of(step))
        if entry is None or entry.nan != "keeps":
            break
    return True, infinite
