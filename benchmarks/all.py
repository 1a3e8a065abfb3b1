"""Every suite of a GPU, one after another, within a time; then the page with its plots.

    python -m benchmarks.all [PART ...] [--seconds 1500] [--out FOLDER]

Each part is a command of its own, which adds its results to those of earlier ones in FOLDER/<gpu>: so a
machine that is there for minutes at a time runs some parts by name in each call. A part that does not end in
its time is ended, and what it has written by then is kept; `all.json` says what became of each.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import harness
from benchmarks.render import render


@dataclass(frozen=True)
class Part:
    """A command of a suite, and the least and most seconds that it is worth giving to it.

    `planned`: it has to be told which GPU to plan for.
    """

    module: str
    arguments: tuple[str, ...] = ()
    least: float = 60.0
    most: float = 600.0
    planned: bool = False

    def command(self, folder: Path) -> list[str]:
        """As it is run; the folder of results has the GPU's name."""
        start = [sys.executable, "-W", "ignore", "-m", f"benchmarks.{self.module}"]
        device = ["--device", folder.name] if self.planned else []
        return [*start, *self.arguments, *device, "--out", str(folder)]


def _workloads(names: str, prepare: int, *more: str) -> Part:
    arguments = (*names.split(), "--prepare", str(prepare), *more)
    return Part("workloads", arguments, prepare + 60.0, prepare + 400.0)


PARTS = {
    "gpu": Part("gpu", least=120.0, most=300.0),
    "products": Part("products", least=120.0, most=400.0, planned=True),
    "attention": Part("attention", least=120.0, most=500.0, planned=True),
    "transformers": _workloads("transformers", 240),
    "recurrent": _workloads("recurrent", 180),
    "batch-1": _workloads("batch-1", 300),
    "images-16": _workloads("images-16", 240),
    "images-1": _workloads("images-1", 240),
    "images-64": _workloads("images-64", 240),
    "compile": _workloads("encoder BERT ResNet-50@16", 60, "--contenders", "compile"),
    "quantised": Part("quantised", ("--target", "cuda"), 60.0, 300.0),
    "nvforest": Part("gpu_nvforest", least=30.0, most=120.0),
}


def run(part: Part, folder: Path, seconds: float) -> dict[str, Any]:
    """Run a part to its end, or to that of its time; what became of it."""
    start = time.perf_counter()
    # A session of its own, so that what it started ends with it.
    process = subprocess.Popen(part.command(folder), start_new_session=True)
    try:
        code = process.wait(min(seconds, part.most))
        outcome = "finished" if code == 0 else f"failed with exit code {code}"
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        outcome = "ended, its time was over"
    return {"outcome": outcome, "s": round(time.perf_counter() - start, 1)}


def run_all(
    names: Sequence[str], device: str, out: Path, seconds: float
) -> dict[str, dict[str, Any]]:
    """Run parts while there is time, and keep after each what became of it, and the page."""
    until = time.perf_counter() + seconds
    folder = out / harness.gpu_folder(device)
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        left = until - time.perf_counter()
        if left < PARTS[name].least:
            found[name] = {"outcome": "not run, no time was left"}
        else:
            print(f"==== {name}", flush=True)
            found[name] = run(PARTS[name], folder, left)
        print(f"==== {name}: {found[name]['outcome']}", flush=True)
        facts = {"device": device, "suites": {name: found[name]}}
        assert json.loads(harness.update("all", facts, folder).read_text())
        (out / "README.md").write_text(render(out))
    return found


def main() -> int:
    """Entry point: 0 if every part that was run came to its end."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--seconds", type=float, default=1500.0, help="for all parts together")
    parser.add_argument("--out", type=Path, default=harness.RESULTS)
    options = parser.parse_args()
    if unknown := [p for p in options.parts if p not in PARTS]:
        parser.error(f"unknown part '{unknown[0]}': expected {', '.join(PARTS)}")
    from irkit.errors import DeviceError
    from irkit.runtime.cuda.driver import device

    try:
        name = device().name
    except DeviceError as problem:
        parser.exit(1, f"benchmarks.all: error: {problem}\n")
    found = run_all(options.parts or list(PARTS), name, options.out, options.seconds)
    return int(any(f["outcome"].startswith("failed") for f in found.values()))


if __name__ == "__main__":
    raise SystemExit(main())
