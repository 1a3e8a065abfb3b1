"""Functions of arrays of a device, compiled for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, FunctionType, ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp

from irkit.context import IrkitContext
from irkit.dags.host_programs import DeviceFunction
from irkit.dialects.functions import function_named
from irkit.dialects.program.check import function_called, written_arguments
from irkit.dialects.state import STATE
from irkit.driver.compiler.artifacts import build_artifact
from irkit.driver.compiler.fastmath import set_fastmath
from irkit.driver.registry import register_dialects
from irkit.frontends.module import MODEL_ATTRIBUTE, ImportedModel
from irkit.model_info import ModelInfo
from irkit.passes.program.functionalise import functionalised
from irkit.runtime.artifact import Artifact
from irkit.weights import WeightStore


@dataclass(frozen=True)
class CompiledFunction:
    """A function of the device, and the program that it was compiled to."""

    function: DeviceFunction
    source: Artifact


def device_function(
    function: FuncOp, weights: WeightStore, options: Mapping[str, Any]
) -> CompiledFunction:
    """Compile a function of arrays for the GPU that `options` name. Raises as `irkit.jit`."""
    imported, reads = _imported(function, weights)
    set_fastmath(imported.module, options["fastmath"])
    artifact = build_artifact(imported, options["device"] or "cuda", options["cache"])
    writes = tuple(written_arguments(function))
    return CompiledFunction(DeviceFunction(artifact, tuple(reads), writes), artifact)


def called_functions(module: ModuleOp) -> list[FuncOp]:
    """The functions of the program that `@main` calls."""
    main = function_named(module, "main")
    assert main is not None
    calls = (function_called(op) for op in main.walk() if isinstance(op, CallOp))
    return list(dict.fromkeys(f for f in calls if f is not None))


def _imported(function: FuncOp, weights: WeightStore) -> tuple[ImportedModel, list[int]]:
    """A function of arrays as a model of the arrays that it reads, and which these are."""
    made = functionalised(function, weights)
    made.attributes.pop(STATE, None)
    block = made.body.block
    reads = [a.index for a in block.args if a.uses]
    for argument in reversed(list(block.args)):
        if not argument.uses:
            block.erase_arg(argument)
    outputs = list(made.function_type.outputs)
    made.function_type = FunctionType.from_lists([a.type for a in block.args], outputs)
    made.sym_name = StringAttr("main")
    info = ModelInfo(
        "network",
        tuple(f"in{n}" for n in reads),
        tuple(f"out{n}" for n in range(len(outputs))),
        source="numpy",
    )
    made.attributes["irkit.inputs"] = ArrayAttr([StringAttr(n) for n in info.inputs])
    made.attributes["irkit.outputs"] = ArrayAttr([StringAttr(n) for n in info.outputs])
    module = ModuleOp([made])
    module.attributes[MODEL_ATTRIBUTE] = StringAttr(info.to_json())
    context = IrkitContext(weights=weights)
    register_dialects(context)
    return ImportedModel(module, weights, info), reads
