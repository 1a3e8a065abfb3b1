"""Steps of training on several ranks, beside one: NCCL on GPUs, MPI on a CPU.

    python -m benchmarks.data_parallel [--ranks 2] [--target cuda] [--model decoder] [--batch 16]
        [--layers 6] [--width 512] [--steps 30] [--blocks 5] [--bucket BYTES] [--out FOLDER]

Each rank is a process with a GPU of its own (or, with `--target cpu`, one that `mpiexec` starts). First one
rank without a group trains on the joined batch of all ranks: losses of the group's steps, and its parameters
in the end, are held against that; those of the ranks are to be equal bit for bit, and who is off by more than
rounding has no time. Then one rank alone and the group are timed, each rank on a batch of the same size: the
figure is how many times the examples a second of one rank the group does.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import irkit
from benchmarks import harness
from irkit.training import groups, losses, optimizers

WORDS, LENGTH, HEADS = 96, 128, 8
COMPARED = 4
"""Steps after which results are compared."""
ROUNDING = 2e-3
"""By how much losses of magnitude 1 to 10 may differ, in float32, and parameters after so few steps."""
GOAL = 0.9
"""Of as many times one rank's rate as there are ranks."""


def norm(p: Any, x: Any) -> Any:
    """Layer normalisation."""
    x = x - x.mean(axis=-1, keepdims=True)
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + np.float32(1e-5)) * p["g"] + p["b"]


def attention(p: Any, x: Any) -> Any:
    """Causal, of HEADS heads."""
    batch, length, width = x.shape
    each = width // HEADS
    q, k, v = (
        (x @ p[n]).reshape(batch, length, HEADS, each).transpose(0, 2, 1, 3)
        for n in ("q", "k", "v")
    )
    scores = q @ k.transpose(0, 1, 3, 2) * np.float32(each**-0.5)
    scores = scores + np.triu(np.full((length, length), -1e9, np.float32), 1)
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = scores / scores.sum(axis=-1, keepdims=True)
    return (weights @ v).transpose(0, 2, 1, 3).reshape(batch, length, width) @ p["o"]


def decoder(p: Any, x: Any) -> Any:
    """Logits of the next word, a row for each place; `x`: words as rows of an identity matrix."""
    h = x @ p["words"] + p["places"]
    for block in p["blocks"]:
        h = h + attention(block, norm(block["n1"], h))
        inner = norm(block["n2"], h) @ block["up"]
        inner = inner / (1 + np.exp(np.float32(-1.702) * inner))
        h = h + inner @ block["down"]
    return (norm(p["last"], h) @ p["out"]).reshape(-1, WORDS)


def perceptron(p: Any, x: Any) -> Any:
    """Logits."""
    for layer in p["layers"][:-1]:
        x = np.maximum(x @ layer["w"] + layer["b"], 0)
    return x @ p["layers"][-1]["w"] + p["layers"][-1]["b"]


def first_weights(options: Any) -> Any:
    """The same on every rank."""
    rng = np.random.default_rng(0)

    def of(*shape: int) -> Any:
        return (rng.standard_normal(shape) * shape[0] ** -0.5).astype(np.float32)

    w = options.width
    if options.model == "perceptron":
        sizes = [784, *[w] * options.layers, 10]
        pairs = itertools.pairwise(sizes)
        return {"layers": [{"w": of(a, b), "b": np.zeros(b, np.float32)} for a, b in pairs]}

    def scale() -> Any:
        return {"g": np.ones(w, np.float32), "b": np.zeros(w, np.float32)}

    def block() -> Any:
        four = {n: of(w, w) for n in ("q", "k", "v", "o")}
        return {**four, "up": of(w, 4 * w), "down": of(4 * w, w), "n1": scale(), "n2": scale()}

    return {
        "words": of(WORDS, w),
        "places": of(LENGTH, w) * np.float32(0.1),
        "blocks": [block() for _ in range(options.layers)],
        "last": scale(),
        "out": of(w, WORDS),
    }


def batch_of(options: Any, size: int, number: int) -> tuple[Any, Any]:
    """Inputs and labels of a step: those of the joined batch start with rank 0's."""
    rng = np.random.default_rng(1000 + number)
    if options.model == "perceptron":
        x = rng.standard_normal((size, 784)).astype(np.float32)
        return x, rng.integers(0, 10, size)
    text = rng.integers(0, WORDS, (size, LENGTH + 1))
    return np.eye(WORDS, dtype=np.float32)[text[:, :-1]], text[:, 1:].reshape(-1)


def part_of(arrays: Sequence[Any], rank: int, ranks: int) -> list[Any]:
    """A rank's rows of a joined batch."""
    return [np.ascontiguousarray(np.split(a, ranks)[rank]) for a in arrays]


def worker(options: Any) -> int:
    """One rank: its results as JSON in a file."""
    rank, ranks = options.rank, options.of
    group = None
    if options.grouped and options.target == "cpu":
        group = groups.mpi(ranks)
        rank = group.rank
    elif options.grouped:
        group = groups.nccl(rank, ranks, options.meeting)
    model = perceptron if options.model == "perceptron" else decoder
    step = irkit.training_step(
        model,
        losses.softmax_cross_entropy,
        optimizers.SGD(0.01, momentum=0.9),
        parameters=first_weights(options),
        target=options.target,
        device="cpu1" if options.target == "cpu" else None,
        data_parallel=group and groups.DataParallel(group, options.bucket),
    )
    # One rank alone has the joined batch to compare with, or a rank's own to be timed.
    size = options.batch * (ranks if options.grouped or options.joined else 1)
    batches = [batch_of(options, size, n) for n in range(COMPARED)]
    if options.grouped:
        batches = [tuple(part_of(b, rank, ranks)) for b in batches]
    start = time.perf_counter()
    step.compile(*batches[0])
    found: dict[str, Any] = {"compile_s": time.perf_counter() - start}
    found["losses"] = [float(step(*b)) for b in batches]
    state = step.state.arrays()
    found["digest"] = hashlib.sha256(b"".join(a.tobytes() for a in state.values())).hexdigest()
    if rank == 0:
        np.savez(options.file.with_suffix(".npz"), *state.values())
    if not options.joined:
        found["step_s"] = timed(step, batches, options)
    report = step.report()
    found["tasks"] = report.get("tasks", [])
    found["modes"] = [p["mode"] for p in report.get("parts", [report])]
    options.file.with_suffix(f".{rank}.json").write_text(json.dumps(found))
    return 0


def timed(step: Any, batches: Any, options: Any) -> list[float]:
    """Seconds of a step, a block each; arrays lie where the step runs."""
    if options.target == "cuda":
        cupy: Any = importlib.import_module("cupy")
        batches = [tuple(cupy.asarray(a) for a in b) for b in batches]
    for n in range(12):
        step(*batches[n % COMPARED])
    found: list[float] = []
    for _ in range(options.blocks):
        start = time.perf_counter()
        for n in range(options.steps):
            step(*batches[n % COMPARED])
        found.append((time.perf_counter() - start) / options.steps)
    return found


def run(options: Any, folder: Path, name: str, ranks: int, *flags: str) -> list[dict[str, Any]]:
    """Results of each rank. Raises RuntimeError where one failed."""
    file = folder / name
    own = [sys.executable, "-m", "benchmarks.data_parallel", "--worker", "--file", str(file)]
    own += ["--of", str(options.ranks), "--meeting", str(folder / f"{name}.meeting"), *flags]
    for key in ("target", "model", "batch", "layers", "width", "steps", "blocks", "bucket"):
        own += [f"--{key}", str(getattr(options, key))]
    if options.target == "cpu":
        mpiexec = str(Path(sys.executable).with_name("mpiexec"))
        commands = [(own if ranks == 1 else [mpiexec, "-n", str(ranks), *own], os.environ)]
    else:
        seen = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
        gpus = [g for g in seen if g] or [str(n) for n in range(ranks)]
        commands = [
            ([*own, "--rank", str(r)], {**os.environ, "CUDA_VISIBLE_DEVICES": gpus[r]})
            for r in range(ranks)
        ]
    started = [subprocess.Popen(command, env=env) for command, env in commands]
    end = time.monotonic() + options.limit
    try:
        while any(p.poll() is None for p in started):
            # Where one rank has failed, the others wait for it for ever.
            if time.monotonic() > end or any(p.poll() for p in started):
                break
            time.sleep(0.1)
    finally:
        for p in started:
            if p.poll() is None:
                p.kill()
    if any(p.wait() for p in started):
        raise RuntimeError(f"{name}: exit codes {[p.returncode for p in started]}")
    found = [json.loads(file.with_suffix(f".{r}.json").read_text()) for r in range(ranks)]
    print(name, json.dumps({k: v for k, v in found[0].items() if k != "tasks"}), flush=True)
    return found


def compared(folder: Path, joined: Any, group: Sequence[Any]) -> dict[str, Any]:
    """Whether ranks are alike, and how far from one rank with the joined batch."""
    arrays = [list(np.load(folder / f"{n}.npz").values()) for n in ("joined", "group")]
    floats = [(a, b) for a, b in zip(*arrays, strict=True) if a.dtype.kind == "f"]
    return {
        "ranks equal, bit for bit": len({g["digest"] for g in group}) == 1,
        "largest error of losses": float(
            np.abs(np.subtract(joined["losses"], group[0]["losses"])).max()
        ),
        "largest error of state": max(float(np.abs(a - b).max()) for a, b in floats),
    }


def _gpu() -> str:
    from irkit.runtime.cuda.driver import device

    return str(device(0).name)


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(
        description="Data-parallel steps of training beside one rank's."
    )
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--target", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--model", choices=("decoder", "perceptron"), default="decoder")
    parser.add_argument("--batch", type=int, default=16, help="of a rank")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--bucket", type=int, default=25_000_000)
    parser.add_argument("--limit", type=float, default=550.0, help="seconds of one of the runs")
    parser.add_argument("--out", type=Path)
    for name in ("worker", "grouped", "joined"):
        parser.add_argument(f"--{name}", action="store_true", help=argparse.SUPPRESS)
    for name, kind in (("file", Path), ("meeting", Path), ("rank", int), ("of", int)):
        parser.add_argument(f"--{name}", type=kind, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return worker(options)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        joined = run(options, folder, "joined", 1, "--joined")
        group = run(options, folder, "group", options.ranks, "--grouped")
        facts = compared(folder, joined[0], group)
        right = facts["ranks equal, bit for bit"] and max(list(facts.values())[1:]) <= ROUNDING
        if right:
            one = statistics.median(run(options, folder, "one", 1)[0]["step_s"])
            many = max(statistics.median(g["step_s"]) for g in group)
            facts |= {"one rank, s a step": one, "the group, s a step": many}
            facts["times one rank's rate"] = options.ranks * one / many
            facts["goal"] = GOAL * options.ranks
        facts["tasks"] = group[0]["tasks"]
    for key, value in facts.items():
        print(f"{key}: {value}")
    if options.out is not None:
        title = f"{options.model}, {options.ranks} ranks, batch {options.batch} a rank"
        name = f"{options.ranks} {_gpu()}" if options.target == "cuda" else ""
        results = {"suites": {title: facts}} | ({"device": name} if name else {})
        harness.write("data_parallel", results, options.out)
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main())
