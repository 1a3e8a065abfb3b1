"""The graph-level module of any model that `irkit.compile` takes."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp, StringAttr

from irkit.context import IrkitContext
from irkit.dialects.functions import function_named
from irkit.dialects.state import STATE
from irkit.driver.diagnostics.diagnostic import BrokenPassError, UserError
from irkit.driver.diagnostics.library_errors import invalid_models, library_errors
from irkit.driver.files.context import make_context
from irkit.driver.files.model_files import used_weights
from irkit.driver.files.parsing import parse_module
from irkit.driver.pipelines.runner import PipelineRunner, Verify
from irkit.driver.pipelines.specification import build_pipeline
from irkit.driver.registry import all_passes, register_dialects
from irkit.driver.verification.level_checks import check_level
from irkit.driver.verification.verifier import check_module
from irkit.errors import InvalidModelError, UnsupportedError
from irkit.interp import level_of
from irkit.model_info import ModelInfo
from irkit.weights import WeightStore

if TYPE_CHECKING:
    from irkit.frontends.module import ImportedModel

# While xDSL fills a region by an implicit builder (linalg's named ops do), every op that is made in any
# thread goes there: one thread builds IR at a time.
ONE_BUILDER = threading.RLock()


def parse(text: str, name: str = "<module>") -> ModuleOp:
    """A module from MLIR text; `name` stands in its locations and in errors.

    Raises InvalidModelError, with the place, for text that does not parse or verify.
    """
    ctx = IrkitContext()
    register_dialects(ctx)
    with ONE_BUILDER, invalid_models():
        module = parse_module(ctx, text, name)
        check_module(module)
    return module


def read_model(model: Any, dtype: str, **fixed: Any) -> ImportedModel:
    """The graph-level module of any model that `compile_model` takes, `fixed` being its `shapes`, `constants`
    `batch` and `rows`. Of these a module that is none of ONNX is left as it is by the last two."""
    from irkit.frontends import import_model
    from irkit.frontends.module import MODEL_ATTRIBUTE, ImportedModel

    weights = WeightStore()
    if isinstance(model, str | Path) and Path(model).suffix == ".mlir":
        model, weights = _read_mlir(str(model))
    if not isinstance(model, ModuleOp):
        return import_model(model, dtype, **fixed)
    if fixed.get("shapes") or fixed.get("constants"):
        raise UnsupportedError("shapes and constants are for ONNX models only")
    # Passes rewrite in place, and the module is its owner's.
    model = model.clone()
    _check_own_module(model, weights)
    if level_of(model) == "program":
        _make_values(model, weights)
    facts = model.attributes.get(MODEL_ATTRIBUTE)
    info = ModelInfo.from_json(facts.data) if isinstance(facts, StringAttr) else _plain_info(model)
    return ImportedModel(model, weights, info)


def check_imported(module: ModuleOp) -> None:
    """Hold a front end to the graph level. Raises BrokenPassError."""
    try:
        check_module(module)
        check_level(module, "graph")
    except UserError as error:
        blame = "the front end left IR that does not verify"
        raise BrokenPassError.of(error, blame) from None


def _read_mlir(path: str) -> tuple[ModuleOp, WeightStore]:
    try:
        with invalid_models():
            ctx = make_context(path)
            module = parse_module(ctx, Path(path).read_text(encoding="utf-8"), path)
            check_module(module)
    except OSError as error:
        raise InvalidModelError(f"cannot read '{path}': {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidModelError(f"'{path}' is no text file") from None
    return module, ctx.weights


def _check_own_module(module: ModuleOp, weights: WeightStore) -> None:
    """Raises InvalidModelError for a module that does not verify, is at no level to start from, or
    whose weights are not there."""
    with invalid_models():
        check_module(module)
    level = level_of(module)
    if level not in ("program", "graph", "tensor"):
        raise InvalidModelError(
            f"expected a module at the program, graph or tensor level, got the {level} level"
        )
    missing = sorted(used_weights(module) - set(weights))
    if missing:
        raise InvalidModelError(
            f"the module names weights that are not there: {', '.join(missing)}"
        )


def _make_values(module: ModuleOp, weights: WeightStore) -> None:
    """Make a program of arrays one of values. The caller has its arrays: none is the program's state."""
    ctx = IrkitContext(weights=weights)
    register_dialects(ctx)
    with ONE_BUILDER, library_errors():
        passes = build_pipeline("functionalise", all_passes())
        PipelineRunner(ctx, verify=Verify.LEVELS).run(module, passes)
    main = function_named(module, "main")
    if main is not None:
        main.attributes.pop(STATE, None)


def _plain_info(module: ModuleOp) -> ModelInfo:
    """Facts about a module that no front end made."""
    main = function_named(module, "main")
    if main is None:
        raise InvalidModelError("the module has no func.func @main")
    inputs = tuple(f"input{i}" for i in range(len(main.function_type.inputs)))
    outputs = tuple(f"output{i}" for i in range(len(main.function_type.outputs)))
    return ModelInfo("network", inputs, outputs, source="mlir")
