"""Models as ONNX's checker and shape inference may see them: without the numbers of large weights."""

from __future__ import annotations

import math
from collections.abc import Generator
from contextlib import contextmanager

from onnx import ModelProto, TensorProto

LARGEST = 1 << 14
"""Elements of an initializer that they may see: shapes, axes and the like, which they read, are far fewer."""


@contextmanager
def without_weights(model: ModelProto, shapes: bool = True) -> Generator[list[TensorProto]]:
    """While the block runs, each initializer of more than LARGEST elements has one byte in the place of its
    data, or, without `shapes`, no elements; the block is given these initializers as they are.

    Both are given all of a model in one serialised piece: hundreds of megabytes would be copied several
    times, for a weight's type and shape, and more than two gigabytes are no piece at all.
    """
    held = model.graph.initializer
    taken = list(held)
    large = [t for t in taken if t.HasField("raw_data") and math.prod(t.dims) > LARGEST]
    if not large:
        yield []
        return
    hidden = {id(tensor) for tensor in large}
    del held[:]
    held.extend(_shell(t, shapes) if id(t) in hidden else t for t in taken)
    try:
        yield large
    finally:
        del held[:]
        held.extend(taken)


def _shell(tensor: TensorProto, shapes: bool) -> TensorProto:
    """The same initializer without its data."""
    dims, data = (tensor.dims, b"\0") if shapes else ([0], b"")
    return TensorProto(name=tensor.name, data_type=tensor.data_type, dims=dims, raw_data=data)
