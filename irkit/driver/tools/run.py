"""irkit-run: run a module on arrays, by the interpreter of a level or as a compiled program."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING

from irkit.driver.diagnostics.diagnostic import Sources, UserError
from irkit.driver.tools.arguments import ArgumentParser, at_least
from irkit.driver.tools.error_handler import ErrorHandler
from irkit.driver.tools.plugins import add_plugin_flag, load_plugins
from irkit.driver.tools.streams import standard_error, standard_output

if TYPE_CHECKING:
    from irkit.driver.execution.entry_point import EntryPoint
    from irkit.runtime.program import CompiledProgram
    from irkit.weights import Array

DESCRIPTION = """\
Run a module on arrays.

  irkit-run model.mlir --inputs in.npz --outputs out.npz --level=graph
  irkit-run model.mlir --seed=1 --level=schedule --device=test4
  irkit-run model.onnx --precision=bf16 --accuracy

--level brings the module to a level and runs it there: by that level's NumPy interpreter, or, for
numba (the default), as a compiled program. Without --inputs, inputs are drawn at random. Without
--outputs, the outputs are printed. --accuracy prints how far they are from those of strict arithmetic."""


def run_parser(stdout: IO[str]) -> ArgumentParser:
    """The argument parser of irkit-run; help goes to `stdout`."""
    parser = ArgumentParser("irkit-run", DESCRIPTION, stdout)
    parser.add_argument("input", nargs="?", default="-", metavar="FILE", help="input; - is stdin")
    parser.add_argument(
        "--inputs", metavar="FILE", help=".npz with one array per input, by name or in order"
    )
    parser.add_argument("--outputs", metavar="FILE", help="write the outputs to this .npz")
    parser.add_argument("--seed", type=at_least(0), default=0, help="seed of random inputs (0)")
    parser.add_argument(
        "--batch", type=at_least(1), help="rows of random inputs, where they are open (3)"
    )
    parser.add_argument(
        "--target", choices=("auto", "cpu", "cuda"), help="for --level=numba (the device's, or cpu)"
    )
    parser.add_argument("--device", metavar="NAME", help="the vDevice to plan for")
    parser.add_argument(
        "--measure",
        action="store_true",
        help="for --level=numba: choose rKernels by what they take on the device",
    )
    parser.add_argument(
        "--precision",
        metavar="NAME",
        help="for --level=numba: in which precision products of float32 are computed",
    )
    parser.add_argument(
        "--accuracy",
        action="store_true",
        help="report, per output, how far it is from strict arithmetic, and what overflows",
    )
    parser.add_argument(
        "--level",
        choices=("program", "graph", "tensor", "task", "schedule", "numba"),
        default="numba",
        help="where to run (numba)",
    )
    parser.add_argument(
        "--trace",
        metavar="FILE",
        help="write when each rTask ran, for Perfetto (Chrome trace JSON)",
    )
    parser.add_argument(
        "--schedule-view",
        metavar="FILE",
        help="draw the schedule, planned and measured, as .svg or .html",
    )
    parser.add_argument(
        "--trace-mode",
        choices=("serial", "per-wave", "persistent"),
        default="persistent",
        help="how the program runs while it is traced (persistent)",
    )
    add_plugin_flag(parser)
    return parser


class RunTool:
    """One run of irkit-run."""

    def __init__(
        self,
        stdin: IO[str] | None = None,
        stdout: IO[str] | None = None,
        stderr: IO[str] | None = None,
    ) -> None:
        self.stdin = stdin or sys.stdin
        self.stdout = standard_output(stdout)
        self.stderr = standard_error(stderr)

    def main(self, argv: Sequence[str]) -> int:
        """Run with these arguments (without the tool's name); returns the exit code."""
        handler = ErrorHandler("irkit-run", argv, Sources(), self.stderr)
        with handler:
            options = run_parser(self.stdout).parse_all(argv)
            load_plugins(options.plugins)
            self._run(options, handler)
        return handler.status

    def _run(self, options: argparse.Namespace, handler: ErrorHandler) -> None:
        from irkit.driver.execution.arrays import (
            BATCH,
            pick_inputs,
            random_inputs,
            read_arrays,
            write_arrays,
        )
        from irkit.driver.execution.entry_point import entry_point_of
        from irkit.driver.pipelines.lowering import bring_to_level
        from irkit.driver.tools.loading import load_module
        from irkit.interp import level_of, run_module

        self._check_options(options)
        if options.accuracy:
            return self._report_accuracy(options)
        ctx, module = load_module(options.input, self.stdin, handler)
        entry = entry_point_of(module)
        if options.inputs is None:
            self._check_batch(options, entry)
            inputs = random_inputs(entry, options.seed, options.batch or BATCH)
        else:
            inputs = pick_inputs(read_arrays(options.inputs), entry, options.inputs)
        if options.level == "numba":
            results = self._run_compiled(options, entry, inputs)
        else:
            # A scheduled module keeps the function that its schedule computes: that runs as it is.
            if (level_of(module), options.level) != ("schedule", "task"):
                bring_to_level(ctx, module, options.level, options.device, handler.reproducer)
            level = "task" if options.level == "task" else None
            results = run_module(module, ctx.weights, inputs, level)
        outputs = dict(zip(entry.output_names, results, strict=True))
        if options.outputs is not None:
            write_arrays(options.outputs, outputs)
        else:
            self._show(outputs)

    def _check_options(self, options: argparse.Namespace) -> None:
        """What cannot work is said before anything runs."""
        if options.batch is not None and (options.inputs is not None or options.accuracy):
            raise UserError(
                "--batch is of random inputs: not with --inputs, nor --accuracy", "irkit-run"
            )
        if options.schedule_view is not None:
            from irkit.driver.tools.schedule_views import check_picture

            check_picture(options.schedule_view)
        asked = options.trace is not None or options.schedule_view is not None
        if asked and options.level != "numba":
            raise UserError(
                f"--trace and --schedule-view need --level=numba, got {options.level}", "irkit-run"
            )

        if (
            asked := options.accuracy or options.precision is not None
        ) and options.level != "numba":
            raise UserError(
                f"--accuracy and --precision need --level=numba, got {options.level}", "irkit-run"
            )
        if asked and options.input == "-":
            raise UserError("--accuracy and --precision need a file, not stdin", "irkit-run")

    @staticmethod
    def _check_batch(options: argparse.Namespace, entry: EntryPoint) -> None:
        """A number of rows that is asked for, and that no input has."""
        from irkit.dialects.types import DYNAMIC

        if options.batch is None or any(DYNAMIC in t.get_shape() for t in entry.inputs):
            return
        shapes = ", ".join(map(str, entry.inputs)) or "none"
        raise UserError(
            f"--batch={options.batch} of a module without an open batch (inputs: {shapes})",
            "irkit-run",
        )

    def _report_accuracy(self, options: argparse.Namespace) -> None:
        import irkit
        from irkit.driver.execution.arrays import read_arrays

        inputs: dict[str, Array] | list[Array] | None = None
        if options.inputs is not None:
            inputs = read_arrays(options.inputs)
            if all(name.startswith("arr_") for name in inputs):
                inputs = list(inputs.values())
        report = irkit.accuracy(
            options.input,
            inputs,
            precision=options.precision,
            target=options.target or ("cpu" if options.device is None else "auto"),
            device=options.device,
            seed=options.seed,
        )
        self.stdout.write(f"{report}\n")

    def _run_compiled(
        self, options: argparse.Namespace, entry: EntryPoint, inputs: list[Array]
    ) -> list[Array]:
        """The results of the function; what is state is set before the run, and read after it."""
        if options.input == "-":
            raise UserError("--level=numba needs a file, not stdin", "irkit-run")
        import irkit

        target = options.target or ("cpu" if options.device is None else "auto")
        program = irkit.compile(
            options.input,
            target=target,
            device=options.device,
            measure=options.measure,
            precision=options.precision,
        )
        names = {pair.result: entry.input_names[pair.argument] for pair in entry.state}
        held = {pair.argument for pair in entry.state}
        program.state.update({entry.input_names[n]: inputs[n] for n in held})
        inputs = [x for n, x in enumerate(inputs) if n not in held]
        if options.trace is not None or options.schedule_view is not None:
            self._see(options, program, inputs)
        outputs = iter(program.run(inputs))
        state = program.state.arrays()
        return [
            state[names[n]] if n in names else next(outputs) for n in range(len(entry.output_names))
        ]

    def _see(
        self, options: argparse.Namespace, program: CompiledProgram, inputs: list[Array]
    ) -> None:
        from irkit.driver.tools.schedule_views import write_schedule_view, write_trace

        timelines = program.timelines(inputs, options.trace_mode)
        if options.trace is not None:
            write_trace(options.trace, timelines[1:], program.report()["seconds"])
        if options.schedule_view is not None:
            write_schedule_view(options.schedule_view, timelines, f"Schedule of {options.input}")

    def _show(self, outputs: dict[str, Array]) -> None:
        for name, array in outputs.items():
            self.stdout.write(f"{name}: {array.dtype}{list(array.shape)}\n{array}\n")
