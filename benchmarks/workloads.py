"""W1, W3, W4, W5, W7 and NASRNN in every mode, against PyTorch in every form, on one GPU.

    python -m benchmarks.workloads [--out FOLDER] [--small] [--prepare SECONDS] [W1 W3 ...]

Batch 1, float32. Every contender (irkit; PyTorch eager and in a CUDA graph; torch.compile) is a process
of its own, since compiling takes most of the time: all of them compile at once, then each is measured
alone, and what is not ready by then is recorded as that. Answers are held against the same module in
float64. PyTorch runs with TF32 off unless a row says otherwise, and with cuDNN's benchmark mode on.
Times are CUDA events around device-to-device calls: median, 10th and 90th percentile.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmarks import harness

LIMIT = 1e-4
WARM, RUNS = 8, 60
ALL = ("W1", "W3", "W4", "W5", "W7", "W1-29", "NASRNN")
Ready = dict[str, Callable[[], dict[str, Any]]]


class Work:
    """One workload on the GPU: module, input, reference. Seeds make it the same in every process."""

    def __init__(self, name: str, small: bool) -> None:
        import torch

        from benchmarks.models.workloads import WORKLOADS, seeded

        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = True
        torch.set_grad_enabled(False)
        work = WORKLOADS[name]
        self.shape = work.small_shape if small else work.shape
        self.module = seeded(work.small if small else work.build)
        generator = torch.Generator().manual_seed(time.time_ns() % (1 << 31))
        x = torch.randn(self.shape, generator=generator)
        exact = seeded(work.small if small else work.build).double().cuda()
        self.want = exact(x.double().cuda()).cpu().numpy()
        self.x = x.cuda()
        self.peers = work.peers

    def forms(self) -> dict[str, Any]:
        """The module and its other forms, on the GPU."""
        module = self.module.cuda()
        return {"": module, **{f", {k}": make(module) for k, make in self.peers.items()}}

    def measured(self, f: Callable[[], Any]) -> dict[str, Any]:
        """Error and times of `f`; of a wrong answer, no times."""
        from benchmarks.gpu import device_time, error

        off = error(f().float().cpu().numpy(), self.want)
        if not off <= LIMIT:
            return {"wrong": off}
        return {"error": off, **device_time(f, RUNS)}


def irkit_modes(name: str, small: bool) -> Ready:
    """irkit: from ONNX to a program; each mode, and the choice that `auto` makes."""
    import irkit
    from benchmarks.models.workloads import to_onnx

    work = Work(name, small)
    onnx_model = to_onnx(work.module.cpu(), work.shape)
    start = time.perf_counter()
    program = irkit.compile(onnx_model, target="cuda")
    seconds = time.perf_counter() - start
    executor = program._first.executor

    def run() -> Any:
        return program.run([work.x])[0]

    def measure(mode: str) -> dict[str, Any]:
        executor.mode = mode
        if mode == "auto":
            for _ in range(40):
                run()
        return work.measured(run)

    def facts() -> dict[str, Any]:
        report = program.report()
        kept = {k: v for k, v in report.items() if k != "roperators"}
        return {"compile, s": seconds, "nodes": len(onnx_model.graph.node), "report": kept}

    modes = ("per-op", "per-wave", "persistent", "auto")
    found: Ready = {f"irkit {mode}": lambda m=mode: measure(m) for mode in modes}
    return {"irkit": facts, **found}


def torch_plain(name: str, small: bool) -> Ready:
    """PyTorch eager and in a CUDA graph; both once more with TF32."""
    import torch

    from benchmarks.gpu import device_time, graphed

    work = Work(name, small)
    found: Ready = {}
    for form, module in work.forms().items():

        def eager(module: Any = module) -> Any:
            return module(work.x)

        def graph(module: Any = module) -> dict[str, Any]:
            return device_time(graphed(lambda: module(work.x)), RUNS)

        def tf32(module: Any = module) -> dict[str, Any]:
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
            times = device_time(lambda: module(work.x), RUNS)
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
            return times

        eager()
        found[f"torch eager{form}"] = lambda f=eager: work.measured(f)
        found[f"torch CUDA graph{form}"] = graph
        found[f"torch eager, TF32 on{form}"] = tf32
    return found


def torch_compiled(name: str, small: bool, mode: str) -> Ready:
    """torch.compile in one mode."""
    import torch

    work = Work(name, small)
    found: Ready = {}
    label = "torch.compile" if mode == "default" else f"torch.compile {mode}"
    for form, module in work.forms().items():
        torch._dynamo.reset()
        compiled = torch.compile(module, mode=mode)
        start = time.perf_counter()
        for _ in range(3):
            compiled(work.x)
        seconds = time.perf_counter() - start

        def run(compiled: Any = compiled) -> Any:
            return compiled(work.x)

        found[f"{label}{form}"] = lambda f=run, s=seconds: {**work.measured(f), "compile, s": s}
    return found


CONTENDERS: dict[str, Callable[[str, bool], Ready]] = {
    "irkit": irkit_modes,
    "torch": torch_plain,
    "torch.compile": lambda n, s: torch_compiled(n, s, "default"),
    "torch.compile reduce-overhead": lambda n, s: torch_compiled(n, s, "reduce-overhead"),
}


def _process(contender: str, name: str, small: bool, pipe: Connection, log: str) -> None:
    """Prepare, say so, wait to be called, measure."""
    with open(log, "w") as file:
        sys.stdout = sys.stderr = file
        warnings.simplefilter("ignore")
        try:
            ready = CONTENDERS[contender](name, small)
            pipe.send("ready")
            pipe.recv()
            pipe.send({label: measure() for label, measure in ready.items()})
        except Exception as problem:
            pipe.send({contender: {"failed": f"{type(problem).__name__}: {problem}"[:300]}})


class Contender:
    """A process that prepares one contender for one workload."""

    def __init__(self, name: str, contender: str, small: bool, folder: Path) -> None:
        self.name, self.contender = name, contender
        self.pipe, other = multiprocessing.Pipe()
        arguments = (contender, name, small, other, str(folder / f"{name}-{contender}.log"))
        self.process = multiprocessing.Process(target=_process, args=arguments, daemon=True)
        self.process.start()
        other.close()

    def wait(self, until: float) -> str | dict[str, Any]:
        """ "ready", or what became of it instead."""
        if not self.pipe.poll(max(0.0, until - time.perf_counter())):
            self.process.kill()
            return {self.contender: {"absent": "not ready in the time given"}}
        return self._receive()

    def measure(self, seconds: float = 60.0) -> dict[str, Any]:
        """Its figures."""
        self.pipe.send("go")
        if not self.pipe.poll(seconds):
            self.process.kill()
            return {self.contender: {"failed": f"no answer in {seconds:.0f} s"}}
        found = self._receive()
        assert isinstance(found, dict)
        return found

    def _receive(self) -> str | dict[str, Any]:
        try:
            return self.pipe.recv()
        except EOFError:
            return {self.contender: {"failed": f"process ended, {self.process.exitcode}"}}


def run(
    names: list[str], kinds: list[str], small: bool, prepare: float
) -> dict[str, dict[str, Any]]:
    """Every contender of every workload: prepared together, measured one after another."""
    folder = Path(tempfile.mkdtemp())
    until = time.perf_counter() + prepare
    contenders = [Contender(n, c, small, folder) for c in kinds for n in names]
    results: dict[str, Any] = {n: {} for n in names}
    ready: list[Contender] = []
    for c in contenders:
        said = c.wait(until)
        if said == "ready":
            ready.append(c)
        else:
            results[c.name] |= said
    print(f"{len(ready)} of {len(contenders)} ready", flush=True)
    for c in sorted(ready, key=lambda c: names.index(c.name)):
        results[c.name] |= c.measure()
    for c in contenders:
        c.process.kill()
    return {n: _ratios(found) for n, found in results.items()}


def _ratios(found: dict[str, Any]) -> dict[str, Any]:
    """Each mode's time over the fastest form of each peer."""
    times = {k: v["median_us"] for k, v in found.items() if "median_us" in v}
    for peer in ("torch eager", "torch CUDA graph", "torch.compile"):
        of_peer = [t for k, t in times.items() if k.startswith(peer) and "TF32" not in k]
        for mode, t in times.items():
            if mode.startswith("irkit") and of_peer:
                found[mode][f"over {peer}"] = t / min(of_peer)
    return found


def table(results: dict[str, Any]) -> str:
    """Milliseconds, a line a contender."""
    lines: list[str] = []
    for name, found in results.items():
        lines.append(f"== {name}")
        for label, entry in found.items():
            if "median_us" not in entry:
                shown = {k: v for k, v in entry.items() if k != "report"}
                lines.append(f"  {label:42} {shown}")
                continue
            ratios = ", ".join(f"{v:.2f} {k}" for k, v in entry.items() if k.startswith("over"))
            off = f"error {entry['error']:.0e} " if "error" in entry else ""
            lines.append(f"  {label:42} {entry['median_us'] / 1000:9.3f} ms {off}{ratios}")
    return "\n".join(lines)


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help=f"of {', '.join(ALL)}; all by default")
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--small", action="store_true", help="the sizes that tests use")
    parser.add_argument("--prepare", type=float, default=400.0, help="seconds given to compiling")
    parser.add_argument("--contenders", nargs="*", default=list(CONTENDERS), help="all by default")
    options = parser.parse_args()
    multiprocessing.set_start_method("spawn")
    names = options.names or list(ALL)
    results = run(names, options.contenders, options.small, options.prepare)
    import torch

    device = torch.cuda.get_device_name()
    conditions = (
        "batch 1, float32; a process each, measured alone; PyTorch without TF32, cuDNN benchmark "
        "mode on"
    )
    facts = {"device": device, "conditions": conditions, "suites": results}
    path = harness.write("workloads", facts, options.out)
    assert json.loads(path.read_text())
    print(table(results))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
