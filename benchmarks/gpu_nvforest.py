"""nvForest on the forest of `benchmarks.gpu`, in a call of its own: it wants another NumPy than irkit.

    python -m benchmarks.gpu_nvforest [--out FOLDER]

Needs nvforest, LightGBM and PyTorch or CuPy. The model is trained again from the same seed.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import cupy
import numpy as np
from nvforest import load_model

from benchmarks import harness
from benchmarks.forest_data import forest_model


def device_time(f: Any, runs: int = 30) -> dict[str, float]:
    """CUDA-event times of `f`."""
    for _ in range(5):
        f()
    cupy.cuda.runtime.deviceSynchronize()
    seconds: list[float] = []
    for _ in range(runs):
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        f()
        end.record()
        end.synchronize()
        seconds.append(cupy.cuda.get_elapsed_time(start, end) / 1000)
    return harness.spread(seconds)


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    model, rng = forest_model()
    x = rng.standard_normal((1_000_000, 28), dtype=np.float32)
    want = model.predict_proba(x[:10_000])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.txt"
        model.booster_.save_model(path)
        forest = load_model(path, model_type="lightgbm", precision="single", device="gpu")
    on_device, found = cupy.asarray(x), {}
    for rows in (1, 1_000, 10_000, 100_000, 1_000_000):
        part = cupy.ascontiguousarray(on_device[:rows])
        forest.optimize(batch_size=rows)
        got = cupy.asnumpy(cupy.asarray(forest.predict_proba(part)))[:10_000]
        times = device_time(lambda p=part: forest.predict_proba(p))
        off = float(np.abs(got[:, -1] - want[: len(got), 1]).max())
        found[f"{rows} rows"] = {"max error": off, **times, "M rows/s": rows / times["median_us"]}
        print(rows, found[f"{rows} rows"], flush=True)
    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    facts = {"device": device, "suites": {"nvForest": found}}
    harness.write("gpu_nvforest", facts, options.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
