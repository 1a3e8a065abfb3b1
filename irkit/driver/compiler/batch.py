"""Whether a model has one program for every batch size, or one for each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from irkit.batch_place import BatchPlace
from irkit.dialects.batch_border import INPUT_BATCH, OUTPUT_BATCH, places_of
from irkit.dialects.functions import function_named
from irkit.dialects.graph.batch import BatchAnalysis, Mixing, analyse
from irkit.dialects.graph.batch.size import specialise
from irkit.dialects.state import state_of
from irkit.dialects.symbols import open_fault, symbols
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.driver.compiler.models import read_model
from irkit.errors import OpenBatchError, UnsupportedError
from irkit.interp import level_of
from irkit.model_info import ModelInfo
from irkit.passes.graph.batch_to_front import NO_FORM, first_obstacle

if TYPE_CHECKING:
    from irkit.frontends.module import ImportedModel

PROBES = (1, 2)
"""Batch sizes at which a model is tried that cannot be imported for every size."""


@dataclass(frozen=True)
class SizedModel:
    """A model with a program for each batch size: `at(size)` reads it for one. `probe` is it at some size;
    `axes` and `reasons` as in `irkit.runtime.sized.OpenBatch`."""

    probe: ImportedModel
    axes: tuple[int | None, ...]
    reasons: tuple[str, ...]
    at: Callable[[int], ImportedModel]


def read_for_batch(
    model: Any, dtype: str, batch: int | None, fixed: Mapping[str, Any]
) -> ImportedModel | SizedModel:
    """The model for a batch of any size, or for `batch`, or, where its rows mix, for each size.

    Raises UnsupportedError, InvalidModelError.
    """
    if batch is not None:
        return read_of_size(model, dtype, batch, fixed)
    try:
        imported = read_model(model, dtype, **fixed)
    except OpenBatchError as error:
        return _each_size(model, dtype, fixed, error)
    main = _main(imported.module)
    if main is None or level_of(imported.module) != "graph":
        return imported
    if open_fault(main) is not None:
        return imported  # refused when it is lowered
    found = analyse(main)
    reasons = tuple(map(str, found.mixing)) or _elsewhere(main, found)
    if not reasons:
        return imported
    axes = tuple(map(_axis, main.body.block.args))
    return SizedModel(imported, axes, reasons, lambda size: _specialised(imported, size))


def read_of_size(model: Any, dtype: str, batch: int, fixed: Mapping[str, Any]) -> ImportedModel:
    """The model for a batch of `batch` rows. Raises UnsupportedError, InvalidModelError."""
    if batch < 1:
        raise UnsupportedError(f"batch = {batch}: it has 1 row or more")
    imported = read_model(model, dtype, **fixed, batch=batch)
    of_onnx = type(model).__name__ == "ModelProto" or str(model).endswith(".onnx")
    return imported if of_onnx else _of_one_size(imported, _main(imported.module), batch)


def _elsewhere(main: FuncOp, found: BatchAnalysis) -> tuple[str, ...]:
    """Why a function in which no rows mix has no program for every batch size all the same."""
    op = first_obstacle(main, found) if found.elsewhere() else None
    return () if op is None else (str(Mixing(op, 0, NO_FORM)),)


def _of_one_size(imported: ImportedModel, main: FuncOp | None, batch: int) -> ImportedModel:
    """For the size that the user names."""
    if main is None or not symbols(main):
        raise UnsupportedError(f"batch = {batch}: no dimension of the model's inputs is open")
    if level_of(imported.module) != "graph":
        raise UnsupportedError("batch: it is for models and modules of the graph level")
    return _specialised(imported, batch)


def _each_size(
    model: Any, dtype: str, fixed: Mapping[str, Any], error: OpenBatchError
) -> SizedModel:
    """A model that can be imported for some batch size. Raises `error` if it cannot."""
    for size in PROBES:
        try:
            probe = read_model(model, dtype, **fixed, batch=size)
        except UnsupportedError:
            continue
        axes = tuple(error.axes.get(name) for name in probe.info.inputs)
        return SizedModel(
            probe, axes, error.missing, lambda n: read_model(model, dtype, **fixed, batch=n)
        )
    raise error


def _specialised(imported: ImportedModel, size: int) -> ImportedModel:
    """A copy for a batch of so many rows."""
    from irkit.frontends.module import ImportedModel

    module = imported.module.clone()
    for function in module.ops:
        if isinstance(function, FuncOp) and function.body.blocks:
            for symbol in symbols(function):
                specialise(function, size, symbol)
    return ImportedModel(module, imported.weights, imported.info)


def info_with_borders(info: ModelInfo, module: ModuleOp) -> ModelInfo:
    """The facts, with where the caller sees the batch that `batch-to-front` has moved."""
    main = _main(module)
    if main is None or not {INPUT_BATCH, OUTPUT_BATCH} & main.attributes.keys():
        return info
    types = main.function_type
    held = state_of(main)
    inputs = _without(
        places_of(main, INPUT_BATCH, len(types.inputs.data)), [p.argument for p in held]
    )
    outputs = _without(
        places_of(main, OUTPUT_BATCH, len(types.outputs.data)), [p.result for p in held]
    )
    return replace(
        info,
        input_batch=tuple(None if p is None else astuple(p) for p in inputs),
        output_batch=tuple(None if p is None else astuple(p) for p in outputs),
    )


def info_with_limits(info: ModelInfo, module: ModuleOp) -> ModelInfo:
    """The facts, with the checks that `checks-to-limits` has left in the program, and the host's."""
    text = module.attributes.get("irkit.model")
    if not isinstance(text, StringAttr):
        return info
    found = ModelInfo.from_json(text.data)
    if not found.limits and len(found.checks) == len(info.checks) and found.largest == info.largest:
        return info
    return replace(
        info,
        outputs=found.outputs,
        checks=found.checks,
        limits=found.limits,
        largest=found.largest,
    )


def _without(places: Sequence[BatchPlace | None], held: Collection[int]) -> list[BatchPlace | None]:
    """The places of what is no state, and so an argument or a result of calls."""
    return [place for number, place in enumerate(places) if number not in held]


def _main(module: ModuleOp) -> FuncOp | None:
    main = function_named(module, "main")
    return main if main is not None and main.body.blocks else None


def _axis(value: SSAValue) -> int | None:
    shape = tensor_type(value).get_shape() if isinstance(value.type, TensorType) else ()
    return shape.index(DYNAMIC) if DYNAMIC in shape else None
