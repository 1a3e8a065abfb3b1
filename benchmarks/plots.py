"""Ratios of irkit's time to its peers', work by work, as pictures beside the page. Needs Matplotlib."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Ratios = dict[str, float]
_PRODUCTS = {"": "torch float32", ", tf32": "torch TF32", ", bf16": "torch bfloat16"}
"""How an rKernel's name ends in a precision, and PyTorch's entry in it."""

_TICKS = (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)


def can_plot() -> bool:
    """Whether Matplotlib is installed (irkit's `bench` extra)."""
    return importlib.util.find_spec("matplotlib") is not None


def of_workloads(suites: Mapping[str, Any]) -> Ratios:
    """irkit's fastest mode over the fastest form of PyTorch in the same precision, by case."""
    found: Ratios = {}
    for case, entries in suites.items():
        times = {k: e["median_us"] for k, e in entries.items() if "median_us" in e}
        ours = [t for k, t in times.items() if k.startswith("irkit")]
        theirs = [t for k, t in times.items() if k.startswith("torch") and "TF32 on" not in k]
        if ours and theirs:
            found[case] = min(ours) / min(theirs)
    return found


def ours(entries: Mapping[str, Any], granted: str) -> list[Mapping[str, Any]]:
    """What irkit's rKernels take for a product in the precision that a case's name ends in; in float32 scaled
    terms are one way."""
    endings = {granted, ", scaled"} if granted == "" else {granted}
    return [
        e
        for k, e in entries.items()
        if "us" in e and not k.startswith("torch")
        if "".join(k.partition(",")[1:]) in endings
    ]


def of_products(suites: Mapping[str, Any]) -> Ratios:
    """irkit's fastest rKernel over PyTorch in the same precision, by case and precision; and of float32 with
    weights that are constant, whose packing is done when a program is built."""
    found: Ratios = {}
    for case, entries in suites.get("products", {}).items():
        for ending, peer in _PRODUCTS.items():
            known = ours(entries, ending)
            times = [e["us"] for e in known]
            # Operands of 16 bits are what PyTorch has in bfloat16, whatever is granted.
            of_halves = case.split(",")[0].endswith("of bfloat16")
            theirs = entries.get("torch bfloat16" if of_halves else peer)
            if times and theirs:
                found[f"{case}{ending}"] = min(times) / theirs["us"]
            constant = [
                e["us"] - e["packing_weights_us"] for e in known if "packing_weights_us" in e
            ]
            if constant and theirs:
                best = min([*constant, *times]) / theirs["us"]
                found[f"{case}{ending}, weights constant"] = best
    return found


def of_attention(suites: Mapping[str, Any]) -> Ratios:
    """irkit's fastest rKernel over PyTorch's fastest backend, by case."""
    entries = suites.get("attention", {})
    found = {case: facts.get("ratio") for case, facts in entries.items()}
    # Where nothing of one side ran there is no number.
    return {case: r for case, r in found.items() if isinstance(r, float) and r > 0}


def draw(ratios: Ratios, title: str, path: Path) -> None:
    """A bar a work on a logarithmic axis, shorter is faster; the line is as fast as the peer."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    # The same picture for the same figures, to the byte.
    with mpl.rc_context({"svg.hashsalt": "irkit", "font.size": 8}):
        figure = Figure(figsize=(7, 0.6 + 0.2 * len(ratios)), layout="constrained")
        axes = figure.subplots()
        names = list(ratios)[::-1]
        values = [ratios[n] for n in names]
        colours = ["#2a7f62" if v <= 1 else "#b5483a" for v in values]
        bars = axes.barh(names, values, color=colours, height=0.7)
        axes.bar_label(bars, [f"{v:.2f}" for v in values], padding=2)
        axes.axvline(1, color="black", linewidth=0.8)
        axes.set_xscale("log")
        axes.set_xticks(_TICKS, [f"{t:g}" for t in _TICKS])
        axes.set_xticks([], minor=True)
        axes.set_xlim(min(0.1, min(values) / 1.5), max(1.5, max(values) * 1.5))
        axes.margins(y=0.01)
        axes.set_title(title, fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
        figure.savefig(path, metadata={"Date": None})


PLOTS = {
    "workloads": (of_workloads, "time over the best form of PyTorch"),
    "attention": (of_attention, "time of attention over PyTorch's fastest backend"),
    "products": (of_products, "time of products over PyTorch's in the same precision"),
}


def draw_all(results: Mapping[str, Mapping[str, Any]], device: str, folder: Path) -> list[str]:
    """Draw what a device's files have figures for; the names of the pictures in `folder`."""
    drawn: list[str] = []
    for name, (ratios_of, said) in PLOTS.items():
        ratios = ratios_of(results.get(name, {}))
        if ratios:
            drawn.append(f"{name}.svg")
            draw(ratios, f"{device}: {said}", folder / drawn[-1])
    return drawn
