"""One front end per source format; each returns a graph-level module and its weights."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from irkit.errors import UnsupportedError
from irkit.row_forms import PLAIN, RowForm

if TYPE_CHECKING:
    from irkit.frontends.module import ImportedModel

# Package that a model's class comes from → front end. Nothing is imported before it is needed.
_BY_PACKAGE = {
    "sklearn": ("irkit.frontends.sklearn", "import_sklearn"),
    "lightgbm": ("irkit.frontends.lightgbm", "import_lightgbm"),
    "xgboost": ("irkit.frontends.xgboost", "import_xgboost"),
    "catboost": ("irkit.frontends.catboost", "import_catboost"),
    "ydf": ("irkit.frontends.ydf", "import_ydf"),
}
# Library → front end of the files in its own format.
_OF_FILES = {
    "catboost": ("irkit.frontends.catboost", "import_catboost_file"),
    "lightgbm": ("irkit.frontends.lightgbm", "import_lightgbm_file"),
    "xgboost": ("irkit.frontends.xgboost", "import_xgboost_file"),
    "ydf": ("irkit.frontends.ydf", "import_ydf_folder"),
}
# Of .cbm files CatBoost's reader says why they are refused.
_BY_SUFFIX = {".cbm": "catboost", ".json": "xgboost", ".txt": "lightgbm", ".ubj": "xgboost"}
ACCEPTED = (
    "a fitted scikit-learn, LightGBM, XGBoost, CatBoost or YDF model, an onnx.ModelProto, or the path of an "
    ".onnx file, of LightGBM's .txt, of XGBoost's .json or .ubj, of CatBoost's .json, or of a YDF model's "
    "folder"
)


@dataclass(frozen=True)
class ModelFile:
    """A file, or a folder, in the own format of a library, "catboost", "lightgbm", "xgboost" or "ydf",
    whatever its name is."""

    path: str | Path
    library: str


def import_model(
    model: Any,
    dtype: str = "float64",
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    constants: Mapping[str, Any] | None = None,
    batch: int | None = None,
    rows: RowForm = PLAIN,
) -> ImportedModel:
    """The graph-level module of a trained model.

    `dtype` ("float32" or "float64") is that of the arrays that will come, for models whose arithmetic
    depends on it; so `rows`, for scikit-learn's. `shapes`, `constants` and `batch` fix inputs of an ONNX
    model (see `import_onnx`). Raises UnsupportedError listing all that is missing, InvalidModelError.
    """
    if isinstance(model, str | Path):
        model = _file(model)
    if isinstance(model, str | Path) or type(model).__name__ == "ModelProto":
        return _onnx(model, shapes, constants, batch)
    if shapes or constants:
        raise UnsupportedError("shapes and constants are for ONNX models only")
    if isinstance(model, ModelFile):
        module, reader = _OF_FILES[model.library]
        return getattr(importlib.import_module(module), reader)(model.path, dtype)
    # Only the libraries' own classes: a user's subclass may override what irkit would reproduce.
    found = _BY_PACKAGE.get(type(model).__module__.partition(".")[0])
    if found is not None:
        reader = getattr(importlib.import_module(found[0]), found[1])
        # All but scikit-learn compute in one way, in whatever form rows come.
        forms = (rows,) if found is _BY_PACKAGE["sklearn"] else ()
        return reader(model, dtype, *forms)
    kind = f"{type(model).__module__}.{type(model).__qualname__}"
    raise UnsupportedError(f"model of type {kind}; accepted: {ACCEPTED}")


def _file(path: str | Path) -> str | Path | ModelFile:
    """What a path names by its suffix, `.json` and a folder by what is in it: as it is, of ONNX. Raises
    UnsupportedError for any other."""
    from irkit.frontends.ydf import is_ydf_folder

    if is_ydf_folder(path):
        return ModelFile(path, "ydf")
    suffix = Path(path).suffix
    if suffix not in (".onnx", *_BY_SUFFIX):
        raise UnsupportedError(f"model file '{path}'; accepted: {ACCEPTED}")
    if suffix == ".onnx":
        return path
    return ModelFile(path, json_library(path) if suffix == ".json" else _BY_SUFFIX[suffix])


def json_library(path: str | Path) -> str:
    """Whose a `.json` file is, "catboost" or "xgboost"; "xgboost" also of one that cannot be read, of which
    its reader then says why."""
    from irkit.frontends.catboost_json import is_catboost

    try:
        data = Path(path).read_bytes()
    except OSError:
        return "xgboost"
    return "catboost" if is_catboost(data) else "xgboost"


def _onnx(
    model: Any,
    shapes: Mapping[str, Sequence[int]] | None,
    constants: Mapping[str, Any] | None,
    batch: int | None,
) -> ImportedModel:
    from irkit.frontends.onnx import import_onnx

    return import_onnx(model, shapes, constants, batch)
