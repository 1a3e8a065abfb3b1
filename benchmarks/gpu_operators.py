"""Single operators on a GPU, device to device: irkit beside Hummingbird on PyTorch's CUDA.

    python -m benchmarks.gpu_operators [NAME ...] [--rows 1000000] [--runs 20] [--out FOLDER]

Operators and shape are those of `benchmarks.operators`, rows are of float32 and lie on the device. The first
rows' answers are checked against scikit-learn's; what is wrong has no time. Needs PyTorch with CUDA;
Hummingbird where there is one: with `torch` and with `torch.jit`, the faster of which counts.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import harness
from benchmarks.operator_peers import BACKENDS, METHODS, TOLERANCE
from benchmarks.operators import COLUMNS, OPERATORS

CHECKED = 2_000
_TRIED = 40
"""Calls of a size before it is measured: the first ones choose a mode."""


def _off(got: Any, want: Any) -> float:
    """The least of what the answers are off, relative to the largest value: one of them is that which is
    compared. Labels are right where all are the same."""
    offs: list[float] = []
    for answer in got:
        host = np.asarray(answer.cpu() if hasattr(answer, "cpu") else answer)[:CHECKED]
        if host.size == want.size and want.dtype.kind in "iu":
            offs.append(float((host.reshape(want.shape) != want).mean()))
        elif host.size == want.size:
            largest = max(1.0, float(np.abs(want).max()))
            offs.append(harness.largest_error(host.reshape(want.shape), want) / largest)
    return min(offs, default=float("inf"))


def _timed(run: Any, want: Any, runs: int) -> dict[str, Any]:
    """Times of one contender that is right."""
    from benchmarks.gpu import device_time

    off = _off(run(), want)
    if not off <= TOLERANCE:
        return {"wrong": off}
    return {"max error": off, **device_time(run, runs)}


def _irkit(model: Any, x: Any, want: Any, runs: int) -> dict[str, Any]:
    import irkit

    start = time.perf_counter()
    program = irkit.compile(model, target="cuda", dtype="float32")
    seconds = time.perf_counter() - start
    for _ in range(_TRIED):
        program.run([x])
    chosen = {name: facts["rkernel"] for name, facts in program.report()["roperators"].items()}
    found = _timed(lambda: program.run([x]), want, runs)
    return {**found, "compile, s": seconds, "rkernels": chosen}


def _hummingbird(model: Any, backend: str, x: Any, want: Any, runs: int) -> dict[str, Any]:
    try:
        import torch
        from hummingbird.ml import convert
    except ImportError as missing:
        return {"absent": str(missing)[:200]}
    try:
        network = convert(model, backend, x[:100].cpu().numpy(), device="cuda").model.eval()
        with torch.no_grad():

            def run() -> Any:
                made = network(x)
                return made if isinstance(made, tuple | list) else (made,)

            return _timed(run, want, runs)
    except Exception as problem:  # whatever the peer raises of what it does not take
        return {"refused": str(problem)[:200]}


def measured(name: str, rows: int, runs: int) -> dict[str, Any]:
    """One operator: irkit and Hummingbird on as many rows, and the share of time that irkit takes."""
    import torch

    random = np.random.default_rng(0)
    x = random.normal(size=(1000, COLUMNS))
    model = OPERATORS[name]().fit(x, (x[:, :5].sum(axis=1) > 0).astype(np.int64))
    given = random.normal(size=(rows, COLUMNS)).astype(np.float32)
    method = next(m for m in METHODS if hasattr(model, m))
    want = np.asarray(getattr(model, method)(given[:CHECKED]))
    on_device = torch.from_numpy(given).cuda()
    found: dict[str, Any] = {"irkit": _irkit(model, on_device, want, runs)}
    for backend in BACKENDS:
        found[f"Hummingbird {backend}"] = _hummingbird(model, backend, on_device, want, runs)
    rest = [f["median_us"] for n, f in found.items() if n != "irkit" and "median_us" in f]
    if rest and "median_us" in found["irkit"]:
        found["share of Hummingbird's time"] = found["irkit"]["median_us"] / min(rest)
    return found


def main() -> int:
    """Entry point: 0 if every answer of irkit's is right."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="by name; all by default")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    names = options.names or list(OPERATORS)
    unknown = sorted(set(names) - set(OPERATORS))
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(OPERATORS)}")
    found: dict[str, Any] = {}
    for name in names:
        found[name] = measured(name, options.rows, options.runs)
        times = ", ".join(
            f"{who} {f.get('median_us', next(iter(f.items())))}"
            for who, f in found[name].items()
            if isinstance(f, dict)
        )
        share = found[name].get("share of Hummingbird's time")
        print(f"{name}: {times}; share {share}", flush=True)
    harness.update("gpu_operators", harness.on_a_gpu(found), options.out)
    return 0 if all("median_us" in f["irkit"] for f in found.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
