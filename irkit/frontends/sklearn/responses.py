"""What estimators within an estimator answer, as those around them ask."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from xdsl.ir import SSAValue

from irkit.dialects.graph import GatherOp
from irkit.dialects.types import tensor_type
from irkit.errors import UnsupportedError
from irkit.frontends.sklearn.importer import Importer, Outputs, Values
from irkit.weights import Array


def outputs_on(importer: Importer, estimator: Any, x: SSAValue, features: Any = None) -> Outputs:
    """The methods of a fitted estimator or Pipeline on x, or on some of its columns."""
    if features is not None:
        picked = importer.columns(x, features)
        importer.known.setdefault(picked, importer.known.get(x, Values()))
        x = picked
    return importer.outputs(estimator, x)


def value(outputs: Outputs, method: str) -> SSAValue:
    """What a method returns; `predict` of a classifier returns numbers of labels.

    Raises UnsupportedError if the estimator has the method and its program has not.
    """
    name = outputs.methods.get(method)
    if not isinstance(name, str):
        raise UnsupportedError(f"method '{method}' of {outputs.source} within another estimator")
    return dict(outputs.values)[name]


def labels(importer: Importer, outputs: Outputs) -> SSAValue:
    """What `predict` returns, rows×1 or rows×outputs, where labels are numbers."""
    found = value(outputs, "predict")
    if outputs.classes is not None:
        table = importer.builder.constant(np.asarray(outputs.classes), "classes")
        found = importer.builder(GatherOp, table, found, axis=0)
    return as_columns(importer, found)


def as_columns(importer: Importer, y: SSAValue) -> SSAValue:
    """rows×columns; rows become one column."""
    return importer.column(y) if tensor_type(y).get_num_dims() == 1 else y


def score(importer: Importer, estimator: Any, outputs: Outputs) -> SSAValue:
    """rows×1: a regressor's value, a binary classifier's margin, else its second class's probability."""
    if outputs.kind == "regressor":
        return as_columns(importer, value(outputs, "predict"))
    if hasattr(estimator, "decision_function"):
        return as_columns(importer, value(outputs, "decision_function"))
    return importer.columns(value(outputs, "predict_proba"), [1])


def threshold(estimator: Any) -> float:
    """Above which `score` stands for the second class."""
    from sklearn import base

    margins = hasattr(estimator, "decision_function") and cast(Any, base).is_classifier(estimator)
    return 0.0 if margins else 0.5


def placed(importer: Importer, x: SSAValue, places: Any, width: int) -> SSAValue:
    """Columns of x at `places` of `width` columns, 0 elsewhere."""
    numbers = np.asarray(places, np.int64)
    if len(numbers) == width and (numbers == np.arange(width)).all():
        return x
    matrix = (numbers[:, None] == np.arange(width)).astype(np.float64)
    return importer.matmul(importer.cast(x, np.float64), matrix, "places")


def numbers_of(some: Any, every: Any) -> Array:
    """The place of each label among all, which are sorted."""
    return np.searchsorted(np.asarray(every), np.asarray(some))


def as_label(outputs: Outputs, classes: Any) -> None:
    """Give labels of what an estimator learned as numbers."""
    known = np.asarray(classes)
    assert outputs.classes is not None
    outputs.classes = tuple(known[np.asarray(outputs.classes)].tolist())
    outputs.labels = known.dtype.str
