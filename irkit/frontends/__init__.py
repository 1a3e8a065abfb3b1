"""One front end per source format; each returns a graph-level module and its weights."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from irkit.errors import UnsupportedError

if TYPE_CHECKING:
    from irkit.frontends.module import ImportedModel

# Package that a model's class comes from → front end. Nothing is imported before it is needed.
_BY_PACKAGE = {
    "sklearn": ("irkit.frontends.sklearn", "import_sklearn"),
    "lightgbm": ("irkit.frontends.lightgbm", "import_lightgbm"),
    "xgboost": ("irkit.frontends.xgboost", "import_xgboost"),
}
ACCEPTED = (
    "a fitted scikit-learn, LightGBM or XGBoost model, an onnx.ModelProto, "
    "or the path of an .onnx file"
)


def import_model(
    model: Any,
    dtype: str = "float64",
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    constants: Mapping[str, Any] | None = None,
    batch: int | None = None,
) -> ImportedModel:
    """The graph-level module of a trained model.

    `dtype` ("float32" or "float64") is that of the arrays that will come, for models whose arithmetic
    depends on it. `shapes`, `constants` and `batch` fix inputs of an ONNX model (see
    `import_onnx`). Raises UnsupportedError listing all that is missing, InvalidModelError.
    """
    if isinstance(model, str | Path):
        if Path(model).suffix != ".onnx":
            raise UnsupportedError(f"model file '{model}'; accepted: {ACCEPTED}")
        return _onnx(model, shapes, constants, batch)
    if type(model).__name__ == "ModelProto":
        return _onnx(model, shapes, constants, batch)
    if shapes or constants:
        raise UnsupportedError("shapes and constants are for ONNX models only")
    # Only the libraries' own classes: a user's subclass may override what irkit would reproduce.
    found = _BY_PACKAGE.get(type(model).__module__.partition(".")[0])
    if found is not None:
        return getattr(importlib.import_module(found[0]), found[1])(model, dtype)
    kind = f"{type(model).__module__}.{type(model).__qualname__}"
    raise UnsupportedError(f"model of type {kind}; accepted: {ACCEPTED}")


def _onnx(
    model: Any,
    shapes: Mapping[str, Sequence[int]] | None,
    constants: Mapping[str, Any] | None,
    batch: int | None,
) -> ImportedModel:
    from irkit.frontends.onnx import import_onnx

    return import_onnx(model, shapes, constants, batch)
