"""Run an emitted program on a CUDA device: per rOperator, per wave, or as one persistent kernel."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import accumulate
from typing import Any

import numpy as np

from irkit.errors import DeviceError, InvalidInputError
from irkit.runtime.artifact import Artifact
from irkit.runtime.cpu import Auto
from irkit.runtime.cuda import arrays
from irkit.runtime.cuda.driver import Event, Graph, Kernel, Module, api, call, device
from irkit.runtime.cuda.facts import LaunchFacts, read_facts
from irkit.runtime.cuda.lanes import Fork, lanes
from irkit.runtime.cuda.memory import DeviceArray, Pool
from irkit.runtime.cuda.residence import Residence
from irkit.schedule.tables import Program, build_tables
from irkit.weights import Array

MODES = ("per-op", "per-wave", "persistent")
_PERSISTENT_PARAMETERS, _WAVE_PARAMETERS, _OP_PARAMETERS = 9, 6, 4
_MAX_GRAPHS = 32


class CudaExecutor:
    """Runs one program. Calls are queued one after another; outputs are ready in stream order."""

    def __init__(
        self,
        program: Program,
        facts: LaunchFacts,
        cubin: bytes,
        weights: dict[str, Array],
        mode: str = "auto",
        device_number: int = 0,
    ) -> None:
        if mode not in ("auto", *MODES):
            raise DeviceError(f"mode '{mode}': expected auto, {', '.join(MODES)}")
        self.program, self.facts, self.mode = program, facts, mode
        self.device = device(device_number)
        self._check_shared(facts)
        self.pool = Pool(self.device)
        self.module = Module(cubin, self.device)
        self.tables = build_tables(program)
        self.stream = call("cuStreamCreate", 1)
        self._last_stream = self.stream
        self.residence = Residence(self.pool, program, self.tables, facts, self.stream)
        self.residence.load_constants(weights)
        self._graphs: dict[tuple[str, int], Graph] = {}
        self._fork = Fork()
        self._lock = threading.Lock()
        if mode == "persistent":
            self._check_residency()

    @staticmethod
    def from_artifact(artifact: Artifact, mode: str = "auto") -> CudaExecutor:
        """Load a compiled program; compiles it first if it has no cubin yet (this needs Numba)."""
        program, facts = read_facts(artifact.source)
        if not artifact.cubin:
            from irkit.runtime.cuda.compiling import compile_module

            artifact.cubin = compile_module(artifact.source, facts.entries, facts.threads)
        return CudaExecutor(program, facts, artifact.cubin, artifact.weights, mode)

    # Kernels

    @cached_property
    def _persistent(self) -> Kernel:
        facts = self.facts
        parameters = _PERSISTENT_PARAMETERS
        return self.module.kernel("persistent", parameters, facts.threads, facts.shared_bytes)

    @cached_property
    def _wave(self) -> Kernel:
        facts = self.facts
        return self.module.kernel("wave", _WAVE_PARAMETERS, facts.threads, facts.shared_bytes)

    @cached_property
    def ops(self) -> list[Kernel]:
        """The kernels of the rOperators, one each."""
        facts = self.facts
        return [
            self.module.kernel(f"op_{i}", _OP_PARAMETERS, facts.threads, scratch)
            for i, scratch in enumerate(facts.scratch)
        ]

    def _check_shared(self, facts: LaunchFacts) -> None:
        needed = max((facts.shared_bytes, *facts.scratch))
        if needed > self.device.shared_bytes:
            raise DeviceError(
                f"the program needs {needed} bytes of shared memory a block, {self.device.name} "
                f"has {self.device.shared_bytes}"
            )

    @property
    def resident_blocks(self) -> int:
        """How many blocks of the persistent kernel the device holds at once."""
        return self._persistent.blocks_per_multiprocessor * self.device.multiprocessors

    def _check_residency(self) -> None:
        if self.program.veus > self.resident_blocks:
            raise DeviceError(
                f"a persistent run needs {self.program.veus} blocks at once; {self.device.name} "
                f"holds {self.resident_blocks} of this kernel"
            )

    @cached_property
    def auto(self) -> Auto:
        """The modes that can run here, measured against each other."""
        fits = self.program.veus <= self.resident_blocks
        return Auto(MODES if fits else MODES[:2])

    # Running

    def run_arrays(self, inputs: Sequence[Any], check: Callable[[int, Any], Array]) -> list[Any]:
        """Outputs for inputs on the device, on the host (checked by `check`), or mixed.

        With an input on the device, outputs are there too, of that input's library, and the call
        returns before they are computed; else they are NumPy arrays.
        """
        ports = self.program.inputs
        if len(inputs) != len(ports):
            raise InvalidInputError(f"expected {len(ports)} inputs, got {len(inputs)}")
        library = next((arrays.library_of(x) for x in inputs if arrays.on_device(x)), None)
        handle = arrays.stream_of(library) if library is not None else None
        with self._lock:
            self.device.activate()
            stream = self.stream if handle is None else api().CUstream(handle)
            self._follow(stream)
            bound = [self._bind(i, x, check, stream) for i, x in enumerate(inputs)]
            rows = self._rows(bound)
            outputs = self.new_outputs(library or "irkit", rows, stream)
            addresses = [b.address for b in bound] + [address for address, _ in outputs]
            self._run(addresses, rows, stream)
        results = [array for _, array in outputs]
        return results if library is not None else [self._to_host(r) for r in results]

    def _follow(self, stream: Any) -> None:
        """Order this run after the last one, which may have been on another stream."""
        if int(stream) != int(self._last_stream):
            event = Event()
            event.record(self._last_stream)
            call("cuStreamWaitEvent", stream, event.handle, 0)
            self._last_stream = stream

    def _bind(
        self, number: int, value: Any, check: Callable[[int, Any], Array], stream: Any
    ) -> arrays.Bound:
        if arrays.on_device(value):
            return arrays.bind_input(self.program.inputs[number], value)
        host = check(number, value)
        buffer = self.pool.take(host.nbytes)
        if host.size:
            buffer.upload(host, stream)
        return arrays.Bound(buffer.address, host.shape, buffer)

    def _rows(self, bound: Sequence[arrays.Bound]) -> int:
        sizes = {
            b.shape[0]
            for b, p in zip(bound, self.program.inputs, strict=True)
            if p.shape[:1] == (-1,)
        }
        if not sizes:
            return 1
        if len(sizes) > 1:
            raise InvalidInputError(f"inputs disagree on the number of rows: {sorted(sizes)}")
        (rows,) = sizes
        if rows == 0:
            raise InvalidInputError("expected 1 or more rows, got 0")
        return rows

    def new_outputs(self, library: str, rows: int, stream: Any) -> list[Any]:
        """(address, array) of each output, from `library`'s allocator."""
        return [
            arrays.new_output(
                library,
                self.pool,
                tuple(rows if s == -1 else s for s in port.shape),
                port.dtype,
                stream,
            )
            for port in self.program.outputs
        ]

    def _to_host(self, result: DeviceArray) -> Array:
        host = np.empty(result.shape, result.dtype)
        if host.size:
            result.copy_to(host)
        return host

    def _run(self, addresses: list[int], rows: int, stream: Any) -> None:
        self.residence.bind(addresses, -(-rows // 16) * 16, stream)
        if self.mode != "auto":
            self.launch(self.mode, rows, stream)
            return
        mode, timed = self.auto.pick(rows)
        if not timed:
            self.launch(mode, rows, stream)
            return
        start, end = Event(), Event()
        start.record(stream)
        self.launch(mode, rows, stream)
        end.record(stream)
        self.auto.report(rows, mode, end.since(start) / 1000)

    def launch(self, mode: str, rows: int, stream: Any) -> None:
        """Queue one run in `mode` over the arrays bound last."""
        if mode == "persistent":
            self._launch_persistent(rows, stream)
            return
        key = (mode, rows)
        graph = self._graphs.get(key)
        if graph is None:
            if len(self._graphs) >= _MAX_GRAPHS:
                call("cuStreamSynchronize", stream)
                self._graphs.clear()
            record = self._record_ops if mode == "per-op" else self._record_waves
            # Capture is not allowed on the default stream; the graph may run on any.
            graph = Graph(partial(record, rows), self.stream)
            self._graphs[key] = graph
        graph.launch(stream)

    def _launch_persistent(self, rows: int, stream: Any) -> None:
        self._check_residency()
        home = self.residence
        home.epoch += 1
        arguments = (
            home.records,
            home.begin,
            home.bases,
            home.counters,
            home.residents,
            home.resident_begin,
            home.epoch,
            rows,
            -(-rows // 16) * 16,
        )
        self._persistent.launch(self.program.veus, arguments, stream, together=True)

    def _record_waves(self, rows: int, stream: Any) -> None:
        home, row_bytes = self.residence, 8 * self.program.veus
        for wave in range(self.tables.waves):
            starts = home.wave_begin + wave * row_bytes
            arguments = (home.unpinned, starts, starts + row_bytes, home.bases, rows)
            self._wave.launch(self.program.veus, (*arguments, -(-rows // 16) * 16), stream)

    def _record_ops(self, rows: int, stream: Any) -> None:
        waves = lanes(self.program.appends)
        first = [0, *accumulate(a.tasks for a in self.program.appends)]

        def lane(numbers: list[int], stream: Any) -> None:
            for number in numbers:
                self._launch_op(number, first[number], rows, stream)

        for wave in waves:
            self._fork.run(stream, [partial(lane, numbers) for numbers in wave])

    def _launch_op(self, number: int, first: int, rows: int, stream: Any) -> None:
        """Append `number`, whose rTasks are the records from `first` on."""
        home, append = self.residence, self.program.appends[number]
        arguments = (home.serial + first * home.record_bytes, home.bases, rows)
        blocks = self.blocks(append.kernel, append.tasks, rows)
        self.ops[append.kernel].launch(blocks, (*arguments, -(-rows // 16) * 16), stream)

    def blocks(self, kernel: int, tasks: int, rows: int) -> int:
        """Blocks to run an rOperator alone: its rTasks, or as many shares of the batch as fit."""
        if not self.facts.batch[kernel]:
            return tasks
        fitting = self.ops[kernel].blocks_per_multiprocessor * self.device.multiprocessors
        return max(1, min(rows, fitting))

    def synchronize(self) -> None:
        """Wait until everything queued has run."""
        self.device.activate()
        call("cuStreamSynchronize", self._last_stream)

    def decisions(self) -> dict[str, Any]:
        """What `auto` has measured and chosen, by size of batch."""
        return {
            f"rows < {1 << size}": {
                "mode": mode,
                "microseconds": {
                    m: round(min(t) * 1e6, 1) for m, t in self.auto.times[size].items() if t
                },
            }
            for size, mode in sorted(self.auto.chosen.items())
        }
