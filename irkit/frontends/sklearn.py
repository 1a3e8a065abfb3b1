"""scikit-learn estimators and pipelines, with scikit-learn's own arithmetic.

Each step computes in the dtype that scikit-learn computes in: scalers in the input's, trees on
float32 copies with float64 sums in tree order, linear models in the wider of input and coefficients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import f32, i64
from xdsl.ir import SSAValue, TypeAttribute

from irkit.dialects.graph import (
    AddOp,
    ArgmaxOp,
    CastOp,
    CompareOp,
    ConcatOp,
    DivOp,
    MatmulOp,
    MulOp,
    ReshapeOp,
    SigmoidOp,
    SoftmaxOp,
    SubOp,
)
from irkit.dialects.types import DYNAMIC, element_type, numpy_dtype, tensor, tensor_type
from irkit.errors import InvalidModelError, UnsupportedError
from irkit.frontends.module import GraphBuilder, ImportedModel, refused_labels
from irkit.frontends.trees import Trees, floor32, join
from irkit.model_info import ModelInfo

DTYPES = ("float32", "float64")


@dataclass
class Outputs:
    """What the last step of a model gives: named values, and which method returns which."""

    kind: Any
    values: list[tuple[str, SSAValue]]
    methods: dict[str, str]
    classes: tuple[Any, ...] | None = None


@dataclass
class Importer:
    """One import: the graph under construction."""

    builder: GraphBuilder

    def cast(self, x: SSAValue, dtype: Any) -> SSAValue:
        """`x` as `dtype`; itself if it is that already."""
        element = element_type(np.dtype(dtype))
        if tensor_type(x).element_type == element:
            return x
        assert isinstance(element, TypeAttribute)
        return self.builder(CastOp, x, to=element)


def import_sklearn(model: Any, dtype: str = "float64") -> ImportedModel:
    """The graph-level module of a fitted estimator or Pipeline, for rows×features of `dtype`.

    Raises UnsupportedError listing every unsupported step and parameter, InvalidModelError if a step
    is not fitted.
    """
    if dtype not in DTYPES:
        raise UnsupportedError(
            f"scikit-learn input of dtype {dtype}; accepted: {', '.join(DTYPES)}"
        )
    steps = pipeline_steps(model)
    missing = [r for name, step in steps for r in _why_not(name, step)]
    missing += [
        f"step '{name}': {_kind(step)} before the last step"
        for name, step in steps[:-1]
        if _kind(step) in PREDICTORS
    ]
    if missing:
        raise UnsupportedError(f"cannot import {type(model).__name__} exactly:", missing)
    for _, step in steps:
        _check_fitted(step)
    missing = [r for name, step in steps for r in _why_not_fitted(name, step)]
    if missing:
        raise UnsupportedError(f"cannot import {type(model).__name__} exactly:", missing)
    # A tree model alone copies its input to float32 itself, so one program serves both dtypes.
    alone = len(steps) == 1 and _is_tree_model(steps[0][1])
    element = f32 if alone else element_type(np.dtype(dtype))
    features = int(steps[0][1].n_features_in_)
    builder = GraphBuilder([("x", tensor(element, (DYNAMIC, features)))])
    importer, x = Importer(builder), builder.inputs[0]
    for _, step in steps[:-1]:
        x = TRANSFORMERS[_kind(step)](importer, step, x)
    outputs = _last(importer, steps[-1][1], x)
    info = ModelInfo(
        outputs.kind,
        ("x",),
        tuple(name for name, _ in outputs.values),
        outputs.methods,
        outputs.classes,
        ("float64",) if alone else (),
        allow_nan=all(_allows_nan(step) for _, step in steps),
        allow_infinity=False,
        largest=None if alone else _largest(steps, dtype),
        source=f"scikit-learn {type(model).__name__}",
    )
    return builder.finish(outputs.values, info)


def _kind(step: Any) -> str:
    """Class name of one of scikit-learn's own estimators; with its module for any other class."""
    cls = cast(type[object], type(step))
    own = cls.__module__.partition(".")[0] == "sklearn"
    return cls.__name__ if own else f"{cls.__module__}.{cls.__qualname__}"


def pipeline_steps(model: Any) -> list[tuple[str, Any]]:
    """Name and estimator of each step that does something, nested pipelines flattened."""
    if _kind(model) != "Pipeline":
        return [(type(model).__name__, model)]
    steps: list[tuple[str, Any]] = []
    for name, step in model.steps:
        if step is None or (isinstance(step, str) and step == "passthrough"):
            continue
        if _kind(step) == "Pipeline":
            steps += [(f"{name}: {n}", s) for n, s in pipeline_steps(step)]
        else:
            steps.append((name, step))
    if not steps:
        raise UnsupportedError("a Pipeline without steps")
    return steps


def _why_not(name: str, step: Any) -> list[str]:
    """Reasons why a step cannot be imported; none if it can."""
    kind = _kind(step)
    if kind not in TRANSFORMERS and kind not in PREDICTORS:
        known = ", ".join(sorted({*TRANSFORMERS, *PREDICTORS}))
        return [f"step '{name}': estimator {kind} (supported: Pipeline, {known})"]
    reasons: list[str] = []
    if kind.startswith("GradientBoosting") and not _plain_init(step):
        reasons.append(f"step '{name}': parameter init={step.init!r} (supported: None, 'zero')")
    if kind == "LogisticRegression" and getattr(step, "multi_class", "auto") == "ovr":
        reasons.append(f"step '{name}': parameter multi_class='ovr'")
    return reasons


def _why_not_fitted(name: str, step: Any) -> list[str]:
    """Reasons that only a fitted step shows."""
    kind, reasons = _kind(step), list[str]()
    if getattr(step, "n_outputs_", 1) != 1:
        # Such a model has a list of class arrays: nothing else can be said about it.
        return [f"step '{name}': {kind} with {step.n_outputs_} outputs"]
    if hasattr(getattr(step, "coef_", None), "tocsr"):
        reasons.append(f"step '{name}': {kind} with sparse coef_ (call densify() first)")
    classes: Any = getattr(step, "classes_", ())
    return reasons + [f"step '{name}': {reason}" for reason in refused_labels(np.asarray(classes))]


def _largest(steps: list[tuple[str, Any]], dtype: str) -> float | None:
    """A magnitude of the input up to which scaling, and the copy that trees make, stay finite."""
    last = np.float32 if _is_tree_model(steps[-1][1]) else np.dtype(dtype)
    limit = full = float(np.finfo(last).max)
    for _, step in reversed(steps):
        if _kind(step) != "StandardScaler":
            continue
        if step.with_std:
            # A hundredth is left to rounding.
            limit *= 0.99 * min(1.0, float(np.min(step.scale_)))
        if step.with_mean:
            limit -= float(np.max(np.abs(step.mean_)))
    given = float(np.finfo(dtype).max)
    return limit if limit < given or full < given else None


def _plain_init(step: Any) -> bool:
    return step.init is None or (isinstance(step.init, str) and step.init == "zero")


def _check_fitted(step: Any) -> None:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils import validation

    try:
        cast(Any, validation).check_is_fitted(step)
    except NotFittedError:
        raise InvalidModelError(f"{type(step).__name__} is not fitted: call fit first") from None


def _is_tree_model(step: Any) -> bool:
    return _kind(step) in _TREE_MODELS


def _allows_nan(step: Any) -> bool:
    return bool(step.__sklearn_tags__().input_tags.allow_nan)


def _last(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    kind = _kind(step)
    if kind in PREDICTORS:
        return PREDICTORS[kind](importer, step, x)
    y = TRANSFORMERS[kind](importer, step, x)
    return Outputs("transformer", [("transformed", y)], {"transform": "transformed"})


# Transformers


def _standard_scaler(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    """x - mean, then / scale, both in x's dtype."""
    build, dtype = importer.builder, numpy_dtype(tensor_type(x).element_type)
    if step.with_mean:
        x = build(SubOp, x, build.constant(step.mean_.astype(dtype), "mean"))
    if step.with_std:
        x = build(DivOp, x, build.constant(step.scale_.astype(dtype), "scale"))
    return x


TRANSFORMERS: dict[str, Callable[[Importer, Any, SSAValue], SSAValue]] = {
    "StandardScaler": _standard_scaler,
}


# Trees


def sklearn_trees(trees: list[Any], output: list[int], base: Any, scale: float = 1.0) -> Trees:
    """Fitted `tree_` objects, in order; values times `scale`; tree i adds to column `output[i]`, or
    to all columns if leaves are vectors."""
    parts = [_one_tree(t, column, base, scale) for t, column in zip(trees, output, strict=True)]
    return join(parts)


def _one_tree(tree: Any, column: int, base: Any, scale: float) -> Trees:
    nodes = np.arange(int(tree.node_count))
    left, right = np.asarray(tree.children_left), np.asarray(tree.children_right)
    leaf = left < 0
    missing = getattr(tree, "missing_go_to_left", np.zeros(tree.node_count, np.uint8))
    return Trees(
        np.where(leaf, 0, np.asarray(tree.feature)),
        floor32(tree.threshold),
        np.where(leaf, nodes, left),
        np.where(leaf, nodes, right),
        missing.astype(np.bool_),
        tree.value[:, 0, :] * scale if scale != 1.0 else tree.value[:, 0, :].copy(),
        np.array([0]),
        np.array([column]),
        base,
    )


def _forest_sum(importer: Importer, step: Any, x: SSAValue, width: int) -> SSAValue:
    """Sum over trees in order, from zero, divided by their number, in float64."""
    build, count = importer.builder, len(step.estimators_)
    found = [e.tree_ for e in step.estimators_]
    trees = sklearn_trees(found, [0] * count, np.zeros(width))
    total = trees.build(build, importer.cast(x, np.float32))
    return build(DivOp, total, build.constant(np.array(float(count)), "trees"))


def _one_tree_sum(importer: Importer, step: Any, x: SSAValue, width: int) -> SSAValue:
    trees = sklearn_trees([step.tree_], [0], np.zeros(width))
    return trees.build(importer.builder, importer.cast(x, np.float32))


Sum = Callable[[Importer, Any, SSAValue, int], SSAValue]


def _tree_classifier(total: Sum) -> Callable[[Importer, Any, SSAValue], Outputs]:
    def predictor(importer: Importer, step: Any, x: SSAValue) -> Outputs:
        probabilities = total(importer, step, x, len(step.classes_))
        return _classifier(importer, step, probabilities)

    return predictor


def _tree_regressor(total: Sum) -> Callable[[Importer, Any, SSAValue], Outputs]:
    def predictor(importer: Importer, step: Any, x: SSAValue) -> Outputs:
        return _regressor(importer, total(importer, step, x, 1))

    return predictor


def _boosted(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    """Raw predictions: init, then learning_rate * leaf of each stage in order, in float64."""
    stages, columns = step.estimators_.shape
    base = _initial(step, columns)
    trees = [step.estimators_[i, k].tree_ for i in range(stages) for k in range(columns)]
    output = [k for _ in range(stages) for k in range(columns)]
    ensemble = sklearn_trees(trees, output, base, float(step.learning_rate))
    return ensemble.build(importer.builder, importer.cast(x, np.float32))


def _initial(step: Any, columns: int) -> Any:
    """What the default init predicts: the same for every row."""
    row = np.zeros((1, step.n_features_in_), np.float32)
    return np.asarray(step._raw_predict_init(row), np.float64).reshape(columns)


def _boosted_regressor(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    return _regressor(importer, _boosted(importer, step, x))


def _boosted_classifier(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    # The exponential loss links margins to probabilities by a logit of half the slope.
    slope = 2.0 if step.loss == "exponential" else 1.0
    return _from_margins(importer, step, _boosted(importer, step, x), at_zero=True, slope=slope)


# Linear models


def _logistic_regression(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    build = importer.builder
    dtype = np.result_type(numpy_dtype(tensor_type(x).element_type), step.coef_.dtype)
    weights = build.constant(np.ascontiguousarray(step.coef_.T.astype(dtype)), "coef")
    product = build(MatmulOp, importer.cast(x, dtype), weights)
    # NumPy widens once for the product and once more for the sum.
    dtype = np.result_type(dtype, np.asarray(step.intercept_).dtype)
    intercept = np.broadcast_to(step.intercept_, (step.coef_.shape[0],)).astype(dtype)
    margins = build(AddOp, importer.cast(product, dtype), build.constant(intercept, "intercept"))
    return _from_margins(importer, step, margins, at_zero=False)


# Outputs


def _flat(importer: Importer, y: SSAValue) -> SSAValue:
    return importer.builder(ReshapeOp, y, shape=[DYNAMIC])


def _regressor(importer: Importer, y: SSAValue) -> Outputs:
    values = [("prediction", _flat(importer, y))]
    return Outputs("regressor", values, {"predict": "prediction"})


def _classes(step: Any) -> tuple[Any, ...]:
    return tuple(np.asarray(step.classes_).tolist())


def _classifier(importer: Importer, step: Any, probabilities: SSAValue) -> Outputs:
    """The label is the first class of the largest probability."""
    label = importer.builder(ArgmaxOp, probabilities, axis=1, keepdims=False)
    methods = {"predict": "label", "predict_proba": "probabilities"}
    values = [("label", label), ("probabilities", probabilities)]
    return Outputs("classifier", values, methods, _classes(step))


def _from_margins(
    importer: Importer, step: Any, margins: SSAValue, at_zero: bool, slope: float = 1.0
) -> Outputs:
    """Two classes: one margin, whose sign decides (`at_zero`: zero is the second class), and the
    sigmoid of `slope` times it. More: the largest margin decides."""
    build = importer.builder
    methods = {
        "predict": "label",
        "predict_proba": "probabilities",
        "decision_function": "margin",
    }
    if len(step.classes_) > 2:
        label = build(ArgmaxOp, margins, axis=1, keepdims=False)
        probabilities, margin = build(SoftmaxOp, margins, axis=1), margins
    else:
        dtype = numpy_dtype(tensor_type(margins).element_type)
        zero = build.constant(np.zeros(1, dtype), "zero")
        above = build(CompareOp, margins, zero, predicate="ge" if at_zero else "gt")
        label = _flat(importer, build(CastOp, above, to=i64))
        scaled = margins
        if slope != 1.0:
            scaled = build(MulOp, margins, build.constant(np.full(1, slope, dtype), "slope"))
        second = build(SigmoidOp, scaled)
        first = build(SubOp, build.constant(np.ones(1, dtype), "one"), second)
        probabilities = build(ConcatOp, first, second, axis=1)
        margin = _flat(importer, margins)
    values = [("label", label), ("probabilities", probabilities), ("margin", margin)]
    return Outputs("classifier", values, methods, _classes(step))


PREDICTORS: dict[str, Callable[[Importer, Any, SSAValue], Outputs]] = {
    "DecisionTreeClassifier": _tree_classifier(_one_tree_sum),
    "DecisionTreeRegressor": _tree_regressor(_one_tree_sum),
    "ExtraTreesClassifier": _tree_classifier(_forest_sum),
    "ExtraTreesRegressor": _tree_regressor(_forest_sum),
    "GradientBoostingClassifier": _boosted_classifier,
    "GradientBoostingRegressor": _boosted_regressor,
    "LogisticRegression": _logistic_regression,
    "RandomForestClassifier": _tree_classifier(_forest_sum),
    "RandomForestRegressor": _tree_regressor(_forest_sum),
}
_TREE_MODELS = frozenset(PREDICTORS) - {"LogisticRegression"}
