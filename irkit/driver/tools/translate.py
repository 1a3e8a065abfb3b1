"""irkit-translate: a model file in, a graph-level `.mlir` and its `.safetensors` out."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any

from irkit.driver.diagnostics.diagnostic import Sources, UserError
from irkit.driver.files.model_files import read_bytes, write_text, write_weights
from irkit.driver.tools.arguments import ArgumentParser
from irkit.driver.tools.error_handler import ErrorHandler
from irkit.driver.tools.streams import standard_error, standard_output

DESCRIPTION = """\
Import a trained model as a graph-level module.

  irkit-translate model.onnx -o model.mlir
  irkit-translate model.onnx --batch=8 -o model.mlir
  irkit-translate model.txt --from=lightgbm -o model.mlir

The weights are written beside the output (model.safetensors for model.mlir)."""

SUFFIXES = {".cbm": "catboost", ".onnx": "onnx", ".txt": "lightgbm", ".ubj": "xgboost"}
FORMATS = ("onnx", "lightgbm", "xgboost", "catboost", "ydf", "sklearn")


def translate_parser(stdout: IO[str]) -> ArgumentParser:
    """The argument parser of irkit-translate; help goes to `stdout`."""
    parser = ArgumentParser("irkit-translate", DESCRIPTION, stdout)
    parser.add_argument("input", metavar="FILE", help="the model's file")
    parser.add_argument(
        "-o", dest="output", default="-", metavar="FILE", help="output; - is stdout"
    )
    parser.add_argument(
        "--from", dest="format", choices=FORMATS, help="the file's format (default: by its suffix)"
    )
    parser.add_argument(
        "--dtype",
        choices=("float32", "float64"),
        default="float64",
        help="element type of the program's input, where the model leaves the choice (float64)",
    )
    parser.add_argument(
        "--batch", type=int, metavar="N", help="rows of a batch that the model leaves open (any)"
    )
    return parser


def _needs(package: str, extra: str) -> UserError:
    return UserError(f"reading this file needs {package}: pip install '{extra}'", "irkit-translate")


def load_onnx(path: str) -> Any:
    """An onnx.ModelProto. Raises UserError for a damaged file."""
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ImportError:
        raise _needs("onnx", "irkit[onnx]") from None
    data = read_bytes(path)
    try:
        model = onnx.load_model_from_string(data)
    except DecodeError:
        raise UserError("not a valid ONNX file (damaged or truncated)", path) from None
    if not model.HasField("graph"):
        raise UserError("not a valid ONNX file (it has no graph)", path)
    return model


def load_boosted(path: str, library: str) -> Any:
    """A file, or YDF's folder, of a library's own format, which the front end reads."""
    from irkit.frontends import ModelFile

    return ModelFile(path, library)


LOADERS: dict[str, Callable[[str], Any]] = {
    "onnx": load_onnx,
    "lightgbm": partial(load_boosted, library="lightgbm"),
    "xgboost": partial(load_boosted, library="xgboost"),
    "catboost": partial(load_boosted, library="catboost"),
    "ydf": partial(load_boosted, library="ydf"),
}


def _by_content(path: str, suffix: str) -> str | None:
    """The format of what no suffix tells: XGBoost and CatBoost share one, and YDF's models are folders."""
    from irkit.frontends import json_library
    from irkit.frontends.ydf import is_ydf_folder

    if suffix == ".json":
        return json_library(path)
    return "ydf" if is_ydf_folder(path) else None


def format_of(path: str, wanted: str | None) -> str:
    """The format of a model file. Raises UserError if it cannot be told or is not safe to read."""
    suffix = Path(path).suffix
    if wanted == "sklearn" or suffix in (".pkl", ".pickle", ".joblib"):
        raise UserError(
            "a scikit-learn model has no safe file format, and a pickle may run any code: "
            "call irkit.compile(model) or irkit.frontends.import_model(model, dtype) in Python",
            path,
        )
    if wanted is None and suffix == ".mlir":
        raise UserError("this is a module already: irkit-opt and irkit-run take it", path)
    found = wanted or _by_content(path, suffix) or SUFFIXES.get(suffix)
    if found is None:
        raise UserError(
            f"cannot tell the format from the suffix '{suffix}': give --from="
            "onnx|lightgbm|xgboost|catboost|ydf",
            path,
        )
    return found


class TranslateTool:
    """One run of irkit-translate."""

    def __init__(self, stdout: IO[str] | None = None, stderr: IO[str] | None = None) -> None:
        self.stdout = standard_output(stdout)
        self.stderr = standard_error(stderr)

    def main(self, argv: Sequence[str]) -> int:
        """Run with these arguments (without the tool's name); returns the exit code."""
        handler = ErrorHandler("irkit-translate", argv, Sources(), self.stderr)
        with handler:
            options = translate_parser(self.stdout).parse_all(argv)
            handler.input_name = options.input
            self._translate(options)
        return handler.status

    def _translate(self, options: argparse.Namespace) -> None:
        model = LOADERS[format_of(options.input, options.format)](options.input)
        from irkit.driver.compiler.batch import read_of_size
        from irkit.driver.compiler.models import check_imported, read_model
        from irkit.driver.files.model_files import used_weights
        from irkit.driver.files.printing import module_text

        if options.batch is None:
            imported = read_model(model, options.dtype)
        else:
            imported = read_of_size(model, options.dtype, options.batch, {})
        check_imported(imported.module)
        text = module_text(imported.module)
        if options.output == "-":
            self.stdout.write(text)
            return
        # Weights first: a module never names weights that are not there yet.
        write_weights(options.output, imported.weights, used_weights(imported.module))
        write_text(options.output, text)
