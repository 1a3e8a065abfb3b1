"""Encoders of targets, whose input is one row of labels: LabelEncoder and LabelBinarizer."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from irkit.dialects.graph import CastOp, WhereOp
from irkit.frontends.sklearn.importer import Importer, element
from irkit.frontends.sklearn.outputs import largest

LABEL_ENCODERS = ("LabelBinarizer", "LabelEncoder")


def encoded(importer: Importer, step: Any, y: SSAValue) -> SSAValue:
    """Numbers of labels (rows), or what marks them (rows, or rows×classes)."""
    classes = np.asarray(step.classes_)
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


def why_not(step: Any) -> list[str]:
    """Reasons why labels cannot be compared in a program."""
    reasons: list[str] = []
    if np.asarray(step.classes_).dtype.kind not in "fiub":
        reasons.append(f"class labels of dtype {np.asarray(step.classes_).dtype}")
    if getattr(step, "sparse_output", False):
        reasons.append("parameter sparse_output=True")
    if getattr(step, "y_type_", "").startswith("multilabel"):
        reasons.append("several labels per row")
    return reasons
