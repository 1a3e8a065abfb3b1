"""How long the rTasks of a program take, each rOperator's measured.

On a CPU the trace of runs in mode `serial` says it: an rTask alone. On a GPU each rOperator's own kernel runs
many times in one graph, a block an rTask, and what a kernel that does nothing takes is subtracted: an rTask
beside the others of its launch.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from irkit.model_info import ModelInfo
from irkit.runtime.artifact import Artifact
from irkit.schedule.tables import Port
from irkit.weights import Array

SECONDS = 1.0
"""How long a program is run, at most, once it ran three times."""
RUNS = 15


def rtask_times(artifact: Artifact, rows: int, runs: int = RUNS) -> dict[str, float]:
    """rOperator → nanoseconds of an rTask: the best of `runs`, the median of all its rTasks. Inputs are
    random numbers, those of integers zeros; `rows` of them where the batch is open.

    Raises DeviceError where the program cannot run.
    """
    if artifact.target == "cuda":
        from irkit.runtime.cuda.rtask_times import gpu_times

        return gpu_times(artifact, rows, runs)
    return _cpu_times(artifact, rows, runs)


def sample_inputs(ports: Sequence[Port], rows: int) -> list[Array]:
    """Random numbers from 0.05 to 1.05 for each input; zeros where it has integers, which may be indices."""
    rng = np.random.default_rng(0)
    found: list[Array] = []
    for port in ports:
        shape = port.shape_of(rows)
        dtype = np.dtype(port.dtype)
        whole = dtype.kind in "iub"
        values = np.zeros(shape) if whole else rng.random(shape, np.float32) + 0.05
        found.append(values.astype(dtype))
    return found


def _cpu_times(artifact: Artifact, rows: int, runs: int) -> dict[str, float]:
    """From the trace: of each rTask, from its start to its end."""
    from irkit.runtime.cpu import CpuExecutor
    from irkit.runtime.cpu_trace import TracedExecutor
    from irkit.runtime.loading import load_source

    info = ModelInfo.from_json(artifact.info)
    plain = CpuExecutor(load_source(artifact), artifact.weights, info, "serial")
    traced = TracedExecutor(plain, "serial")
    program = traced.program
    inputs = sample_inputs(program.inputs, rows)
    traced.run(inputs)
    times: list[Any] = []
    until = time.perf_counter() + SECONDS
    while len(times) < runs and (len(times) < 3 or time.perf_counter() < until):
        traced.run(inputs)
        found = traced.rows()
        times.append(found[:, 5] - found[:, 4])
    # Whatever else the machine does makes a run longer, never shorter.
    best = np.array(times).min(axis=0)
    appended = traced.rows()[:, 0].astype(int)
    of_symbol: dict[str, list[float]] = {}
    for number, append in enumerate(program.appends):
        of_one = np.sort(best[appended == number])
        # Of more shares than rows, some have none.
        busy = min(rows, append.tasks) if program.cuts_batch(append) else append.tasks
        of_symbol.setdefault(program.kernels[append.kernel], []).extend(of_one[-busy:].tolist())
    return {symbol: float(np.median(times)) for symbol, times in of_symbol.items()}
