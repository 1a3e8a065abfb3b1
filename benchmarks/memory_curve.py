"""Budgets of memory against time: what `rematerialise` makes of the gradient of a chain of blocks.

    python -m benchmarks.memory --curve 32 [--out FOLDER]

The chain of blocks x + gelu(x W) * sigmoid(x W), and its gradient by all W and x. For each budget: the most
bytes in use at once, arguments and results apart, how many launches run again, how many of them are products
or take as long, and the time by the estimates of the launches. The picture is `memory_curve.svg`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import erf
from xdsl.ir import Operation

import irkit
from benchmarks import harness
from irkit.context import IrkitContext
from irkit.dialects.functions import function_named
from irkit.dialects.task import LaunchOp
from irkit.driver.files.parsing import parse_module
from irkit.driver.registry import register_dialects
from irkit.passes.task.rematerialise import search_of
from irkit.schedule.rematerialisation import Played, Rematerialiser

SHARES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.35, 0.3, 0.25, 0.2, 0.175, 0.15, 0.125, 0.1)


def chain(weights: Any, x: Any) -> Any:
    """The sum of what the last block gives."""
    for w in weights:
        h = x @ w
        gelu = np.float32(0.5) * h * (1 + erf(h * np.float32(0.5**0.5)))
        x = x + gelu / (1 + np.exp(-h))
    return x.sum()


def task_level(blocks: int, rows: int, width: int) -> str:
    """The gradient of the chain as launches."""
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal((width, width)).astype(np.float32) / 16 for _ in range(blocks)]
    slope = irkit.value_and_grad(
        chain, argnums=(0, 1), target="cpu", device="cpu2", memory_budget=1 << 40
    )
    slope(weights, np.ones((rows, width), np.float32))
    return slope.ir("task")


def searched(text: str) -> tuple[list[Operation], Rematerialiser]:
    """The launches of a function at the task level, and ways to run them."""
    ctx = IrkitContext()
    register_dialects(ctx)
    module = parse_module(ctx, text, "chain")
    main = function_named(module, "main")
    assert main is not None
    return search_of(ctx, module, main)


def curve(text: str) -> list[dict[str, Any]]:
    """What each budget comes to; those below what is possible are left out."""
    ops, search = searched(text)
    found: list[dict[str, Any]] = []
    for share in SHARES:
        budget = int(search.naive.peak * share)
        played = search.naive if share == 1 else search.within(budget)
        if played.peak <= budget:
            found.append({"budget": budget, **figures(ops, search, played)})
    return found


def figures(ops: list[Operation], search: Rematerialiser, played: Played) -> dict[str, Any]:
    """Bytes and repetitions of one way to run."""
    steps = [search.program.steps[number] for number, _ in played.runs]
    seen, again, products = set[int](), 0, 0
    for (number, _), step in zip(played.runs, steps, strict=True):
        if number in seen and isinstance(ops[number], LaunchOp):
            again, products = again + 1, products + step.dear
        seen.add(number)
    return {
        "peak_bytes": played.peak,
        "peak_over_naive": played.peak / search.naive.peak,
        "time_over_naive": played.cost / search.naive.cost,
        "launches_again": again,
        "products_again": products,
    }


def picture(found: list[dict[str, Any]], path: Path) -> None:
    """Time over memory, both over those of keeping all, as SVG."""
    high = max(1.1, *(one["time_over_naive"] for one in found)) + 0.05

    def at(one: dict[str, Any]) -> tuple[float, float]:
        return 60 + 520 * one["peak_over_naive"], 300 - 260 * (one["time_over_naive"] - 1) / (
            high - 1
        )

    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(at, found))
    dots = [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4"><title>{one["peak_bytes"]:,} bytes, '
        f"{one['time_over_naive']:.3f} times the time, {one['products_again']} products again"
        "</title></circle>"
        for one, (x, y) in ((one, at(one)) for one in found)
    ]
    texts = [
        f'<text x="{60 + 520 * n / 5:.0f}" y="320" text-anchor="middle">{n / 5:.1f}</text>'
        for n in range(6)
    ] + [
        f'<text x="52" y="{304 - 260 * n / 4:.0f}" text-anchor="end">{1 + (high - 1) * n / 4:.2f}</text>'
        for n in range(5)
    ]
    path.write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 620 350" '
        'font-family="sans-serif" font-size="12">'
        '<rect width="620" height="350" fill="white"/><path d="M60 40V300H580" fill="none" stroke="black"/>'
        f'<polyline points="{line}" fill="none" stroke="#3060a0"/>{"".join(dots)}{"".join(texts)}'
        '<text x="320" y="342" text-anchor="middle">bytes in use over those of keeping all</text>'
        '<text x="60" y="26">estimated time over that of keeping all</text></svg>\n'
    )


def drawn(blocks: int, rows: int, width: int, folder: Path | None) -> int:
    """Print the curve of a chain, and write it and its picture to a folder."""
    found = curve(task_level(blocks, rows, width))
    for one in found:
        print(
            f"{one['peak_bytes']:>12,} bytes ({one['peak_over_naive']:.3f})"
            f"  time {one['time_over_naive']:.3f}  launches again {one['launches_again']:4}"
            f"  products again {one['products_again']}"
        )
    written = harness.write("memory_curve", {"curve": found}, folder)
    picture(found, written.with_suffix(".svg"))
    print(written, written.with_suffix(".svg"))
    return 0
