"""The figures that products and attention are to reach on a GPU, as data for `benchmarks.targets`, and what
their measurements say of what limits them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks import plots

PRODUCTS = ("4096x4096x4096", "8192x8192x8192", "64x4096x4096", "128x4096x4096", "256x4096x4096")
_HALVES = " of bfloat16"
_CONSTANT = ", weights constant"
# (what a case's name ends in, the precision granted, in words, the peer, at least so many times its speed)
_PRECISIONS = (
    (_HALVES, ", bf16", "bf16", "cuBLAS", 0.9),
    (f"{_HALVES}, transposed", ", bf16", "bf16, weights transposed", "cuBLAS", 0.9),
    ("", ", tf32", "tf32", "cuBLAS", 0.9),
    (", transposed", ", tf32", "tf32, weights transposed", "cuBLAS", 0.9),
    ("", "", "fp32", "cuBLAS's fp32", 2.0),
    (", transposed", "", "fp32, weights transposed", "cuBLAS's fp32", 2.0),
    ("", _CONSTANT, "fp32, weights constant", "cuBLAS's fp32", 2.0),
    (", transposed", _CONSTANT, "fp32, weights transposed, constant", "cuBLAS's fp32", 2.0),
)
# (elements, at least so many times the peer's speed)
_ATTENTION = (("bfloat16", 0.9), ("float32", 3.0))

Ratios = Mapping[str, float]


def products() -> Iterator[tuple[str, str, float, str]]:
    """(work, must, least speed-up, the case among `plots.of_products`)."""
    for shape in PRODUCTS:
        for ending, granted, said, peer, least in _PRECISIONS:
            if ending.endswith("transposed") and shape.startswith("8192"):
                continue
            must = f"≥ {least:g} × the speed of {peer}"
            yield f"product {shape}, {said}", must, least, f"{shape}{ending}{granted}"


def attentions(tokens: tuple[int, ...]) -> Iterator[tuple[str, str, float, tuple[str, ...]]]:
    """(work, must, least speed-up, all its cases among `plots.of_attention`)."""
    for element, least in _ATTENTION:
        for size in (64, 128):
            for causal in ("", ", causal"):
                cases = tuple(f"12x{n}x{size}{causal} of {element}" for n in tokens)
                work = f"attention, 12 heads of {size}{causal}, {element}: the slowest of"
                work += f" {len(tokens)} lengths"
                yield (
                    work,
                    f"≥ {least:g} × the speed of scaled_dot_product_attention",
                    least,
                    cases,
                )


def speed_ups(suites: Mapping[str, Any]) -> dict[str, Any]:
    """How many times as fast as its peer each case of products and attention is, as suites of their own.

    `suites`: of one GPU, by file.
    """
    shares = {
        "product_speeds": plots.of_products(suites.get("products", {})),
        "attention_speeds": plots.of_attention(suites.get("attention", {})),
    }
    return {name: {case: 1 / r for case, r in found.items()} for name, found in shares.items()}


def limits(suites: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Of every case that is slower than its figure: (case, speed-up, asked, arithmetic, bytes).

    Arithmetic is that of the tensor cores in TFLOP/s, where a product of float32 is six of bfloat16 or
    three of float16, beside the peer's in the same run; bytes are those of operands and result, in TB/s.
    """
    found = suites.get("products", {}).get("products", {})
    ratios = plots.of_products(suites.get("products", {}))
    rows: list[tuple[str, ...]] = []
    for _, _, least, case in products():
        share = ratios.get(case)
        if share is None or 1 / share >= least:
            continue
        name, granted = _case_of(case.removesuffix(_CONSTANT), found)
        own = _fastest(found[name], granted, case.endswith(_CONSTANT))
        rows.append((case, f"{1 / share:.2g}", f"{least:g}", *_rates(name, granted, own, found)))
    return rows


def _case_of(case: str, found: Mapping[str, Any]) -> tuple[str, str]:
    """The entry of a case, and the precision that is granted on top."""
    if case in found:
        return case, ""
    name, _, granted = case.rpartition(", ")
    return name, f", {granted}"


def _fastest(entries: Mapping[str, Any], granted: str, constant: bool) -> Mapping[str, Any]:
    """Of rKernels; if weights are `constant` without what packs them."""
    own = [dict(e) for e in plots.ours(entries, granted)]
    for entry in own if constant else ():
        before, packing = entry["us"], entry.get("packing_weights_us", 0)
        entry |= {"us": before - packing, "packing_us": entry["packing_us"] - packing}
        entry["tflops"] *= before / entry["us"]
    return min(own, key=lambda e: e["us"])


def _rates(
    name: str, granted: str, own: Mapping[str, Any], found: Mapping[str, Any]
) -> tuple[str, str]:
    m, k, n = (int(s) for s in name.split(" ")[0].rstrip(",").split("x"))
    halves = _HALVES in name
    parts = 1 if halves or granted else own.get("products", 6)
    peer = found[name]["torch TF32" if granted == ", tf32" else "torch bfloat16"]
    size = 2 if halves else 4
    terabytes = size * (m * k + k * n + m * n) / own["us"] / 1e6
    return (
        f"{parts * own['tflops']:.0f} of {peer['tflops']:.0f}",
        f"{terabytes:.2g}, {own.get('packing_us', 0):.0f} µs of packing among {own['us']:.0f}",
    )
