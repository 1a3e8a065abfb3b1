"""Tensor expressions on a GPU beside cuBLAS and cuDNN, through PyTorch: `expressions.py --device cuda`.

Every expression is compiled twice, with nothing said of its loops (irkit chooses by estimate) and with
`rule`, for the nests that irkit's rule makes of what reduces. Programs are built side by side, without the
GPU. What is timed are replays of a CUDA graph, one after another, of each contender by turns; the least time
of the rounds counts. Every answer is compared with the same in float64, in the Frobenius norm, before it is
timed.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import harness
from irkit.errors import IrkitError
from irkit.expressions.binding import bind, program_of
from irkit.expressions.printing import text_of

LAUNCHES = 10
LARGEST_ERROR = 1e-5
"""Relative, in the Frobenius norm; sums of thousands of float32 terms are off by about 1e-6."""
WAYS = ("by estimate", "rule")


@dataclass(frozen=True)
class Job:
    """An expression over arrays of these shapes, in one of `WAYS`."""

    name: str
    text: str
    shapes: tuple[tuple[int, ...], ...]
    way: str
    device: str


@dataclass
class Built:
    """A program, how many seconds it took to build, and its rKernels; or why there is none."""

    way: str
    artifact: Any = None
    seconds: float = 0.0
    rkernels: tuple[str, ...] = ()
    refused: str = ""


def module_text(job: Job) -> str:
    """The expression as a function of `graph.expression`, an op a statement."""
    program = program_of(job.text)
    names = [p.name for p in program.parameters]
    steps, shapes = bind(program, job.shapes, [np.dtype(np.float32)] * len(job.shapes))
    lines = list[str]()
    for step in steps:
        said = ""
        if job.way == "rule" and step.statement.operator:
            loops, read = ", ".join(x.name for x in step.domain.loops), ", ".join(step.operands)
            said = f', schedule = #loop.schedule<"for {loops} of {read}; rule">'
        given = [f"%{name}" for name in step.operands]
        types = ", ".join(_tensor(shapes[name]) for name in step.operands)
        target = step.statement.target
        statement = f'text = "{text_of(step.statement)}"{said}'
        op = f"graph.expression {', '.join(given)} {{{statement}}}"
        lines.append(f"  %{target} = {op} : ({types}) -> {_tensor(shapes[target])}")
    (result,) = program.results
    arguments = ", ".join(f"%{name}: {_tensor(shapes[name])}" for name in names)
    kind = _tensor(shapes[result])
    body = "\n".join(lines)
    return (
        f"func.func @main({arguments}) -> {kind} {{\n{body}\n  func.return %{result} : {kind}\n}}\n"
    )


def _tensor(shape: Sequence[int]) -> str:
    return f"tensor<{'x'.join([*map(str, shape), 'f32'])}>"


def build(job: Job) -> Built:
    """The program of a job. Nothing of it needs a GPU."""
    import irkit

    start = time.perf_counter()
    try:
        made = irkit.compile(irkit.parse(module_text(job)), target="cuda", device=job.device)
    except IrkitError as error:
        return Built(job.way, refused=str(error))
    took = time.perf_counter() - start
    chosen = tuple(op["rkernel"] for op in made.report()["roperators"].values())
    artifact = made._first.artifact  # pyright: ignore[reportPrivateUsage]
    return Built(job.way, artifact, took, chosen)


def _without_gpu() -> None:
    """Of a process that builds: it needs none, and a context of each takes memory."""
    os.environ["CUDA_VISIBLE_DEVICES"] = ""


class Program:
    """A built program on arrays of PyTorch."""

    def __init__(self, artifact: Any, inputs: Sequence[Any]) -> None:
        from irkit.model_info import ModelInfo
        from irkit.runtime.cuda.executor import CudaExecutor
        from irkit.schedule.modes import Mode

        info = ModelInfo.from_json(artifact.info)
        self.executor = CudaExecutor.from_artifact(artifact, info, "per-op")
        self.executor.device.activate()
        self.mode = Mode.PER_OP
        self.inputs = list(inputs)
        self.outputs = self.executor.new_outputs("torch", 1, self.executor.stream)
        addresses = [*(t.data_ptr() for t in inputs), *(a for a, _ in self.outputs)]
        self.executor.residence.bind(addresses, 16, self.executor.stream)

    def run(self, times: int = 1) -> None:
        """Run it so often, to the end."""
        for _ in range(times):
            self.executor.launch(self.mode, 1, self.executor.stream)
        self.executor.synchronize()

    @property
    def result(self) -> Any:
        """What it computed last."""
        return self.outputs[0][1]


def replayed(call: Callable[[], Any], torch: Any) -> Callable[[int], None]:
    """A call in a CUDA graph, run so often, to the end."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()

    def run(times: int = 1) -> None:
        for _ in range(times):
            graph.replay()
        torch.cuda.synchronize()

    return run


def measured(
    shapes: Sequence[Sequence[int]], peer: Callable[..., Any], built: Sequence[Built], rounds: int
) -> dict[str, Any]:
    """What the programs and PyTorch take, in µs, and how far each is from float64."""
    torch = harness.peer("torch")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(0)
    arrays = [torch.randn(tuple(s), device="cuda") for s in shapes]
    want = peer(*(a.double() for a in arrays))
    torch.cuda.synchronize()
    norm = float(want.norm())

    def error(got: Any) -> float:
        off = float((got.double() - want).norm()) / norm
        return off if math.isfinite(off) else math.inf

    found: dict[str, Any] = {"PyTorch": {"error": error(peer(*arrays))}}
    runs: dict[str, Callable[[int], None]] = {"PyTorch": replayed(lambda: peer(*arrays), torch)}
    kept: list[Program] = []
    for one in built:
        if one.refused:
            found[one.way] = {"refused": one.refused}
            continue
        program = Program(one.artifact, arrays)
        kept.append(program)
        program.run()
        off = error(program.result)
        torch.cuda.synchronize()
        facts = {"error": off, "rkernels": list(one.rkernels), "seconds to build": one.seconds}
        if off > LARGEST_ERROR:
            found[one.way] = {**facts, "wrong": True}
            continue
        found[one.way], runs[one.way] = facts, program.run
    times = _by_turns(runs, rounds)
    for way, least in times.items():
        found[way]["us"] = least * 1e6
        found[way]["share of PyTorch's speed"] = times["PyTorch"] / least
    return found


def _by_turns(runs: dict[str, Callable[[int], None]], rounds: int) -> dict[str, float]:
    """Seconds of a run of each, the least of the rounds; fewer launches of what takes long."""
    count: dict[str, int] = {}
    for name, run in runs.items():
        run(2)
        start = time.perf_counter()
        run(1)
        took = time.perf_counter() - start
        count[name] = max(2, min(5 * LAUNCHES, int(0.02 / max(took, 1e-6))))
    best = dict.fromkeys(runs, math.inf)
    for _ in range(rounds):
        for name, run in runs.items():
            start = time.perf_counter()
            run(count[name])
            best[name] = min(best[name], (time.perf_counter() - start) / count[name])
    return best


def suite(
    works: Sequence[tuple[str, str, Sequence[Sequence[int]], Callable[..., Any]]],
    device: str,
    rounds: int,
) -> dict[str, Any]:
    """All works (name, expression, shapes, the same by PyTorch), printed as they are measured."""
    jobs = [
        Job(name, text, tuple(tuple(s) for s in shapes), way, device)
        for name, text, shapes, _ in works
        for way in WAYS
    ]
    found: dict[str, Any] = {}
    cores = len(os.sched_getaffinity(0))
    with multiprocessing.get_context("spawn").Pool(min(cores, len(jobs)), _without_gpu) as pool:
        made = pool.imap(build, jobs)
        for name, _, shapes, peer in works:
            built = [next(made) for _ in WAYS]
            found[name] = measured(shapes, peer, built, rounds)
            print(line(name, found[name]), flush=True)
            harness.peer("torch").cuda.empty_cache()
    return found


def line(name: str, found: dict[str, Any]) -> str:
    """What was measured, as text."""
    parts = [f"{name:32} PyTorch {found['PyTorch']['us']:9.1f} us"]
    for way in WAYS:
        facts = found[way]
        if "refused" in facts:
            parts.append(f"{way}: refused: {facts['refused']}")
        elif "wrong" in facts:
            parts.append(f"{way}: WRONG, off by {facts['error']:.1e}")
        else:
            share, kernels = facts["share of PyTorch's speed"], ", ".join(facts["rkernels"])
            parts.append(f"{way} {facts['us']:9.1f} us ({share:.2f} of its speed; {kernels})")
    return "   ".join(parts)
