"""The programs of `written_programs.py` under `irkit.jit` on a CPU, beside NumPy.

    python -m benchmarks.written [gemm] [vadv] [...] [--preset S] [--runs 9] [--budget 20] [--out FOLDER]

These are written anew: figures are none of npbench's (that is `benchmarks.programs --npbench`). Random
inputs, all results and all arguments compared with NumPy's afterwards; what is wrong has no time. Both take
turns in one process, which is warm: irkit has measured its modes by then, and looked at its choice again. In
each turn is a call that does not count, since OpenBLAS's threads keep their cores for a while behind a
product of NumPy's. Processor time says more than wall-clock where others work on the machine, and of it the
least, as threads that wait for a core that others have take time too.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import irkit
from benchmarks import harness
from benchmarks.written_programs import PROGRAMS, Arguments, Written
from irkit.errors import IrkitError

WARM = 26
"""Calls of irkit before those that count: it tries three modes in them, each several times, and again."""
LIMITS = {8: 1e-9, 4: 1e-4}
"""Largest difference from NumPy, over the largest of its results, by the bytes of the least exact."""


def copied(arguments: Arguments) -> Arguments:
    """The same, of arrays of their own: programs write to them."""
    return tuple(v.copy() if hasattr(v, "copy") else v for v in arguments)


def outcome(function: Callable[..., Any], arguments: Arguments) -> tuple[list[Any], float]:
    """What a call returns, and its arrays as they are then; the seconds that the call alone took."""
    start = time.perf_counter()
    returned: Any = function(*arguments)
    seconds = time.perf_counter() - start
    made: Arguments = returned if isinstance(returned, tuple) else (returned,)  # pyright: ignore
    return [np.asarray(v) for v in (*made, *arguments) if hasattr(v, "dtype")], seconds


def difference(got: Sequence[Any], want: Sequence[Any]) -> float:
    """Largest difference, over the largest of the results; infinite where shapes or NaN differ."""
    if [(g.shape, g.dtype) for g in got] != [(w.shape, w.dtype) for w in want]:
        return math.inf
    worst = 0.0
    for g, w in zip(got, want, strict=True):
        if not (np.isfinite(g) == np.isfinite(w)).all():
            return math.inf
        finite = np.isfinite(w)
        largest = float(np.abs(w[finite]).max(initial=0))
        off = float(np.abs(g[finite] - w[finite]).max(initial=0))
        worst = max(worst, off / largest if largest else off)
    return worst


def limit(want: Sequence[Any]) -> float:
    """What `difference` may be."""
    single = any(str(w.dtype) == "float32" for w in want)
    return LIMITS[4 if single else 8]


def written_program(known: Written, preset: str, runs: int, budget: float) -> dict[str, Any]:
    """One program: whether irkit is right, and both times."""
    arguments = known.arguments(np.random.default_rng(0), *known.presets[preset])
    program = irkit.jit(target="cpu")(known.function)
    want, _ = outcome(known.function, copied(arguments))
    try:
        got, first_s = outcome(program, copied(arguments))
    except IrkitError as refusal:
        return {"irkit": f"refused: {str(refusal).splitlines()[0][:200]}"}
    off = difference(got, want)
    found: dict[str, Any] = {"compile_s": first_s, "max_error": off}
    if off > limit(want):
        return {**found, "irkit": {"wrong": off}}
    candidates = {"NumPy": known.function, "irkit": program}
    walls: dict[str, list[float]] = {name: [] for name in candidates}
    used: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(WARM):
        outcome(program, copied(arguments))
    begin = time.perf_counter()
    for number in range(runs + 2):
        if number >= 5 and time.perf_counter() - begin > budget:
            break
        for name, function in candidates.items():
            function(*copied(arguments))
            given = copied(arguments)
            wall, processor = time.perf_counter(), time.process_time()
            function(*given)
            if number >= 2:
                walls[name].append(time.perf_counter() - wall)
                used[name].append(time.process_time() - processor)
    for name in candidates:
        found[name] = {**harness.spread(walls[name]), "processor_us": min(used[name]) * 1e6}
    wall_us, processor_us = (
        [found[name][key] for name in candidates] for key in ("median_us", "processor_us")
    )
    found["irkit, times NumPy"] = wall_us[0] / wall_us[1]
    found["irkit, times NumPy, of processor time"] = processor_us[0] / processor_us[1]
    return found


def means(suites: dict[str, Any]) -> dict[str, float]:
    """Over the programs that are right: how many, and mean and least of processor time's ratios."""
    key = "irkit, times NumPy, of processor time"
    ratios: list[float] = [found[key] for found in suites.values() if key in found]
    shown = {"programs right": float(len(ratios)), "programs tried": float(len(suites))}
    if not ratios:
        return shown
    mean = math.exp(sum(math.log(r) for r in ratios) / len(ratios))
    return {**shown, "times NumPy": mean, "times NumPy at least": min(ratios)}


def main(arguments: list[str] | None = None) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(
        "irkit-bench written", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("programs", nargs="*", help=f"of {', '.join(PROGRAMS)}; all by default")
    parser.add_argument("--preset", choices=["S", "M"], default="M", help="size; M by default")
    parser.add_argument("--runs", type=int, default=9, help="of each; 9 by default")
    parser.add_argument(
        "--budget", type=float, default=20.0, help="seconds for one; 3 runs at least"
    )
    parser.add_argument("--out", type=Path, default=None, help="folder for written.json")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.programs if name not in PROGRAMS]
    if unknown:
        message = f"unknown program '{unknown[0]}': expected {', '.join(PROGRAMS)}"
        parser.exit(1, f"irkit-bench: error: {message}\n")
    suites: dict[str, Any] = {}
    for name in options.programs or PROGRAMS:
        suites[name] = written_program(PROGRAMS[name], options.preset, options.runs, options.budget)
        harness.show(name, suites[name])
    suites["geometric means"] = means(suites)
    harness.show("geometric means", suites["geometric means"])
    print(harness.write("written", {"suites": suites}, options.out))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
