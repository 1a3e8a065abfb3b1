"""Render benchmarks/results/*.json, and those of each GPU in a folder of its own, as one page.

    python -m benchmarks.render [FOLDER]

Where Matplotlib is installed, plots of ratios are drawn anew; else those that are there stay.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

from benchmarks import kernel_targets, plots
from benchmarks.harness import DETAILS, RESULTS
from benchmarks.render_costs import cost_tables
from benchmarks.targets import TARGETS, Results, Target, measured, reached, shown

HEAD = """\
# Benchmark results

Rendered by `irkit-bench render`; the JSON files beside this page have more. Times are of warm calls.
A peer runs in the same process and on the same data as irkit, except where a section is its own; where
an answer was wrong, there is no time.
"""
Row = tuple[str, ...]
_VERDICT = {True: "yes", False: "**no**", None: ""}


def rows(name: str, found: dict[str, Any]) -> Iterator[Row]:
    """(what, median, p10 to p90, rows per second, error or value) of everything below `found`."""
    for key, value in found.items():
        label = f"{name}: {key}" if name else key
        if key in DETAILS or isinstance(value, bool):
            continue
        if not isinstance(value, dict):
            yield label, "", "", "", _plain(value)
        elif "median_us" in value:
            yield label, *_times(cast("dict[str, Any]", value))
        else:
            yield from rows(label, cast("dict[str, Any]", value))


def _plain(value: Any) -> str:
    """A number, or a word such as why something was not measured, safe in a table."""
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return " ".join(text.split()).replace("|", "\\|")


def _times(times: dict[str, Any]) -> Row:
    off = times.get("error", times.get("max error"))
    spread = f"{times['p10_us']:.1f} – {times['p90_us']:.1f}" if "p10_us" in times else "not kept"
    return (
        f"{times['median_us']:.1f}",
        spread,
        f"{times['M rows/s']:.3g} M" if "M rows/s" in times else "",
        f"error {off:.1e}" if off is not None else "",
    )


def page(facts: dict[str, Any], where: str = "") -> str:
    """One result file as a section."""
    machine = facts["machine"]
    versions = ", ".join(f"{k} {v}" for k, v in machine["versions"].items() if v != "not installed")
    device = facts.get("device")
    return "\n".join(
        [
            f"## {where}{facts['suite']}",
            "",
            f"Command: `{facts['command']}`. Date {facts['date']}, commit {facts['commit']}.",
            f"Device: {f'{device}, ' if device else ''}{machine['cpu']}, {machine['cores']} cores. "
            f"Python {machine['python']}, {versions}.",
            *([f"Conditions: {facts['conditions']}."] if "conditions" in facts else []),
            "",
            cost_tables(facts) if "roperators" in facts else _table(facts),
        ]
    )


def _table(facts: dict[str, Any]) -> str:
    found = (row for name, suite in facts["suites"].items() for row in rows(name, suite))
    head = ["| what | median µs | p10 – p90 | rows/s | error or value |", "|---|--:|--:|--:|--:|"]
    return "\n".join([*head, *_lines(found)])


def figures(results: Results, gpus: dict[str, Results]) -> str:
    """The figures to reach beside what was measured. `results`: file name → suites; `gpus`: those by GPU."""
    of_gpus = gpus or {"measured": {}}
    parts = ["## Figures to reach", "", f"| on a GPU | must reach | {' | '.join(of_gpus)} |"]
    parts.append(f"|---|---|{'--:|' * len(of_gpus)}")
    parts += _lines(
        (t.work, t.must, *(_cell(found, t) for found in of_gpus.values()))
        for t in TARGETS
        if t.where == "GPU"
    )
    parts += ["", "| where | work | must reach | measured |", "|---|---|---|--:|"]
    parts += _lines(
        (t.where, t.work, t.must, _cell(results, t)) for t in TARGETS if t.where != "GPU"
    )
    for name, found in gpus.items():
        parts += _missed(name, kernel_targets.limits(found))
    return "\n".join(parts)


def _missed(gpu: str, found: list[Row]) -> list[str]:
    """A table of products that are slower than they are to be, and how far from the machine's limits."""
    if not found:
        return []
    return [
        "",
        f"Products that miss their figure on {gpu}: what the tensor cores do, float32's six products of "
        "parts counted as such, beside cuBLAS in the same run (in bfloat16, or in TF32), and bytes moved. "
        "Packing is of both operands; that of weights is done when a program is built.",
        "",
        "| product | speed, × cuBLAS | asked | TFLOP/s | TB/s |",
        "|---|--:|--:|--:|--:|",
        *_lines(found),
    ]


def _cell(results: Results, target: Target) -> str:
    """What was measured, and whether it is good enough."""
    value = measured(results, target)
    if value is None:
        return "not measured"
    verdict = _VERDICT[reached(target, value)]
    return f"{shown(target, value)}, {verdict}" if verdict else shown(target, value)


def _lines(table: Iterable[Row]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in table]


def render(folder: Path) -> str:
    """The page of all result files in a folder, and of those in folders of GPUs. Draws the plots."""
    own, gpus = _files(folder), {p.name: _files(p) for p in sorted(folder.iterdir()) if p.is_dir()}
    gpus = {name: files for name, files in gpus.items() if files}
    by_gpu = {name: _suites(files) for name, files in gpus.items()}
    parts = [HEAD.rstrip(), figures(_suites(own), by_gpu), *map(page, own)]
    for name, files in gpus.items():
        if plots.can_plot():
            plots.draw_all(by_gpu[name], name, folder / name)
        drawn = sorted((folder / name).glob("*.svg"))
        parts += [f"![{p.stem} on {name}]({name}/{p.name})" for p in drawn]
        parts += [page(facts, f"{name}: ") for facts in files]
    return "\n\n".join(parts) + "\n"


def _files(folder: Path) -> list[Results]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]


def _suites(files: list[Results]) -> Results:
    found = {facts["suite"]: facts["suites"] for facts in files if "suite" in facts}
    return {**found, **kernel_targets.speed_ups(found)}


def main() -> int:
    """Entry point: `[FOLDER]`, by default benchmarks/results."""
    folder = Path(sys.argv[1]) if sys.argv[1:] else RESULTS
    (folder / "README.md").write_text(render(folder))
    print(folder / "README.md")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
