"""What all suites share: timing, machine facts, result files, the rendered page."""

from __future__ import annotations

import importlib
import json
import os
import platform
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np

RESULTS = Path(__file__).parent / "results"


def spread(seconds: list[float]) -> dict[str, float]:
    """Median and 10th and 90th percentile, in microseconds."""
    p10, p50, p90 = np.percentile(np.array(seconds) * 1e6, [10, 50, 90])
    return {
        "median_us": float(p50),
        "p10_us": float(p10),
        "p90_us": float(p90),
        "runs": len(seconds),
    }


def timed(
    f: Callable[[], Any], runs: int = 50, warm: int = 5, budget: float = 20.0
) -> dict[str, float]:
    """Wall-clock times of `f`, warm; at least 20 runs unless they take longer than `budget` seconds."""
    for _ in range(warm):
        f()
    seconds: list[float] = []
    until = time.perf_counter() + budget
    while len(seconds) < runs and (len(seconds) < 3 or time.perf_counter() < until):
        start = time.perf_counter()
        f()
        seconds.append(time.perf_counter() - start)
    return spread(seconds)


def interleaved(
    candidates: dict[str, Callable[[], Any]],
    runs: int = 30,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, dict[str, float]]:
    """Times of several candidates taken in turn, so that a noisy machine is noisy for all. Each round has an
    order of its own: what ran before leaves caches warm and threads awake for one, and cold for another."""
    for f in candidates.values():
        f()
        f()
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    orders = random.Random(0)
    for _ in range(runs):
        for name in orders.sample([*candidates], len(candidates)):
            start = clock()
            candidates[name]()
            seconds[name].append(clock() - start)
    return {name: spread(s) for name, s in seconds.items()}


def in_blocks(
    candidates: dict[str, Callable[[], Any]],
    blocks: int = 5,
    calls: int = 8,
    pause: float = 0.3,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, dict[str, float]]:
    """Times of candidates that take turns block by block, after a call that warms the caches.

    For candidates whose threads spin after a call, on the cores that the next would use: between two
    blocks there are `pause` seconds.
    """
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(blocks):
        for name, run in candidates.items():
            time.sleep(pause)
            run()
            for _ in range(calls):
                start = clock()
                run()
                seconds[name].append(clock() - start)
    return {name: spread(s) for name, s in seconds.items()}


def peer(name: str) -> Any:
    """A module of another library; most of them state no types. Raises ImportError."""
    return importlib.import_module(name)


def largest_error(got: Any, want: Any) -> float:
    """Largest absolute difference; infinite where the shapes differ or only one is finite."""
    kind = np.complex128 if np.iscomplexobj(got) or np.iscomplexobj(want) else np.float64
    got, want = np.asarray(got, kind), np.asarray(want, kind)
    if got.shape != want.shape:
        return float("inf")
    off = float(np.abs(got - want).max())
    return off if np.isfinite(off) else float("inf")


def gated(off: float, limit: float, measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `measure` finds, beside the error; of an answer off by more than `limit`, no times."""
    return {"max error": off, **measure()} if off <= limit else {"wrong": off}


# Parts of a result that are for the reader of the JSON file only.
DETAILS = ("report", "rkernels", "modes", "measured in")


def show(name: str, found: dict[str, Any]) -> None:
    """A few lines for a person."""
    print(f"== {name}")
    for key, value in found.items():
        if key in DETAILS:
            continue
        if not isinstance(value, dict):
            print(f"  {key:36} {f'{value:12.4g}' if isinstance(value, float) else value}")
        elif "median_us" in value:
            _show_times(key, cast("dict[str, Any]", value))
        else:
            show(f"{name}: {key}", cast("dict[str, Any]", value))


def _show_times(name: str, times: dict[str, Any]) -> None:
    rate = f" {times['M rows/s']:8.1f} M rows/s" if "M rows/s" in times else ""
    off = times.get("error", times.get("max error"))
    shown = f" error {off:.1e}" if off is not None else ""
    print(f"  {name:36} {times['median_us']:12.1f} us{rate}{shown}")


def machine() -> dict[str, Any]:
    """CPU, cores, Python and the versions of what takes part."""
    from importlib import metadata

    names = ("numba", "numba-cuda", "numpy", "scikit-learn", "lightgbm", "xgboost-cpu", "xdsl")
    names += ("onnxruntime", "torch", "hummingbird-ml", "nvforest-cu13")
    versions: dict[str, str] = {}
    for name in names:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return {
        "cpu": _cpu_name(),
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "versions": versions,
    }


def _cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def commit() -> str:
    """The commit that was measured, marked if code was changed since; "unknown" outside a checkout."""
    found, changes = (
        _git("rev-parse", "--short", "HEAD"),
        _git("status", "--porcelain", "--", "irkit", "benchmarks/*.py"),
    )
    return found + (" with changes" if changes else "") if found else "unknown"


def _git(*arguments: str) -> str:
    try:
        found = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return found.stdout.strip()


def on_a_gpu(suites: dict[str, Any], name: str | None = None) -> dict[str, Any]:
    """Suites that ran on the GPU at hand, for `write`; or on one by name. Raises DeviceError where there is
    none."""
    from irkit.runtime.cuda.driver import device

    return {"device": name or device(0).name, "suites": suites}


def gpu_folder(device: str) -> str:
    """The folder of results of a GPU: "NVIDIA H100 80GB HBM3" has "h100", no GPU has ""."""
    found = re.search(r"NVIDIA (?:GeForce )?((?:RTX |GTX )?\S+)", device)
    return found[1].lower().replace(" ", "") if found else ""


def _home(results: dict[str, Any]) -> Path:
    """Where results lie by default: those of a GPU in a folder of their own."""
    return RESULTS / gpu_folder(str(results.get("device", "")))


def update(name: str, results: dict[str, Any], folder: Path | None = None) -> Path:
    """`write`, beside the suites that the file has of earlier runs on the same device."""
    kept = _before(name, results, folder)
    new = {suite: _dated(found) for suite, found in results["suites"].items()}
    return write(name, {**results, "suites": {**kept, **new}}, folder)


def update_cases(name: str, results: dict[str, Any], folder: Path | None = None) -> Path:
    """`update`, case by case: beside the cases that each of its suites has of earlier runs."""
    kept = _before(name, results, folder)
    new = {
        suite: {**kept.get(suite, {}), **{case: _dated(facts) for case, facts in cases.items()}}
        for suite, cases in results["suites"].items()
    }
    return write(name, {**results, "suites": {**kept, **new}}, folder)


def _before(name: str, results: dict[str, Any], folder: Path | None) -> dict[str, Any]:
    """The suites of earlier runs on the same device."""
    path = (folder or _home(results)) / f"{name}.json"
    before: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return before["suites"] if before.get("device") == results.get("device") else {}


def _dated(found: dict[str, Any]) -> dict[str, Any]:
    return {**found, "measured in": {"date": time.strftime("%Y-%m-%d"), "commit": commit()}}


def write(
    name: str, results: dict[str, Any], folder: Path | None = None, module: str | None = None
) -> Path:
    """Write a suite's results as JSON, with the command and the machine; those of a GPU to its folder.
    `module`: which of `benchmarks` was run, where it is not that of the suite's name."""
    folder = folder or _home(results)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    facts = {
        "suite": name,
        "command": "python " + " ".join(["-m", f"benchmarks.{module or name}", *sys.argv[1:]]),
        "date": time.strftime("%Y-%m-%d"),
        "commit": commit(),
        "machine": machine(),
    }
    path.write_text(json.dumps({**facts, **results}, indent=1) + "\n")
    return path
