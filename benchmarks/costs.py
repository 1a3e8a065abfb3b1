"""How near the estimates of rTasks' times are to measurements, over the benchmark networks.

    python -m benchmarks.costs [NETWORK ...] [--device cpu|cuda|NAME] [--calibrate] [--out FOLDER]

Each network is compiled as `irkit.compile` does, with the rates of the machine at hand, and every rOperator's
rTask is timed (`benchmarks/rtask_times.py`). With `--calibrate` the rates are found first, and the networks
are compiled with those. Writes costs_cpu.json or costs_gpu.json.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import irkit
from benchmarks import calibrate, harness
from benchmarks.models import lstm_stack, mlp, small_cnn
from benchmarks.rtask_times import Sample, build, measure
from irkit.driver.compiler.targets import planned_device
from irkit.runtime.artifact import Artifact
from irkit.schedule.devices import device as find_device
from irkit.schedule.model import VDevice

Built = tuple[str, Artifact | None, list[Sample], str]


def _light(name: str) -> Any:
    from benchmarks import light

    onnx = harness.peer("onnx")
    return light.with_random_weights(onnx.load(light.folder() / f"{name}.onnx"))


def _workload(name: str) -> Any:
    from benchmarks.models.workloads import WORKLOADS, seeded, to_onnx

    work = WORKLOADS[name]
    return to_onnx(seeded(work.build), work.shape)


def _forest(kind: str) -> Any:
    import numpy as np

    rng = np.random.default_rng(0)
    x = rng.standard_normal((4000, 28), dtype=np.float32)
    y = (x[:, :5].sum(1) + rng.standard_normal(len(x)) > 0).astype(int)
    if kind == "lightgbm":
        shape: dict[str, Any] = {"num_leaves": 255, "max_depth": 8, "verbose": -1, "n_jobs": 1}
        return harness.peer("lightgbm").LGBMClassifier(n_estimators=500, **shape).fit(x, y)
    forests = harness.peer("sklearn.ensemble")
    return forests.RandomForestClassifier(100, max_depth=14, random_state=0).fit(x, y)


NETWORKS: dict[str, Callable[[], Any]] = {
    "mlp": mlp,
    "mlp, 64 rows": lambda: mlp(64),
    "cnn": small_cnn,
    "cnn, any batch": lambda: small_cnn(None),
    "lstm 2 x 64, 20 steps": lambda: lstm_stack(2, 64, 64, 20),
    "W6": lambda: lstm_stack(10, 256, 256, 100),
    "light_squeezenet": lambda: _light("light_squeezenet"),
    "light_bvlc_alexnet": lambda: _light("light_bvlc_alexnet"),
    "light_resnet50": lambda: _light("light_resnet50"),
    "forest, LightGBM": lambda: _forest("lightgbm"),
    "forest, scikit-learn": lambda: _forest("sklearn"),
    # These need PyTorch.
    "W1-29": lambda: _workload("W1-29"),
    "W3": lambda: _workload("W3"),
    "W5": lambda: _workload("W5"),
    "W7": lambda: _workload("W7"),
}
USUAL = {
    "cpu": [n for n in NETWORKS if not n.startswith("W")],
    "cuda": [n for n in NETWORKS if n not in ("W3", "W5", "W7")],
}
"""What is measured where none is named: what compiles in reasonable time."""


def built(job: tuple[str, VDevice]) -> Built:
    """One network, built; with a word of why not, or none."""
    name, device = job
    try:
        artifact, samples = build(name, NETWORKS[name](), device.name)
    except (irkit.IrkitError, RuntimeError, ImportError) as problem:
        traceback.print_exc()
        return name, None, [], f"{type(problem).__name__}: {problem}"
    return name, artifact, samples, ""


def networks(names: list[str], device: VDevice) -> Iterator[Built]:
    """All networks, built; for a GPU side by side on the processor's cores."""
    jobs = [(name, device) for name in names]
    if device.kind != "cuda":
        yield from map(built, jobs)
        return
    workers = min(len(jobs), len(os.sched_getaffinity(0)))
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        yield from pool.imap_unordered(built, jobs)


def measured(names: list[str], device: VDevice) -> tuple[list[Sample], dict[str, str]]:
    """Every rOperator of every network, timed; and what was not, with the reason."""
    samples: list[Sample] = []
    left: dict[str, str] = {}
    for name, artifact, known, problem in networks(names, device):
        if artifact is None:
            left[name] = problem
            continue
        samples += measure(artifact, known)
        print(f"{name}: {len(known)} rOperators", flush=True)
    return samples, left


def facts(samples: list[Sample], left: dict[str, str], device: VDevice) -> dict[str, Any]:
    """The result file's content."""
    return {
        "device": f"{device.name} on {calibrate.machine_name(device)}",
        "conditions": _CONDITIONS["cuda" if device.kind == "cuda" else "cpu"],
        "rates": dict(sorted(device.rates.items())),
        "suites": {"rTasks": calibrate.summary(samples), "not measured": left},
        "rkernels": calibrate.table(samples),
        "roperators": [{**s.to_json(), "ratio": s.ratio} for s in samples],
    }


_CONDITIONS = {
    "cpu": "one thread, the best of 15 traced runs, the median of an rOperator's rTasks; other work "
    "on the machine",
    "cuda": "each rOperator's kernel 50 times in one graph, a block an rTask, less an empty kernel's time",
}


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="irkit-bench costs", description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(NETWORKS)}")
    parser.add_argument("--device", default="cpu", help="cpu, cuda, or the name of a vDevice")
    parser.add_argument("--calibrate", action="store_true", help="find the machine's rates first")
    parser.add_argument("--out", type=Path, default=None, help="folder of the result file")
    parser.add_argument("--seconds", type=float, default=math.inf, help="given to --calibrate")
    options = parser.parse_args()
    name = planned_device(device=options.device).name
    folder: Path = options.out if options.out is not None else harness.RESULTS
    if options.calibrate:
        _calibrate(name, folder, options.seconds)
    device = find_device(name)
    kind = "cuda" if device.kind == "cuda" else "cpu"
    if unknown := [n for n in options.names if n not in NETWORKS]:
        print(f"irkit-bench costs: error: no network {unknown}: expected {', '.join(NETWORKS)}")
        return 1
    samples, left = measured(options.names or USUAL[kind], device)
    if not samples:
        print(f"irkit-bench costs: error: nothing was measured: {left}")
        return 1
    calibrate.show("networks", samples)
    words = {"command": f"irkit-bench costs {' '.join(sys.argv[1:])}".rstrip()}
    path = harness.write(
        f"costs_{'gpu' if kind == 'cuda' else 'cpu'}",
        words | facts(samples, left, device),
        options.out,
    )
    assert json.loads(path.read_text())
    return 0


def _calibrate(name: str, folder: Path, seconds: float) -> None:
    """Find rates and keep what was measured in `folder`; this run uses them, and their home is `folder`."""
    os.environ["IRKIT_RATES_DIR"] = str(folder / "rates")
    start, device = time.perf_counter(), find_device(name)
    names = [m.name for m in calibrate.micro_programs()]
    samples = calibrate.collect(names, device, seconds)
    (folder / "rates").mkdir(parents=True, exist_ok=True)
    text = json.dumps([s.to_json() for s in samples])
    (folder / f"samples_{name}.json").write_text(text)
    calibrate.keep(samples, device, None, start)


if __name__ == "__main__":
    raise SystemExit(main())
