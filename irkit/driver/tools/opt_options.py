"""The flags of irkit-opt. Where mlir-opt has a flag, irkit-opt takes its name too."""

from __future__ import annotations

import argparse
from typing import IO

from irkit.driver.tools.arguments import ArgumentParser, at_least
from irkit.driver.tools.plugins import add_plugin_flag

DESCRIPTION = """\
Read a module, run passes on it, print it.

  irkit-opt model.mlir -p 'canonicalize,convert-graph-to-tensor'
  irkit-opt model.mlir --to=schedule --device=test4 -o scheduled.mlir
  irkit-opt model.mlir -t numba{target=cpu}

The weights beside the input (model.safetensors for model.mlir) are read when a pass needs them and
written beside the output. Everything but the result goes to stderr.
Exit code 0: fine; 1: an error in the input or the arguments; 2: an error in irkit."""


def opt_parser(stdout: IO[str]) -> ArgumentParser:
    """The argument parser of irkit-opt; help goes to `stdout`."""
    parser = ArgumentParser("irkit-opt", DESCRIPTION, stdout)
    parser.add_argument(
        "input", nargs="?", default="-", metavar="FILE", help="input; - or none is stdin"
    )
    parser.add_argument(
        "-o", dest="output", default="-", metavar="FILE", help="output; - is stdout"
    )
    add_plugin_flag(parser)
    _add_pipeline(parser)
    _add_checks(parser)
    _add_printing(parser)
    _add_information(parser)
    return parser


def _add_pipeline(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what to run")
    group.add_argument(
        "-p",
        "--passes",
        "--pass-pipeline",
        dest="pipeline",
        metavar="PIPELINE",
        help="passes in order, such as 'a,b{x=1}'",
    )
    group.add_argument(
        "--to",
        choices=("graph", "tensor", "task", "schedule"),
        help="run the standard pipeline up to a level",
    )
    group.add_argument("--device", metavar="NAME", help="the vDevice that --to and -t plan for")
    group.add_argument(
        "--measure",
        action="store_true",
        help="--to and -t choose rKernels by what they take on the device, which has to be at hand",
    )
    group.add_argument(
        "-t",
        "--target",
        default="mlir",
        metavar="TARGET",
        help="what to print: mlir (default), numba{target=cpu} or numba{target=cuda}",
    )


def _add_checks(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("checks")
    flag = "store_true"
    group.add_argument(
        "--verify-each",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="verify after each pass (default)",
    )
    group.add_argument("--disable-verify", action=flag, help="verify nothing, not even the input")
    group.add_argument(
        "--check-semantics",
        action=flag,
        help="run the module on random inputs before and after each pass; name the first pass that "
        "changes a value",
    )
    group.add_argument("--seed", type=at_least(0), default=0, help="seed of those inputs (0)")
    group.add_argument(
        "--verify-roundtrip",
        action=flag,
        help="print and re-read the input, and what each pass leaves, in both forms; compare",
    )
    group.add_argument(
        "--cross-check",
        action=flag,
        help="send the module, before and after each pass, through mlir-opt if it is installed",
    )
    group.add_argument(
        "--verify-diagnostics",
        action=flag,
        help="compare diagnostics with 'expected-error@+1 {{...}}' comments",
    )
    group.add_argument(
        "--split-input-file",
        action=flag,
        help="treat parts between '// -----' as files of their own",
    )
    group.add_argument(
        "--allow-unregistered-dialect", action=flag, help="accept ops of unknown dialects"
    )


def _add_printing(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("printing")

    def flag(name: str, text: str) -> None:
        group.add_argument(
            f"--{name}",
            f"--mlir-{name}",
            dest=name.replace("-", "_"),
            action="store_true",
            help=text,
        )

    flag("print-op-generic", "print every op in generic form")
    flag("print-debuginfo", "print source locations")
    flag("print-ir-before-all", "print the module before each pass, to stderr")
    flag("print-ir-after-all", "print the module after each pass, to stderr")
    flag("print-ir-after-change", "print the module after each pass that changed it, to stderr")
    flag("print-ir-after-failure", "print the module after a pass that failed, to stderr")
    flag("print-ir-diff", "print what each pass changed as a unified diff, to stderr")
    flag("timing", "print a table of times to stderr")
    group.add_argument(
        "--print-ir-tree-dir",
        "--mlir-print-ir-tree-dir",
        dest="tree_dir",
        metavar="DIR",
        help="write what --print-ir-* prints to files in DIR, numbered by pass (after each pass by "
        "default)",
    )

    group.add_argument(
        "--remarks",
        metavar="KINDS",
        help="say which patterns did not apply where and why, which did: missed, applied or both",
    )
    group.add_argument(
        "--remarks-filter", metavar="REGEX", default="", help="only remarks of this pass/pattern"
    )
    flag("statistics", "print how often each pattern matched, applied and did not, to stderr")
    group.add_argument(
        "--report", metavar="FILE", help="write times, statistics and remarks as JSON"
    )
    group.add_argument(
        "--schedule-view", metavar="FILE", help="draw the planned schedule as .svg or .html"
    )
    group.add_argument(
        "--html",
        metavar="FILE",
        help="write a page that steps through the passes, before and after",
    )


def _add_information(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("information")
    group.add_argument("--list-passes", action="store_true", help="print every pass and stop")
    group.add_argument("--list-dialects", action="store_true", help="print every dialect and stop")
    group.add_argument(
        "--emit-irdl", action="store_true", help="print irkit's dialects as IRDL and stop"
    )
    group.add_argument("--explain-pass", metavar="NAME", help="print what a pass does and stop")
