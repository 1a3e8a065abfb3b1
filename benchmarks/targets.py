"""The figures to reach, as data: which measured times each of them compares."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast

from benchmarks import gpu_targets, kernel_targets, program_targets
from benchmarks.attention import TOKENS
from benchmarks.forest_shapes import SHAPES, rows_of
from benchmarks.gpu_targets import FORMS, entries
from benchmarks.layers import LAYERS
from benchmarks.operator_peers import BACKENDS
from benchmarks.operators import OPERATORS
from benchmarks.pipelines import PIPELINES
from benchmarks.written_programs import PROGRAMS

Results = dict[str, Any]


@dataclass(frozen=True)
class Target:
    """One figure to reach.

    `ours` and `theirs` name entries of a result file, as `file/suite/…/entry`; the fastest of several
    counts. `what` is "time" (`ours` at most `limit`), "share" (`ours` over `theirs` at most `limit`),
    "speed-up" (`theirs` over `ours` at least `limit`), "least" (the least of the numbers `ours`, at least
    `limit`), "most" (the largest of them, at most `limit`), "correct" (so many of `ours` have a time, which
    no wrong answer has) or "mean" (the geometric mean of the figures of all `parts`, at most `limit`).
    Without a limit the figure is there to be read.
    """

    where: str
    work: str
    must: str
    what: str
    limit: float | None
    ours: tuple[str, ...] = ()
    theirs: tuple[str, ...] = ()
    unit: str = ""
    parts: tuple[Target, ...] = ()


def modes(
    prefix: str, names: Iterable[str] = ("persistent", "per-wave", "per-op")
) -> tuple[str, ...]:
    """The entries of all modes below `prefix`."""
    return tuple(f"{prefix}/{name}" for name in names)


_NVFOREST = "gpu_forests_nvforest"
_HUMMINGBIRD = ("perf_tree_trav", "tree_trav")
_LIGHTGBM = "cpu/forest/LightGBM"
_IRKIT_FOREST = (f"{_LIGHTGBM}/irkit on LightGBM's forest",)
_SKLEARN = "cpu/forest/scikit-learn"
_XGBOOST = "cpu/forest/XGBoost"

_CUDNN = "cuDNN in a CUDA graph"
_CUDA_MODES = ("irkit persistent", "irkit per-wave", "irkit per-op", "irkit auto")
_WORKLOADS = {
    "W1": "W1: ResNeXt 16×64d for CIFAR, 27 blocks (892 convolutions)",
    "W1-29": "the same with 9 blocks (ResNeXt-29, 298 convolutions)",
    "W3": "W3: NASNet-A for CIFAR",
    "W4": "W4: AlexNet",
    "W5": "W5: DeepSpeech2",
    "W7": "W7: Seq2Seq",
}


def _forms(name: str, peer: str) -> tuple[str, ...]:
    """A peer's entries: W1 is also written with grouped convolutions."""
    return (f"workloads/{name}/{peer}", f"workloads/{name}/{peer}, grouped")


def _workload_targets() -> list[Target]:
    """Correctness, and each mode's time beside PyTorch's fastest form."""
    found: list[Target] = []
    for name, work in _WORKLOADS.items():
        ours = modes(f"workloads/{name}", _CUDA_MODES)
        found.append(Target("GPU", work, "correct in all 4 modes", "correct", 4, ours))
        eager = _forms(name, "torch eager")
        found += [
            Target("GPU", f"{name}, {mode}", "≤ 1 × eager", "share", 1, (path,), eager)
            for mode, path in zip(_CUDA_MODES, ours, strict=True)
        ]
        for peer, said in (
            (("torch CUDA graph",), "a CUDA graph"),
            (("torch.compile", "torch.compile reduce-overhead"), "torch.compile"),
        ):
            theirs = tuple(path for p in peer for path in _forms(name, p))
            beside = f"(beside {said})"
            found.append(
                Target("GPU", f"{name}, fastest mode", beside, "share", None, ours, theirs)
            )
    return found


def _batch_targets() -> Iterator[Target]:
    """In batches and in other precisions, and what compiling takes."""
    for work, must, limit, ours, theirs in gpu_targets.ratios():
        yield Target("GPU", work, must, "share", limit, ours, theirs)
    for work, must, least, case in kernel_targets.products():
        yield Target("GPU", work, must, "least", least, (f"product_speeds/{case}",))
    for work, must, least, cases in kernel_targets.attentions(TOKENS):
        ours = tuple(f"attention_speeds/{case}" for case in cases)
        yield Target("GPU", work, must, "least", least, ours)
    best = gpu_targets.PEERS["the best form of PyTorch"]
    names = tuple(n for n in _WORKLOADS if n != "W1-29")
    shares = [
        Target("GPU", n, "", "share", None, entries(n, _CUDA_MODES), entries(n, best, FORMS))
        for n in names
    ]
    w6 = Target("GPU", "W6", "", "share", None, modes("gpu/w6"), (f"gpu/w6/{_CUDNN}",))
    said = "geometric mean of W1, W3 to W7, batch 1"
    must = "≤ 0.33 × the best form of PyTorch"
    yield Target("GPU", said, must, "mean", 0.33, parts=(*shares, w6))
    for case in gpu_targets.COMPILED:
        for cache, limit in (("cold", 20), ("warm", 2)):
            work = f"{gpu_targets.title(case)}: from file to program, {cache}"
            path = f"workloads/{case}/compile/{cache}, s"
            yield Target("GPU", work, f"≤ {limit} s", "time", limit, (path,), unit="s")


def _program_targets() -> Iterator[Target]:
    """Programs of arrays, DAGs of kernels, and expressions."""
    for work, must, what, limit, ours in program_targets.figures():
        unit = "µs" if must.endswith("µs") else ""
        yield Target("GPU", work, must, what, limit, ours, unit=unit)
    work, must, limit, mine, theirs = program_targets.LOOP
    yield Target("GPU", work, must, "speed-up", limit, (mine,), (theirs,))
    for work, must, limit, pairs in program_targets.dags():
        parts = tuple(Target("GPU", "", "", "share", None, (a,), (b,)) for a, b in pairs)
        yield Target("GPU", work, must, "mean", limit, parts=parts)


def _light_targets() -> Iterator[Target]:
    """The networks inside the onnx package, with their own weights and with random ones."""
    for model in ("light_resnet50", "light_squeezenet", "light_bvlc_alexnet"):
        for weights in ("as it is", "random weights"):
            # Files with constant weights say little: they are there to be read.
            asked = model != "light_bvlc_alexnet" and weights == "random weights"
            yield Target(
                "2 cores",
                f"{model}, {weights}",
                "≤ 1 × ONNX Runtime" if asked else "(beside ONNX Runtime)",
                "share",
                1.0 if asked else None,
                (f"light/{model}/{weights}/irkit",),
                (f"light/{model}/{weights}/ONNX Runtime",),
            )
    place = "quantised/light_resnet50/2 threads"
    yield Target(
        "2 cores", "light_resnet50 in 8 bits, random weights", "≤ 1.5 × ONNX Runtime in 8 bits", "share", 1.5,
        (f"{place}/irkit",), (f"{place}/ONNX Runtime",),
    )  # fmt: skip
    for cache, seconds in (("cold", 10), ("warm", 3)):
        yield Target(
            "2 cores",
            f"light_resnet50 from file to runnable program, {cache}",
            f"≤ {seconds} s",
            "time",
            seconds,
            (f"light/light_resnet50/compile/{cache}/file to program, s",),
            unit="s",
        )


def _written_targets() -> Iterator[Target]:
    """Programs of NumPy beside NumPy, on as many threads."""
    shares = tuple(
        Target(
            "2 cores",
            name,
            "",
            "share",
            None,
            (f"written/{name}/irkit",),
            (f"written/{name}/NumPy",),
        )
        for name in PROGRAMS
    )
    work = f"{len(shares)} programs of NumPy, written anew: geometric mean"
    yield Target("2 cores", work, "≤ 0.2 × NumPy", "mean", 0.2, parts=shares)
    speeds = tuple(f"written/{name}/irkit, times NumPy" for name in PROGRAMS)
    work = "the slowest of them: speed, times NumPy"
    yield Target("2 cores", work, "≥ 0.9", "least", 0.9, speeds)


_NETWORKS = ("MobileNetV2", "ResNet-18", "EfficientNet-B0", "U-Net", "VAE decoder", "WaveNet")
_NETWORKS += ("ViT-small", "GPT", "bidirectional GRU", "bidirectional LSTM")
_BETTER = ("encoder", "LSTM 2x64, 20 steps")
_FUNCTIONS = ("Tanh", "tanh-Gelu", "Erf", "Gelu", "Atan", "Exp", "Sigmoid", "Mish", "Sin", "Log")


def _network_targets() -> Iterator[Target]:
    """Networks and functions on a CPU beside ONNX Runtime, on as many threads."""
    for threads in (1, 2):
        where, runs = f"CPU, {threads} threads", f"{threads} threads"
        for name in (*_NETWORKS, *_BETTER):
            limit = 1.0 if name in _BETTER else 1.2
            ours, theirs = (f"networks/{name}/{runs}/{who}" for who in ("irkit", "ONNX Runtime"))
            must = f"≤ {limit} × ONNX Runtime"
            yield Target(where, name, must, "share", limit, (ours,), (theirs,))
        mean = f"networks/geometric mean of networks/{runs}"
        says = "geometric mean of these networks"
        yield Target(where, says, "≤ 1.0 × ONNX Runtime", "time", 1.0, (mean,), unit="×")
        for name in (*_FUNCTIONS, "Softmax rows"):
            worst = f"networks/functions/{name}/{runs}/worst ratio"
            work = f"{name}, 2^10 to 2^22 elements, the worst"
            yield Target(where, work, "≤ 1.2 × ONNX Runtime", "time", 1.2, (worst,), unit="×")
        for name in LAYERS:
            mean = f"networks/layers/{name}/{runs}/geometric mean"
            work = f"{name}, 1 to 64 rows, geometric mean"
            yield Target(where, work, "≤ 1.1 × ONNX Runtime", "time", 1.1, (mean,), unit="×")
    for name in (*_NETWORKS, *_BETTER):
        cold = f"networks/{name}/compile/cold/processor time, s"
        yield Target(
            "CPU", f"{name}, cold compile", "≤ 20 s of the processor", "time", 20, (cold,), unit="s"
        )


def _forest_targets() -> Iterator[Target]:
    """Forests of many shapes beside nvForest, each at all numbers of rows."""
    everywhere: list[Target] = []
    for shape in SHAPES:
        places = [f"{shape}/{rows} rows" for rows in rows_of(shape)]
        parts = tuple(
            Target(
                "GPU",
                place,
                "",
                "share",
                None,
                (f"gpu_forests/{place}",),
                (f"{_NVFOREST}/{place}",),
            )
            for place in places
        )
        everywhere += parts
        work = f"forest {shape}: geometric mean of {len(parts)} numbers of rows"
        yield Target("GPU", work, "≤ 1.0 × nvForest", "mean", 1.0, parts=parts)
    work = "forests: geometric mean of all of these"
    yield Target("GPU", work, "≤ 0.67 × nvForest", "mean", 0.67, parts=tuple(everywhere))


def _operator_targets() -> Iterator[Target]:
    """Single operators on a million rows, device to device, beside the faster form of Hummingbird."""
    for name in OPERATORS:
        place = f"gpu_operators/{name}"
        yield Target(
            "GPU",
            f"{name}, 1,000,000 x 20",
            "≤ 1 × Hummingbird",
            "share",
            1.0,
            (f"{place}/irkit",),
            tuple(f"{place}/Hummingbird {backend}" for backend in BACKENDS),
        )


_STEPS = (
    *(("MLP", batch, 0.6) for batch in (32, 128)),
    *(("CNN", 128, 0.6), ("LSTM", 128, 0.6), ("decoder", 8, 0.6)),
    *(("MLP", 4096, 1.0), ("CNN", 1024, 1.0)),
)


def _training_targets() -> Iterator[Target]:
    """Steps of training, one launch each, beside PyTorch's."""
    for name, batch, limit in _STEPS:
        place = f"training_gpu/{name}, batch {batch}, sgd"
        ours = modes(
            place, ("irkit, calls", "irkit, persistent", "irkit, per-wave", "irkit, per-op")
        )
        theirs = (f"{place}/PyTorch in a CUDA graph",)
        must = f"≤ {limit:g} × a CUDA graph"
        yield Target("GPU", f"{name}: a step, batch {batch}", must, "share", limit, ours, theirs)


def _pipeline_targets() -> Iterator[Target]:
    """Pipelines beside scikit-learn, one thread each."""
    for rows in (1000, 10_000):
        shares = tuple(
            Target("CPU", "", "", "share", None, (f"{place}/irkit",), (f"{place}/scikit-learn",))
            for place in (f"pipelines/{name}/{rows}" for name in PIPELINES)
        )
        work = f"{len(shares)} pipelines, {rows} rows: geometric mean"
        yield Target("2 cores", work, "≤ 0.2 × scikit-learn", "mean", 0.2, parts=shares)


TARGETS = (
    Target(
        "GPU",
        "W6: ten LSTM layers of 256 units, 100 steps, one row",
        "≤ 0.27 × cuDNN in a CUDA graph",
        "share",
        0.27,
        modes("gpu/w6"),
        (f"gpu/w6/{_CUDNN}",),
    ),
    Target(
        "GPU",
        "LightGBM, 500 trees of depth 8, 1 M rows",
        "≥ 10 × Hummingbird on torch CUDA",
        "speed-up",
        10,
        modes("gpu/forest"),
        modes("gpu/forest/Hummingbird", _HUMMINGBIRD),
    ),
    Target(
        "GPU",
        "the same",
        "≥ 1.0 × nvForest",
        "speed-up",
        1.0,
        modes("gpu/forest"),
        ("gpu_nvforest/nvForest/1000000 rows",),
    ),
    *_forest_targets(),
    *_operator_targets(),
    Target(
        "GPU",
        "the CNN and the MLP",
        "correct in all 6 modes",
        "correct",
        6,
        modes("gpu/networks/cnn") + modes("gpu/networks/mlp"),
    ),
    *_workload_targets(),
    *_batch_targets(),
    *_training_targets(),
    *_program_targets(),
    Target(
        "2 cores",
        "LightGBM, 500 trees of depth 8, 10 000 rows",
        "faster than LightGBM",
        "speed-up",
        1.0,
        _IRKIT_FOREST,
        (f"{_LIGHTGBM}/LightGBM's own predict_proba",),
    ),
    Target(
        "2 cores",
        "the same",
        "faster than Hummingbird on torch",
        "speed-up",
        1.0,
        _IRKIT_FOREST,
        tuple(f"{_LIGHTGBM}/Hummingbird {name}" for name in _HUMMINGBIRD),
    ),
    Target(
        "2 cores",
        "scikit-learn's random forest of that shape",
        "faster than scikit-learn",
        "speed-up",
        1.0,
        (f"{_SKLEARN}/irkit on scikit-learn's forest",),
        (f"{_SKLEARN}/scikit-learn's own predict_proba",),
    ),
    Target(
        "2 cores",
        "XGBoost's forest of that shape",
        "(beside it)",
        "speed-up",
        None,
        (f"{_XGBOOST}/irkit on XGBoost's forest",),
        (f"{_XGBOOST}/XGBoost's own predict_proba",),
    ),
    Target(
        "2 cores",
        "one row, StandardScaler and 100 trees, Python call included",
        "≤ 20 µs",
        "time",
        20,
        ("cpu/one_row/irkit predict_proba",),
        unit="µs",
    ),
    Target(
        "2 cores",
        "500 trees: model to first answer, new process, empty cache",
        "≤ 10 s",
        "time",
        10,
        ("cpu/compile_time/cold/model to first answer, s",),
        unit="s",
    ),
    Target(
        "2 cores",
        "500 trees: the same, the cache filled",
        "≤ 1 s",
        "time",
        1,
        ("cpu/compile_time/warm/model to first answer, s",),
        unit="s",
    ),
    *_pipeline_targets(),
    *_light_targets(),
    *_written_targets(),
    *_network_targets(),
    *(
        Target(
            "2 cores",
            f"irkit-opt on 40 000 {what}: parse, verify, `canonicalize,cse,dce`, print",
            "≤ 1.3 × xDSL's own time",
            "share",
            1.3,
            (f"opt/{suite}/irkit-opt",),
            (f"opt/{suite}/xdsl-opt",),
        )
        for suite, what in (("arith", "scalar ops"), ("graph", "graph ops"))
    ),
    *(
        Target(
            where,
            f"estimate to measurement of rTasks, {what}",
            f"≤ {limit} ×",
            "time",
            limit,
            (f"costs_{file}/rTasks/{what}",),
            unit="×",
        )
        for where, file in (("CPU", "cpu"), ("GPU", "gpu"))
        for what, limit in (("median", 1.5), ("worst", 4))
    ),
)


def lookup(results: Results, path: str) -> float | None:
    """A median in microseconds, or a plain number; None where it was not measured.

    `results` maps file names to their suites.
    """
    found: Any = results
    for key in path.split("/"):
        found = cast("Results", found).get(key) if isinstance(found, dict) else None
    if isinstance(found, dict):
        found = cast("Results", found).get("median_us")
    return float(found) if isinstance(found, int | float) else None


def measured(results: Results, target: Target) -> float | None:
    """The figure that was measured for a target; None where a part of it was not."""
    if target.what == "mean":
        found = [measured(results, part) for part in target.parts]
        known = [f for f in found if f is not None]
        return statistics.geometric_mean(known) if len(known) == len(found) else None
    ours = _fastest(results, target.ours)
    if target.what == "correct" and ours is not None:
        return float(sum(lookup(results, path) is not None for path in target.ours))
    if target.what in ("time", "least") or ours is None:
        return ours
    if target.what == "most":
        return max(v for p in target.ours if (v := lookup(results, p)) is not None)
    theirs = _fastest(results, target.theirs)
    if theirs is None:
        return None
    return ours / theirs if target.what == "share" else theirs / ours


def reached(target: Target, value: float) -> bool | None:
    """Whether a measured figure is good enough; None if it has no limit."""
    if target.limit is None:
        return None
    if target.what in ("speed-up", "correct", "least"):
        return value >= target.limit
    return value <= target.limit


def shown(target: Target, value: float) -> str:
    """A measured figure with its unit."""
    if target.what == "correct":
        return f"{value:.0f} of {len(target.ours)}"
    return f"{value:.3g} {target.unit or '×'}"


def _fastest(results: Results, paths: Iterable[str]) -> float | None:
    return min((v for p in paths if (v := lookup(results, p)) is not None), default=None)
