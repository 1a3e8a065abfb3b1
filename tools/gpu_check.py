"""Check and time every CUDA rKernel on a GPU, and the two that carry the published figures.

    python tools/gpu_check.py build build/gpu_check    anywhere: needs Numba, no GPU
    python tools/gpu_check.py run build/gpu_check      on a GPU: needs NumPy and cuda.bindings only

`run` compares each program with a float64 reference in every mode, times it (device events, median
of several), prints a table, and writes gpu_check.json to the folder in the environment variable OUT.
Where PyTorch is installed, its time for the same work stands beside.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools"), str(ROOT / "tests" / "unit")]

import gpu_cases as cases  # noqa: E402

from irkit.schedule.modes import Mode  # noqa: E402

Record = dict[str, Any]


def file_name(name: str) -> str:
    """A program's name as a file name."""
    return "".join(c if c.isalnum() else "_" for c in name)


def programs() -> list[tuple[str, Any, Any]]:
    """(name, case, program) of everything to build and run."""
    singles = [*cases.CASES, *cases.forest_timings()]
    return [(c.name, c, c.program()) for c in (*singles, *cases.RECURRENCES)]


def build(folder: Path, only: str, arch: str) -> None:
    """Compile every program whose name contains `only` to a cubin for `arch`."""
    import cuda_samples as samples

    from irkit.lower.task_to_numba import dispatch_cuda, header_cuda, walkers_cuda
    from irkit.lower.task_to_numba.launch_facts_cuda import launch_facts
    from irkit.runtime.cuda.compiling import compile_module_with_ptx

    folder.mkdir(parents=True, exist_ok=True)
    for name, case, program in programs():
        if only not in name:
            continue
        start = time.perf_counter()
        if isinstance(case, cases.Recurrence):
            sample = samples.lstm(case.resident, case.variant, **case.literals)
        else:
            function, arguments = case.sample
            sample = getattr(samples, function)(**arguments)
        batch = getattr(case, "batch", False)
        kernel = replace(
            samples.kernel_of(0, sample), scratch_bytes=case.scratch_bytes, batch=batch
        )
        layout = walkers_cuda.layout_of(program)
        parts = [
            header_cuda.IMPORTS,
            samples.kernel_text(0, sample, layout.threads),
            dispatch_cuda.run_task([kernel]),
            walkers_cuda.walkers(layout),
            walkers_cuda.op_kernel(0, kernel),
        ]
        compiled = compile_module_with_ptx(
            "\n\n".join(parts), walkers_cuda.entries([kernel], layout), layout.threads, arch
        )
        facts: Record = {}
        exec(launch_facts(program, [kernel], arch), {}, facts)
        base = folder / file_name(name)
        base.with_suffix(".cubin").write_bytes(compiled.cubin)
        about = {"launch": facts["LAUNCH"], "resources": compiled.resources()}
        base.with_suffix(".json").write_text(json.dumps(about))
        print(f"{time.perf_counter() - start:6.1f} s  {name}", flush=True)


def executor(folder: Path, name: str, program: Any, weights: Any) -> tuple[Any, Record]:
    """An executor for a built program, and what the assembler said of it."""
    from irkit.runtime.cuda.executor import CudaExecutor
    from irkit.runtime.cuda.facts import LaunchFacts

    base = folder / file_name(name)
    about = json.loads(base.with_suffix(".json").read_text())
    facts = LaunchFacts(**about["launch"])
    cubin = base.with_suffix(".cubin").read_bytes()
    return CudaExecutor(program, facts, cubin, weights, mode="per-op"), about["resources"]


def microseconds(queue: Callable[[], None], stream: Any, target_ms: float = 20.0) -> float:
    """Median time of one call, by device events around several at a time."""
    from irkit.runtime.cuda.driver import Event

    def measure(count: int) -> float:
        start, end = Event(), Event()
        start.record(stream)
        for _ in range(count):
            queue()
        end.record(stream)
        return end.since(start) * 1000 / count

    measure(3)
    count = max(1, min(200, int(target_ms * 1000 / max(measure(2), 1e-3))))
    return float(np.median([measure(count) for _ in range(5)]))


def error(got: Any, want: Any) -> float:
    """Relative error of the whole; NaN if anything was not computed."""
    scale = float(np.linalg.norm(want.astype(np.float64).ravel())) or 1.0
    difference = got.astype(np.float64).ravel() - want.astype(np.float64).ravel()
    return float(np.linalg.norm(difference)) / scale


def bind(run: Any, x: Any, rows: int) -> Any:
    """Bind an input and an output on the device, for runs to be timed; keep what this returns."""
    source = run.pool.take(x.nbytes)
    source.upload(x, run.stream)
    outputs = run.new_outputs("irkit", rows, run.stream)
    run.residence.bind([source.address, outputs[0][0]], -(-rows // 16) * 16, run.stream)
    return source, outputs


def check_modes(run: Any, x: Any, want: Any, modes: tuple[str, ...], repeats: int) -> Record:
    """Error and time of each mode."""
    found: Record = {}
    rows = len(x) if run.program.dynamic else 1
    for mode in modes:
        run.mode = mode
        # Several runs: what a race or a stale counter spoils may be right the first time.
        errors = [error(run.run([x])[0], want) for _ in range(repeats)]
        kept = bind(run, x, rows)
        queue = partial(run.launch, Mode(mode), rows, run.stream)
        micros = microseconds(queue, run.stream)
        found[mode] = {"error": max(errors), "us": micros}
        del kept
    return found


def grid_times(run: Any, x: Any, grids: tuple[int, ...]) -> Record:
    """Time of the one rOperator alone, by number of blocks."""
    rows = len(x)
    kept = bind(run, x, rows)
    kernel, home = run.ops[0], run.residence
    times: Record = {"blocks an SM": kernel.blocks_per_multiprocessor}
    arguments = (home.serial, home.bases, rows, -(-rows // 16) * 16)
    for blocks in grids:
        times[str(blocks)] = microseconds(
            partial(kernel.launch, blocks, arguments, run.stream), run.stream
        )
    del kept
    return times


def torch_time(case: Any) -> float | None:
    """PyTorch's time for the same work, as a CUDA graph."""
    if getattr(case, "peer", None) is None:
        return None
    try:
        import torch
    except ImportError:
        return None
    tensors = [torch.from_numpy(a).cuda() for a in case.arrays]
    return torch_graph_time(torch, lambda: case.peer(torch, *tensors))


def torch_graph_time(torch: Any, work: Callable[[], Any]) -> float:
    """Microseconds of one replay."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side), torch.no_grad():
        for _ in range(3):
            work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        work()
    times: list[float] = []
    for _ in range(20):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(5):
            graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 200)
    return float(np.median(times))


def torch_lstm_time() -> float | None:
    """cuDNN's LSTM of the same shape in a CUDA graph."""
    try:
        import torch
    except ImportError:
        return None
    model = torch.nn.LSTM(cases.UNITS, cases.UNITS, cases.LAYERS).cuda().eval()
    x = torch.randn(cases.STEPS, 1, cases.UNITS, device="cuda")
    return torch_graph_time(torch, lambda: model(x))


def run_case(folder: Path, name: str, case: Any, program: Any) -> Record:
    """Everything about one program."""
    if isinstance(case, cases.Recurrence):
        x, weights = case.data()
        want, modes, repeats = case.expected(), ("persistent",), 20
        if not case.resident:
            modes = ("per-op", "per-wave", "persistent")
    else:
        x, weights = case.arrays[0], {f"c{i}": a for i, a in enumerate(case.arrays[1:])}
        # A million rows through the reference take minutes: the first and last thousands stand for all.
        want, modes, repeats = None if case.grids else case.expected(), case.modes, 3
    run, resources = executor(folder, name, program, weights)
    found: Record = {"resources": resources}
    if want is None:
        got = run.run([x])[0]
        pick = np.r_[0:2000, len(x) - 2000 : len(x)]
        constants = [
            np.asarray(a, np.float64) if a.dtype.kind == "f" else a for a in case.arrays[1:]
        ]
        sample = case.reference(x[pick].astype(np.float64), *constants)
        found["modes"] = {"per-op": {"error": error(got[pick], sample), "us": None}}
        found["grids"] = grid_times(run, x, case.grids)
    else:
        found["modes"] = check_modes(run, x, want, modes, repeats)
    found["torch us"] = torch_time(case)
    tolerance = getattr(case, "tolerance", 1e-4)
    found["right"] = all(m["error"] <= tolerance for m in found["modes"].values())
    run.pool.close()
    return found


def line(name: str, found: Record) -> str:
    """One line of the table."""
    if "failed" in found:
        return f"FAIL  {name}: {found['failed']}"
    parts = [f"{'ok  ' if found['right'] else 'WRONG'}  {name}:"]
    for mode, m in found["modes"].items():
        micros = "" if m["us"] is None else f" {m['us']:.1f} us"
        parts.append(f"{mode}{micros} (error {m['error']:.1e})")
    if found.get("torch us"):
        parts.append(f"torch graph {found['torch us']:.1f} us")
    if "grids" in found:
        best = min((v for k, v in found["grids"].items() if k.isdigit()))
        parts.append(f"best {best:.0f} us = {1e6 / best:.0f} M rows/s; {found['grids']}")
    return " ".join(parts)


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("action", choices=["build", "run"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="names that contain this")
    parser.add_argument("--arch", default="sm_90a", help="what to build for: sm_80, sm_90a, ...")
    options = parser.parse_args()
    if options.action == "build":
        build(options.folder, options.only, options.arch)
        return 0
    from irkit.errors import IrkitError
    from irkit.runtime.cuda.driver import device

    gpu = device()
    results: Record = {"device": gpu.name, "numpy": np.__version__, "programs": {}}
    for name, case, program in programs():
        if options.only not in name:
            continue
        try:
            found = run_case(options.folder, name, case, program)
        except IrkitError as problem:
            found = {"failed": str(problem)}
        results["programs"][name] = found
        print(line(name, found), flush=True)
    results["cudnn lstm us"] = torch_lstm_time()
    print(f"cuDNN LSTM 10x256, 100 steps, CUDA graph: {results['cudnn lstm us']} us")
    out = os.environ.get("OUT")
    if out:
        Path(out, "gpu_check.json").write_text(json.dumps(results, indent=1))
    return 0 if all(f.get("right") for f in results["programs"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
