"""Data larger than a capped pool: irkit's chunks beside a loop over chunks that waits for each, and CuPy's.

    python -m benchmarks.paging --pool 2147483648 --times 4 8 16
    python -m benchmarks.paging --device mock --pool 4096 --times 4

Full arrays are compared with NumPy's. The clock is end to end: arrays of the host in, arrays of the host out.
Pages of inputs are locked once, before it starts, those of results in each call. `bound_s` is what the link
takes at the rate that is measured here, `one_by_one_s` the same chunks with a wait behind each task.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import harness
from irkit.dags.device import DagDevice
from irkit.dags.mock import MockDevice
from irkit.dialects.program.builder import BuiltProgram
from irkit.driver.programs.jitted import JittedFunction
from irkit.driver.programs.lowering import Runner
from irkit.driver.programs.paged import in_chunks

Array = np.ndarray[Any, Any]


def black_scholes(price: Array, strike: Array, years: Array) -> Array:
    """Calls by the logistic approximation of the normal distribution: elementwise, 3 arrays in, 1 out."""
    root = np.sqrt(years) * 0.3
    d1 = (np.log(price / strike) + years * 0.065) / root
    d2 = d1 - root
    first, second = 1 / (1 + np.exp(-1.702 * d1)), 1 / (1 + np.exp(-1.702 * d2))
    return price * first - strike * np.exp(-0.02 * years) * second


def smoothed(x: Array) -> Array:
    """Windows of three rows."""
    return (x[:-2] + 2 * x[1:-1] + x[2:]) * 0.25


def norm(x: Array) -> Array:
    """One number of all."""
    return np.sqrt((x * x).sum())


WORKS: dict[str, tuple[Callable[..., Any], int, int]] = {
    "black_scholes": (black_scholes, 3, 1),
    "smoothed": (smoothed, 1, 1),
    "norm": (norm, 1, 0),
}
"""Function, arrays in and arrays out of as many elements."""


def arguments(count: int, elements: int) -> list[Array]:
    """Random positive float64 vectors."""
    rng = np.random.default_rng(elements)
    return [rng.uniform(0.5, 2.0, elements) for _ in range(count)]


def median(call: Callable[[], object], rounds: int) -> float:
    """Seconds of a call."""
    times: list[float] = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def cupy_loop(
    function: Callable[..., Any], inputs: Sequence[Array], out: Array, chunk: int
) -> None:
    """A loop over chunks that waits for each: how data is paged without a schedule."""
    cupy: Any = import_module("cupy")
    for first in range(0, len(out), chunk):
        parts = [cupy.asarray(x[first : first + chunk]) for x in inputs]
        with np.errstate(all="ignore"):
            out[first : first + chunk] = cupy.asnumpy(function(*parts))
        cupy.cuda.Stream.null.synchronize()


def measure(name: str, pool: int, times: int, device: str, rounds: int) -> dict[str, Any]:
    """One work at one size."""
    function, count, outputs = WORKS[name]
    elements = pool * times // (8 * (count + outputs))
    inputs = arguments(count, elements)

    def opened() -> DagDevice:
        if device == "mock":
            return MockDevice(seed=times, memory=4 * pool)
        return import_module("irkit.dags.gpu").GpuDevice()

    options = {
        "target": "cuda",
        "device": "h200" if device == "mock" else None,
        "mode": "auto",
        "fastmath": ("afn",),
        "cache": True,
    }
    runners: list[Any] = []

    def lower(built: BuiltProgram) -> Runner:
        runners.append(in_chunks(built, options, pool, opened))
        return runners[-1]

    jitted = JittedFunction(function, lower)
    start = time.perf_counter()
    jitted.compile(*inputs)
    compiled = time.perf_counter() - start
    found = jitted(*inputs)
    wanted = function(*inputs)
    # Differences of prices near zero have lost digits: errors are those of the largest.
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12 * float(np.abs(wanted).max()))
    seconds = median(lambda: jitted(*inputs), rounds)
    serial = median(lambda: runners[-1].runner.run(inputs, one_by_one=True), rounds)
    report = jitted.report()
    row: dict[str, Any] = {
        "work": name,
        "pool": pool,
        "times": times,
        "chunks": [s["chunks"] for s in report["sweeps"]],
        "device_bytes": report["device_bytes"],
        "compile_s": compiled,
        "seconds": seconds,
        "one_by_one_s": serial,
        "gain": serial / seconds,
        "expected_overlap": report["expected"]["overlap"],
        "expected_gain": report["expected"]["gain"],
    }
    if device != "mock":
        row |= peers(name, inputs, report, rounds)
        row["of_bound"] = row["bound_s"] / seconds
    return row


def peers(
    name: str, inputs: Sequence[Array], report: dict[str, Any], rounds: int
) -> dict[str, Any]:
    """What the link alone takes, and CuPy's loop over chunks where it is installed."""
    moved = max(sum(s[way] for s in report["sweeps"]) for way in ("bytes_in", "bytes_out"))
    found: dict[str, Any] = {"bound_s": moved / link_rate()}
    function, _, outputs = WORKS[name]
    if find_spec("cupy") is not None and outputs and name != "smoothed":
        chunk, out = report["sweeps"][0]["chunk"], np.empty_like(inputs[0])
        found["cupy_loop_s"] = median(lambda: cupy_loop(function, inputs, out, chunk), rounds)
    return found


def link_rate(nbytes: int = 256 << 20) -> float:
    """Bytes a second from locked pages to the device."""
    gpu: Any = import_module("irkit.dags.gpu").GpuDevice()
    host = np.ones(nbytes // 8)
    first = host.ctypes.data
    gpu.pin(first, first + nbytes)
    gpu.begin()
    target, stream = gpu.allocate(nbytes), gpu.new_stream()

    def once() -> None:
        gpu.copy(target, first, nbytes, stream)
        gpu.synchronize(gpu.record(stream))

    once()
    seconds = median(once, 10)
    gpu.free(target)
    gpu.unpin(first)
    return nbytes / seconds


def main() -> None:
    """Prints a row of JSON for each work and size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pool", type=int, default=2 << 30, help="bytes on the device")
    parser.add_argument("--times", type=int, nargs="+", default=[4, 8, 16])
    parser.add_argument("--works", nargs="+", default=list(WORKS), choices=list(WORKS))
    parser.add_argument("--device", choices=("cuda", "mock"), default="cuda")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--out", type=Path, help="folder for paging.json")
    chosen = parser.parse_args()
    suites: dict[str, Any] = {}
    for name in chosen.works:
        for times in chosen.times:
            row = measure(name, chosen.pool, times, chosen.device, chosen.rounds)
            suites[f"{name}, {times} x {chosen.pool} bytes"] = row
            print(json.dumps(row), flush=True)
    if chosen.out is not None:
        name = None if chosen.device == "cuda" else chosen.device
        harness.write("paging", harness.on_a_gpu(suites, name), chosen.out)


if __name__ == "__main__":
    main()
