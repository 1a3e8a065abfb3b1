"""Encoders of targets, whose input is one row of labels: LabelEncoder and LabelBinarizer."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from irkit.dialects.graph import CastOp, WhereOp
from irkit.frontends.sklearn.importer import Importer, element
from irkit.frontends.sklearn.outputs import largest
from irkit.weights import Array

LABEL_ENCODERS = ("LabelBinarizer", "LabelEncoder")


def encoded(importer: Importer, step: Any, y: SSAValue) -> SSAValue:
    """Numbers of labels (rows), or what marks them (rows, or rows×classes)."""
    classes = np.asarray(step.classes_)
    if _are_words(classes):
        # The host numbers them, in their order.
        classes = np.arange(len(classes), dtype=np.float64)
    column = importer.column(y)
    if classes.dtype.kind in "iub":
        # scikit-learn cuts off what is behind the point.
        column = importer.builder(CastOp, column, to=i64)
        classes = classes.astype(np.int64)
    same = importer.compare(column, "eq", classes[None], "classes")
    if type(step).__name__ == "LabelEncoder":
        marks = importer.builder(CastOp, same, to=element(np.float32))
        message = "LabelEncoder found a label that it was not fitted on"
        importer.require(
            importer.compare(importer.reduce("max", marks), "gt", [0.5], "half"), message
        )
        return largest(importer, marks)
    yes, no = (
        importer.builder.constant(np.full((1, 1), n, np.int64), "label")
        for n in (step.pos_label, step.neg_label)
    )
    marks = importer.builder(WhereOp, same, yes, no)
    return importer.columns(marks, [1]) if len(classes) == 2 else marks


def words_of(step: Any) -> tuple[tuple[int, tuple[str, ...]], ...]:
    """`ModelInfo.words` of labels that are strings."""
    classes = np.asarray(step.classes_)
    return ((0, tuple(classes.tolist())),) if _are_words(classes) else ()


def _are_words(classes: Array) -> bool:
    labels: list[Any] = classes.tolist()
    return classes.dtype.kind in "OU" and all(isinstance(label, str) for label in labels)


def why_not(step: Any) -> list[str]:
    """Reasons why labels cannot be compared in a program."""
    reasons: list[str] = []
    classes = np.asarray(step.classes_)
    if classes.dtype.kind not in "fiub" and not _are_words(classes):
        reasons.append(f"class labels of dtype {classes.dtype}, not all of them strings")
    if getattr(step, "sparse_output", False):
        reasons.append("parameter sparse_output=True")
    if getattr(step, "y_type_", "").startswith("multilabel"):
        reasons.append("several labels per row")
    return reasons
