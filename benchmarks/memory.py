"""Memory: the planner on interval sets that are hard to pack, and the arena of a training step.

    python -m benchmarks.memory [--seconds 10] [--curve BLOCKS] [--chains] [--out FOLDER]

Eleven sets, as `interval_sets.py` makes them: each is to be packed at the lower bound, or it is to be
proved that none is, in ten seconds; the greedy packings of the planner stand beside it. What it takes to
compile the search once, ten seconds and more, is said apart. The training step is
that of the multi-layer perceptron 784-256-100-10 of the course CSE 599W (T. Chen, 2017) at batch 1000, with
loss, gradients and descent, planned for two threads by two policies. With `--curve`:
budgets against time, and no more. With `--chains`: two chains that are compiled within budgets and run
(`memory_chains.py`), and no more.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

import irkit
from benchmarks import harness
from benchmarks.interval_sets import IntervalSet, interval_set
from benchmarks.memory_chains import blocks, layers
from benchmarks.memory_curve import drawn
from irkit.context import IrkitContext
from irkit.driver.files.parsing import parse_module
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.passes.task.program_text import plans_of
from irkit.schedule.chain_cover import ChainCover
from irkit.schedule.exact_packing import ExactPacking
from irkit.schedule.pool import Pool, SearchBounds, first_packing

# Buffers, bytes of all over the arena's, and the share of them that is taken away.
SETS = [
    (154, 7, 0.0),
    (180, 9, 0.1),
    (210, 11, 0.0),
    (230, 14, 0.1),
    (260, 18, 0.0),
    (290, 23, 0.1),
    (320, 30, 0.0),
    (350, 38, 0.1),
    (380, 48, 0.0),
    (420, 60, 0.1),
    (454, 75, 0.0),
]
_STEPS = 10**8


def pack(problem: IntervalSet, seconds: float) -> dict[str, Any]:
    """What greedy packings and the search within `seconds` come to; ratios are to the lower bound."""
    begin = time.perf_counter()
    before = problem.end[:, None] <= problem.begin
    rivals = problem.rivals | np.eye(len(problem.sizes), dtype=bool)
    pool = Pool(np.arange(len(problem.sizes)), problem.sizes, before, rivals)
    cover = (np.arange(len(problem.sizes)), ChainCover(before))
    greedy = pool.best(problem.bound, first_packing(pool, [cover]))
    searched = time.perf_counter()
    exact = ExactPacking(
        problem.sizes, problem.rivals, problem.cliques, SearchBounds(_STEPS, seconds)
    )
    found = exact.improve(greedy, problem.bound)
    return {
        "buffers": len(problem.sizes),
        "bytes_over_bound": float(problem.sizes.sum() / problem.bound),
        "lower_bound": problem.bound,
        "greedy_ratio": pool.height(greedy) / problem.bound,
        "ratio": found.height / problem.bound,
        "settled": found.optimal,
        "apart": _apart(problem, found.offsets),
        "greedy_seconds": searched - begin,
        "seconds": time.perf_counter() - searched,
    }


def _apart(problem: IntervalSet, offsets: Any) -> bool:
    """Whether no two buffers that are in use together share a byte, pair by pair."""
    ends = offsets + problem.sizes
    shared = (offsets[:, None] < ends) & (offsets < ends[:, None])
    return not (shared & problem.rivals).any()


def compiled() -> float:
    """Seconds that it takes to compile the search, or to read it where it was compiled before: it is done
    before a search's clock starts, and is none of a set's time."""
    begin = time.perf_counter()
    ExactPacking(np.array([1, 1]), ~np.eye(2, dtype=bool), np.ones((1, 2), bool))
    return time.perf_counter() - begin


def sets(seconds: float) -> dict[str, Any]:
    """All sets, by a search that is compiled."""
    found: dict[str, Any] = {}
    print(f"the search compiled, or read, in {compiled():.2f} s")
    for seed, (count, reuse, taken) in enumerate(SETS):
        name = f"{count} buffers, {reuse}x, {taken:.0%} taken"
        found[name] = one = pack(interval_set(count, reuse, taken, seed), seconds)
        verdict = "at the bound" if one["ratio"] == 1 else "proved" if one["settled"] else "open"
        print(
            f"{name:32} greedy {one['greedy_ratio']:.3f}  search {one['ratio']:.4f}  {verdict:12}"
            f" {one['seconds']:6.2f} s",
            flush=True,
        )
    settled = sum(one["settled"] for one in found.values())
    print(f"{settled} of {len(found)} settled")
    return found


COURSE = 5_416_004
"""Bytes of the step's values as the course's graph has them: operation by operation, in place."""

_LAYERS = ((784, 256), (256,), (256, 100), (100,), (100, 10), (10,))
_BATCH = 1000


def mlp_loss(w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, x: Any, y: Any) -> Any:
    """Softmax cross-entropy of the perceptron; `y` is one-hot."""
    z = np.maximum(np.maximum(x @ w1 + b1, 0) @ w2 + b2, 0) @ w3 + b3
    z = z - z.max(axis=1, keepdims=True)
    return -(y * (z - np.log(np.exp(z).sum(axis=1, keepdims=True)))).sum() / x.shape[0]


def mlp() -> dict[str, Any]:
    """Bytes of the arena, of its bounds, and of the results, which are not reused, by policy."""
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal(shape).astype(np.float32) * 0.05 for shape in _LAYERS]
    x = rng.standard_normal((_BATCH, _LAYERS[0][0])).astype(np.float32)
    y = np.eye(10, dtype=np.float32)[rng.integers(0, 10, _BATCH)]
    slope = irkit.value_and_grad(mlp_loss, argnums=tuple(range(len(weights))), target="cpu")

    def step(w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, x: Any, y: Any) -> Any:
        old = (w1, b1, w2, b2, w3, b3)
        loss, gradients = slope(*old, x, y)
        return (loss, *[w - np.float32(1e-3) * g for w, g in zip(old, gradients, strict=True)])

    program = irkit.jit(target="cpu")(step)
    results = sum(result.nbytes for result in program(*weights, x, y))
    text = program.ir("task")
    found = {policy: _planned(text, policy, results) for policy in ("wavefront", "memory")}
    for policy, one in found.items():
        print(
            f"perceptron, {policy:10} {one['bytes']:>10,} bytes, of {COURSE:,} operation by operation"
        )
    return found


def _planned(text: str, policy: str, results: int) -> dict[str, int]:
    ctx = IrkitContext()
    register_dialects(ctx)
    module = parse_module(ctx, text, "step")
    run_level(ctx, module, "schedule", "cpu", policy=policy)
    (plan,) = plans_of(module)
    arena = plan.arena_bytes.value.data if plan.arena_bytes is not None else 0
    return {"arena": arena, **plan.memory_figures, "results": results, "bytes": arena + results}


def main() -> int:
    parser = argparse.ArgumentParser(prog="irkit-bench memory")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument(
        "--curve", type=int, metavar="BLOCKS", help="budgets against time, of a chain"
    )
    parser.add_argument("--chains", action="store_true", help="run chains within budgets")
    parser.add_argument("--layers", type=int, default=1000, help="of the residual chain")
    parser.add_argument("--threads", type=int, choices=(1, 2), default=2, help="of the chains")
    given = parser.parse_args()
    if given.chains:
        threads = given.threads
        found = {"blocks": blocks(threads=threads), "layers": layers(given.layers, threads=threads)}
        harness.write("memory_chains", {"suites": found}, given.out)
        return 0
    if given.curve:
        return drawn(given.curve, 1024, 256, given.out)
    found = {"sets": sets(given.seconds), "mlp": mlp()}
    harness.write("memory", {"suites": found}, given.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
