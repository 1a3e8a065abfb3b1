"""Initializers of an ONNX model as inputs: what is trained is an argument."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
from onnx import ModelProto, numpy_helper

from irkit.errors import InvalidModelError, UnsupportedError
from irkit.weights import Array


def with_parameters(
    source: ModelProto | str | Path, names: Sequence[str]
) -> tuple[ModelProto, dict[str, Array]]:
    """A copy of a model in which the initializers `names` are inputs, and what they were.

    Raises UnsupportedError for a name that no initializer has, InvalidModelError for a file that cannot be
    read.
    """
    model = ModelProto()
    if isinstance(source, ModelProto):
        model.CopyFrom(source)
    else:
        try:
            read: Any = onnx
            model.CopyFrom(read.load(str(source)))
        except OSError as error:
            raise InvalidModelError(f"cannot read '{source}': {error.strerror}") from None
    held: dict[str, Any] = {i.name: i for i in model.graph.initializer}
    if missing := [f"'{n}'" for n in names if n not in held]:
        known = ", ".join(f"'{n}'" for n in held)
        raise UnsupportedError(
            f"no initializer of the model has this name (there are {known}):", missing
        )
    inputs = {i.name for i in model.graph.input}
    for name in names:
        tensor = held[name]
        if name not in inputs:
            value = onnx.helper.make_tensor_value_info(name, tensor.data_type, list(tensor.dims))
            model.graph.input.append(value)
    kept = [i for i in model.graph.initializer if i.name not in {*names}]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    return model, {name: numpy_helper.to_array(held[name]) for name in names}


def float_initializers(source: ModelProto | str | Path) -> list[str]:
    """Names of all initializers of floats. Raises InvalidModelError for a file that cannot be read."""
    found = with_parameters(source, ())[0]
    floats = ("FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16")
    kinds = {onnx.TensorProto.DataType.Value(name) for name in floats}
    return [i.name for i in found.graph.initializer if i.data_type in kinds]
