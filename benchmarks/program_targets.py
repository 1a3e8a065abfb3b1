"""The figures that programs of arrays, DAGs of kernels and expressions are to reach on a GPU, as data for
`benchmarks.targets`."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.expressions import MATRICES
from benchmarks.offloading import CHOICE, PROGRAMS

Paths = tuple[str, ...]
Figure = tuple[str, str, str, float, Paths]
"""(work, must, how it is judged, limit, entries)"""

_CLOCKS = {"host": "NumPy arrays in and out", "device": "arrays on the device"}
_SIZES = range(10, 29)
DAGS = (
    ("VEC", 1000000),
    ("B&S", 100000),
    ("ML", 10000),
    ("HITS", 100000),
    ("IMG", 1600),
    ("DL", 3000),
)
"""Programs of `dag_programs`, which asks for Numba's CUDA, and their smallest sizes."""
_REPLAYS = (8, 32, 128, 256)


def figures() -> Iterator[Figure]:
    """Those of single numbers."""
    for name in PROGRAMS:
        for clock, said in _CLOCKS.items():
            place = f"offloading/programs/{name}/{clock} speed-up"
            paths = tuple(f"{place}/{peer}" for peer in ("cupy", "fused by hand"))
            must = "≥ 1 × the speed of CuPy, as written and fused by hand"
            yield f"{name}, {said}", must, "least", 1.0, paths
    for name in PROGRAMS:
        paths = tuple(f"offloading/choice/{name}/{size}/ratio" for size in _SIZES)
        must = f"≤ {CHOICE} × the better of the two"
        yield f"{name}, CPU or GPU, at the worst of the sizes tried", must, "most", CHOICE, paths
    for shape in ("chain", "fork"):
        for tasks in _REPLAYS:
            paths = (f"dags/host us of a replay/{tasks} tasks, {shape}",)
            must = f"≤ {15 + tasks} µs"
            yield f"a replay of {tasks} tasks, {shape}: the host", must, "most", 15 + tasks, paths
    paged = "paging/black_scholes, 4 x 2147483648 bytes"
    work = "Black-Scholes on 4 times the bytes of a pool of 2 GiB"
    yield work, "≥ 0.9 of the slower of link and work", "least", 0.9, (f"{paged}/of_bound",)
    yield work, "≥ 1.5 × the same copies and kernels one by one", "least", 1.5, (f"{paged}/gain",)
    rows = tuple(f"{name} {m}x{k}x{n}" for name, (m, k, n) in MATRICES.items())
    for work in (
        *rows,
        "convolution 3x3 of 64 channels",
        "softmax 65536x1024",
        "layer norm 65536x1024",
    ):
        for how in ("rule", "by estimate"):
            path = f"expressions/{work}/{how}/share of PyTorch's speed"
            must = "≥ 0.6 × cuBLAS, cuDNN or PyTorch"
            yield f"expression {work}, {how}", must, "least", 0.6, (path,)
    path = "data_parallel/decoder, 2 ranks, batch 16 a rank/times one rank's rate"
    yield "a decoder's step on 2 GPUs", "≥ 1.8 × one GPU's rate", "least", 1.8, (path,)


LOOP = (
    "Black-Scholes on 4 times the bytes of a pool of 2 GiB",
    "≥ 1.5 × the speed of a loop over chunks of CuPy's",
    1.5,
    "paging/black_scholes, 4 x 2147483648 bytes/seconds",
    "paging/black_scholes, 4 x 2147483648 bytes/cupy_loop_s",
)
"""(work, must, limit, irkit's time, the peer's)"""


def dags() -> Iterator[tuple[str, str, float, tuple[tuple[str, str], ...]]]:
    """(work, must, limit, pairs of entries whose times are compared) of DAGs, at their smallest sizes."""
    for clock, said in (("dev", "arrays on the device"), ("e2e", "copies in and out")):
        for peer, words, speed in (
            ("serial", "one kernel after another", 1.24),
            ("streams", "streams and events by hand", 0.98),
            ("graph", "a CUDA graph by hand", 1.0),
        ):
            places = [f"dags/programs/{name} {n}, 448 blocks, {clock}" for name, n in DAGS]
            pairs = tuple((f"{place}/irkit", f"{place}/{peer}") for place in places)
            work = f"DAGs of {len(pairs)} programs, the smallest sizes, {said}: geometric mean"
            yield work, f"≤ {1 / speed:.3g} × {words}", 1 / speed, pairs
