"""Chains compiled and run: saved bytes without a product again, and a thousand layers within a budget.

    python -m benchmarks.memory --chains [--layers 1000] [--threads 2] [--out FOLDER]

The chain of 32 blocks x + gelu(x W) * sigmoid(x W) of 1024x256: what is kept from forward to backward,
weights with it, when no product is computed again; PyTorch's best partition keeps 41.9 MB. The residual
chain x + tanh(x W) of 256x64: within 0.15 of its arena, against keeping all. Both are compiled with
`memory_budget` and run; times are the processor's, the least of some calls, of both programs in turn.
Results are compared bit for bit with those of a budget that holds in any case.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import irkit
from benchmarks.memory_curve import SHARES, chain, figures, searched, task_level
from irkit.schedule.rematerialisation import Played, Rematerialiser

PYTORCH_BYTES = 41_900_000
"""Of the chain of 32 blocks, at no product again: PyTorch 2.13's partitions at budgets 0.75 and 0.5."""

SHARE = 0.15
_CALLS = 5
_ALL = 1 << 40
"""A budget that holds in any case."""

_DEVICES: dict[int, dict[str, Any]] = {
    1: {"target": "cpu", "device": "cpu1", "mode": "serial"},
    2: {"target": "cpu", "device": "cpu2", "mode": "per-wave"},
}
"""By threads. The processor time of two has what they wait for one another in, which other work prolongs."""


def residual(weights: Any, x: Any) -> Any:
    """The sum of what the last layer gives."""
    for w in weights:
        x = x + np.tanh(x @ w)
    return x.sum()


def blocks(count: int = 32, rows: int = 1024, width: int = 256, threads: int = 2) -> dict[str, Any]:
    """Of the chain of blocks: the bytes that are kept, and those of all, with no product again."""
    device = _DEVICES[threads]
    given = _given(count, rows, width)
    slope = irkit.value_and_grad(chain, argnums=(0, 1), **device)
    slope(*given)
    # What recomputation may change of a program in which what is cheap is apart from products: no bit.
    kept = irkit.value_and_grad(chain, argnums=(0, 1), memory_budget=_ALL, **device)
    expected = kept(*given)
    _, fused = searched(slope.ir("task"))
    weights = sum(w.nbytes for w in given[0])
    ops, search = searched(task_level(count, rows, width))
    cut = search.play(search.cut(), search.turn)
    # The fewest bytes in use at once without a product again.
    budget = min(
        n for n in _budgets(search) if not figures(ops, search, search.within(n))["products_again"]
    )
    within = irkit.value_and_grad(chain, argnums=(0, 1), memory_budget=budget, **device)
    same = _same(within(*given), expected)
    found = {
        "kept_bytes": saved(fused, fused.naive) + weights,
        "saved_bytes": saved(search, cut) + weights,
        "pytorch_bytes": PYTORCH_BYTES,
        "products_again": _products(within) - _products(slope),
        **_compared(slope, within, given, same),
    }
    print(
        f"{count} blocks: {found['saved_bytes']:,} bytes saved of {found['kept_bytes']:,}, "
        f"{found['products_again']} products again ({_told(found)})",
        flush=True,
    )
    return found


def layers(count: int = 1000, rows: int = 256, width: int = 64, threads: int = 2) -> dict[str, Any]:
    """Of the residual chain: its arena within a budget over that of keeping all, and the time."""
    device = _DEVICES[threads]
    given = _given(count, rows, width)
    slope = irkit.value_and_grad(residual, argnums=(0, 1), **device)
    slope(*given)
    kept = irkit.value_and_grad(residual, argnums=(0, 1), memory_budget=_ALL, **device)
    expected = kept(*given)
    budget = int(SHARE * slope.report()["arena_bytes"])
    within = irkit.value_and_grad(residual, argnums=(0, 1), memory_budget=budget, **device)
    found = _compared(slope, within, given, _same(within(*given), expected))
    print(f"{count} layers: {_told(found)}", flush=True)
    return found


def _budgets(search: Rematerialiser) -> list[int]:
    """Those that something was found for."""
    tried = [int(search.naive.peak * share) for share in SHARES]
    return [budget for budget in tried if search.within(budget).peak <= budget]


def saved(search: Rematerialiser, played: Played) -> int:
    """Bytes of what is made before the turn and is read behind it, arguments apart."""
    program, turn = search.program, 0
    while played.runs[turn][0] != search.turn:
        turn += 1
    # What is made again first is behind the turn too.
    while turn and played.runs[turn - 1][0] in {n for n, _ in played.runs[: turn - 1]}:
        turn -= 1
    kept: set[tuple[int, int]] = set()
    for number, versions in played.runs[turn:]:
        for value, made in zip(program.steps[number].reads, versions, strict=True):
            if made is not None and made < turn:
                kept.add((value, made))
    roots = {
        (program.root[value], made) if program.nbytes[value] == 0 else (value, made)
        for value, made in kept
    }
    return sum(program.nbytes[value] for value, _ in roots)


def _given(count: int, rows: int, width: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal((width, width)).astype(np.float32) / 80 for _ in range(count)]
    return weights, rng.standard_normal((rows, width)).astype(np.float32)


def _same(found: Any, expected: Any) -> bool:
    (one, (weights, x)), (other, (others, y)) = found, expected
    pairs = [(one, other), (x, y), *zip(weights, others, strict=True)]
    return all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs)


def _products(program: Any) -> int:
    """How many products the schedule has."""
    return len(re.findall(r"task\.append @gemm", program.ir("schedule")))


def _compared(
    slope: Callable[..., Any], within: Callable[..., Any], given: Any, same: bool
) -> dict[str, Any]:
    reports: list[Any] = [f.report() for f in (slope, within)]  # pyright: ignore[reportFunctionMemberAccess]
    seconds = [float("inf")] * 2
    for _ in range(_CALLS):
        for number, program in enumerate((slope, within)):
            begin = time.process_time()
            program(*given)
            seconds[number] = min(seconds[number], time.process_time() - begin)
    arenas = [report["arena_bytes"] for report in reports]
    return {
        "arena_bytes": arenas[1],
        "naive_arena_bytes": arenas[0],
        "arena_ratio": arenas[1] / arenas[0],
        "seconds": seconds[1],
        "naive_seconds": seconds[0],
        "time_ratio": seconds[1] / seconds[0],
        "same_bits": same,
    }


def _told(found: dict[str, Any]) -> str:
    verdict = "the same bits" if found["same_bits"] else "OTHER RESULTS"
    return (
        f"arena {found['arena_bytes']:,} of {found['naive_arena_bytes']:,}, {found['arena_ratio']:.3f}; "
        f"{found['time_ratio']:.2f} times the time; {verdict}"
    )
