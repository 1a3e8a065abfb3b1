"""ONNX networks → graph level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnx import ModelProto

    from irkit.frontends.module import ImportedModel
    from irkit.weights import Array


def import_onnx(
    model: ModelProto | str | Path,
    shapes: Mapping[str, Sequence[int]] | None = None,
    constants: Mapping[str, Array] | None = None,
    batch: int | None = None,
) -> ImportedModel:
    """Import a network, given as a ModelProto or the path of a `.onnx` file.

    A symbolic dimension of the inputs becomes the dynamic batch, wherever it stands; `shapes` (input name →
    full shape) fixes symbolic dimensions, and gives a shape to an input that has none; `batch` fixes the one
    that would be the batch; `constants` (input
    name → array) gives inputs their values, so that they are no inputs of the program any more. Raises
    InvalidModelError for a malformed or truncated model, UnsupportedError that lists every node which
    cannot be imported, ConstantInputError that names inputs which must be given in `constants`,
    InvalidInputError for `shapes` or `constants` that do not fit.
    """
    from irkit.frontends.onnx.importer import Importer
    from irkit.frontends.onnx.load import load

    return Importer(load(model, shapes or {}, batch, constants or {}), constants or {}).run()
