"""Tensor expressions against irkit's own ops and PyTorch: products (Roller's M0 to M6, smaller on a CPU), a
convolution, softmax and layer normalisation, in float32.

    python -m benchmarks.expressions                    on a CPU, one thread
    python -m benchmarks.expressions --device cuda      on a GPU, whole sizes, beside cuBLAS and cuDNN alone

Each row has the time of a call of the expression, and what the others take relative to it (more than 1: the
expression is faster): the same by nests of irkit's rule (`rule`), irkit's ops, and PyTorch. All take turns in
one run, and the least time of each counts. Times on a CPU are of the processor, so that others at work on it
do not count. On a GPU: `expressions_gpu.py`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import irkit
from benchmarks import harness
from irkit.expressions.binding import program_of
from irkit.expressions.syntax import Statement

PRODUCT = "C(m, n) +=! A(m, k) * B(k, n)"
CONVOLUTION = "O(b, o, y, x) +=! I(b, c, y + r, x + s) * W(o, c, r, s)"
SOFTMAX = (
    "M(i) max=! X(i, k); E(i, k) = exp(X(i, k) - M(i)); S(i) +=! E(i, k); O(i, k) = E(i, k) / S(i)"
)
LAYER_NORM = """
U(i) +=! X(i, k)
D(i, k) = X(i, k) - U(i) / {n}.0
V(i) +=! D(i, k) * D(i, k)
O(i, k) = D(i, k) / sqrt(V(i) / {n}.0 + 1e-5)
"""
MATRICES = {
    "M0": (65536, 2, 1024),
    "M1": (128, 4032, 1000),
    "M2": (128, 2048, 1000),
    "M3": (65536, 1024, 4096),
    "M4": (128, 1024, 4096),
    "M5": (65536, 4096, 1024),
    "M6": (128, 4096, 1024),
}
"""Rows, terms and columns of products."""


@dataclass(frozen=True)
class Work:
    """A name, an expression, the same in NumPy's functions and by PyTorch, and shapes of the arrays."""

    name: str
    text: str
    numpy: Callable[..., Any] | None
    torch: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]


def works(whole: bool) -> list[Work]:
    """What is timed; `whole`: rows of products are not cut to 1024."""
    torch = harness.peer("torch")
    functional = torch.nn.functional

    found: list[Work] = []
    for name, (m, k, n) in MATRICES.items():
        m = m if whole else min(m, 1024)
        shapes = ((m, k), (k, n))
        found.append(Work(f"{name} {m}x{k}x{n}", PRODUCT, np.matmul, torch.matmul, shapes))
    rows = 65536 if whole else 1024
    images = ((64 if whole else 1, 64, 30, 30), (64, 64, 3, 3))
    return [
        *found,
        Work("convolution 3x3 of 64 channels", CONVOLUTION, None, functional.conv2d, images),
        Work(
            f"softmax {rows}x1024",
            SOFTMAX,
            _softmax,
            partial(torch.softmax, dim=1),
            ((rows, 1024),),
        ),
        Work(
            f"layer norm {rows}x1024",
            LAYER_NORM.format(n=1024),
            _layer_norm,
            partial(functional.layer_norm, normalized_shape=(1024,)),
            ((rows, 1024),),
        ),
    ]


def _softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def _layer_norm(x: Any) -> Any:
    d = x - x.mean(axis=1, keepdims=True)
    return d / np.sqrt((d * d).mean(axis=1, keepdims=True) + np.float32(1e-5))


def least(
    calls: dict[str, Callable[[], Any]], rounds: int, clock: Callable[[], float]
) -> dict[str, float]:
    """Seconds of a call of each, which take turns; the least of `rounds`."""
    found = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            start = clock()
            call()
            found[name] = min(found[name], clock() - start)
    return found


def contenders(
    work: Work, arrays: Sequence[np.ndarray], device: str
) -> dict[str, Callable[[], Any]]:
    """Calls by name; arrays are on the device."""
    torch = harness.peer("torch")

    target = "cpu" if device == "cpu" else "cuda"
    options: dict[str, Any] = {"target": target, **({"mode": "serial"} if target == "cpu" else {})}
    calls: dict[str, Callable[[], Any]] = {}
    operator = irkit.te.op(work.text, **options)
    tensors = [torch.from_numpy(a).to(device) for a in arrays]
    own = list(arrays)
    calls["expression"] = lambda: operator(*own)
    sums = [
        s.target for s in program_of(work.text).items if isinstance(s, Statement) and s.operator
    ]
    ruled = irkit.te.op(work.text, dict.fromkeys(sums, "rule"), **options)
    calls["rule"] = lambda: ruled(*own)
    if work.numpy is not None:
        function = work.numpy
        template = irkit.jit(**options)(lambda *given: function(*given))
        calls["own ops"] = lambda: template(*own)

    def peer() -> None:
        work.torch(*tensors)
        if device != "cpu":
            torch.cuda.synchronize()

    calls["PyTorch"] = peer
    want = work.torch(*tensors).cpu().numpy()
    for name in ("expression", "rule", "own ops"):
        if name in calls:
            np.testing.assert_allclose(calls[name](), want, rtol=2e-3, atol=2e-3)
    return calls


def _on_a_gpu(options: argparse.Namespace) -> None:
    """All works against cuBLAS and cuDNN, by `expressions_gpu.py`."""
    torch = harness.peer("torch")

    from benchmarks.expressions_gpu import suite

    chosen = [w for w in works(True) if w.name.startswith(options.only)]
    start = time.perf_counter()
    found = suite(
        [(w.name, w.text, w.shapes, w.torch) for w in chosen], options.gpu, options.rounds
    )
    facts = {"device": torch.cuda.get_device_name(), "seconds": time.perf_counter() - start}
    if options.out is not None:
        harness.write("expressions", {**facts, "suites": found}, options.out)
    wrong = [n for n, f in found.items() if any("wrong" in facts for facts in f.values())]
    if wrong:
        raise SystemExit(f"wrong answers: {', '.join(wrong)}")


def main() -> None:
    """Print a table, and write it as JSON where asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path, help="folder for expressions.json")
    parser.add_argument("--gpu", default="h200", help="the vDevice to compile for, on a GPU")
    parser.add_argument("--only", default="", help="what names begin with")
    options = parser.parse_args()
    torch = harness.peer("torch")

    if options.device == "cuda":
        _on_a_gpu(options)
        return
    torch.set_num_threads(1)
    clock = time.process_time if options.device == "cpu" else time.perf_counter
    rows: list[dict[str, Any]] = []
    rng = np.random.default_rng(0)
    for work in works(options.device != "cpu"):
        if not work.name.startswith(options.only):
            continue
        arrays = [rng.standard_normal(s).astype(np.float32) for s in work.shapes]
        began = time.perf_counter()
        calls = contenders(work, arrays, options.device)
        compiled = time.perf_counter() - began
        times = least(calls, options.rounds, clock)
        row = {"work": work.name, "ms": times["expression"] * 1e3, "first call s": compiled}
        row |= {n: t / times["expression"] for n, t in times.items() if n != "expression"}
        rows.append(row)
        shown = ", ".join(f"{n} {row[n]:.2f}" for n in times if n != "expression")
        print(f"{work.name:32} {row['ms']:9.3f} ms   relative: {shown}", flush=True)
    if options.out is not None:
        harness.write(
            "expressions", {"suites": {row.pop("work"): row for row in rows}}, options.out
        )


if __name__ == "__main__":
    main()
