"""Attention on a GPU: the rKernels that can compute it, beside PyTorch's scaled_dot_product_attention.

    python -m benchmarks.attention [CASE ...] [--device NAME] [--most N] [--only RKERNEL ...] [--prepare]
        [--out FOLDER]

12 heads of one sequence, the same data on both sides; every backend of PyTorch's that takes a case runs, and
the fastest counts. Each kernel runs many times in one CUDA graph. Errors are those of random data against
float64: Frobenius norms, relative. Of the rKernels the N are taken that are estimated to be the fastest.
`--prepare` compiles alone, side by side, and keeps the programs for the next run; no GPU is needed.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import multiprocessing
import os
import pickle
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import harness
from benchmarks.rtask_times import Prepared
from irkit.dialects.task import AlternativeAttr, ROperatorOp
from irkit.passes.task.partition_rtasks import grid_for, nbytes
from irkit.rkernels import families, registry
from irkit.rkernels.legality import root_of, why_illegal
from irkit.runtime.artifact import Artifact

LAUNCHES, RUNS, HEADS = 20, 30, 12
TOKENS = (1, 64, 77, 128, 200, 512, 1000, 1024, 2048, 4096)
_ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Case:
    """Self-attention of `tokens` tokens, heads of `size`; operands and result lie in memory as `element`."""

    tokens: int
    size: int
    causal: bool = False
    element: str = "f32"
    heads: int = HEADS

    @property
    def name(self) -> str:
        """What it is called in results."""
        kind = {"f32": "float32", "bf16": "bfloat16"}[self.element]
        causal = ", causal" if self.causal else ""
        return f"{self.heads}x{self.tokens}x{self.size}{causal} of {kind}"

    @property
    def operations(self) -> float:
        """Floating-point operations of both products; half of them where no key ahead is seen."""
        pairs = self.tokens * (self.tokens + 1) / 2 if self.causal else self.tokens**2
        return 4.0 * self.heads * pairs * self.size

    @property
    def text(self) -> str:
        """The program; 16-bit floats are multiplied as they are."""
        t = f"tensor<1x{self.heads}x{self.tokens}x{self.size}x{self.element}>"
        precision = "bf16" if self.element == "bf16" else "float32"
        causal = ", causal = 0 : i64" if self.causal else ""
        return (
            f"func.func @main(%q: {t}, %k: {t}, %v: {t}) -> {t} attributes "
            f'{{irkit.precision = "{precision}", irkit.fastmath = #arith.fastmath<afn>}} {{\n'
            f"  %y = graph.attention %q, %k, %v {{scale = {self.size**-0.5!r} : f64{causal}}} "
            f": ({t}, {t}, {t}) -> {t}\n  func.return %y : {t}\n}}\n"
        )


CASES = {
    c.name: c
    for element, size, causal, tokens in itertools.product(
        ("f32", "bf16"), (64, 128), (False, True), TOKENS
    )
    for c in (Case(tokens, size, causal, element),)
}


@dataclass(frozen=True)
class Job:
    """One case by one rKernel."""

    case: Case
    device: str
    rkernel: str


@dataclass
class Built:
    """A program of one rKernel, and what an rTask is estimated to take, in ns."""

    rkernel: str
    tasks: int
    cost: float
    artifact: Artifact


def _prepared(case: Case, device: str) -> tuple[Prepared, ROperatorOp]:
    import irkit

    made = Prepared.of(case.name, irkit.parse(case.text), device, whole=True)
    (op,) = (o for o in made.roperators() if root_of(o).family == "attention")
    return made, op


def _choose(made: Prepared, op: ROperatorOp, name: str) -> AlternativeAttr | None:
    """Make the rOperator run by an rKernel; None if that cannot compute it."""
    root, rkernel = root_of(op), registry.find("cuda", name)
    if rkernel not in registry.candidates("cuda", root):
        return None
    literals = rkernel.literals(root)
    grid = grid_for(root, made.device.veus, rkernel)
    cost = families.find(rkernel.family).task_ns(rkernel, root, grid, nbytes(op), made.device)
    scratch = rkernel.scratch(root, literals)
    found = AlternativeAttr.of(rkernel.name, grid, cost, dict(literals), scratch, rkernel.fastmath)
    op.choose(found)
    return found if why_illegal(op, made.device) is None else None


def _tasks(found: AlternativeAttr) -> int:
    return int(np.prod(list(found.grid)))


def ranked(given: tuple[Case, str]) -> list[str]:
    """The rKernels that can compute a case on a device, the fastest by estimate first."""
    made, op = _prepared(*given)
    found: dict[str, float] = {}
    for rkernel in registry.registered("cuda"):
        if rkernel.family != "attention":
            continue
        chosen = _choose(made, op, rkernel.name)
        if chosen is not None:
            found[rkernel.name] = -(-_tasks(chosen) // made.device.veus) * chosen.cost_ns
    return sorted(found, key=lambda name: found[name])


def program(job: Job) -> Built | None:
    """A case by one rKernel, from an earlier run if that had it; None if it cannot compute the case."""
    path = programs() / f"{hashlib.sha256(repr(job).encode()).hexdigest()}.pickle"
    if path.exists():
        return pickle.loads(path.read_bytes())
    made, op = _prepared(job.case, job.device)
    chosen = _choose(made, op, job.rkernel)
    if chosen is None:
        return None
    made.schedule()
    built = Built(job.rkernel, _tasks(chosen), chosen.cost_ns, made.built())
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}")
    partial.write_bytes(pickle.dumps(built))
    partial.rename(path)
    return built


def programs() -> Path:
    """Where programs of these very sources are kept."""
    digest = hashlib.sha256()
    for path in sorted([*(_ROOT / "irkit").rglob("*.py"), *(_ROOT / "irkit").rglob("*.json")]):
        digest.update(path.read_bytes())
    return Path(tempfile.gettempdir()) / f"irkit-attention-{digest.hexdigest()[:16]}"


class Torch:
    """PyTorch's attention on the data of a case, and its answer in float64."""

    def __init__(self, case: Case) -> None:
        torch = harness.peer("torch")
        torch.manual_seed(0)
        self.torch, self.case = torch, case
        self.element = torch.bfloat16 if case.element == "bf16" else torch.float32
        shape = (1, case.heads, case.tokens, case.size)
        self.given = [torch.randn(shape, device="cuda").to(self.element) for _ in range(3)]
        q, k, v = (x.double() for x in self.given)
        scores = (q @ k.transpose(-1, -2)) * case.size**-0.5
        if case.causal:
            ahead = torch.ones(case.tokens, case.tokens, device="cuda", dtype=torch.bool).triu(1)
            scores = scores.masked_fill(ahead, -float("inf"))
        self.want = torch.softmax(scores, -1) @ v

    def error(self, y: Any) -> float:
        """Relative error in the Frobenius norm."""
        return float((y.double() - self.want).norm() / self.want.norm())

    def timed(self) -> dict[str, Any]:
        """Times and errors of every backend that takes the case."""
        attention = harness.peer("torch.nn.attention")
        found: dict[str, Any] = {}
        for name in ("FLASH_ATTENTION", "CUDNN_ATTENTION", "EFFICIENT_ATTENTION", "MATH"):
            backend = getattr(attention.SDPBackend, name)
            with suppress(RuntimeError), attention.sdpa_kernel([backend]):
                found[f"torch {name.removesuffix('_ATTENTION').lower()}"] = self._timed()
        return found

    def _timed(self) -> dict[str, Any]:
        torch = self.torch

        def run() -> Any:
            function = torch.nn.functional.scaled_dot_product_attention
            return function(*self.given, is_causal=self.case.causal)

        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                y = run()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(LAUNCHES):
                y = run()
        seconds: list[float] = []
        for _ in range(RUNS + 1):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            seconds.append(start.elapsed_time(end) / 1e3 / LAUNCHES)
        return {**harness.spread(seconds[1:]), "error": self.error(y)}


def timed(built: Built, work: Torch) -> dict[str, Any]:
    """Times of the program's kernel, a block an rTask, in a graph of many; and its error."""
    from irkit.model_info import ModelInfo
    from irkit.runtime.cuda.driver import Event, Graph
    from irkit.runtime.cuda.executor import CudaExecutor
    from irkit.schedule.modes import Mode

    info = ModelInfo.from_json(built.artifact.info)
    executor = CudaExecutor.from_artifact(built.artifact, info, "per-op")
    executor.device.activate()
    stream, residence = executor.stream, executor.residence
    outputs = executor.new_outputs("torch", 1, stream)
    addresses = [*(x.data_ptr() for x in work.given), *(a for a, _ in outputs)]
    residence.bind(addresses, 16, stream)
    executor.launch(Mode.PER_OP, 1, stream)
    executor.synchronize()
    error = work.error(outputs[0][1])
    (append,) = executor.program.appends
    arguments = (residence.serial, residence.bases, 1, 16)

    def launches(into: Any) -> None:
        for _ in range(LAUNCHES):
            executor.ops[append.kernel].launch(append.tasks, arguments, into)

    graph, seconds = Graph(launches, stream), list[float]()
    for _ in range(RUNS + 1):
        start, end = Event(), Event()
        start.record(stream)
        graph.launch(stream)
        end.record(stream)
        seconds.append(end.since(start) / 1e3 / LAUNCHES)
    executor.synchronize()
    return {**harness.spread(seconds[1:]), "error": error}


def _measured(case: Case, made: Sequence[Built]) -> dict[str, Any]:
    work = Torch(case)
    found = work.timed()
    best = min((f["median_us"] for f in found.values()), default=float("nan"))
    for built in made:
        rounds = {"estimate us": built.cost / 1e3, "rTasks": built.tasks}
        found[built.rkernel] = {**timed(built, work), **rounds}
    own = min((found[b.rkernel]["median_us"] for b in made), default=float("nan"))
    for facts in found.values():
        facts["tflops"] = case.operations / facts["median_us"] / 1e6
    return {**found, "ratio": own / best}


def _line(name: str, found: dict[str, Any]) -> str:
    lines = [f"== {name}: {found['ratio']:.2f} of the fastest peer's time"]
    kernels = {k: f for k, f in found.items() if isinstance(f, dict)}
    for label, facts in sorted(kernels.items(), key=lambda item: item[1]["median_us"]):
        more = ""
        if "estimate us" in facts:
            more = f" estimate {facts['estimate us']:7.1f} us, {facts['rTasks']} rTasks"
        spread = f"{facts['p10_us']:.1f} – {facts['p90_us']:.1f}"
        lines.append(
            f"  {label:26} {facts['median_us']:9.1f} us ({spread}) {facts['tflops']:6.1f} TFLOP/s "
            f"error {facts['error']:.1e}{more}"
        )
    return "\n".join(lines)


def _jobs(
    pool: Any, names: Sequence[str], device: str, most: int, only: Sequence[str]
) -> Iterator[Job]:
    """Of each case the rKernels that are estimated to be the fastest."""
    cases = [(CASES[name], device) for name in names]
    for (case, _), found in zip(cases, pool.imap(ranked, cases), strict=True):
        wanted = [n for n in found if not only or any(part in n for part in only)]
        yield from (Job(case, device, rkernel) for rkernel in wanted[:most])


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("cases", nargs="*", help="parts of names of cases; all by default")
    parser.add_argument("--device", default="h200")
    parser.add_argument("--most", type=int, default=4, help="rKernels of a case")
    parser.add_argument("--only", nargs="*", default=[], help="parts of names of rKernels")
    parser.add_argument("--prepare", action="store_true", help="compile alone")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    names = [n for n in CASES if not options.cases or any(c in n for c in options.cases)]
    with multiprocessing.get_context("spawn").Pool(len(os.sched_getaffinity(0))) as pool:
        jobs = list(_jobs(pool, names, options.device, options.most, options.only))
        made = zip(jobs, pool.imap(program, jobs), strict=True)
        for name, group in itertools.groupby(made, key=lambda pair: pair[0].case.name):
            built = [b for _, b in group if b is not None]
            if options.prepare:
                print(f"{name}: {', '.join(b.rkernel for b in built)}", flush=True)
                continue
            found = _measured(CASES[name], built)
            print(_line(name, found), flush=True)
            device = harness.peer("torch").cuda.get_device_name()
            facts = {"device": device, "suites": {"attention": {name: found}}}
            assert harness.update_cases("attention", facts, options.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
