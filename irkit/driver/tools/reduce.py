"""irkit-reduce: make a module that fails small, as mlir-reduce does."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import IO

from xdsl.dialects.builtin import ModuleOp

from irkit.context import IrkitContext
from irkit.driver.diagnostics.diagnostic import Sources, UserError
from irkit.driver.files.model_files import used_weights, write_text, write_weights
from irkit.driver.files.printing import module_text
from irkit.driver.pipelines.specification import PIPELINE, build_pipeline
from irkit.driver.pipelines.standard import LEVELS, standard_pipeline
from irkit.driver.reducing.failure import CommandFailure, FailureTest, PipelineFailure
from irkit.driver.reducing.reducer import MOST_TESTS, Reducer
from irkit.driver.registry import PassFactory, all_passes
from irkit.driver.tools.arguments import ArgumentParser, at_least
from irkit.driver.tools.error_handler import ErrorHandler
from irkit.driver.tools.loading import load_module
from irkit.driver.tools.streams import standard_error, standard_output
from irkit.interp import level_of

DESCRIPTION = """\
Make a module that fails small.

  irkit-reduce model.mlir -p 'canonicalize,fuse-elementwise' --check-semantics -o small.mlir
  irkit-reduce model.mlir --to=schedule --device=test4
  irkit-reduce model.mlir --test './interesting.sh %s'

A smaller module is kept if it fails alike: with -p or --to, if the same error comes from the same
place, or, with --check-semantics, the same pass changes the meaning; with --test, if the command ends
with the exit code, other than 0, that it ends with on the input."""


def reduce_parser(stdout: IO[str]) -> ArgumentParser:
    """The argument parser of irkit-reduce; help goes to `stdout`."""
    parser = ArgumentParser("irkit-reduce", DESCRIPTION, stdout)
    parser.add_argument("input", nargs="?", default="-", metavar="FILE", help="input; - is stdin")
    parser.add_argument(
        "-o", dest="output", default="-", metavar="FILE", help="output; - is stdout"
    )
    parser.add_argument(
        "-p",
        "--passes",
        "--pass-pipeline",
        dest="pipeline",
        metavar="PIPELINE",
        help="passes that fail on the module",
    )
    parser.add_argument("--to", choices=LEVELS, help="the standard pipeline up to a level fails")
    parser.add_argument("--device", metavar="NAME", help="the vDevice that --to plans for")
    parser.add_argument(
        "--check-semantics",
        action="store_true",
        help="a pass that changes what the module computes fails",
    )
    parser.add_argument("--seed", type=at_least(0), default=0, help="seed of random inputs (0)")
    parser.add_argument(
        "--test", metavar="COMMAND", help="a command that fails on the module; %%s is its file"
    )
    parser.add_argument(
        "--max-tests",
        type=int,
        default=MOST_TESTS,
        metavar="N",
        help=f"smaller modules to try at most ({MOST_TESTS})",
    )
    return parser


class ReduceTool:
    """One run of irkit-reduce."""

    def __init__(
        self,
        stdin: IO[str] | None = None,
        stdout: IO[str] | None = None,
        stderr: IO[str] | None = None,
        extra_passes: Mapping[str, PassFactory] | None = None,
    ) -> None:
        self.stdin = stdin or sys.stdin
        self.stdout = standard_output(stdout)
        self.stderr = standard_error(stderr)
        self.extra_passes = dict(extra_passes or {})

    def main(self, argv: Sequence[str]) -> int:
        """Run with these arguments (without the tool's name); returns the exit code."""
        handler = ErrorHandler("irkit-reduce", argv, Sources(), self.stderr)
        with handler:
            self._run(reduce_parser(self.stdout).parse_all(argv), handler)
        return handler.status

    def _run(self, options: argparse.Namespace, handler: ErrorHandler) -> None:
        if sum(o is not None for o in (options.pipeline, options.to, options.test)) != 1:
            raise UserError("give one of -p, --to and --test", "irkit-reduce")
        ctx, module = load_module(options.input, self.stdin, handler)
        test = self._test(options, ctx, module, handler)
        failure = test(module)
        if failure is None:
            raise UserError("the module does not fail: there is nothing to reduce", options.input)
        self.stderr.write(f"irkit-reduce: {failure}\n")
        reducer = Reducer(lambda m: test(m) == failure, ctx.weights, options.max_tests)
        small = reducer.reduce(module)
        sizes = [sum(1 for _ in m.walk()) for m in (module, small)]
        self.stderr.write(
            f"irkit-reduce: {sizes[0]} ops became {sizes[1]}, in {reducer.tests} tests\n"
        )
        self._write(options.output, ctx, small)

    def _test(
        self,
        options: argparse.Namespace,
        ctx: IrkitContext,
        module: ModuleOp,
        handler: ErrorHandler,
    ) -> FailureTest:
        if options.test is not None:
            return CommandFailure(options.test, ctx.weights)
        text = options.pipeline
        if text is None:
            text = standard_pipeline(level_of(module), options.to, options.device)
        handler.sources.add(PIPELINE, text)
        passes = build_pipeline(text, all_passes(self.extra_passes))
        seed = options.seed if options.check_semantics else None
        return PipelineFailure(passes, ctx.weights, seed)

    def _write(self, path: str, ctx: IrkitContext, module: ModuleOp) -> None:
        text = module_text(module)
        if path == "-":
            self.stdout.write(text)
            return
        write_weights(path, ctx.weights, used_weights(module))
        write_text(path, text)
