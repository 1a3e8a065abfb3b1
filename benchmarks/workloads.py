"""Workloads in every mode, against PyTorch in every form, on one GPU.

    python -m benchmarks.workloads [--out FOLDER] [--small] [--prepare SECONDS] [--at-once N]
        [--contenders irkit torch ...] [W1] [LSTM@16] [W4@tf32] [ResNet-50@16:bf16] [SET ...]

A case is a work, for one row and in float32 unless it says otherwise (`benchmarks/cases.py` has the works
and the sets). Every contender (irkit; PyTorch eager and in a CUDA graph; torch.compile) is a process of its
own, since compiling takes most of the time: all of them compile at once, then each is measured alone, and
what is not ready by then is recorded as that. Answers are held against the same module in float64. PyTorch
runs in the precision of the case, with cuDNN's benchmark mode on, networks of images also with normalisations
folded and channels side by side. irkit starts from an empty cache. The contender `compile`, if asked for,
measures compiling alone: with an empty cache, then in another process with what that left.
Times are CUDA events around device-to-device calls: median, 10th and 90th percentile.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import harness
from benchmarks.cases import SETS, Case, cases
from benchmarks.contenders import Figures, Job, Ready, contend

LIMITS = {"float32": 1e-4, "tf32": 5e-3, "bf16": 3e-2}
"""Largest error, relative in the 2-norm; or else three times what PyTorch has in that precision."""
RUNS = 60
AUTOTUNED = ("encoder", "decoder", "BERT", "ResNet-50", "ResNeXt-29")
"""Works on which torch.compile is tried at its slowest, instead of as it is by default."""


class Work:
    """A case on the GPU: module, input, reference. Seeds make the module the same in every process."""

    def __init__(self, case: Case, small: bool) -> None:
        import torch

        from benchmarks.models.workloads import WORKLOADS, seeded

        tf32 = case.precision == "tf32"
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
        torch.set_grad_enabled(False)
        work = WORKLOADS[case.work]
        self.build = build = work.small if small else work.build
        self.case, self.shape, self.peers = case, work.shape_of(case.batch, small), work.peers
        generator = torch.Generator().manual_seed(time.time_ns() % (1 << 31))
        x = torch.randn(self.shape, generator=generator)
        self.want = seeded(build).double().cuda()(x.double().cuda()).cpu().numpy()
        torch.backends.cudnn.benchmark = True
        self.element = torch.bfloat16 if case.precision == "bf16" else torch.float32
        self.module = seeded(build).to("cuda", self.element)
        self.exact_x = x.cuda()
        self.x = self.exact_x.to(self.element)
        self.limit = max(LIMITS[case.precision], 3 * self.error(self.module(self.x)))

    def forms(self) -> dict[str, tuple[Any, Any]]:
        """The module and its other forms, on the GPU, and the input as each likes it."""
        found = {"": (self.module, self.x)}
        for name, make in self.peers.items():
            x = self.x
            if name == "channels_last":
                import torch

                x = x.contiguous(memory_format=torch.channels_last)
            found[f", {name}"] = (make(self.module), x)
        return found

    def error(self, y: Any) -> float:
        """Relative error in the 2-norm."""
        from benchmarks.gpu import error

        return error(y.float().cpu().numpy(), self.want)

    def measured(self, f: Callable[[], Any]) -> Figures:
        """Error and times of `f`; of a wrong answer, no times."""
        from benchmarks.gpu import device_time

        off = self.error(f())
        if not off <= self.limit:
            return {"wrong": off}
        return {"error": off, **device_time(f, RUNS)}


# irkit


def irkit_modes(case: Case, small: bool, form: str = "") -> Ready:
    """irkit: from ONNX to a program; each mode, and the choice that `auto` makes.

    `form`: "" (values as PyTorch has them), "float32 in memory", or "measured": rKernels are then chosen
    by what they take, when the GPU is this process's alone.
    """
    work = Work(case, small)
    label = f", {form}" if form else ""
    if form == "measured":
        found: dict[str, IrkitRun] = {}

        def facts() -> Figures:
            found[""] = IrkitRun(work, form)
            return found[""].facts()

        modes = {m: lambda m=m: found[""].mode(m) for m in IrkitRun.MODES}
        return {f"irkit{label}": facts, **{f"irkit {m}{label}": f for m, f in modes.items()}}
    run = IrkitRun(work, form)
    modes = {m: partial(run.mode, m) for m in IrkitRun.MODES}
    return {f"irkit{label}": run.facts, **{f"irkit {m}{label}": f for m, f in modes.items()}}


class IrkitRun:
    """A program of a case. The cache is empty before and dropped behind."""

    MODES = ("per-op", "per-wave", "persistent", "auto")

    def __init__(self, work: Work, form: str) -> None:
        import irkit
        from benchmarks.models.workloads import seeded, to_onnx

        self.work, wide = work, form == "float32 in memory"
        self.x = work.exact_x if wide else work.x
        module = seeded(work.build) if wide else work.module
        model = to_onnx(module.cpu(), work.shape)
        self.nodes = len(model.graph.node)
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as cache:
            os.environ["IRKIT_CACHE_DIR"] = cache
            self.program = irkit.compile(
                model,
                target="cuda",
                precision=granted(work.case, wide),
                measure=form == "measured",
            )
        self.seconds = time.perf_counter() - start

    def facts(self) -> Figures:
        """Seconds of compiling, in company, and the report."""
        report = {k: v for k, v in self.program.report().items() if k != "roperators"}
        return {"compile, s": self.seconds, "nodes": self.nodes, "report": report}

    def run(self) -> Any:
        """The answer."""
        return self.program.run([self.x])[0]

    def mode(self, mode: str) -> Figures:
        """Error and times of a mode, or why the program does not run in it."""
        from irkit.errors import DeviceError

        try:
            self.program._first.executor.mode = mode
        except DeviceError as refusal:
            return {"refused": str(refusal)}
        for _ in range(40 if mode == "auto" else 1):
            self.run()
        return self.work.measured(self.run)


def granted(case: Case, float32_in_memory: bool) -> str | None:
    """The precision to ask irkit for: bfloat16 operands say theirs themselves."""
    if case.precision == "bf16":
        return "bf16" if float32_in_memory else None
    return case.precision


_COMPILE = """
import sys, time
import irkit
import irkit.driver.compiler.compile
start = time.perf_counter()
irkit.compile(sys.argv[1], target="cuda", precision=sys.argv[2] or None)
print(time.perf_counter() - start)
"""


def compile_alone(case: Case, small: bool) -> Ready:
    """irkit from a file to a program in new processes: an empty cache, then what the first one left."""
    from benchmarks.models.workloads import to_onnx

    work = Work(case, small)
    model = to_onnx(work.module.cpu(), work.shape)

    def measure() -> Figures:
        found: Figures = {}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model.onnx")
            path.write_bytes(model.SerializeToString())
            environment = {**os.environ, "IRKIT_CACHE_DIR": str(Path(folder, "cache"))}
            command = [sys.executable, "-W", "ignore", "-c", _COMPILE, str(path)]
            command.append(granted(case, False) or "")
            for name in ("cold, s", "warm, s"):
                run = subprocess.run(
                    command, env=environment, stdout=subprocess.PIPE, text=True, check=True
                )
                found[name] = float(run.stdout)
        return found

    return {"compile": measure}


# PyTorch


def torch_plain(case: Case, small: bool) -> Ready:
    """PyTorch eager and in a CUDA graph; of float32, eager once more with TF32."""
    import torch

    from benchmarks.gpu import device_time, graphed

    work = Work(case, small)
    found: Ready = {}
    for form, (module, x) in work.forms().items():

        def eager(module: Any = module, x: Any = x) -> Any:
            return module(x)

        def tf32(run: Callable[[], Any] = eager) -> Figures:
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
            times = device_time(run, RUNS)
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
            return times

        eager()
        found[f"torch eager{form}"] = partial(work.measured, eager)
        found[f"torch CUDA graph{form}"] = lambda f=eager: work.measured(graphed(f))
        if case.precision == "float32":
            found[f"torch eager, TF32 on{form}"] = tf32
    return found


def torch_compiled(case: Case, small: bool, mode: str) -> Ready:
    """torch.compile in one mode; of a form that takes minutes, the one that is fastest as a rule."""
    import torch

    work = Work(case, small)
    found: Ready = {}
    label = "torch.compile" if mode == "default" else f"torch.compile {mode}"
    forms = list(work.forms().items())
    for form, (module, x) in forms[-1:] if mode == "max-autotune" else forms:
        torch._dynamo.reset()
        compiled = torch.compile(module, mode=mode)
        start = time.perf_counter()
        for _ in range(3):
            compiled(x)
        seconds = time.perf_counter() - start

        def figures(run: Callable[[], Any], seconds: float = seconds) -> Figures:
            return {**work.measured(run), "compile, s": seconds}

        found[f"{label}{form}"] = partial(figures, partial(compiled, x))
    return found


Prepare = Callable[[Case, bool], Ready]
CONTENDERS: dict[str, Prepare] = {
    "irkit": irkit_modes,
    "irkit, float32 in memory": partial(irkit_modes, form="float32 in memory"),
    "irkit, measured": partial(irkit_modes, form="measured"),
    "torch": torch_plain,
    "torch.compile": partial(torch_compiled, mode="default"),
    "torch.compile reduce-overhead": partial(torch_compiled, mode="reduce-overhead"),
    "torch.compile max-autotune": partial(torch_compiled, mode="max-autotune"),
    "compile": compile_alone,
}


def contenders_of(case: Case) -> list[str]:
    """Who takes part where nobody is named."""
    slow = case.work in AUTOTUNED
    compiled = "torch.compile max-autotune" if slow else "torch.compile"
    found = ["irkit", "torch", "torch.compile reduce-overhead", compiled]
    return [*found, "irkit, float32 in memory"] if case.precision == "bf16" else found


def jobs(wanted: list[Case], names: list[str], small: bool) -> Iterator[Job]:
    """The contenders of every case, those first that take longest to prepare."""
    for name in CONTENDERS:
        for case in wanted:
            if name in (names or contenders_of(case)):
                seconds = 300.0 if name in ("compile", "irkit, measured") else 90.0
                yield Job(case.label, name, partial(CONTENDERS[name], case, small), seconds)


# Figures


def ratios(found: Figures) -> Figures:
    """Each mode's time over the fastest form of each peer, and of all of them."""
    times = {k: v["median_us"] for k, v in found.items() if "median_us" in v}
    theirs = {k: t for k, t in times.items() if k.startswith("torch") and "TF32 on" not in k}
    for peer in ("torch eager", "torch CUDA graph", "torch.compile", "torch"):
        of_peer = [t for k, t in theirs.items() if k.startswith(peer)]
        for mode, t in times.items():
            if mode.startswith("irkit") and of_peer:
                found[mode][f"over {'the best' if peer == 'torch' else peer}"] = t / min(of_peer)
    return found


def table(results: dict[str, Figures]) -> str:
    """Milliseconds, a line a contender."""
    lines: list[str] = []
    for name, found in results.items():
        lines.append(f"== {name}")
        for label, entry in found.items():
            if "median_us" not in entry:
                shown = {k: v for k, v in entry.items() if k != "report"}
                lines.append(f"  {label:46} {shown}")
                continue
            over = ", ".join(f"{v:.2f} {k}" for k, v in entry.items() if k.startswith("over"))
            off = f"error {entry['error']:.0e} " if "error" in entry else ""
            lines.append(f"  {label:46} {entry['median_us'] / 1000:9.3f} ms {off}{over}")
    return "\n".join(lines)


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", default=["batch-1"], help=f"works or {', '.join(SETS)}")
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--small", action="store_true", help="the sizes that tests use")
    parser.add_argument("--prepare", type=float, default=400.0, help="seconds given to compiling")
    parser.add_argument("--at-once", type=int, default=100, help="cases compiled together")
    parser.add_argument("--contenders", nargs="*", default=[], choices=CONTENDERS)
    options = parser.parse_args()
    try:
        wanted = cases(options.names)
    except ValueError as problem:
        parser.error(str(problem))
    multiprocessing.set_start_method("spawn")
    for first in range(0, len(wanted), options.at_once):
        some = wanted[first : first + options.at_once]
        print(f"{len(some)} cases: {', '.join(c.label for c in some)}", flush=True)
        found = contend(jobs(some, options.contenders, options.small), options.prepare)
        results = {name: ratios(figures) for name, figures in found.items()}
        print(table(results), flush=True)
        assert json.loads(_written(results, options.out).read_text())
    return 0


def _written(results: dict[str, Figures], folder: Path | None) -> Path:
    import torch

    device = torch.cuda.get_device_name()
    conditions = (
        "a process each, measured alone; PyTorch in the case's precision, cuDNN benchmark mode on"
    )
    facts = {"device": device, "conditions": conditions, "suites": results}
    return harness.update("workloads", facts, folder)


if __name__ == "__main__":
    raise SystemExit(main())
