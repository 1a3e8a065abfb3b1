"""What irkit-opt does between its arguments and its exit code: parse, verify, run passes, print."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.arg_spec import ArgSpec, parse_spec
from xdsl.utils.exceptions import ArgSpecParseError, PassFailedException

from irkit.context import IrkitContext
from irkit.driver.compiler.targets import planned_device, usual_device
from irkit.driver.diagnostics.diagnostic import Diagnostic, UserError, did_you_mean
from irkit.driver.diagnostics.expectations import Expectations
from irkit.driver.files.context import make_context
from irkit.driver.files.model_files import (
    read_text,
    used_weights,
    write_text,
    write_weights,
)
from irkit.driver.files.parsing import parse_module
from irkit.driver.files.printing import module_text
from irkit.driver.instruments.reproducer import Reproducer, kept_flags
from irkit.driver.instruments.requested import RequestedInstruments
from irkit.driver.instruments.timer import Timer
from irkit.driver.pipelines.runner import PipelineRunner, Verify
from irkit.driver.pipelines.specification import PIPELINE, build_pipeline
from irkit.driver.pipelines.standard import standard_pipeline
from irkit.driver.registry import all_passes
from irkit.driver.tools.error_handler import ErrorHandler
from irkit.driver.verification.verifier import check_module
from irkit.interp import level_of
from irkit.weights import WeightStore

if TYPE_CHECKING:
    from irkit.driver.tools.opt import OptTool

SEPARATOR = re.compile(r"^// -----[ \t]*\n", re.MULTILINE)


def split(text: str) -> Iterator[str]:
    """The parts of `text` between separators, each behind as many empty lines as stand before it,
    so that line numbers are those of the whole file."""
    start = 0
    for match in [*SEPARATOR.finditer(text), None]:
        end = len(text) if match is None else match.start()
        yield "\n" * text.count("\n", 0, start) + text[start:end]
        start = end if match is None else match.end()


class Session:
    """One run of irkit-opt on one input."""

    def __init__(self, tool: OptTool, options: argparse.Namespace, handler: ErrorHandler) -> None:
        self.tool = tool
        self.options = options
        self.handler = handler
        self.timer = Timer()
        self.instruments = RequestedInstruments(options, tool.stderr, self.timer, self._show_remark)
        self._remarks: list[Diagnostic] = []
        self.target = parse_target(options.target)
        if options.pipeline is not None and options.to is not None:
            raise UserError("give either a pipeline (-p) or a level (--to), not both", "irkit-opt")

    def run(self) -> int:
        """Returns the exit code; user's errors are raised unless `--verify-diagnostics` expects them."""
        text, name = read_text(self.options.input, self.tool.stdin)
        self.handler.input_name, self.handler.input_text = self.options.input, text
        self.handler.sources.add(name, text)
        parts = list(split(text)) if self.options.split_input_file else [text]
        with self.instruments.finishing():
            if self.options.verify_diagnostics:
                outputs, status = self._run_expecting(parts, name)
            else:
                outputs, status = [self._run_part(part, name) for part in parts], 0
            self._write("// -----\n".join(outputs))
        return status

    def _show_remark(self, remark: Diagnostic) -> None:
        """Print a remark, in one line, or keep it for `--verify-diagnostics`."""
        if self.options.verify_diagnostics:
            self._remarks.append(remark)
        else:
            place = f"{remark.place}: " if remark.place else ""
            self.tool.stderr.write(f"{place}remark: {remark.message}\n")

    def _run_expecting(self, parts: list[str], name: str) -> tuple[list[str], int]:
        """Run each part and compare what it reports with what its comments expect."""
        outputs: list[str] = []
        status = 0
        for part in parts:
            expected = Expectations.parse(part, name)
            found = self._remarks = []
            try:
                outputs.append(self._run_part(part, name))
            except UserError as error:
                found.append(error.diagnostic)
            for mismatch in expected.mismatches(found):
                status = 1
                self.handler.show(mismatch)
        return outputs, status

    def _run_part(self, text: str, name: str) -> str:
        """Everything for one part: returns what it prints."""
        options = self.options
        reproducer = Reproducer(text, name, self._context, kept_flags(options))
        self.handler.reproducer = None
        with self.timer("read weights"):
            ctx = self._context()
        with self.timer("parse"):
            module = parse_module(ctx, text, name)
        if not options.disable_verify:
            with self.timer("verify"):
                check_module(module)
        self._run_passes(ctx, module, reproducer)
        self.tool.result.append(module)
        if options.schedule_view is not None:
            self._draw(ctx, module)
        with self.timer("print"):
            return self._print(ctx, module)

    def _draw(self, ctx: IrkitContext, module: ModuleOp) -> None:
        from irkit.driver.tools.schedule_views import (
            check_picture,
            host_timelines,
            planned_timelines,
            write_schedule_view,
        )

        check_picture(self.options.schedule_view)
        timelines = host_timelines(module)
        level = level_of(module)
        if not timelines and level != "schedule":
            raise UserError(
                f"--schedule-view needs a scheduled module, this is at the {level} level"
            )
        timelines = timelines or planned_timelines(module, ctx.weights)
        title = f"Schedule of {self.options.input}"
        write_schedule_view(self.options.schedule_view, timelines, title)

    def _context(self) -> IrkitContext:
        return make_context(self.options.input, self.options.allow_unregistered_dialect)

    def _run_passes(self, ctx: IrkitContext, module: ModuleOp, reproducer: Reproducer) -> None:
        pipeline = self._pipeline(module)
        self.handler.sources.add(PIPELINE, pipeline)
        passes = build_pipeline(pipeline, all_passes(self.tool.extra_passes))
        reproducer.start(passes)
        self.handler.reproducer = reproducer
        options = self.options
        verified = options.verify_each and not options.disable_verify
        with self.instruments.for_part(ctx, module, passes, self._context) as instruments:
            PipelineRunner(
                ctx=ctx,
                instruments=[*instruments, reproducer],
                timer=self.timer,
                verify=Verify.EACH_PASS if verified else Verify.NOTHING,
                place=self.handler.input_name,
            ).run(module, passes)

    def _pipeline(self, module: ModuleOp) -> str:
        options = self.options
        if options.pipeline is not None:
            return options.pipeline
        end = options.to
        device = options.device
        if end is None and self.target.name == "numba":
            end = "schedule"
            target = self._numba_target()
            device = planned_device(target, device or usual_device(target)).name
        if end is None:
            return ""
        return standard_pipeline(level_of(module), end, device, options.measure)

    def _numba_target(self) -> Literal["cpu", "cuda"]:
        return "cuda" if self.target.parameters.get("target") == ("cuda",) else "cpu"

    def _print(self, ctx: IrkitContext, module: ModuleOp) -> str:
        if self.target.name == "numba":
            from irkit.lower.task_to_numba.emit import emit_module

            try:
                return emit_module(module, ctx.weights, self._numba_target())
            except PassFailedException as error:
                raise UserError(f"emission failed: {error}", self.options.input) from None
        options = self.options
        if options.output != "-":
            self._save_weights(ctx.weights, module)
        return module_text(module, options.print_op_generic, options.print_debuginfo)

    def _save_weights(self, weights: WeightStore, module: ModuleOp) -> None:
        write_weights(self.options.output, weights, used_weights(module))

    def _write(self, text: str) -> None:
        if self.options.output == "-":
            self.tool.stdout.write(text)
            self.tool.stdout.flush()
        else:
            write_text(self.options.output, text)


def parse_target(text: str) -> ArgSpec:
    """`mlir` or `numba{target=...}`. Raises UserError."""
    try:
        spec = parse_spec(text)
    except ArgSpecParseError:
        raise UserError(f"malformed target '{text}'", "irkit-opt") from None
    if spec.name not in ("mlir", "numba"):
        hint = did_you_mean(spec.name, ("mlir", "numba"))
        raise UserError(
            f"unknown target '{spec.name}': there are mlir and numba{hint}", "irkit-opt"
        )
    unknown = set(spec.parameters) - ({"target"} if spec.name == "numba" else set[str]())
    if unknown:
        has = "'target' alone" if spec.name == "numba" else "none"
        raise UserError(
            f"target '{spec.name}' has no option '{min(unknown)}': it has {has}", "irkit-opt"
        )
    value = spec.parameters.get("target", ("cpu",))
    if value not in (("cpu",), ("cuda",)):
        raise UserError(
            f"target 'numba' expects target=cpu or target=cuda, got '{text}'", "irkit-opt"
        )
    return spec
