"""Forests of many shapes on a GPU, device to device, irkit or nvForest: one program for all numbers of rows.

    python -m benchmarks.gpu_forests irkit [--shapes 100x8x28 ...] [--out FOLDER]
    python -m benchmarks.gpu_forests nvforest ...

nvForest wants another NumPy than irkit, so that each is measured in a call of its own; the forests are the
same bytes (`forest_shapes.py`). `irkit` needs PyTorch and LightGBM, `nvforest` nvForest, LightGBM and CuPy.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import harness
from benchmarks.forest_shapes import SHAPES, Shape, forest_text, rows_of

CHECKED = 2_000
"""Rows whose answers are compared with LightGBM's own."""
_TRIED = 40
_MODES = ("persistent", "per-wave", "per-op")
_SECONDS = 0.4


def _runs(f: Callable[[], Any], now: Callable[[], float]) -> int:
    """Calls to measure: 30, fewer where they are long."""
    f()
    start = now()
    f()
    return max(5, min(30, int(_SECONDS / max(now() - start, 1e-6))))


def _irkit(text: str, x: Any, sizes: list[int]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(what is known of the program, for each number of rows its times and the first answers)"""
    import lightgbm
    import torch

    import irkit
    from benchmarks.gpu import device_time

    start = time.perf_counter()
    program = irkit.compile(lightgbm.Booster(model_str=text), target="cuda", dtype="float32")
    seconds = time.perf_counter() - start
    executor, on_device = program._first.executor, torch.from_numpy(x).cuda()
    found: dict[str, Any] = {}

    def now() -> float:
        torch.cuda.synchronize()
        return time.perf_counter()

    for rows in sizes:
        part = on_device[:rows].contiguous()

        def run(part: Any = part) -> Any:
            return program.run([part])

        executor.mode = "auto"
        for _ in range(_TRIED):
            run()
        answers = [np.asarray(a.cpu())[:CHECKED] for a in run()]
        found[f"{rows} rows"] = {"answers": answers, **device_time(run, _runs(run, now))}
        for mode in _MODES:
            executor.mode = mode
            found[f"{rows} rows"][mode] = device_time(run, _runs(run, now))["median_us"]
    chosen = {name: facts["rkernel"] for name, facts in program.report()["roperators"].items()}
    return {"compile, s": seconds, "rkernels": chosen}, found


def _nvforest(text: str, x: Any, sizes: list[int]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The same of nvForest, which is tuned to every number of rows."""
    import cupy
    from nvforest import load_model

    from benchmarks.gpu_nvforest import device_time

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.txt"
        path.write_text(text)
        forest = load_model(path, model_type="lightgbm", precision="single", device="gpu")
    on_device, found = cupy.asarray(x), dict[str, Any]()

    def now() -> float:
        cupy.cuda.runtime.deviceSynchronize()
        return time.perf_counter()

    for rows in sizes:
        part = cupy.ascontiguousarray(on_device[:rows])
        forest.optimize(batch_size=rows)

        def run(part: Any = part) -> Any:
            return forest.predict_proba(part)

        answers = [cupy.asnumpy(cupy.asarray(run()))[:CHECKED]]
        found[f"{rows} rows"] = {"answers": answers, **device_time(run, _runs(run, now))}
    return {}, found


_CONTENDERS = {"irkit": _irkit, "nvforest": _nvforest}
_FILES = {"irkit": "gpu_forests", "nvforest": "gpu_forests_nvforest"}


def measured(contender: str, shape: Shape) -> dict[str, Any]:
    """One shape: errors against LightGBM's probabilities, and times."""
    import lightgbm

    text, sizes = forest_text(shape), rows_of(shape)
    rng = np.random.default_rng()
    x = rng.standard_normal((max(sizes), shape.features), dtype=np.float32)
    want = lightgbm.Booster(model_str=text).predict(x[:CHECKED])
    about, found = _CONTENDERS[contender](text, x, sizes)
    for rows, times in found.items():
        answers = times.pop("answers")
        # Of the answers the probabilities are those that are right.
        offs = [_off(a, np.asarray(want)) for a in answers]
        times["max error"] = min(offs)
        if not times["max error"] <= 1e-5:
            found[rows] = {"wrong": offs}
    return {**about, **found}


def _off(got: Any, want: Any) -> float:
    """The largest difference of the last column, or of all where there is one."""
    last = got if got.ndim == 1 else got[:, -1]
    return float(np.abs(last.astype(np.float64) - want[: len(last)]).max())


def _shape(text: str) -> Shape:
    return Shape(*map(int, text.split("x")))


def _device(contender: str) -> str:
    """The GPU's name, asked of what each contender has."""
    if contender == "irkit":
        from irkit.runtime.cuda.driver import device

        return str(device(0).name)
    import cupy

    return str(cupy.cuda.runtime.getDeviceProperties(0)["name"].decode())


def _show(shape: Shape, found: dict[str, Any]) -> None:
    """Microseconds of each number of rows, and of each mode."""
    print(shape, {k: round(v, 1) for k, v in found.items() if isinstance(v, float)})
    for rows, times in found.items():
        if rows.endswith("rows"):
            shown = {k: v for k, v in times.items() if k in ("median_us", "wrong", *_MODES)}
            print("   ", rows, shown, flush=True)


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("contender", choices=sorted(_CONTENDERS))
    known = "TREESxDEPTHxFEATURES"
    parser.add_argument("--shapes", nargs="+", type=_shape, default=SHAPES, help=known)
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    suites: dict[str, Any] = {}
    for shape in options.shapes:
        suites[str(shape)] = found = measured(options.contender, shape)
        _show(shape, found)
        facts = {"device": _device(options.contender), "suites": suites}
        harness.write(_FILES[options.contender], facts, options.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
