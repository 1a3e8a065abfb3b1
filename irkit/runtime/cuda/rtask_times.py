"""How long the rTasks of a program take on a GPU, by the kernels that mode `per-op` launches."""

from __future__ import annotations

from typing import Any

import numpy as np

from irkit.model_info import ModelInfo
from irkit.runtime.artifact import Artifact
from irkit.runtime.cuda.queued import EMPTY, GRAPH_LAUNCHES, replayed
from irkit.runtime.rtask_times import sample_inputs
from irkit.schedule.modes import Mode


def gpu_times(
    artifact: Artifact, rows: int, runs: int, net: bool = True, spread: bool = False
) -> dict[str, float]:
    """rOperator → nanoseconds of its kernel with a block or a cluster an rTask, or if `spread` as many as
    mode `per-op` gives it, less an empty kernel's if `net`; the median of `runs`.

    Raises DeviceError where the program cannot run.
    """
    from irkit.runtime.cuda.driver import Graph, Module
    from irkit.runtime.cuda.executor import CudaExecutor

    info = ModelInfo.from_json(artifact.info)
    executor = CudaExecutor.from_artifact(artifact, info, "per-op")
    program = executor.program
    executor.device.activate()
    stream, held, addresses = executor.stream, list[Any](), list[int]()
    for array in sample_inputs(program.inputs, rows):
        buffer = executor.pool.take(array.nbytes)
        buffer.upload(array, stream)
        held.append(buffer)
        addresses.append(buffer.address)
    rows = rows if program.dynamic else 1
    outputs = executor.new_outputs("irkit", rows, stream)
    addresses += [address for address, _ in outputs]
    if executor.state is not None:
        addresses += executor.state.addresses
    executor.residence.bind(addresses, -(-rows // 16) * 16, stream)
    # Once, so that what rOperators read of one another is there.
    executor.launch(Mode.PER_OP, rows, stream)
    executor.synchronize()
    empty = Module(EMPTY, executor.device)
    nothing = empty.kernel("empty", 0, executor.facts.threads)
    found: dict[str, float] = {}
    first = np.cumsum([0, *(a.tasks for a in program.appends)])
    for number, append in enumerate(program.appends):
        symbol = program.kernels[append.kernel]
        if symbol in found:
            continue
        blocks = append.tasks
        if spread or executor.ops[append.kernel].cluster > 1:
            blocks = executor.blocks(append.kernel, append.tasks, rows)
        record = executor.residence.serial + int(first[number]) * executor.residence.record_bytes
        arguments = (record, executor.residence.bases, rows, -(-rows // 16) * 16)
        kernel = executor.ops[append.kernel]

        def launches(into: Any, kernel: Any = kernel, blocks: int = blocks, given: Any = arguments):
            for _ in range(GRAPH_LAUNCHES):
                kernel.launch(blocks, given, into)

        def idle(into: Any, blocks: int = blocks):
            for _ in range(GRAPH_LAUNCHES):
                nothing.launch(blocks, (), into)

        graphs = Graph(launches, stream), Graph(idle, stream)
        took, none = (replayed(g, stream, runs) for g in graphs)
        found[symbol] = max(took - none * net, 1.0)
    executor.synchronize()
    return found
