"""Products and convolutions of bytes on a GPU: every rKernel that takes them, beside PyTorch's.

    python -m benchmarks.byte_products [part of a name ...] [--device h200] [--only PART ...] [--out FOLDER]

Sums of 32 bits, nothing behind them. PyTorch has `torch._int_mm` for products of signed bytes and nothing for
convolutions; its float16 product or convolution of the same shape stands beside both.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import harness
from benchmarks.rtask_times import Prepared, measure
from irkit.dialects.task import AlternativeAttr
from irkit.passes.task.partition_rtasks import grid_for, nbytes
from irkit.rkernels import families, registry
from irkit.rkernels.legality import root_of, why_illegal

if TYPE_CHECKING:
    from benchmarks.rtask_times import Sample
    from irkit.runtime.artifact import Artifact

RUNS, LAUNCHES = 15, 20


@dataclass(frozen=True)
class Case:
    """A product x w in i32 of bytes of `kinds`; `by_k`: w is transposed. Of four dimensions a convolution,
    padded
    by `zero` to keep its size."""

    name: str
    x: tuple[int, ...]
    w: tuple[int, ...]
    kinds: tuple[str, str] = ("i8", "i8")
    by_k: bool = False
    stride: int = 1
    zero: int = 0

    @property
    def conv(self) -> bool:
        """Whether it is a convolution."""
        return len(self.x) == 4

    @property
    def y(self) -> tuple[int, ...]:
        """Shape of the result."""
        if not self.conv:
            return (self.x[0], self.w[0] if self.by_k else self.w[1])
        n, _, height, width = self.x
        return (n, self.w[0], *((s - 1) // self.stride + 1 for s in (height, width)))

    @property
    def operations(self) -> float:
        """Operations, two for each multiply-add."""
        terms = np.prod(self.w[1:]) if self.conv else self.x[1]
        return 2.0 * float(np.prod(self.y)) * float(terms)

    def text(self) -> str:
        """The program."""
        x, w, y = ("x".join(map(str, s)) for s in (self.x, self.w, self.y))
        a, b = self.kinds
        lines, source, wide = list[str](), "%x", x
        if self.conv:
            pad, (n, c, height, width) = self.w[2] // 2, self.x
            wide = f"{n}x{c}x{height + 2 * pad}x{width + 2 * pad}"
            edge = f"array<i64: 0, 0, {pad}, {pad}>"
            lines.append(
                f"  %p = graph.pad %x {{low = {edge}, high = {edge}, value = {float(self.zero)} : f64}}"
                f" : (tensor<{x}x{a}>) -> tensor<{wide}x{a}>"
            )
            source = "%p"
        lines.append(
            f"  %0 = graph.cast {source} {{to = i32}} : (tensor<{wide}x{a}>) -> tensor<{wide}xi32>"
        )
        lines.append(f"  %1 = graph.cast %w {{to = i32}} : (tensor<{w}x{b}>) -> tensor<{w}xi32>")
        given = f"(tensor<{wide}xi32>, tensor<{w}xi32>) -> tensor<{y}xi32>"
        lines.append(f"  %y = {self._op()} : {given}")
        head = f"func.func @main(%x: tensor<{x}x{a}>, %w: tensor<{w}x{b}>) -> tensor<{y}xi32> {{"
        return "\n".join([head, *lines, f"  func.return %y : tensor<{y}xi32>", "}"])

    def _op(self) -> str:
        if self.conv:
            how = (
                f"strides = array<i64: {self.stride}, {self.stride}>, pads = array<i64: 0, 0, 0, 0>"
            )
            return f"graph.conv %0, %1 {{{how}, dilations = array<i64: 1, 1>, group = 1 : i64}}"
        flag = str(self.by_k).lower()
        how = f"trans_a = false, trans_b = {flag}, alpha = 1.0 : f64, beta = 1.0 : f64"
        return f"graph.gemm %0, %1 {{{how}}}"

    def exact(self, x: Any, w: Any) -> Any:
        """The sums modulo 2^32."""
        x, w = x.astype(np.int64), w.astype(np.int64)
        if not self.conv:
            return (x @ (w.T if self.by_k else w)).astype(np.int32)
        kernel, pad = self.w[2], self.w[2] // 2
        edges = ((0, 0), (0, 0), (pad, pad), (pad, pad))
        padded = np.pad(x, edges, constant_values=self.zero)
        seen = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), (2, 3))
        seen = seen[:, :, :: self.stride, :: self.stride]
        return np.einsum("bcyxij,ocij->boyx", seen, w, optimize=True).astype(np.int32)


def _cases() -> list[Case]:
    found = [
        Case(f"{m}x{k}x{n}{' by k' if by_k else ''}", (m, k), (n, k) if by_k else (k, n), by_k=by_k)
        for m, k, n in ((1, 4096, 4096), (4, 4096, 4096), (64, 4096, 4096), (256, 4096, 4096),
                        (4096, 4096, 4096), (128, 768, 3072))
        for by_k in (True, False)
    ]  # fmt: skip
    for n in (1, 16):
        for c, size, o, kernel, step in (
            (3, 224, 64, 7, 2), (64, 56, 64, 3, 1), (64, 56, 256, 1, 1), (256, 56, 64, 1, 1),
            (128, 28, 128, 3, 1), (256, 14, 256, 3, 1), (1024, 14, 256, 1, 1), (512, 7, 512, 3, 1),
        ):  # fmt: skip
            name = f"{n}x{c}x{size} to {o} by {kernel}, step {step}"
            filters = (o, c, kernel, kernel)
            found.append(
                Case(name, (n, c, size, size), filters, ("ui8", "i8"), stride=step, zero=7)
            )
    return found


CASES = {c.name: c for c in _cases()}


def built(case: Case, device: str, name: str) -> tuple[Artifact, list[Sample]] | None:
    """A case by the rKernel `name`; None if that cannot compute it."""
    import irkit

    made = Prepared.of(case.name, irkit.parse(case.text()), device)
    op = max(made.roperators(), key=lambda op: np.prod([1, *root_of(op).reduction]))
    root = root_of(op)
    rkernel = next((k for k in registry.candidates("cuda", root) if k.name == name), None)
    if rkernel is None:
        return None
    literals, grid = rkernel.literals(root), grid_for(root, made.device.veus, rkernel)
    family = families.find(rkernel.family)
    cost = family.task_ns(rkernel, root, grid, nbytes(op), made.device)
    scratch = rkernel.scratch(root, literals)
    op.choose(
        AlternativeAttr.of(rkernel.name, grid, cost, dict(literals), scratch, rkernel.fastmath)
    )
    if why_illegal(op, made.device) is not None:
        return None
    made.schedule()
    return made.built(), made.samples()


def torch_times(case: Case) -> dict[str, float]:
    """Microseconds of PyTorch's own, in a CUDA graph of many."""
    torch = harness.peer("torch")
    x, w = (torch.randint(-100, 100, s, device="cuda", dtype=torch.int8) for s in (case.x, case.w))
    halves = x.half(), w.half()
    runs: dict[str, Any] = {}
    if case.conv:
        pad = case.w[2] // 2
        runs["torch float16"] = lambda: torch.conv2d(*halves, None, case.stride, pad)
    else:
        runs["torch float16"] = lambda: halves[0] @ (halves[1].T if case.by_k else halves[1])
        if case.x[0] > 16:
            runs["torch._int_mm"] = lambda: torch._int_mm(x, w.T if case.by_k else w)
    return {name: _in_a_graph(torch, run) for name, run in runs.items()}


def _in_a_graph(torch: Any, run: Any) -> float:
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(LAUNCHES):
            run()
    times: list[float] = []
    for _ in range(RUNS + 1):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1e3 / LAUNCHES)
    return float(np.median(times[1:]))


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("cases", nargs="*", help="parts of names of cases; all by default")
    parser.add_argument("--device", default="h200")
    parser.add_argument("--only", nargs="*", default=[], help="parts of names of rKernels")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    names = [n for n in CASES if not options.cases or any(c in n for c in options.cases)]
    known = [k.name for k in registry.registered("cuda") if k.family == "integer_product"]
    chosen = [n for n in known if not options.only or any(part in n for part in options.only)]
    found: dict[str, Any] = {}
    for name in names:
        case, times = CASES[name], torch_times(CASES[name])
        for rkernel in chosen:
            made = built(case, options.device, rkernel)
            if made is not None:
                times[rkernel] = sum(s.measured_ns for s in measure(*made)) / 1e3
        found[name] = {k: {"us": us, "tops": case.operations / us / 1e6} for k, us in times.items()}
        print(f"== {name}", flush=True)
        for label, row in sorted(found[name].items(), key=lambda item: item[1]["us"]):
            print(f"  {label:28} {row['us']:9.1f} us {row['tops']:7.1f} TOP/s", flush=True)
    print(harness.write("byte_products", {"suites": {"products": found}}, options.out))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
