"""irkit-opt against xDSL's own xdsl-opt: parse, verify, `canonicalize,cse,dce`, print.

    python -m benchmarks.opt [arith] [graph] [--ops N] [--runs N] [--out FOLDER]

Both tools run in new processes, in turn, on the same file, and must print the same module. Times are of the
processor, user and system: both have one thread, and other work on the machine counts less. `arith` has
scalar ops only; `graph` is a model of irkit's ops, which xdsl-opt reads through irkit's entry point.
irkit-opt also gives every op its place in the file, checks dominance, and verifies after each pass.
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import harness

PASSES = "canonicalize,cse,dce"
PER_FUNCTION = 500
TOOLS = {
    "irkit-opt": "import sys; from irkit.cli.opt import main; main()",
    "xdsl-opt": "import sys; from xdsl.tools.xdsl_opt import main; main()",
}


def _operands(rng: random.Random, values: list[str]) -> tuple[str, str]:
    """Mostly the newest value, so that what is read once keeps what is before it alive, and a near one."""
    near = [values[-1 - int(rng.expovariate(0.3)) % len(values)] for _ in range(2)]
    return (values[-1] if rng.random() < 0.95 else near[0]), near[1]


def _arith(rng: random.Random, values: list[str], name: str) -> str:
    lhs, rhs = _operands(rng, values)
    return (
        f"{name} = arith.{rng.choice(('addi', 'subi', 'muli', 'andi', 'xori'))} {lhs}, {rhs} : i32"
    )


def _graph(rng: random.Random, values: list[str], name: str) -> str:
    kind, t = rng.random(), "tensor<4x8xf32>"
    lhs, rhs = _operands(rng, values)
    if kind < 0.4:
        return f"{name} = graph.{rng.choice(('relu', 'tanh', 'exp'))} {lhs} : ({t}) -> {t}"
    if kind < 0.5:
        return f"{name} = graph.transpose {lhs} {{permutation = array<i64: 0, 1>}} : ({t}) -> {t}"
    return f"{name} = graph.{rng.choice(('add', 'mul'))} {lhs}, {rhs} : ({t}, {t}) -> {t}"


SUITES: dict[str, tuple[str, Callable[[random.Random, list[str], str], str]]] = {
    "arith": ("i32", _arith),
    "graph": ("tensor<4x8xf32>", _graph),
}


def module(suite: str, ops: int) -> str:
    """A module of `ops` ops in functions of 500; a twentieth of them begins anew from an older value."""
    t, make = SUITES[suite]
    rng = random.Random(0)
    lines: list[str] = []
    for function in range(-(-ops // PER_FUNCTION)):
        values = ["%a", "%b"]
        lines.append(f"func.func @f{function}(%a: {t}, %b: {t}) -> {t} {{")
        for number in range(PER_FUNCTION - 2):
            lines.append(f"  {make(rng, values, f'%v{number}')}")
            values.append(f"%v{number}")
        lines += [f"  func.return {values[-1]} : {t}", "}"]
    return "\n".join(lines) + "\n"


def _run(tool: str, path: Path) -> tuple[float, str]:
    """Processor seconds of one process, and what it printed."""
    command = [sys.executable, "-W", "ignore", "-c", TOOLS[tool], str(path), "-p", PASSES]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    # Each tool spells what the module is called in its own way.
    return took, done.stdout.replace("builtin.module", "module").strip()


def compare(suite: str, ops: int, runs: int) -> dict[str, Any]:
    """Times of both tools, taken in turn; no time where they do not print the same."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"{suite}.mlir")
        path.write_text(module(suite, ops))
        printed = {tool: _run(tool, path)[1] for tool in TOOLS}
        if len(set(printed.values())) != 1:
            return {"wrong": "the tools print different modules"}
        seconds: dict[str, list[float]] = {tool: [] for tool in TOOLS}
        for _ in range(runs):
            for tool in TOOLS:
                seconds[tool].append(_run(tool, path)[0])
    found: dict[str, Any] = {tool: harness.spread(s) for tool, s in seconds.items()}
    left = next(iter(printed.values())).count("\n")
    found["ratio"] = found["irkit-opt"]["median_us"] / found["xdsl-opt"]["median_us"]
    return {"ops": ops, "lines left": left, **found}


def main(arguments: list[str] | None = None) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser("irkit-bench opt", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("suites", nargs="*", help=f"of {', '.join(SUITES)}; all by default")
    parser.add_argument("--ops", type=int, default=40_000, help="ops of the module (40 000)")
    parser.add_argument("--runs", type=int, default=5, help="processes of each tool (5)")
    parser.add_argument("--out", type=Path, default=None, help="folder for opt.json")
    options = parser.parse_args(arguments)
    unknown = [s for s in options.suites if s not in SUITES]
    if unknown:
        message = f"unknown suite '{unknown[0]}': expected {', '.join(SUITES)}"
        parser.exit(1, f"irkit-bench: error: {message}\n")
    suites: dict[str, Any] = {}
    for name in options.suites or SUITES:
        suites[name] = compare(name, options.ops, options.runs)
        harness.show(name, suites[name])
    print(harness.write("opt", {"suites": suites}, options.out))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
