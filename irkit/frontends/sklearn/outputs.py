"""From margins, probabilities and sums to what the methods of an estimator return."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from irkit.dialects.graph import (
    AddOp,
    ArgmaxOp,
    CastOp,
    ConcatOp,
    DivOp,
    ExpOp,
    LogOp,
    SigmoidOp,
    SoftmaxOp,
    SubOp,
)
from irkit.dialects.types import tensor_type
from irkit.errors import InvalidModelError, UnsupportedError
from irkit.frontends.module import Methods
from irkit.frontends.sklearn.importer import Importer, Outputs


def regressor(importer: Importer, y: SSAValue, flat: bool = True) -> Outputs:
    """`predict`: rows, or rows×outputs."""
    value = importer.flat(y) if flat else y
    return Outputs("regressor", [("prediction", value)], {"predict": "prediction"})


def classes_of(step: Any) -> tuple[tuple[Any, ...], str]:
    """Labels, and NumPy's name of their dtype."""
    classes = np.asarray(step.classes_)
    return tuple(classes.tolist()), classes.dtype.str


def classifier(
    step: Any,
    label: SSAValue,
    probabilities: SSAValue | None,
    margin: SSAValue | None,
    log: bool = True,
) -> Outputs:
    """The methods whose values are given; with `log`, the logarithms of probabilities too."""
    found = [
        ("predict", "label", label),
        ("predict_proba", "probabilities", probabilities),
        ("decision_function", "margin", margin),
    ]
    methods: Methods = {method: name for method, name, value in found if value is not None}
    if log and probabilities is not None:
        # The host takes the logarithm, as scikit-learn does.
        methods["predict_log_proba"] = "probabilities"
    values = [(name, value) for _, name, value in found if value is not None]
    classes, labels = classes_of(step)
    return Outputs("classifier", values, methods, classes, labels)


def check_classes(outputs: Outputs) -> None:
    """Raises InvalidModelError for class labels that are more or fewer than a classifier's columns, and
    UnsupportedError for one label where there are columns of two: scikit-learn has no name for the other."""
    classes = outputs.classes
    if outputs.kind != "classifier" or not classes or isinstance(classes[0], tuple):
        return
    for name, value in outputs.values:
        of = value.owner.operands[0] if isinstance(value.owner, ArgmaxOp) else value
        shape = tensor_type(of).get_shape()
        if name not in ("label", "probabilities") or len(shape) != 2:
            continue
        # A label beside those of the columns may be that of outliers.
        if shape[1] == 2 and len(classes) == 1:
            raise UnsupportedError(f"{outputs.source} that was fitted on one class")
        if shape[1] > len(classes) or (name == "label" and shape[1] < len(classes)):
            raise InvalidModelError(
                f"{outputs.source} has {len(classes)} class labels, and columns of {shape[1]} classes"
            )


def several_classifiers(
    step: Any, labels: list[SSAValue], shares: list[SSAValue], log: bool = True
) -> Outputs:
    """One label and one array of probabilities per output."""
    numbers = range(len(labels))
    values = [(f"label_{k}", label) for k, label in enumerate(labels)]
    values += [(f"probabilities_{k}", part) for k, part in enumerate(shares)]
    named = tuple(f"probabilities_{k}" for k in numbers)
    methods: Methods = {"predict": tuple(f"label_{k}" for k in numbers), "predict_proba": named}
    if log:
        methods["predict_log_proba"] = named
    classes = tuple(tuple(np.asarray(c).tolist()) for c in step.classes_)
    return Outputs("classifier", values, methods, classes, np.asarray(step.classes_[0]).dtype.str)


def largest(importer: Importer, x: SSAValue) -> SSAValue:
    """The first column of the largest element, as rows."""
    return importer.builder(ArgmaxOp, x, axis=1, keepdims=False)


def sign_label(importer: Importer, margins: SSAValue, predicate: str) -> SSAValue:
    """1 where the margin `predicate` 0 holds, else 0."""
    above = importer.compare(margins, predicate, np.zeros(1), "zero")
    return importer.flat(importer.builder(CastOp, above, to=i64))


def two_columns(importer: Importer, second: SSAValue) -> SSAValue:
    """1 - p beside p."""
    one = importer.constant(second, np.ones(1), "one")
    first = importer.builder(SubOp, one, second)
    return importer.builder(ConcatOp, first, second, axis=1)


def from_margins(
    importer: Importer,
    step: Any,
    margins: SSAValue,
    at_zero: bool,
    slope: float = 1.0,
    log: bool = True,
) -> Outputs:
    """Two classes: one margin, whose sign decides (`at_zero`: zero is the second class), and the
    sigmoid of `slope` times it. More: the largest margin decides; softmax."""
    if importer.width(margins) > 1:
        label, margin = largest(importer, margins), margins
        probabilities = importer.builder(SoftmaxOp, margins, axis=1)
    else:
        label = sign_label(importer, margins, "ge" if at_zero else "gt")
        scaled = importer.mul(margins, [slope], "slope") if slope != 1.0 else margins
        probabilities = two_columns(importer, importer.builder(SigmoidOp, scaled))
        margin = importer.flat(margins)
    return classifier(step, label, probabilities, margin, log)


def normalised(importer: Importer, positive: SSAValue) -> SSAValue:
    """One-versus-rest probabilities divided by their sum; where all are 0, all alike."""
    total = importer.reduce("sum", positive)
    none = importer.compare(total, "eq", np.zeros(1), "zero")
    width = importer.width(positive)
    positive = importer.where(none, positive, np.ones(1), "one")
    total = importer.where(none, total, [width], "classes")
    return importer.builder(DivOp, positive, total)


def log_sum_exp(importer: Importer, x: SSAValue) -> SSAValue:
    """log(sum(exp(x))) of each row, rows×1."""
    top = importer.reduce("max", x)
    near = importer.builder(ExpOp, importer.builder(SubOp, x, top))
    return importer.builder(AddOp, top, importer.builder(LogOp, importer.reduce("sum", near)))


def from_log_likelihoods(
    importer: Importer, step: Any, joint: SSAValue, margin: SSAValue | None = None
) -> Outputs:
    """The largest decides; probabilities are what is over after division by their sum."""
    logs = importer.builder(SubOp, joint, log_sum_exp(importer, joint))
    probabilities = importer.builder(ExpOp, logs)
    label = largest(importer, joint)
    outputs = classifier(step, label, probabilities, margin, log=False)
    outputs.values.append(("log_probabilities", logs))
    outputs.methods["predict_log_proba"] = "log_probabilities"
    return outputs
