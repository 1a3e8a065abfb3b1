"""irkit-bench: the benchmark suites of the repository."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

USAGE = """\
usage: irkit-bench cpu [forest] [one_row] [compile_time] [networks] [--out FOLDER]
       irkit-bench gpu [w6] [forest] [networks] [--out FOLDER]
       irkit-bench light [light_resnet50] [light_squeezenet] [light_bvlc_alexnet] [--out FOLDER]
       irkit-bench opt [arith] [graph] [--ops N] [--runs N] [--out FOLDER]
       irkit-bench networks [functions] [NETWORK ...] [--threads 1 2] [--quick] [--no-compile]
                            [--no-batches] [--out FOLDER]
       irkit-bench nvforest [--out FOLDER]
       irkit-bench quantised [light_resnet50] [light_squeezenet] [--target cpu|cuda] [--out FOLDER]
       irkit-bench workloads [SET] [W1] [LSTM@16] [ResNet-50@16:bf16] [...] [--out FOLDER]
       irkit-bench programs [PROGRAM ...] [--npbench PATH] [--preset M] [--sizes 20 22 24 26]
                            [--runs 30] [--out FOLDER]
       irkit-bench operators [NAME ...] [--rows 1000000] [--one-thread] [--runs N] [--out FOLDER]
       irkit-bench pipelines [NAME ...] [--rows 1000 10000] [--one-thread] [--runs N] [--out FOLDER]
       irkit-bench pushdown [NAME ...] [--rows 34465] [--runs N] [--out FOLDER]
       irkit-bench texts [NAME ...] [--rows 1000 10000] [--one-thread] [--runs N] [--out FOLDER]
       irkit-bench products [CASE ...] [--device NAME] [--out FOLDER]
       irkit-bench attention [CASE ...] [--device NAME] [--out FOLDER]
       irkit-bench memory [--seconds 10] [--curve BLOCKS] [--out FOLDER]
       irkit-bench training [--only CNN LSTM] [--steps 50] [--batch N] [--blocks 5] [--no-compile]
                            [--out FOLDER]
       irkit-bench all [PART ...] [--seconds N] [--out FOLDER]
       irkit-bench calibrate [--device cpu|cuda|NAME] [--out FILE]
       irkit-bench costs [NETWORK ...] [--device cpu|cuda|NAME] [--calibrate] [--out FOLDER]
       irkit-bench render

Runs the benchmark suites, peers side by side in one run, and writes benchmarks/results/*.json, those of a
GPU to a folder of its own there; `render` turns them into benchmarks/results/README.md. `all` runs every
suite of a GPU within a time, and renders. `calibrate` finds the rates of the machine at hand,
from which costs are computed, and keeps them in the user's configuration folder; `costs` holds estimates of
the benchmark networks against measurements. Run it in the root of irkit's repository.
"""
COMMANDS = {
    "all": "all",
    "attention": "attention",
    "calibrate": "calibrate",
    "costs": "costs",
    "cpu": "cpu",
    "gpu": "gpu",
    "light": "light",
    "memory": "memory",
    "networks": "networks",
    "opt": "opt",
    "nvforest": "gpu_nvforest",
    "operators": "operators",
    "pipelines": "pipelines",
    "products": "products",
    "programs": "programs",
    "pushdown": "pushdown",
    "quantised": "quantised",
    "render": "render",
    "texts": "texts",
    "training": "training",
    "workloads": "workloads",
}


def _help() -> int:
    """Print the usage; the exit code: 1 where there is no room for it, and none where nobody reads on."""
    try:
        print(USAGE, end="", flush=True)
    except BrokenPipeError:
        found = 0
    except OSError as error:
        print(f"irkit-bench: error: cannot write the output: {error.strerror}", file=sys.stderr)
        found = 1
    else:
        return 0
    # What is still buffered must not raise again at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return found


def main() -> None:
    """Entry point of the `irkit-bench` script."""
    arguments = sys.argv[1:]
    if not arguments:
        print(USAGE, end="", file=sys.stderr)
        sys.exit(1)
    if arguments[0] in ("-h", "--help"):
        sys.exit(_help())
    if arguments[0] not in COMMANDS:
        known = ", ".join(COMMANDS)
        print(
            f"irkit-bench: error: unknown suite '{arguments[0]}': expected {known}", file=sys.stderr
        )
        sys.exit(1)
    if not Path("benchmarks", "harness.py").exists():
        print(
            "irkit-bench: error: no benchmarks/ here: run it in irkit's repository", file=sys.stderr
        )
        sys.exit(1)
    sys.path.insert(0, str(Path.cwd()))
    name = COMMANDS[arguments[0]]
    sys.argv = [f"benchmarks.{name}", *arguments[1:]]
    try:
        module = importlib.import_module(f"benchmarks.{name}")
    except ImportError as problem:
        print(f"irkit-bench: error: {problem}", file=sys.stderr)
        sys.exit(1)
    sys.exit(module.main())


if __name__ == "__main__":
    main()
