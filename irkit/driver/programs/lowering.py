"""From a program of arrays to what runs: a function of values, then the standard pipeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.utils.hints import isa

from irkit.context import IrkitContext
from irkit.dialects.functions import function_named
from irkit.dialects.program.builder import BuiltProgram
from irkit.dialects.program.check import written_arguments
from irkit.dialects.state import STATE
from irkit.driver.compiler.artifacts import build_artifact
from irkit.driver.compiler.compile import absent_device
from irkit.driver.compiler.fastmath import check_fastmath, set_fastmath
from irkit.driver.compiler.models import ONE_BUILDER
from irkit.driver.compiler.progress import ProgressBar
from irkit.driver.compiler.targets import planned_device, target_of
from irkit.driver.diagnostics.library_errors import library_errors
from irkit.driver.pipelines.collecting import seldom_collected
from irkit.driver.pipelines.runner import PipelineRunner, Verify
from irkit.driver.pipelines.specification import build_pipeline
from irkit.driver.registry import all_passes, register_dialects
from irkit.errors import UnsupportedError
from irkit.frontends.module import MODEL_ATTRIBUTE, ImportedModel
from irkit.model_info import ModelInfo
from irkit.runtime.loading import ready
from irkit.runtime.mode_choice import check_mode
from irkit.runtime.variant import Variant
from irkit.viewing.timeline import Timeline
from irkit.weights import Array

VALUES = "functionalise"
"""The pass that makes values of arrays."""


class Runner(Protocol):
    """What runs a program of arrays."""

    def run(self, buffers: Sequence[Array]) -> tuple[list[Array], Mapping[int, Array]]:
        """What it returns, and the last contents of the buffers that it writes, by their numbers. `buffers`
        stay as they are."""
        ...

    def ir(self, level: str) -> str:
        """Its text at a level."""
        ...

    @property
    def source(self) -> str:
        """The emitted module."""
        ...

    def report(self) -> dict[str, Any]:
        """What was compiled, and how it runs."""
        ...

    def timelines(self) -> list[Timeline]:
        """Its planned schedule."""
        ...


class Lowered:
    """A program of arrays as a compiled one."""

    def __init__(self, built: BuiltProgram, options: Mapping[str, Any]) -> None:
        """Raises UnsupportedError, DeviceError and what else passes raise of `irkit.errors`."""
        device = planned_device(options["target"], options["device"])
        check_mode(target_of(device), options["mode"])
        check_fastmath(options["fastmath"])
        main = function_named(built.module, "main")
        assert main is not None
        self._written = list(written_arguments(main))
        self._results = len(main.function_type.outputs)
        self._program = str(built.module)
        with ONE_BUILDER, seldom_collected(), ProgressBar() as bar:
            bar.stage("values of arrays")
            imported = graph_of(built)
            set_fastmath(imported.module, options["fastmath"])
            budget = options.get("memory_budget")
            artifact = build_artifact(
                imported,
                device,
                options["cache"],
                bar,
                measure=bool(options.get("measure")),
                memory_budget=budget,
            )
            symbols = list(artifact.report["roperators"])
            bar.stage("machine code of rOperator", len(symbols), lambda: ready(artifact, symbols))
            self._variant = Variant(
                artifact, options["mode"], absent_device(artifact, options["mode"])
            )

    def run(self, buffers: Sequence[Array]) -> tuple[list[Array], Mapping[int, Array]]:
        """As `Runner` has it."""
        found = self._variant.run(buffers)
        written = dict(zip(self._written, found[self._results :], strict=True))
        return found[: self._results], written

    def ir(self, level: str) -> str:
        """Its text at a level."""
        texts = {"program": self._program, **self._variant.artifact.ir}
        if level not in texts:
            raise UnsupportedError(f"level '{level}'; there are {', '.join(texts)}")
        return texts[level]

    @property
    def source(self) -> str:
        """The emitted module."""
        return self._variant.artifact.source

    def report(self) -> dict[str, Any]:
        """What was compiled, and how it runs."""
        return self._variant.report()

    def measured(self, buffers: Sequence[Array]) -> list[Timeline]:
        """Its planned schedule, and a warm run as measured. `buffers` stay as they are."""
        return self._variant.timelines(buffers, "persistent")

    def timelines(self) -> list[Timeline]:
        """Its planned schedule."""
        return self._variant.timelines(None, "persistent")


def graph_of(built: BuiltProgram, *, state: bool = False) -> ImportedModel:
    """The program as a graph-level module. `state`: what it writes of its arguments is state of its own;
    else the caller's arrays are written, after all has gone well."""
    ctx = IrkitContext(weights=built.weights)
    register_dialects(ctx)
    module: ModuleOp = built.module
    with library_errors():
        passes = build_pipeline(VALUES, all_passes())
        PipelineRunner(ctx, verify=Verify.LEVELS).run(module, passes)
    main = function_named(module, "main")
    assert main is not None
    if not state:
        main.attributes.pop(STATE, None)
    inputs, outputs = _names(main, "irkit.inputs"), _names(main, "irkit.outputs")
    info = ModelInfo("network", inputs, outputs, source="numpy")
    module.attributes[MODEL_ATTRIBUTE] = StringAttr(info.to_json())
    return ImportedModel(module, ctx.weights, info)


def _names(main: FuncOp, attribute: str) -> tuple[str, ...]:
    found = main.attributes.get(attribute)
    return tuple(n.data for n in found.data) if isa(found, ArrayAttr[StringAttr]) else ()
