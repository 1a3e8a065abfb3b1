"""Memory: the planner on interval sets that are hard to pack.

    python -m benchmarks.memory [--seconds 10] [--out FOLDER]

Eleven sets, as `interval_sets.py` makes them: each is to be packed at the lower bound, or it is to be
proved that none is, in ten seconds; the greedy packings of the planner stand beside it.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import harness
from benchmarks.interval_sets import IntervalSet, interval_set
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


def sets(seconds: float) -> dict[str, Any]:
    """All sets; the first has what it takes to compile the search in its time."""
    found: dict[str, Any] = {}
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


def main() -> int:
    parser = argparse.ArgumentParser(prog="irkit-bench memory")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--out", type=Path, default=None)
    given = parser.parse_args()
    harness.write("memory", {"sets": sets(given.seconds)}, given.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
