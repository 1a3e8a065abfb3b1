"""Models as ONNX's shape inference may see them: without the numbers of large weights, which it ignores."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from onnx import ModelProto

LARGEST = 1 << 16
"""Bytes of an initializer that it may see: shapes, axes and the like, which it does read, are far less."""


@contextmanager
def without_weights(model: ModelProto) -> Generator[None]:
    """While the block runs, one byte stands in `model` for the data of each initializer of more than LARGEST
    bytes.

    Shape inference is given all of a model in one serialised piece, and looks at the type and the shape of
    a weight alone: hundreds of megabytes would be copied.
    """
    taken = [(t, data) for t in model.graph.initializer if len(data := t.raw_data) > LARGEST]
    for tensor, _ in taken:
        tensor.raw_data = b"\0"
    try:
        yield
    finally:
        for tensor, data in taken:
            tensor.raw_data = data
