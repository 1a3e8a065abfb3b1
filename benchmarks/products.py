"""Products and convolutions on a GPU: every rKernel that can compute them, beside PyTorch's.

    python -m benchmarks.products [CASE ...] [--device NAME] [--only RKERNEL ...] [--precisions NAME ...]
        [--out FOLDER]

Each rOperator's own kernel runs many times in one CUDA graph, what packs terms among them, of both operands:
constants are packed when a program is built, so what packing takes is told apart. So do PyTorch's kernels in
float32, TF32 and bfloat16. Errors are those of random data, against float64: Frobenius norms, relative.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import harness
from benchmarks.rtask_times import Prepared
from irkit.dialects.packed_terms import SCALED
from irkit.dialects.task import AlternativeAttr, LaunchOp, ROperatorOp
from irkit.passes.task.partition_rtasks import grid_for, nbytes
from irkit.rkernels import families, registry
from irkit.rkernels.legality import root_of, why_illegal
from irkit.runtime.artifact import Artifact

LAUNCHES, RUNS = 20, 15


@dataclass(frozen=True)
class Case:
    """A product of x and weights w (`conv`: their convolution), which lie transposed or not.

    `element` is what x, w and the result lie in memory as.
    """

    name: str
    x: tuple[int, ...]
    w: tuple[int, ...]
    stride: int = 1
    transposed: bool = False
    element: str = "f32"

    @property
    def conv(self) -> bool:
        """Whether it is a convolution, padded to keep its size."""
        return len(self.x) == 4

    @property
    def y(self) -> tuple[int, ...]:
        """Shape of the result."""
        if not self.conv:
            return (self.x[0], self.w[0] if self.transposed else self.w[1])
        n, _, height, width = self.x
        return (n, self.w[0], *((s - 1) // self.stride + 1 for s in (height, width)))

    @property
    def operations(self) -> float:
        """Floating-point operations."""
        terms = np.prod(self.w[1:]) if self.conv else self.x[1]
        return 2.0 * float(np.prod(self.y)) * float(terms)

    def text(self, precision: str) -> str:
        """The program, whose products are computed in `precision`."""
        x, w, y = (
            f"tensor<{'x'.join(map(str, s))}x{self.element}>" for s in (self.x, self.w, self.y)
        )
        if not self.conv:
            op = f"graph.matmul %x, %w : ({x}, {w}) -> {y}"
            if self.transposed:
                b = f"tensor<{self.w[0]}x{self.element}>"
                how = "{trans_a = false, trans_b = true, alpha = 1.0 : f64, beta = 0.0 : f64}"
                op = f"graph.gemm %x, %w, %b {how} : ({x}, {w}, {b}) -> {y}"
                return _main(precision, f"%x: {x}, %w: {w}, %b: {b}", y, op)
            return _main(precision, f"%x: {x}, %w: {w}", y, op)
        pad, step = self.w[2] // 2, self.stride
        how = (
            f"{{strides = array<i64: {step}, {step}>, pads = array<i64: {pad}, {pad}, {pad}, {pad}>, "
            f"dilations = array<i64: 1, 1>, group = 1 : i64}}"
        )
        b = f"tensor<{self.w[0]}x{self.element}>"
        op = f"graph.conv %x, %w, %b {how} : ({x}, {w}, {b}) -> {y}"
        return _main(precision, f"%x: {x}, %w: {w}, %b: {b}", y, op)


def _main(precision: str, arguments: str, result: str, op: str) -> str:
    granted = f'attributes {{irkit.precision = "{precision}"}}'
    return (
        f"func.func @main({arguments}) -> {result} {granted} {{\n"
        f"  %y = {op}\n  func.return %y : {result}\n}}\n"
    )


def _cases() -> Iterator[Case]:
    for m, k, n in ((4096, 4096, 4096), (64, 4096, 4096), (128, 4096, 4096), (256, 4096, 4096)):
        yield Case(f"{m}x{k}x{n}", (m, k), (k, n))
        yield Case(f"{m}x{k}x{n}, transposed", (m, k), (n, k), transposed=True)
        name = f"{m}x{k}x{n} of bfloat16"
        yield Case(name, (m, k), (k, n), element="bf16")
        yield Case(f"{name}, transposed", (m, k), (n, k), transposed=True, element="bf16")
    yield Case("8192x8192x8192", (8192, 8192), (8192, 8192))
    yield Case("8192x8192x8192 of bfloat16", (8192, 8192), (8192, 8192), element="bf16")
    for m, k, n in (
        (128, 768, 768), (128, 768, 3072), (128, 3072, 768), (128, 256, 1024), (128, 1024, 256),
        (100, 300, 500), (512, 512, 512), (200, 2000, 1000),
    ):  # fmt: skip
        yield Case(f"{m}x{k}x{n}", (m, k), (k, n))
        yield Case(f"{m}x{k}x{n} transposed", (m, k), (n, k), transposed=True)
    for n in (1, 16):
        for c, size, o, kernel, step in (
            (3, 224, 64, 7, 2), (64, 56, 64, 3, 1), (64, 56, 256, 1, 1), (256, 56, 64, 1, 1),
            (128, 28, 128, 3, 1), (256, 14, 256, 3, 1), (1024, 14, 256, 1, 1), (512, 7, 512, 3, 1),
            (256, 28, 512, 1, 2),
        ):  # fmt: skip
            name = f"{n}x{c}x{size} to {o} by {kernel}, step {step}"
            yield Case(name, (n, c, size, size), (o, c, kernel, kernel), step)


CASES = {c.name: c for c in _cases()}
PRECISIONS = ("float32", "tf32", "bf16")
_PRECISE = ("mma", "packed", "fed", "boxes", "held")
"""Parts of the names of rKernels that do less where less precision is granted."""


@dataclass(frozen=True)
class Job:
    """One case in one precision by one rKernel; `terms`: how factors are packed where there is a choice."""

    case: Case
    precision: str
    device: str
    rkernel: str
    terms: str = ""


@dataclass
class Built:
    """A program of one rKernel, and what it is estimated to take, in ns."""

    rkernel: str
    cost: float
    artifact: Artifact
    launches: Mapping[str, int]
    """Of each rOperator."""


def program(job: Job) -> Built | None:
    """A case by one rKernel; None if that cannot compute it."""
    import irkit

    module = irkit.parse(job.case.text(job.precision))
    # What is not held in registers, where it is cut into parts, is packed alone.
    only = ""
    if job.rkernel.startswith("product.held") and job.precision == "float32":
        only = "second" if "held_rows" in job.rkernel else "first"
    packed = job.rkernel.startswith("product.packed") or only != ""
    made = Prepared.of(job.case.name, module, job.device, packed, only=only, terms=job.terms)
    op = _product_of(made)
    root = root_of(op)
    found = [k for k in registry.candidates("cuda", root) if k.name == job.rkernel]
    if not found:
        return None
    rkernel = found[0]
    literals = rkernel.literals(root)
    grid = grid_for(root, made.device.veus, rkernel)
    family = families.find(rkernel.family)
    cost = family.task_ns(rkernel, root, grid, nbytes(op), made.device)
    scratch = rkernel.scratch(root, literals)
    op.choose(
        AlternativeAttr.of(rkernel.name, grid, cost, dict(literals), scratch, rkernel.fastmath)
    )
    if why_illegal(op, made.device) is not None:
        return None
    launches = Counter(
        o.callee.string_value() for o in made.module.walk() if isinstance(o, LaunchOp)
    )
    made.schedule()
    how = job.terms or (job.precision if job.precision != "float32" else "")
    return Built(", ".join(filter(None, (rkernel.name, how))), cost, made.built(), launches)


def _product_of(prepared: Prepared) -> ROperatorOp:
    """The rOperator with the most terms."""
    return max(prepared.roperators(), key=lambda op: np.prod([1, *root_of(op).reduction]))


class Torch:
    """PyTorch's own kernels on the data of a case, and its answer in float64."""

    def __init__(self, case: Case) -> None:
        torch = harness.peer("torch")
        torch.manual_seed(0)
        self.torch, self.case = torch, case
        self.x, self.w = (torch.randn(s, device="cuda") for s in (case.x, case.w))
        self.bias = torch.zeros(case.y[1], device="cuda")
        self.element = torch.bfloat16 if case.element == "bf16" else torch.float32
        self.want = self.compute(self.x.double(), self.w.double())

    def compute(self, x: Any, w: Any) -> Any:
        """The product, in the type of its factors."""
        if self.case.conv:
            pad = self.case.w[2] // 2
            return self.torch.conv2d(x, w, None, self.case.stride, pad)
        return x @ (w.T if self.case.transposed else w)

    def error(self, y: Any) -> float:
        """Relative error in the Frobenius norm."""
        return float((y.double() - self.want).norm() / self.want.norm())

    def timed(self, kind: Any, tf32: bool = False) -> tuple[float, float]:
        """(microseconds of one product in a graph of many, error)."""
        torch = self.torch
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
        torch.backends.cudnn.benchmark = True
        x, w = self.x.to(kind), self.w.to(kind)
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                y = self.compute(x, w)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(LAUNCHES):
                y = self.compute(x, w)
        times: list[float] = []
        for _ in range(RUNS + 1):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            times.append(start.elapsed_time(end) * 1e3 / LAUNCHES)
        return float(np.median(times[1:])), self.error(y)


def timed(built: Built, work: Torch) -> tuple[float, list[float], float]:
    """(microseconds of the program's kernels in a graph of many, of each launch that packs terms, error)."""
    from irkit.model_info import ModelInfo
    from irkit.runtime.cuda.executor import CudaExecutor
    from irkit.runtime.cuda.rtask_times import gpu_times
    from irkit.schedule.modes import Mode

    artifact = built.artifact
    executor = CudaExecutor.from_artifact(artifact, ModelInfo.from_json(artifact.info), "per-op")
    executor.device.activate()
    given = [x.to(work.element) for x in (work.x, work.w, work.bias)]
    given = given[: len(executor.program.inputs)]
    outputs = executor.new_outputs("torch", 1, executor.stream)
    addresses = [*(t.data_ptr() for t in given), *(a for a, _ in outputs)]
    executor.residence.bind(addresses, 16, executor.stream)
    executor.launch(Mode.PER_OP, 1, executor.stream)
    executor.synchronize()
    error = work.error(outputs[0][1])
    executor.synchronize()
    found = gpu_times(artifact, 1, RUNS, net=False, spread=True)
    # Operands of one shape are packed by one rOperator.
    each = [(name, ns / 1e3) for name, ns in found.items() for _ in range(built.launches[name])]
    packing = [us for name, us in each if name.startswith("pack_")]
    return sum(us for _, us in each), packing, error


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("cases", nargs="*", help="names of cases, or parts; all by default")
    parser.add_argument("--device", default="h200")
    parser.add_argument("--only", nargs="*", default=[], help="parts of names of rKernels")
    parser.add_argument("--precisions", nargs="*", default=PRECISIONS, choices=PRECISIONS)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    names = [n for n in CASES if not options.cases or any(_is_meant(n, c) for c in options.cases)]
    rkernels = [k.name for k in registry.registered("cuda") if k.family in ("product", "gemm")]
    chosen = [n for n in rkernels if not options.only or any(part in n for part in options.only)]
    jobs = [
        Job(CASES[name], precision, options.device, rkernel, terms)
        for name in names
        for precision in options.precisions
        for rkernel in chosen
        for terms in _terms(rkernel, precision)
        if precision == "float32" or any(part in rkernel for part in _PRECISE)
        if CASES[name].element == "f32" or precision != "tf32"
    ]
    device = harness.peer("torch").cuda.get_device_name()
    with multiprocessing.get_context("spawn").Pool(len(os.sched_getaffinity(0))) as pool:
        made = zip(jobs, pool.imap(program, jobs), strict=True)
        for name, programs in itertools.groupby(made, key=lambda pair: pair[0].case.name):
            built = [b for _, b in programs if b is not None]
            found = _measured(CASES[name], built)
            print(_line(name, found), flush=True)
            facts = {"device": device, "suites": {"products": {name: found}}}
            assert harness.update_cases("products", facts, options.out)
    return 0


def _is_meant(name: str, asked: str) -> bool:
    """Of a whole name no other case is."""
    return name == asked if asked in CASES else asked in name


def _terms(rkernel: str, precision: str) -> tuple[str, ...]:
    """How an rKernel's factors may be packed, where that is a choice."""
    packs = any(part in rkernel for part in ("packed", "held"))
    return ("", SCALED) if precision == "float32" and packs else ("",)


def _measured(case: Case, made: Sequence[Built]) -> dict[str, Any]:
    work = Torch(case)
    torch = work.torch
    found: dict[str, Any] = {}
    for label, kind, tf32 in (
        ("torch float32", torch.float32, False),
        ("torch TF32", torch.float32, True),
        ("torch bfloat16", torch.bfloat16, False),
    ):
        us, error = work.timed(kind, tf32)
        found[label] = {"us": us, "error": error, "tflops": case.operations / us / 1e6}
    for built in made:
        us, packing, error = timed(built, work)
        tflops, estimate = case.operations / us / 1e6, built.cost / 1e3
        found[built.rkernel] = {
            "us": us, "error": error, "tflops": tflops, "estimate_us": estimate,
            "packing_us": sum(packing),
        }  # fmt: skip
        if built.rkernel.endswith(f", {SCALED}"):
            found[built.rkernel] |= {"products": 3}
        # That of the larger operand, weights say, where both are packed.
        if len(packing) > 1:
            found[built.rkernel] |= {"packing_weights_us": max(packing)}
    return found


def _line(name: str, found: dict[str, Any]) -> str:
    lines = [f"== {name}"]
    for label, facts in sorted(found.items(), key=lambda item: item[1]["us"]):
        estimate = f" estimate {facts['estimate_us']:8.1f}" if "estimate_us" in facts else ""
        if facts.get("packing_us"):
            estimate += f", {facts['packing_us']:.1f} us of packing both operands"
        lines.append(
            f"  {label:28} {facts['us']:9.1f} us {facts['tflops']:7.1f} TFLOP/s "
            f"error {facts['error']:.1e}{estimate}"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
