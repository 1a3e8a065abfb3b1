"""Render benchmarks/results/*.json as one page.

python -m benchmarks.render
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.harness import RESULTS


def rows(name: str, found: dict[str, Any]) -> Iterator[tuple[str, str, str, str, str]]:
    """(what, median, p10 to p90, rows per second, error) of everything timed below `found`."""
    for key, value in found.items():
        label = f"{name}: {key}" if name else key
        if isinstance(value, dict) and "median_us" in value:
            off = value.get("error", value.get("max error"))
            yield (
                label,
                f"{value['median_us']:.1f}",
                f"{value['p10_us']:.1f} – {value['p90_us']:.1f}",
                f"{value['M rows/s']:.1f} M" if "M rows/s" in value else "",
                f"{off:.1e}" if off is not None else "",
            )
        elif isinstance(value, dict) and key not in ("report", "rkernels", "modes"):
            yield from rows(label, value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield label, f"{value:.4g}", "", "", ""


def page(path: Path) -> str:
    """One result file as a section."""
    facts = json.loads(path.read_text())
    machine = facts["machine"]
    versions = ", ".join(f"{k} {v}" for k, v in machine["versions"].items() if v != "not installed")
    lines = [
        f"## {facts['suite']}",
        "",
        f"Command: `{facts['command']}`. Date {facts['date']}, commit {facts['commit']}.",
        f"Device: {facts.get('device') or machine['cpu']}, {machine['cores']} cores. "
        f"Python {machine['python']}, {versions}.",
        "",
        "| what | median µs (or value) | p10 – p90 | rows/s | error |",
        "|---|--:|--:|--:|--:|",
    ]
    for suite, found in facts["suites"].items():
        lines += [f"| {' | '.join(row)} |" for row in rows(suite, found)]
    return "\n".join(lines)


def main() -> int:
    """Entry point."""
    head = "# Benchmark results\n\nRendered by `irkit-bench render`; the JSON files beside it have more."
    sections = [page(p) for p in sorted(RESULTS.glob("*.json"))]
    (RESULTS / "README.md").write_text("\n\n".join([head, *sections]) + "\n")
    print(RESULTS / "README.md")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
