"""The six programs of GrCUDA's benchmarks as tables of launches, with their schedules by hand and
their oracles.

Sizes, kernels and constants follow Parravicini et al. (IPDPS 2021); the oracles are the mathematics in
float64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import dag_kernels as k

Array = np.ndarray[Any, Any]
Arrays = dict[str, Array]


@dataclass(frozen=True)
class Launch:
    """A kernel on arrays by name. `stream` and `waits`, numbers of earlier launches, are the schedule
    by hand."""

    kernel: Any
    arguments: tuple[str, ...]
    stream: int = 0
    waits: tuple[int, ...] = ()
    plane: bool = False


@dataclass(frozen=True)
class Workload:
    """A program. `make` gives its arrays; `inputs` are copied to the device before, `outputs` back;
    what is neither is on the device alone."""

    name: str
    make: Callable[[int, np.random.Generator], Arrays]
    launches: tuple[Launch, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    oracle: Callable[[Mapping[str, Array]], Arrays]
    sizes: tuple[int, ...]
    tolerance: float = 1e-4


def _zeros(*shape: int, dtype: str = "f4") -> Array:
    return np.zeros(shape, dtype)


# VEC


def _vec(n: int, rng: np.random.Generator) -> Arrays:
    x, y = rng.random(n, np.float32), 2 * rng.random(n, np.float32)
    return {"x": x, "y": y, "x1": _zeros(n), "y1": _zeros(n), "z": _zeros(1)}


VEC = Workload(
    "VEC",
    _vec,
    (
        Launch(k.square, ("x", "x1"), 0),
        Launch(k.square, ("y", "y1"), 1),
        Launch(k.difference, ("x1", "y1", "z"), 0, (1,)),
    ),
    ("x", "y", "z"),
    ("z",),
    lambda a: {"z": np.array([(a["x"].astype(float) ** 2 - a["y"].astype(float) ** 2).sum()])},
    (10**6, 10**7, 10**8),
    1e-3,
)

# B&S

STOCKS = 10


def _bs(n: int, rng: np.random.Generator) -> Arrays:
    made: Arrays = {}
    for s in range(STOCKS):
        made[f"x{s}"], made[f"y{s}"] = 60 + rng.random(n) - 0.5, _zeros(n, dtype="f8")
    return made


def _call(x: Array) -> Array:
    def normal(v: Array) -> Array:
        t = 1 / (1 + 0.2316419 * np.abs(v))
        factors = (1.330274429, -1.821255978, 1.781477937, -0.356563782, 0.31938153, 0.0)
        tail = np.exp(-0.5 * v * v) / np.sqrt(2 * np.pi) * np.polyval(factors, t)
        return np.where(v > 0, 1 - tail, tail)

    d1 = (np.log(x / 60) + 0.08 + 0.045) / 0.3
    return x * normal(d1) - 60 * np.exp(-0.08) * normal(d1 - 0.3)


BS = Workload(
    "B&S",
    _bs,
    tuple(Launch(k.black_scholes, (f"x{s}", f"y{s}"), s) for s in range(STOCKS)),
    tuple(f"x{s}" for s in range(STOCKS)),
    tuple(f"y{s}" for s in range(STOCKS)),
    lambda a: {f"y{s}": _call(a[f"x{s}"]) for s in range(STOCKS)},
    (10**5, 10**6, 10**7),
    1e-9,
)

# ML

FEATURES, CLASSES = 200, 10


def _ml(n: int, rng: np.random.Generator) -> Arrays:
    return {
        "x": rng.integers(0, 10, (n, FEATURES), np.int32),
        "z": _zeros(n, FEATURES),
        "w": rng.random((CLASSES, FEATURES), np.float32) / FEATURES,
        "b": rng.random(CLASSES, np.float32),
        "f": -rng.random((CLASSES, FEATURES), np.float32) / FEATURES,
        "r1": np.tile(np.log(rng.dirichlet(np.ones(CLASSES))), (n, 1)).astype("f4"),
        "r2": _zeros(n, CLASSES),
        "most": _zeros(n),
        "l": _zeros(n),
        "out": _zeros(n, dtype="i4"),
    }


def _softmax(x: Array) -> Array:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def _ml_oracle(a: Mapping[str, Array]) -> Arrays:
    x = a["x"].astype(float)
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    r2 = _softmax(z @ a["w"].T + a["b"] + a["r2"])
    r1 = a["r1"] + x @ a["f"].T
    r1 = _softmax(_softmax(r1))
    # Where two classes are all but equal either is right: the scores are compared.
    return {"r1": r1, "r2": r2}


ML = Workload(
    "ML",
    _ml,
    (
        Launch(k.standardise, ("x", "z"), 0),
        Launch(k.add_product, ("x", "f", "r1"), 1),
        Launch(k.add_product, ("z", "w", "r2"), 0),
        Launch(k.row_max, ("r1", "most"), 1),
        Launch(k.add_row, ("b", "r2"), 0),
        Launch(k.log_sum_exp, ("r1", "most", "l"), 1),
        Launch(k.exp_minus, ("r1", "l"), 1),
        Launch(k.softmax, ("r1",), 1),
        Launch(k.softmax, ("r2",), 0),
        Launch(k.argmax, ("r1", "r2", "out"), 0, (7,)),
    ),
    ("x", "w", "b", "f", "r1", "r2"),
    ("out", "r1", "r2"),
    _ml_oracle,
    (10**4, 10**5, 10**6),
    1e-3,
)

# HITS

STEPS, DEGREE = 5, 3


def _hits(n: int, rng: np.random.Generator) -> Arrays:
    begin = np.arange(0, DEGREE * n + 1, DEGREE, dtype=np.int32)
    column = rng.integers(0, n, DEGREE * n, np.int32)
    rows = np.repeat(np.arange(n, dtype=np.int32), DEGREE)
    order = np.argsort(column, kind="stable")
    counts = np.bincount(column, minlength=n)
    made: Arrays = {
        "ab": begin, "ac": column, "av": np.ones(DEGREE * n, np.int32),
        "tb": np.concatenate([[0], counts.cumsum()]).astype(np.int32), "tc": rows[order],
        "tv": np.ones(DEGREE * n, np.int32),
        "a1": np.ones(n, "f4"), "h1": np.ones(n, "f4"), "a2": _zeros(n), "h2": _zeros(n),
    }  # fmt: skip
    return made | {"na": _zeros(1), "nh": _zeros(1)}


def _hits_launches() -> tuple[Launch, ...]:
    made: list[Launch] = []
    for step in range(STEPS):
        at = len(made)
        # The other stream's division of the step before wrote what is multiplied.
        before = (at - 1, at - 2) if step else (None, None)
        made += [
            Launch(k.clear, ("na",), 0),
            Launch(k.clear, ("nh",), 1),
            Launch(k.spmv, ("ab", "ac", "av", "h1", "a2"), 0, (before[0],) if step else ()),
            Launch(k.spmv, ("tb", "tc", "tv", "a1", "h2"), 1, (before[1],) if step else ()),
            Launch(k.add_up, ("a2", "na"), 0),
            Launch(k.add_up, ("h2", "nh"), 1),
            Launch(k.divide, ("a2", "a1", "na"), 0, (at + 3,)),
            Launch(k.divide, ("h2", "h1", "nh"), 1, (at + 2,)),
        ]
    return tuple(made)


def _hits_oracle(a: Mapping[str, Array]) -> Arrays:
    n = a["a1"].size
    rows = np.repeat(np.arange(n), DEGREE)
    auth, hubs = np.ones(n), np.ones(n)
    for _ in range(STEPS):
        new = np.bincount(rows, hubs[a["ac"]], n)
        hub = np.bincount(a["ac"], auth[rows], n)
        auth, hubs = new / new.sum(), hub / hub.sum()
    return {"a1": auth, "h1": hubs}


HITS = Workload(
    "HITS",
    _hits,
    _hits_launches(),
    ("ab", "ac", "av", "tb", "tc", "tv", "a1", "h1"),
    ("a1", "h1"),
    _hits_oracle,
    (10**5, 10**6, 10**7),
    1e-3,
)

# IMG


def _gauss(size: int, sigma: float) -> Array:
    """Weights centred on size / 2, as the reference has them."""
    d = np.arange(size) - size / 2
    made = np.exp(-(d[:, None] ** 2 + d[None] ** 2) / (2 * sigma**2))
    return (made / made.sum()).astype("f4")


def _img(n: int, rng: np.random.Generator) -> Arrays:
    made: Arrays = {"image": rng.random((n, n), np.float32), "most": _zeros(1), "least": _zeros(1)}
    made |= {"g3": _gauss(3, 1), "g5": _gauss(5, 10), "gu": _gauss(3, 5)}
    names = ("small", "large", "blurred", "ms", "ml", "sharp", "image2", "image3")
    return made | {name: _zeros(n, n) for name in names}


def _around(x: Array, reach: int) -> dict[tuple[int, int], Array]:
    wide = np.pad(x.astype(float), reach)
    n, m = x.shape
    steps = range(-reach, reach + 1)
    return {
        (a, b): wide[reach + a : reach + a + n, reach + b : reach + b + m]
        for a in steps
        for b in steps
    }


def _blurred(x: Array, weights: Array) -> Array:
    reach = weights.shape[0] // 2
    parts = _around(x, reach).items()
    return sum((weights[a + reach, b + reach] * part for (a, b), part in parts), np.zeros(x.shape))


def _edges(x: Array) -> Array:
    p = _around(x, 1)
    right = p[-1, 1] + 2 * p[0, 1] + p[1, 1] - p[-1, -1] - 2 * p[0, -1] - p[1, -1]
    below = p[1, -1] + 2 * p[1, 0] + p[1, 1] - p[-1, -1] - 2 * p[-1, 0] - p[-1, 1]
    return np.sqrt(right**2 + below**2)


def _img_oracle(a: Mapping[str, Array]) -> Arrays:
    image = a["image"].astype(float)
    small, large = _blurred(image, a["g3"]), _blurred(image, a["g5"])
    ms, ml = _edges(small), _edges(large)
    low, high = min(ml.min(), 0.0), max(ml.max(), 0.0)
    ml = np.minimum(5 * (ml - low) / (high - low), 1)
    sharp = np.clip(image * 1.5 - _blurred(image, a["gu"]) * 0.5, 0, 1)
    image2 = sharp * ml + large * (1 - ml)
    return {"image3": image2 * ms + small * (1 - ms)}


IMG = Workload(
    "IMG",
    _img,
    (
        Launch(k.blur, ("image", "small", "g3"), 0, (), True),
        Launch(k.blur, ("image", "large", "g5"), 1, (), True),
        Launch(k.blur, ("image", "blurred", "gu"), 2, (), True),
        Launch(k.sobel, ("small", "ms"), 0, (), True),
        Launch(k.sobel, ("large", "ml"), 1, (), True),
        Launch(k.maximum, ("ml", "most"), 1),
        Launch(k.minimum, ("ml", "least"), 3, (4,)),
        Launch(k.extend, ("ml", "least", "most"), 1, (6,), True),
        Launch(k.unsharpen, ("image", "blurred", "sharp"), 2, (), True),
        Launch(k.combine, ("sharp", "large", "ml", "image2"), 1, (8,), True),
        Launch(k.combine, ("image2", "small", "ms", "image3"), 1, (3,), True),
    ),
    ("image", "g3", "g5", "gu", "most", "least"),
    ("image3",),
    _img_oracle,
    (1600, 4800, 12000),
    1e-3,
)

# DL


def _side(n: int) -> int:
    return -(-n // 2)


def _dl(n: int, rng: np.random.Generator) -> Arrays:
    one = _side(n)
    two = one // 5
    three = _side(two)
    made: Arrays = {"out": _zeros(1)}
    for b in "xy":
        made[b] = rng.random((n, n, 1), np.float32)
        made[f"{b}w1"] = 2 * rng.random((8, 3, 3, 1), np.float32) - 1
        made[f"{b}w2"] = 2 * rng.random((16, 3, 3, 8), np.float32) - 1
        made |= {f"{b}1": _zeros(one, one, 8), f"{b}2": _zeros(two, two, 8)}
        made[f"{b}3"] = _zeros(three, three, 16)
    size = made["x3"].size
    made |= {"both": _zeros(2 * size)}
    made["dense"] = ((2 * rng.random(2 * size) - 1) / (2 * size)).astype("f4")
    return made


def _convolved(x: Array, w: Array) -> Array:
    side = _side(x.shape[0])
    out = np.zeros((side, side, w.shape[0]))
    for a in range(3):
        for b in range(3):
            part = x[a : a + 2 * side - 2 : 2, b : b + 2 * side - 2 : 2].astype(float)
            out[: side - 1, : side - 1] += part[: side - 1, : side - 1] @ w[:, a, b].T.astype(float)
    return np.maximum(out, 0)


def _dl_oracle(a: Mapping[str, Array]) -> Arrays:
    ends: list[Array] = []
    for b in "xy":
        one = _convolved(a[b], a[f"{b}w1"])
        n = one.shape[0] // 5
        pooled = one[: 5 * n, : 5 * n].reshape(n, 5, n, 5, -1).mean(axis=(1, 3))
        ends.append(_convolved(pooled, a[f"{b}w2"]).ravel())
    return {"out": np.array([np.concatenate(ends) @ a["dense"].astype(float)])}


def _flat(name: str) -> str:
    """A three-dimensional array as a vector."""
    return f"{name}:flat"


DL = Workload(
    "DL",
    _dl,
    (
        Launch(k.convolution, ("x", "xw1", "x1"), 0, (), True),
        Launch(k.convolution, ("y", "yw1", "y1"), 1, (), True),
        Launch(k.mean_pool, ("x1", "x2"), 0, (), True),
        Launch(k.mean_pool, ("y1", "y2"), 1, (), True),
        Launch(k.convolution, ("x2", "xw2", "x3"), 0, (), True),
        Launch(k.convolution, ("y2", "yw2", "y3"), 1, (), True),
        Launch(k.concat, (_flat("x3"), _flat("y3"), "both"), 0, (5,)),
        Launch(k.dot, ("both", "dense", "out"), 0),
    ),
    ("x", "y", "xw1", "yw1", "xw2", "yw2", "dense", "out"),
    ("out",),
    _dl_oracle,
    (3000, 7000, 12000),
    1e-3,
)

WORKLOADS = (VEC, BS, ML, HITS, IMG, DL)
