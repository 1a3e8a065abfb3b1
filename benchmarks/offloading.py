"""NumPy functions on a GPU: the programs of offload annotations beside CuPy, and CPU or GPU by size.

    python -m benchmarks.offloading                      on a GPU: everything
    python -m benchmarks.offloading programs --size 24   the programs, 2^24 elements or rows of as many bytes
    python -m benchmarks.offloading choice --least 10 --most 28
    python -m benchmarks.offloading --device h200 --size 10 --most 12    anywhere: times the CPU alone

`programs`: the array work of the six algorithms (Black-Scholes and haversine stand for two programs each; of
DBSCAN, PCA and TSVD it is what comes before and behind the fit, which is the library's own and no schedule).
Two clocks: `host`, NumPy arrays in and out, and `device`, between two events, arrays being on the device.
CuPy runs the same text, and a version fused by hand with `cupy.fuse`. Whole arrays are compared with NumPy's.

`choice`: the time of a call with target="auto" over the better of "cpu" and "cuda", host arrays in and out,
calls in turn; 1.05 is what may be. Arrays on the device are always computed there: `device_ms` says how fast.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, cast

import numpy as np
from scipy.special import erf

import irkit
from benchmarks import harness
from benchmarks.gpu_loops import Compiled, on_device
from benchmarks.offloaded import PROGRAMS as VECTORS
from benchmarks.offloaded import (
    black_scholes_numpy,
    black_scholes_of,
    haversine_numpy,
    haversine_of,
)
from irkit.dialects.program.builder import BuiltProgram
from irkit.driver.programs.jitted import JittedFunction
from irkit.model_info import ModelInfo
from irkit.runtime.artifact import Artifact
from irkit.runtime.cuda.executor import CudaExecutor
from irkit.runtime.mode_choice import MODES

Array = Any
Arrays = Sequence[Any]

TOLERANCE = 1e-9
"""Of the largest value of an output: sums are added in other orders."""
CHOICE = 1.05
"""How much slower than the better of CPU and GPU the choice may be."""


class _Functions:
    """CuPy's functions by the names that `offloaded` uses."""

    def __init__(self, cupy: Any) -> None:
        self._library, self.erf = cupy, _cupy_erf()
        self.asin = cupy.arcsin

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, name)


def crime_index(np: Any, population: Array, adults: Array, robberies: Array) -> Array:
    """The sum of the crime indices of cities of more than 500,000."""
    big = np.where(population > 500000, 1.0, 0.0)
    index = (population + adults * 2.0 - robberies * 2000.0) / 100000.0
    index = np.where(index > 0.02, 0.032, index)
    return (np.where(index < 0.01, 0.005, index) * big).sum()


def standardised(np: Any, x: Array) -> Array:
    """Columns of mean 0 and deviation 1, as before DBSCAN."""
    return (x - x.mean(axis=0)) / x.std(axis=0)


def projected(np: Any, x: Array, mean: Array, scale: Array, axes: Array) -> Array:
    """Standardised by what was fitted, on two axes: PCA's transform."""
    return ((x - mean) / scale) @ axes


def reduced(np: Any, x: Array, axes: Array) -> Array:
    """On two axes: TSVD's transform."""
    return x @ axes


def _columns(size: int) -> Arrays:
    rng = np.random.default_rng(2)
    return [rng.uniform(low, high, size) for low, high in ((1e5, 1e6), (1e5, 1e6), (0.0, 2e3))]


def _rows(columns: int, fitted: Sequence[tuple[int, ...]]) -> Callable[[int], Arrays]:
    def made(size: int) -> Arrays:
        rng = np.random.default_rng(columns)
        shape = max(2, size // columns), columns
        return [rng.normal(2.0, 3.0, shape), *(rng.uniform(0.5, 1.5, s) for s in fitted)]

    return made


@dataclass(frozen=True)
class Program:
    """`text` of a NumPy and arrays; `fused`, the same of CuPy's, fused by hand; `inputs` for a size."""

    text: Callable[..., Any]
    fused: Callable[[Any], Callable[..., Any]]
    inputs: Callable[[int], Arrays]


def _black_scholes(np: Any, *arrays: Array) -> Any:
    of_cupy = getattr(np, "__name__", "") == "cupy"
    return black_scholes_numpy(np, _cupy_erf() if of_cupy else erf, *arrays)


def _cupy_erf() -> Any:
    return importlib.import_module("cupyx.scipy.special").erf


def _fused_options(cupy: Any) -> Callable[..., Any]:
    functions = _Functions(cupy)

    # What is fused has as many parameters as it is called with.
    def values(price: Array, strike: Array, t: Array, rate: Array, vol: Array) -> Any:
        return black_scholes_of(functions, price, strike, t, rate, vol)

    return cupy.fuse(values)


def _fused_places(cupy: Any) -> Callable[..., Any]:
    functions = _Functions(cupy)

    def values(lat: Array, lon: Array) -> Any:
        return haversine_of(functions, lat, lon)

    return cupy.fuse(values)


def _fused_crime(cupy: Any) -> Callable[..., Any]:
    def values(population: Array, adults: Array, robberies: Array) -> Array:
        big = cupy.where(population > 500000, 1.0, 0.0)
        index = (population + adults * 2.0 - robberies * 2000.0) / 100000.0
        index = cupy.where(index > 0.02, 0.032, index)
        return cupy.sum(cupy.where(index < 0.01, 0.005, index) * big)

    return cupy.fuse(values)


def _scaled(x: Array, mean: Array, scale: Array) -> Array:
    return (x - mean) / scale


def _fused_standardised(cupy: Any) -> Callable[..., Any]:
    scaled = cupy.fuse(_scaled)

    def run(x: Array) -> Array:
        return scaled(x, x.mean(axis=0), x.std(axis=0))

    return run


def _fused_projected(cupy: Any) -> Callable[..., Any]:
    scaled = cupy.fuse(_scaled)

    def run(x: Array, mean: Array, scale: Array, axes: Array) -> Array:
        return scaled(x, mean, scale) @ axes

    return run


def _product(cupy: Any) -> Callable[..., Any]:
    def run(x: Array, axes: Array) -> Array:
        return x @ axes

    return run


PROGRAMS: dict[str, Program] = {
    "black_scholes": Program(_black_scholes, _fused_options, VECTORS["Black-Scholes"].inputs),
    "haversine": Program(haversine_numpy, _fused_places, VECTORS["haversine"].inputs),
    "crime_index": Program(crime_index, _fused_crime, _columns),
    "dbscan": Program(standardised, _fused_standardised, _rows(256, ())),
    "pca": Program(projected, _fused_projected, _rows(13, ((13,), (13,), (13, 2)))),
    "tsvd": Program(reduced, _product, _rows(512, ((512, 2),))),
}


def of_numpy(program: Program) -> Any:
    """The function of arrays."""

    def run(*arrays: Array) -> Any:
        return program.text(np, *arrays)

    return run


def outputs(found: Any) -> list[Array]:
    """Results as a list of host arrays."""
    several = cast("tuple[Any, ...]", found if isinstance(found, tuple) else (found,))
    return [np.asarray(x.get() if hasattr(x, "get") else x) for x in several]


def error(found: Any, wanted: Any) -> float:
    """The largest difference, by the largest value of the output."""
    pairs = zip(outputs(found), outputs(wanted), strict=True)
    return max(harness.largest_error(a, b) / (float(np.abs(b).max()) or 1.0) for a, b in pairs)


# The programs


def artifact_of(program: Program, given: Arrays, device: str | None) -> Artifact:
    """What is compiled for a GPU."""
    options = {
        "target": "cuda",
        "device": device,
        "mode": "auto",
        "fastmath": ("afn",),
        "cache": True,
    }
    made: list[Compiled] = []

    def lower(built: BuiltProgram) -> Compiled:
        made.append(Compiled(built, options))
        return made[-1]

    JittedFunction(of_numpy(program), lower).compile(*given)
    return made[-1].artifact


def measured(name: str, size: int, device: str | None, runs: int) -> dict[str, Any]:
    """One program: irkit's and CuPy's times, in ms, and the errors."""
    program, given = PROGRAMS[name], PROGRAMS[name].inputs(size)
    wanted = of_numpy(program)(*given)
    if device is not None:
        artifact = artifact_of(program, given, device)
        found = irkit.jit(target="cpu")(of_numpy(program))(*given)
        return {"source": len(artifact.source), "cpu error": error(found, wanted)}
    jitted = irkit.jit(target="cuda")(of_numpy(program))
    row: dict[str, Any] = {"error": error(jitted(*given), wanted)}
    calls: dict[str, Callable[[], Any]] = {"irkit": _call(jitted, given)}
    resident = {"irkit": _resident(artifact_of(program, given, None), given, runs)}
    if importlib.util.find_spec("cupy") is not None:
        cupy: Any = importlib.import_module("cupy")
        kept = [cupy.asarray(x) for x in given]
        for peer, function in _peers(cupy, program).items():
            row[f"{peer} error"] = error(function(*kept), wanted)
            resident[peer] = _cupy_resident(cupy, function, kept, runs)
            calls[peer] = _end_to_end(cupy, function, given)
    host = {n: t["median_us"] / 1e3 for n, t in harness.interleaved(calls, runs).items()}
    for clock, times in (("host", host), ("device", resident)):
        row[f"{clock}_ms"] = times
        row[f"{clock} speed-up"] = {n: t / times["irkit"] for n, t in times.items() if n != "irkit"}
    return row


def _peers(cupy: Any, program: Program) -> dict[str, Callable[..., Any]]:
    def written(*arrays: Array) -> Any:
        return program.text(cupy, *arrays)

    return {"cupy": written, "fused by hand": program.fused(cupy)}


def _call(function: Callable[..., Any], given: Arrays) -> Callable[[], Any]:
    return lambda: function(*given)


def _end_to_end(cupy: Any, function: Callable[..., Any], given: Arrays) -> Callable[[], Any]:
    return lambda: outputs(function(*(cupy.asarray(x) for x in given)))


def _resident(artifact: Artifact, given: Arrays, runs: int) -> float:
    """Milliseconds of a run on arrays of the device, in the best mode."""
    found: list[float] = []
    for mode in MODES["cuda"]:
        try:
            info = ModelInfo.from_json(artifact.info)
            executor = CudaExecutor.from_artifact(artifact, info, mode)
            kept = _bound(executor, given)
        except irkit.IrkitError:
            continue
        found.append(on_device(executor, mode, runs))
        del kept
    return min(found)


def _bound(executor: CudaExecutor, given: Arrays) -> Any:
    """Arrays on the device that launches take from now on, as long as somebody has what is returned."""
    stream = executor.stream
    executor.device.activate()
    inputs = [executor.inputs.bind(number, x, stream) for number, x in enumerate(given)]
    made = executor.new_outputs("irkit", 1, stream)
    addresses = [x.address for x in inputs] + [address for address, _ in made]
    executor.residence.bind(addresses, 16, stream)
    return inputs, made


def _cupy_resident(cupy: Any, function: Callable[..., Any], kept: Arrays, runs: int) -> float:
    """Milliseconds between two events around a call."""
    found: list[float] = []
    for _ in range(runs + 2):
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        function(*kept)
        end.record()
        end.synchronize()
        found.append(float(cupy.cuda.get_elapsed_time(start, end)))
    return median(found[2:])


# The choice


def chosen(name: str, size: int, device: str | None, runs: int) -> dict[str, Any]:
    """Times in ms of the CPU, the GPU and the choice, of which the answers are the same."""
    program, given = PROGRAMS[name], PROGRAMS[name].inputs(size)
    targets = ("cpu", "auto") if device is not None else ("cpu", "cuda", "auto")
    functions = {
        t: irkit.jit(target=t, device=None if t == "cpu" else device)(of_numpy(program))
        for t in targets
    }
    wanted = functions["cpu"](*given)
    errors = {t: error(f(*given), wanted) for t, f in functions.items()}
    calls = {t: _call(f, given) for t, f in functions.items()}
    times = {t: x["median_us"] / 1e3 for t, x in harness.interleaved(calls, runs).items()}
    best = min(times.get("cuda", times["cpu"]), times["cpu"])
    told = functions["auto"].explain().splitlines()
    row: dict[str, Any] = {}
    if device is None:
        row["device_ms"] = _resident(artifact_of(program, given, None), given, runs)
    return {
        **row,
        **times,
        "ratio": times["auto"] / best,
        "error": max(errors.values()),
        "plan": next((line for line in told if line.startswith("planned")), ""),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """The command; 1 where an answer is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "parts", nargs="*", default=["programs", "choice"], metavar="programs|choice"
    )
    parser.add_argument("--only", nargs="+", default=list(PROGRAMS), choices=list(PROGRAMS))
    parser.add_argument("--size", type=int, default=26, help="programs: 2^this elements")
    parser.add_argument("--least", type=int, default=10)
    parser.add_argument("--most", type=int, default=28)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--device", help="a GPU that is not here: nothing runs on it")
    parser.add_argument("--out", type=Path, help="a folder for offloading.json")
    options = parser.parse_args(argv)
    record: dict[str, Any] = {"programs": {}, "choice": {}}
    for name in options.only if "programs" in options.parts else ():
        row = measured(name, 1 << options.size, options.device, options.runs)
        record["programs"][name] = row
        print(name, json.dumps(row), flush=True)
    for name in options.only if "choice" in options.parts else ():
        rows = record["choice"][name] = {}
        for size in range(options.least, options.most + 1):
            # Large sizes take long, and vary less.
            runs = max(5, options.runs >> max(0, (size - 22) // 2))
            rows[size] = chosen(name, 1 << size, options.device, runs)
            worse = " <-- slower than the better one" if rows[size]["ratio"] > CHOICE else ""
            print(f"{name} 2^{size} {json.dumps(rows[size])}{worse}", flush=True)
    if options.out is not None:
        harness.write("offloading", harness.on_a_gpu(record, options.device), options.out)
    rows = [
        *record["programs"].values(),
        *(r for n in record["choice"].values() for r in n.values()),
    ]
    off = [value for row in rows for key, value in row.items() if key.endswith("error")]
    return int(not all(value <= TOLERANCE for value in off))


if __name__ == "__main__":
    sys.exit(main())
