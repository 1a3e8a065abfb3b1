"""The page section of costs: how far estimates of rTasks' times are from measurements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

WORST = 12


def cost_tables(facts: dict[str, Any]) -> str:
    """Tables of a result file of `benchmarks.costs`: by rKernel, and the rOperators that are worst off."""
    return "\n".join(
        [
            "Factor between the estimated and the measured time of an rTask, whichever is larger.",
            "",
            "| rKernel | rOperators | median | worst |",
            "|---|--:|--:|--:|",
            *_rkernels(facts),
            "",
            f"The {WORST} that are farthest off:",
            "",
            "| network | rOperator | rKernel, loops | grid | estimate, µs | measured, µs | ratio |",
            "|---|---|---|---|--:|--:|--:|",
            *_worst(facts["roperators"]),
        ]
    )


def _rkernels(facts: dict[str, Any]) -> Iterator[str]:
    for name, found in {**facts["rkernels"], "**all**": facts["suites"]["rTasks"]}.items():
        off = f"{found['median']:.2f} | {found['worst']:.2f}"
        yield f"| {name} | {found['measured']:.0f} | {off} |"


def _worst(roperators: list[dict[str, Any]]) -> Iterator[str]:
    def off(found: dict[str, Any]) -> float:
        return max(found["ratio"], 1 / found["ratio"])

    for found in sorted(roperators, key=off, reverse=True)[:WORST]:
        yield (
            f"| {found['program']} | {found['roperator']} | {found['rkernel']}, {_shown(found['loops'])} | "
            f"{found['grid']} | {found['estimate_ns'] / 1000:.2f} | "
            f"{found['measured_ns'] / 1000:.2f} | {found['ratio']:.2f} |"
        )


def _shown(loops: object) -> str:
    """Loops with the open batch as a question mark, which is -2^63 in the records."""
    return str(loops).replace(str(-(1 << 63)), "?")
