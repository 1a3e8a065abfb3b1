"""Programs of NumPy on two threads of a CPU: Black-Scholes, haversine and npbench's, beside their peers.

    python -m benchmarks.programs [Black-Scholes] [haversine] [jacobi_2d] [...] [--npbench PATH]
        [--preset M] [--datatype float32] [--sizes 20 22 24 26] [--runs 30] [--budget 60] [--out FOLDER]

Random inputs, whole arrays compared with NumPy's; who is wrong has no time. All candidates take turns in one
process, which is warm: irkit has tried its modes. Wall-clock times, and beside them processor time, which
says more where others work on the machine. npbench is not part of this repository: without --npbench PATH (a
checkout), or an installed one, its programs are left out, and the page says so.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import irkit
from benchmarks import harness, npbench_programs, offloaded
from benchmarks.npbench_programs import NpbenchError
from irkit.errors import IrkitError

ERRORS = {"float64": 1e-9, "float32": 1e-4}
"""Largest difference from NumPy, over the largest of its results, by the type of the least exact of them."""
DEVICE = "cpu2"
REFUSALS = (IrkitError, TypeError, ValueError)
"""What a program that is not compiled is refused with."""
WARM = 12
"""Calls before any is timed: `auto` tries its modes on the first."""
Call = Callable[[], Any]


def error(got: Any, want: Any) -> float:
    """The largest difference of any result, over that result's largest element."""
    results, wanted = (r if isinstance(r, tuple | list) else [r] for r in (got, want))
    if len(results) != len(wanted):
        return math.inf
    scales = [max(float(np.abs(w).max(initial=0)), 1e-300) for w in wanted]
    pairs = zip(results, wanted, scales, strict=True)
    return max((harness.largest_error(g, w) / scale for g, w, scale in pairs), default=0.0)


def limit(want: Any) -> float:
    """How far from `want` an answer may be."""
    results = want if isinstance(want, tuple | list) else [want]
    return max(ERRORS.get(str(np.asarray(w).dtype), ERRORS["float64"]) for w in results)


def turns(
    calls: dict[str, Callable[[], Call]], runs: int, budget: float = math.inf
) -> dict[str, dict[str, float]]:
    """Times of candidates in turn; `calls` makes each run anew, which is not timed. Five runs at least, fewer
    than `runs` where they take more than `budget` seconds together; one alone, the first, of a candidate that
    takes more than that by itself."""
    wall: dict[str, list[float]] = {name: [] for name in calls}
    processor: dict[str, list[float]] = {name: [] for name in calls}
    begin = time.perf_counter()
    slow: set[str] = set()
    for number in range(runs + 2):
        if number >= min(runs, 5) + 2 and time.perf_counter() - begin > budget:
            break
        for name in [n for n in calls if n not in slow]:
            run = calls[name]()
            start, used = time.perf_counter(), time.process_time()
            run()
            taken = time.perf_counter() - start
            if number == 0 and 0 < budget < taken:
                slow.add(name)
            if number >= 2 or name in slow:
                wall[name].append(taken)
                processor[name].append(time.process_time() - used)
        if slow and number == 0:
            begin = time.perf_counter()
    return {
        name: {**harness.spread(s), "processor_us": float(np.median(processor[name]) * 1e6)}
        for name, s in wall.items()
    }


def against_numpy(found: dict[str, Any]) -> dict[str, Any]:
    """How many times as fast as NumPy each is, and irkit beside the best of the others."""
    times = {name: t["median_us"] for name, t in found.items() if "median_us" in t}
    ratios = {
        f"{name}, times NumPy": times["NumPy"] / t for name, t in times.items() if name != "NumPy"
    }
    if "irkit" in times:
        used = [found[name]["processor_us"] for name in ("NumPy", "irkit")]
        ratios["irkit, times NumPy, of processor time"] = used[0] / max(used[1], 1e-3)
    others = [t for name, t in times.items() if name not in ("irkit", "NumPy")]
    if "irkit" in times and others:
        ratios["irkit, times the best peer"] = min(others) / times["irkit"]
    return {**found, **ratios}


def offloaded_program(name: str, sizes: list[int], runs: int) -> dict[str, Any]:
    """One program of `offloaded` at several sizes."""
    known = offloaded.PROGRAMS[name]
    return {f"2^{size}": _at_size(known, 1 << size, runs) for size in sizes}


def _at_size(known: offloaded.Offloaded, size: int, runs: int) -> dict[str, Any]:
    arrays = known.inputs(size)
    want = known.by_numpy(*arrays)
    calls: dict[str, Call] = {"NumPy": lambda: known.by_numpy(*arrays)}
    program = offloaded.compiled(known, arrays, DEVICE)
    for _ in range(WARM):
        program(*arrays)
    calls["irkit"] = lambda: program(*arrays)
    found: dict[str, Any] = {}
    for peer, make in offloaded.PEERS.items():
        try:
            calls[peer] = make(known, arrays)
        except ImportError as reason:
            found[peer] = f"left out: {reason}"
    for who in [c for c in calls if c != "NumPy"]:
        off = error(calls[who](), want)
        if off > limit(want):
            found[who] = {"wrong": off}
            del calls[who]
    found.update(turns({who: lambda run=run: run for who, run in calls.items()}, runs))
    return against_numpy(found)


def npbench_program(root: Path, name: str, options: argparse.Namespace) -> dict[str, Any]:
    """One program of npbench: NumPy, Numba's parallel version where it has one, and `irkit.jit`."""
    known = npbench_programs.program(root, name)
    values = known.inputs(options.preset, options.datatype)
    functions: dict[str, Callable[..., Any]] = {"NumPy": known.function("numpy")}
    found: dict[str, Any] = {}
    for who, make in (("Numba parallel", _by_numba), ("irkit", _by_irkit)):
        try:
            functions[who] = make(known)
        except NpbenchError as reason:
            found[who] = f"left out: {reason}"
    arguments = known.arguments(values)
    want = known.results(functions["NumPy"](*arguments), arguments)
    for who in [f for f in functions if f != "NumPy"]:
        # A peer may fail in ways of its own.
        errors = REFUSALS if who == "irkit" else (Exception,)
        reason = _why_not(known, values, functions[who], want, errors)
        if reason is not None:
            found[who] = reason
            del functions[who]

    def prepared(function: Callable[..., Any]) -> Call:
        given = known.arguments(values)
        return lambda: function(*given)

    for _ in range(WARM if "irkit" in functions else 0):
        prepared(functions["irkit"])()
    calls = {who: lambda f=f: prepared(f) for who, f in functions.items()}
    return against_numpy({**found, **turns(calls, options.runs, options.budget)})


def _by_numba(known: npbench_programs.Program) -> Callable[..., Any]:
    return known.function("numba_np")


def _by_irkit(known: npbench_programs.Program) -> Callable[..., Any]:
    """npbench's NumPy source as it stands, under `irkit.jit`."""
    return irkit.jit(known.function("numpy"))


def _why_not(
    known: npbench_programs.Program,
    values: dict[str, Any],
    function: Callable[..., Any],
    want: Any,
    errors: tuple[type[Exception], ...] = REFUSALS,
) -> Any:
    """Why a candidate has no time: it refuses the program, or is wrong; None if it is right."""
    given = known.arguments(values)
    try:
        got = known.results(function(*given), given)
    except errors as refusal:
        return f"refused: {str(refusal).splitlines()[0][:200]}"
    off = error(got, want)
    # What is computed of float32 may be stored as float64.
    arrays = [v for v in values.values() if isinstance(v, np.ndarray)]
    right = off <= limit([*want, *arrays]) or _as_near_as(known, values, got, want)
    return None if right else {"wrong": off}


def _as_near_as(
    known: npbench_programs.Program, values: dict[str, Any], got: Any, want: Any
) -> bool:
    """Whether, of a program that float32 computes badly (vadv), `got` is as near to float64 as NumPy's
    `want` is."""
    if not any(str(np.asarray(w).dtype) == "float32" for w in want):
        return False
    wide = {name: _as_double(value) for name, value in values.items()}
    given = known.arguments(wide)
    exact = known.results(known.function("numpy")(*given), given)
    return error(got, exact) <= error(want, exact)


def _as_double(value: Any) -> Any:
    return value.astype(np.float64) if getattr(value, "dtype", None) == np.float32 else value


def means(suites: dict[str, Any]) -> dict[str, float]:
    """Geometric means over npbench's programs that irkit runs, and how many those are."""
    found = [suites[n] for n in npbench_programs.NAMES if n in suites]
    ratios = [f["irkit, times NumPy"] for f in found if "irkit, times NumPy" in f]
    pairs = [f["irkit, times the best peer"] for f in found if "irkit, times the best peer" in f]
    shown = {"programs right": float(len(ratios)), "programs tried": float(len(found))}
    for name, values in (("times NumPy", ratios), ("times Numba parallel", pairs)):
        if values:
            shown[name] = math.exp(sum(map(math.log, values)) / len(values))
    return shown


def main(arguments: list[str] | None = None) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(
        "irkit-bench programs", description=(__doc__ or "").split("\n")[0]
    )
    known = (*offloaded.PROGRAMS, *npbench_programs.NAMES)
    parser.add_argument("suites", nargs="*", help=f"of {', '.join(known)}; all by default")
    parser.add_argument("--npbench", type=Path, default=None, help="a checkout of npbench")
    parser.add_argument("--preset", default="M", help="npbench's size: S, M, L or paper")
    parser.add_argument("--datatype", default=None, help="of npbench's floats; its own by default")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds for one of npbench's")
    parser.add_argument(
        "--sizes", nargs="+", type=int, default=[20, 22, 24, 26], help="as powers of two"
    )
    parser.add_argument("--runs", type=int, default=30, help="of each candidate; 30 by default")
    parser.add_argument(
        "--out", type=Path, default=None, help="folder for programs.json and npbench.json"
    )
    options = parser.parse_args(arguments)
    unknown = [s for s in options.suites if s not in known]
    if unknown:
        message = f"unknown program '{unknown[0]}': expected {', '.join(known)}"
        parser.exit(1, f"irkit-bench: error: {message}\n")
    wanted, suites = options.suites or known, dict[str, Any]()
    for name in wanted:
        if name in offloaded.PROGRAMS:
            suites[name] = offloaded_program(name, options.sizes, options.runs)
            harness.show(name, suites[name])
    if suites:
        print(harness.write("programs", {"suites": suites}, options.out))
    found = _npbench([n for n in wanted if n in npbench_programs.NAMES], options)
    if found:
        print(harness.write("npbench", {"suites": found}, options.out, "programs"))
    return 0


def _npbench(names: list[str], options: argparse.Namespace) -> dict[str, Any]:
    """The programs of npbench, or why there are none."""
    if not names:
        return {}
    try:
        root = npbench_programs.find(options.npbench)
    except NpbenchError as reason:
        print(reason)
        return {"npbench": {"left out": str(reason)}}
    suites: dict[str, Any] = {}
    for name in names:
        try:
            suites[name] = npbench_program(root, name, options)
        except NpbenchError as reason:
            suites[name] = {"left out": str(reason)}
        harness.show(name, suites[name])
    return {**suites, "npbench, geometric means": means(suites)}


if __name__ == "__main__":
    raise SystemExit(main())
