"""Models as ONNX's checker and shape inference may see them: without the numbers of large weights."""

from __future__ import annotations

import math
from typing import Any

from google.protobuf.message import Message
from onnx import ModelProto, TensorProto

LARGEST = 1 << 14
"""Elements of an initializer that they may see: shapes, axes and the like, which they read, are far fewer."""


def without_weights(model: ModelProto, shapes: bool = True) -> tuple[ModelProto, list[TensorProto]]:
    """A copy of the model in which each initializer of more than LARGEST elements has one byte in the place
    of its data, or, without `shapes`, no elements; and these initializers as they are.

    Both are given all of a model in one serialised piece: hundreds of megabytes would be copied several
    times, for a weight's type and shape, and more than two gigabytes are no piece at all.
    """
    tensors = model.graph.initializer
    hidden = [t.HasField("raw_data") and math.prod(t.dims) > LARGEST for t in tensors]
    light = ModelProto()
    _copy(model, light, without="graph")
    if model.HasField("graph"):
        light.graph.SetInParent()
        _copy(model.graph, light.graph, without="initializer")
    for tensor, large in zip(tensors, hidden, strict=True):
        light.graph.initializer.append(_shell(tensor, shapes) if large else tensor)
    return light, [t for t, large in zip(tensors, hidden, strict=True) if large]


def _copy(source: Any, target: Any, without: str) -> None:
    """All fields of a message but one."""
    for field, value in source.ListFields():
        if field.name == without:
            continue
        if isinstance(value, Message):
            getattr(target, field.name).CopyFrom(value)
        elif isinstance(value, int | float | str | bytes):
            setattr(target, field.name, value)
        else:
            getattr(target, field.name).extend(value)


def _shell(tensor: TensorProto, shapes: bool) -> TensorProto:
    """The same initializer without its data."""
    dims, data = (tensor.dims, b"\0") if shapes else ([0], b"")
    return TensorProto(name=tensor.name, data_type=tensor.data_type, dims=dims, raw_data=data)
