"""Multi-layer perceptrons, and the hidden units of a restricted Boltzmann machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from irkit.dialects.graph import CastOp, ExpOp, ReluOp, SigmoidOp, SoftmaxOp, TanhOp
from irkit.frontends.sklearn.importer import Importer, Outputs, Predictor, Transformer
from irkit.frontends.sklearn.outputs import classifier, largest, regressor, two_columns

ACTIVATIONS: dict[str, Callable[[Importer, SSAValue], SSAValue]] = {
    "exp": lambda importer, x: importer.builder(ExpOp, x),
    "identity": lambda importer, x: x,
    "logistic": lambda importer, x: importer.builder(SigmoidOp, x),
    "relu": lambda importer, x: importer.builder(ReluOp, x),
    "softmax": lambda importer, x: importer.builder(SoftmaxOp, x, axis=1),
    "tanh": lambda importer, x: importer.builder(TanhOp, x),
}


def affine(importer: Importer, x: SSAValue, weights: Any, row: Any) -> SSAValue:
    """x @ weights + row, in the dtype of the product."""
    x = importer.cast(x, np.result_type(importer.dtype(x), np.asarray(weights)))
    return importer.add(importer.matmul(x, weights, "weights"), row, "intercept")


def _forward(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    for number, (weights, row) in enumerate(zip(step.coefs_, step.intercepts_, strict=True)):
        x = affine(importer, x, weights, row)
        final = number == len(step.coefs_) - 1
        x = ACTIVATIONS[step.out_activation_ if final else step.activation](importer, x)
    return x


def _regressor(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    y = _forward(importer, step, x)
    return regressor(importer, y, flat=importer.width(y) == 1)


def _classifier(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    y, coded = _forward(importer, step, x), step._label_binarizer
    if step.out_activation_ == "softmax":
        return classifier(coded, largest(importer, y), y, None)
    above = importer.builder(CastOp, importer.compare(y, "gt", [0.5], "half"), to=i64)
    if importer.width(y) == 1:
        return classifier(coded, importer.flat(above), two_columns(importer, y), None)
    # Several labels a row: 1 for each that it has.
    outputs = classifier(coded, above, y, None)
    outputs.classes, outputs.labels = None, ""
    return outputs


def _hidden(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    y = affine(importer, x, step.components_.T, step.intercept_hidden_)
    return importer.builder(SigmoidOp, y)


PREDICTORS: dict[str, Predictor] = {
    "MLPClassifier": Predictor(_classifier),
    "MLPRegressor": Predictor(_regressor),
}
TRANSFORMERS: dict[str, Transformer] = {"BernoulliRBM": Transformer(_hidden)}
