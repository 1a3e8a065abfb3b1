"""Annotations: what is known of functions that irkit does not compile, kept outside of their libraries.

`irkit.annotate` says it of a function. Here are the words that it is said in.
"""

from irkit.annotations.annotation import Annotation, annotate, annotation_of
from irkit.annotations.direct import in_parts
from irkit.annotations.split_types import ArraySplit, Broadcast, Generic, RowSplit, SplitType
from irkit.annotations.structures import Argument, ArrayType

__all__ = [
    "Annotation",
    "Argument",
    "ArraySplit",
    "ArrayType",
    "Broadcast",
    "Generic",
    "RowSplit",
    "SplitType",
    "annotate",
    "annotation_of",
    "in_parts",
]
