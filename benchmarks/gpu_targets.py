"""The figures to reach on a GPU in batches and in other precisions, as data for `benchmarks.targets`."""

from __future__ import annotations

from collections.abc import Iterator

MODES = tuple(
    f"irkit {mode}{form}"
    for mode in ("persistent", "per-wave", "per-op", "auto")
    for form in ("", ", float32 in memory", ", measured")
)
FORMS = ("", ", folded", ", channels_last", ", grouped", ", joined", ", PyTorch's layers")
PEERS = {
    "a CUDA graph": ("torch CUDA graph",),
    "torch.compile": tuple(
        f"torch.compile{mode}" for mode in ("", " reduce-overhead", " max-autotune")
    ),
}
PEERS["the best form of PyTorch"] = ("torch eager", *(p for of in PEERS.values() for p in of))

# (work, peer, at most so many times as long)
_PRECISE = tuple(
    (f"{name}{rows}:{precision}", "a CUDA graph", 1.0)
    for name in ("ResNet-50", "ResNeXt-29")
    for rows in ("", "@16", "@64")
    for precision in ("tf32", "bf16")
)
_IMAGES = tuple(
    (f"{name}{rows}", "a CUDA graph", limit)
    for name in ("ResNet-50", "ResNeXt-29")
    for rows, limit in (("", None), ("@16", 0.6), ("@64", 0.6))
)
RATIOS: tuple[tuple[str, str, float | None], ...] = (
    ("encoder", "the best form of PyTorch", 1.0),
    ("decoder", "the best form of PyTorch", 1.0),
    ("BERT", "the best form of PyTorch", 1.0),
    ("BERT:bf16", "the best form of PyTorch", 1.0),
    ("NASRNN", "torch.compile", 0.5),
    ("LSTM@4", "a CUDA graph", 0.5),
    ("LSTM@16", "a CUDA graph", 0.6),
    ("LSTM@64", "a CUDA graph", 0.8),
    ("W4:tf32", "a CUDA graph", 1.0),
    *_IMAGES,
    *_PRECISE,
)
WORKS = {
    "encoder": "encoder: 4 layers, width 256, 8 heads, 128 tokens",
    "decoder": "causal decoder of that size, 64 tokens",
    "BERT": "BERT: 12 layers, width 768, 12 heads, 128 tokens",
    "NASRNN": "NASRNN: 256 units, 100 steps",
    "LSTM": "LSTM: 10 layers of 256 units, 100 steps",
}
COMPILED = ("encoder", "BERT", "ResNet-50@16")


def title(case: str) -> str:
    """What a case is, in words: `LSTM@16` is LSTM in 16 rows."""
    name, _, precision = case.partition(":")
    name, _, rows = name.partition("@")
    said = WORKS.get(name, name)
    return ", ".join(
        [said, *([f"batch {rows}"] if rows else []), *([precision] if precision else [])]
    )


def entries(case: str, names: tuple[str, ...], forms: tuple[str, ...] = ("",)) -> tuple[str, ...]:
    """Where the file of workloads has the times of contenders in all their forms."""
    return tuple(f"workloads/{case}/{name}{form}" for name in names for form in forms)


def ratios() -> Iterator[tuple[str, str, float | None, tuple[str, ...], tuple[str, ...]]]:
    """(work, must, limit, ours, theirs) of every share to reach."""
    for case, peer, limit in RATIOS:
        must = f"(beside {peer})" if limit is None else f"≤ {limit:g} × {peer}"
        theirs = entries(case, PEERS[peer], FORMS)
        yield title(case), must, limit, entries(case, MODES), theirs
