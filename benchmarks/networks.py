"""Networks, layers and elementwise functions on a CPU against ONNX Runtime, on one thread and on two.

    python -m benchmarks.networks [functions] [layers] [ResNet-18] [...] [--threads 1 2] [--quick]
        [--no-compile] [--no-batches] [--out FOLDER]

Random weights; batch 1, layers at 1 to 64 rows. The sessions of ONNX Runtime have as many threads as
irkit's vDevice, and both take turns block by block. Times of one thread are of the processor, which other
work on the machine adds little to; those of two are by the clock. An answer that differs from ONNX Runtime's
has no time.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import irkit
from benchmarks import harness
from benchmarks.functions import FUNCTIONS, SIZES, function_model
from benchmarks.layers import LAYERS, ROWS
from benchmarks.models import lstm_stack, sequence, vision

Models = Callable[..., Any]
BATCHES = (0, 1, 3, 8)
TRIED, AWAKE = 12, 0.05
"""Calls, and seconds of calls, before a program is timed: `auto` tries its modes on the first."""
ERROR = 1e-4
"""Largest difference from ONNX Runtime, over the largest of its answers."""


@dataclass(frozen=True)
class Network:
    """A model by batch (None: a symbol), and the same architecture at a size for tests.

    `axis` is the dimension of the input and the output that is the batch.
    """

    build: Models
    small: Models
    axis: int = 0


def _small(build: Models, **sizes: Any) -> Models:
    return partial(build, **sizes)


NETWORKS = {
    "MobileNetV2": Network(vision.mobilenet_v2, _small(vision.mobilenet_v2, width=8, size=32)),
    "ResNet-18": Network(vision.resnet18, _small(vision.resnet18, width=16, size=32)),
    "EfficientNet-B0": Network(
        vision.efficientnet_b0, _small(vision.efficientnet_b0, width=8, size=32)
    ),
    "U-Net": Network(vision.unet, _small(vision.unet, width=4, size=16)),
    "VAE decoder": Network(vision.vae_decoder, _small(vision.vae_decoder, width=16)),
    "WaveNet": Network(
        sequence.wavenet, _small(sequence.wavenet, channels=8, layers=3, stacks=1, samples=40)
    ),
    "ViT-small": Network(
        sequence.vit, _small(sequence.vit, layers=1, width=24, heads=3, size=32, classes=10)
    ),
    "GPT": Network(
        sequence.gpt, _small(sequence.gpt, layers=1, tokens=10, width=16, heads=2, words=20)
    ),
    "encoder": Network(
        sequence.encoder, _small(sequence.encoder, layers=1, tokens=10, width=16, heads=2)
    ),
    "bidirectional GRU": Network(
        partial(sequence.bidirectional, "GRU"),
        _small(partial(sequence.bidirectional, "GRU"), layers=1, hidden=8, steps=5),
        axis=1,
    ),
    "bidirectional LSTM": Network(
        partial(sequence.bidirectional, "LSTM"),
        _small(partial(sequence.bidirectional, "LSTM"), layers=1, hidden=8, steps=5),
        axis=1,
    ),
    "LSTM 2x64, 20 steps": Network(
        lambda batch=1: lstm_stack(2, 64, 64, 20, "batch" if batch is None else batch),
        lambda batch=1: lstm_stack(1, 8, 8, 4, "batch" if batch is None else batch),
        axis=1,
    ),
}


@dataclass(frozen=True)
class Settings:
    """What is measured: numbers of threads, calls, and whether times of compiling and open batches too."""

    threads: Sequence[int] = (1, 2)
    blocks: int = 5
    calls: int = 6
    pause: float = 0.2
    quick: bool = False
    compiling: bool = True
    batches: bool = True


def session(model: Any, threads: int) -> Any:
    """ONNX Runtime's session of a model."""
    runtime = harness.peer("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    return runtime.InferenceSession(model.SerializeToString(), options)


def input_of(peer: Any, batch: int = 1) -> dict[str, Any]:
    """Random values for the one input of a session; numbers of words are below 20."""
    (declared,) = peer.get_inputs()
    shape = [d if isinstance(d, int) else batch for d in declared.shape]
    rng = np.random.default_rng(batch)
    if "int64" in declared.type:
        return {declared.name: rng.integers(0, 20, shape)}
    return {declared.name: rng.standard_normal(shape, dtype=np.float32)}


def error(got: Any, want: Sequence[Any]) -> float:
    """The largest difference of any output, over that output's largest element."""
    outputs = got if isinstance(got, tuple | list) else [got]
    scales = [max(float(np.abs(w).max()), 1e-30) for w in want]
    pairs = zip(outputs, want, scales, strict=True)
    return max(harness.largest_error(g, w) / scale for g, w, scale in pairs)


def measured(model: Any, threads: int, settings: Settings) -> dict[str, Any]:
    """irkit and ONNX Runtime on one input of one model."""
    program, peer = irkit.compile(model, device=f"cpu{threads}"), session(model, threads)
    feed = input_of(peer)
    x = next(iter(feed.values()))
    # The peer's threads spin for a while after they were made, on the processors that irkit would try.
    time.sleep(settings.pause)
    got, calls, start = program(x), 1, time.perf_counter()
    while calls < TRIED or time.perf_counter() - start < AWAKE:
        program(x)
        calls += 1
    runs = {"irkit": lambda: program(x), "ONNX Runtime": lambda: peer.run(None, feed)}
    clock = time.process_time if threads == 1 else time.perf_counter

    def times() -> dict[str, Any]:
        shape = settings.blocks, settings.calls, settings.pause
        found: dict[str, Any] = harness.in_blocks(runs, *shape, clock)
        ratio = found["irkit"]["median_us"] / found["ONNX Runtime"]["median_us"]
        return {**found, "ratio": ratio}

    return harness.gated(error(got, peer.run(None, feed)), ERROR, times)


_COMPILE = """
import json, sys, time
import numpy as np
import irkit
import irkit.driver.compiler.compile
start = time.process_time(), time.perf_counter()
program = irkit.compile(sys.argv[1], device="cpu2")
done = time.process_time(), time.perf_counter()
print(json.dumps([done[0] - start[0], done[1] - start[1]]))
"""


def compile_time(model: Any) -> dict[str, Any]:
    """From a file to a program in new processes: an empty cache, then what the first one left."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.onnx")
        path.write_bytes(model.SerializeToString())
        environment = {**os.environ, "IRKIT_CACHE_DIR": str(Path(folder, "cache"))}
        command = [sys.executable, "-W", "ignore", "-c", _COMPILE, str(path)]
        for name in ("cold", "warm"):
            run = subprocess.run(
                command, env=environment, capture_output=True, text=True, check=True
            )
            processor, clock = json.loads(run.stdout)
            found[name] = {"processor time, s": processor, "s": clock}
    return found


def open_batch(network: Network, model: Any) -> dict[str, Any]:
    """A program of any batch at batches 0, 1, 3 and 8: the largest error, or why there is none."""
    try:
        program = irkit.compile(model, device="cpu2")
        found = {f"batch {n}, error": _at_batch(network, program, model, n) for n in BATCHES}
    except irkit.UnsupportedError as refusal:
        return {"refused": str(refusal)}
    return {**found, "agrees": float(max(found.values()) <= ERROR)}


def _at_batch(network: Network, program: Any, model: Any, batch: int) -> float:
    """Of no rows the answer is empty, and ONNX Runtime is not asked: it refuses some."""
    peer = session(model, 1)
    feed = input_of(peer, batch)
    got = program(*feed.values())
    if batch:
        return error(got, peer.run(None, feed))
    outputs = got if isinstance(got, tuple | list) else [got]
    shape = next(iter(feed.values())).shape
    assert shape[network.axis] == 0
    return 0.0 if outputs[0].shape[network.axis] == 0 else math.inf


def network(name: str, settings: Settings) -> dict[str, Any]:
    """Everything about one network."""
    known = NETWORKS[name]
    build = known.small if settings.quick else known.build
    found: dict[str, Any] = {}
    for threads in settings.threads:
        found[f"{threads} threads"] = measured(build(batch=1), threads, settings)
    if settings.batches:
        found["open batch"] = open_batch(known, build(batch=None))
    if settings.compiling:
        found["compile"] = compile_time(build(batch=1))
    return found


def functions(settings: Settings) -> dict[str, Any]:
    """Every function at every size: nanoseconds an element, and the worst ratio of one number of threads."""
    found: dict[str, Any] = {}
    for name in FUNCTIONS:
        found[name] = {}
        for threads in settings.threads:
            of_sizes = {
                f"2^{size}": _function(name, 1 << size, threads, settings)
                for size in (SIZES[:1] if settings.quick else SIZES)
            }
            ratios = [f.get("ratio", math.inf) for f in of_sizes.values()]
            found[name][f"{threads} threads"] = {**of_sizes, "worst ratio": max(ratios)}
    return found


def _function(name: str, elements: int, threads: int, settings: Settings) -> dict[str, Any]:
    found = measured(function_model(name, elements), threads, settings)
    for who in ("irkit", "ONNX Runtime"):
        if who in found:
            found[f"{who}, ns an element"] = found[who]["median_us"] * 1e3 / elements
    return found


def layers(settings: Settings) -> dict[str, Any]:
    """Every layer at every number of rows, and the worst ratio of one number of threads."""
    found: dict[str, Any] = {}
    for name, model in LAYERS.items():
        found[name] = {}
        for threads in settings.threads:
            of_rows = {
                f"{rows} rows": measured(model(rows), threads, settings)
                for rows in (ROWS[:2] if settings.quick else ROWS)
            }
            ratios = [f.get("ratio", math.inf) for f in of_rows.values()]
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            found[name][f"{threads} threads"] = {
                **of_rows, "worst ratio": max(ratios), "geometric mean": mean,
            }  # fmt: skip
    return found


def geometric_mean(suites: dict[str, Any], threads: int) -> float | None:
    """Of the ratios of all networks; None where one is missing."""
    ratios = [suites.get(n, {}).get(f"{threads} threads", {}).get("ratio") for n in NETWORKS]
    if None in ratios:
        return None
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


_SWEEPS = {"functions": functions, "layers": layers}


def _settings(options: argparse.Namespace) -> Settings:
    compiling, batches = not options.no_compile, not options.no_batches
    if options.quick:
        return Settings(options.threads, 1, 2, 0.0, True, False, batches)
    return Settings(options.threads, compiling=compiling, batches=batches)


def main(arguments: list[str] | None = None) -> int:
    """Entry point."""
    says = (__doc__ or "").split("\n")[0]
    parser = argparse.ArgumentParser("irkit-bench networks", description=says)
    known = (*_SWEEPS, *NETWORKS)
    parser.add_argument("suites", nargs="*", help=f"of {', '.join(known)}; all by default")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2], help="1 2 by default")
    parser.add_argument("--quick", action="store_true", help="toy sizes, to see that all works")
    parser.add_argument("--no-compile", action="store_true", help="no times of compiling")
    parser.add_argument("--no-batches", action="store_true", help="no programs of an open batch")
    parser.add_argument("--out", type=Path, default=None, help="folder for networks.json")
    options = parser.parse_args(arguments)
    unknown = [s for s in options.suites if s not in known]
    if unknown:
        message = f"unknown suite '{unknown[0]}': expected {', '.join(known)}"
        parser.exit(1, f"irkit-bench: error: {message}\n")
    settings, suites = _settings(options), dict[str, Any]()
    for name in options.suites or known:
        suites[name] = _SWEEPS[name](settings) if name in _SWEEPS else network(name, settings)
        harness.show(name, suites[name])
    means = {f"{n} threads": geometric_mean(suites, n) for n in settings.threads}
    suites["geometric mean of networks"] = {k: v for k, v in means.items() if v is not None}
    print(harness.write("networks", {"suites": suites}, options.out))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
