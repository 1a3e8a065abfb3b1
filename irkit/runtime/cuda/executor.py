"""Run an emitted program on a CUDA device: per rOperator, per wave, or as one persistent kernel."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from copy import copy
from functools import cached_property, partial
from itertools import accumulate
from typing import Any

from irkit.errors import DeviceError
from irkit.model_info import ModelInfo
from irkit.row_ranges import Others
from irkit.runtime.artifact import Artifact
from irkit.runtime.cuda import arrays
from irkit.runtime.cuda.driver import Event, Graph, Kernel, Module, call, device
from irkit.runtime.cuda.facts import LaunchFacts, read_facts
from irkit.runtime.cuda.fitting import why_elsewhere
from irkit.runtime.cuda.inputs import Inputs
from irkit.runtime.cuda.lanes import Fork, lanes
from irkit.runtime.cuda.library_calls import LibraryCalls
from irkit.runtime.cuda.memory import Pool
from irkit.runtime.cuda.residence import Residence, load_constants
from irkit.runtime.cuda.single_launch import Recorded, SingleLaunch, is_single
from irkit.runtime.cuda.state import DeviceState
from irkit.runtime.cuda.stepping import PARAMETERS as STEP_PARAMETERS
from irkit.runtime.cuda.stepping import Graphs, StepLaunches
from irkit.runtime.cuda.streams import RunStream
from irkit.runtime.cuda.tensor_calls import tensor_calls
from irkit.runtime.input_policy import InputPolicy
from irkit.runtime.mode_choice import AUTO, MODES, ModeChoice, check_mode, not_proved
from irkit.schedule.modes import Mode
from irkit.schedule.tables import Program, Ran, build_tables
from irkit.weights import Array

PERSISTENT_PARAMETERS, _WAVE_PARAMETERS, _OP_PARAMETERS = 10, 6, 4
_MAX_GRAPHS = 32
ALL = (0, sys.maxsize)
"""Of a program's appends."""


class CudaExecutor:
    """Runs one program. Calls are queued one after another; outputs are ready in stream order.

    `auto` and `mode` are of the modes alone that the program is proved for, and that the device can hold. A
    program with plans for ranges of rows has an executor a plan, `plan_of` the rows of a call; that of the
    fewest rows is this one.
    """

    def __init__(
        self,
        program: Program,
        facts: LaunchFacts,
        cubin: bytes,
        weights: dict[str, Array],
        info: ModelInfo | None = None,
        mode: str = AUTO,
        device_number: int = 0,
    ) -> None:
        check_mode("cuda", mode)
        self.program, self.facts = program, facts
        self.policy = InputPolicy(program.inputs, info)
        self.device = device(device_number)
        elsewhere = why_elsewhere(program.device, facts, self.device)
        if elsewhere is not None:
            raise DeviceError(elsewhere)
        # Before the module, and so dropped before it: graphs name its kernels.
        self._graphs: dict[Recorded, Graph] = {}
        self._step_graphs: Graphs = {}
        self._fork = Fork(self.device)
        self.module = Module(cubin, self.device)
        self.pool = Pool(self.device)
        self.stream = self.pool.stream.handle
        self.runs = RunStream(self.stream)
        self.inputs = Inputs(self.policy, self.pool)
        self._tensors = tensor_calls(program, device_number)
        self._constants = load_constants(self.pool, program, weights, self.stream)
        self._others = Others[CudaExecutor]()
        self._lock = threading.Lock()
        self._plan_for(program, program.plans, mode)
        # This is the executor of the plan for the fewest rows; each other plan has one of its own.
        others = [self._of_plan(plan, mode) for plan in program.others]
        self._others = Others([plan.rows for plan in program.plans], others)
        self.state = (
            DeviceState(self.pool, program.states, self._lock, self.stream)
            if program.states
            else None
        )

    def _plan_for(self, plan: Program, plans: Sequence[Program], mode: str) -> None:
        """Have the tables of a plan, of several that have one walker, and the modes it can run in."""
        refused = not_proved("cuda", plan.modes)
        # One block always is; what is compiled to be measured has no persistent kernel.
        if plan.veus > 1 and plan.veus > self.resident_blocks:
            holds = f"{self.device.name} holds {self.resident_blocks} of this kernel"
            reason = f"a persistent run needs {plan.veus} blocks at once; {holds}"
            refused.setdefault(Mode.PERSISTENT, reason)
        # A launch by itself reads no lists of rTasks, and waits for none.
        measured = (Mode.PER_OP,) if is_single(plan, self.facts) else MODES["cuda"]
        self.choice = ModeChoice("cuda", mode, measured, refused)
        self.program, self.tables = plan, build_tables(plan, plans)
        # Graphs of turns of loops hold no addresses, as those of calls would.
        self.libraries = LibraryCalls({} if plan.steps else self.facts.calls, self.pool)
        self.residence = Residence(
            self.pool, plan, self.tables, self.facts, self._constants, self.stream
        )
        self._steps = (
            StepLaunches(self.pool, self.residence, self.module, self.facts, self._step_graphs)
            if plan.steps
            else None
        )

    def _of_plan(self, plan: Program, mode: str) -> CudaExecutor:
        """The same program by another of its plans: same module, memory pool and constants."""
        made = copy(self)
        made._graphs, made._fork = {}, Fork(self.device)
        made._plan_for(plan, self.program.plans, mode)
        return made

    @property
    def plans(self) -> tuple[CudaExecutor, ...]:
        """The executors of all plans, in the order of their rows."""
        return (self, *self._others.values)

    def plan_of(self, rows: int) -> CudaExecutor:
        """The executor of the plan for so many rows."""
        return self._others.of(rows, self)

    @staticmethod
    def from_artifact(artifact: Artifact, info: ModelInfo, mode: str = AUTO) -> CudaExecutor:
        """Load a compiled program; compiles it first if it has no cubin yet (this needs Numba)."""
        program, facts = read_facts(artifact.source)
        if not artifact.cubin:
            from irkit.runtime.cuda.compiling import compile_module

            artifact.cubin = compile_module(
                artifact.source, facts.entries, facts.threads, facts.arch
            )
        return CudaExecutor(program, facts, artifact.cubin, artifact.weights, info, mode)

    @property
    def mode(self) -> str:
        """ "auto", or the mode of every call. Setting it raises DeviceError if it cannot be."""
        return self.choice.mode

    @mode.setter
    def mode(self, mode: str) -> None:
        for executor in self.plans:
            executor.choice.mode = mode

    @property
    def remarks(self) -> list[str]:
        """Why libraries are not called, of which the first run in mode `per-op` tells."""
        return list(dict.fromkeys(r for e in self.plans for r in e.libraries.remarks))

    # Kernels

    @cached_property
    def _persistent(self) -> Kernel:
        facts = self.facts
        parameters = STEP_PARAMETERS if self.program.steps else PERSISTENT_PARAMETERS
        return self.module.kernel("persistent", parameters, facts.threads, facts.shared_bytes)

    @cached_property
    def _wave(self) -> Kernel:
        if not (facts := self.facts).waves:
            return self._persistent
        return self.module.kernel("wave", _WAVE_PARAMETERS, facts.threads, facts.shared_bytes)

    @cached_property
    def ops(self) -> list[Kernel]:
        """The kernels of the rOperators, one each."""
        facts = self.facts
        clusters = facts.clusters or (1,) * len(facts.scratch)
        return [
            self.module.kernel(f"op_{i}", _OP_PARAMETERS, facts.threads, scratch, cluster)
            for i, (scratch, cluster) in enumerate(zip(facts.scratch, clusters, strict=True))
        ]

    @cached_property
    def resident_blocks(self) -> int:
        """How many blocks of the persistent kernel the device holds at once."""
        return self._persistent.blocks_per_multiprocessor * self.device.multiprocessors

    # Running

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """Outputs for inputs on the device, on the host, or mixed. Raises InvalidInputError, DeviceError.

        With an input on the device, outputs are there too, of that input's library, and the call
        returns before they are computed; else they are NumPy arrays.
        """
        outputs = self.again(inputs)
        if outputs is not None:
            return outputs
        self.policy.check_count(inputs)
        first = next((x for x in inputs if arrays.on_device(x)), None)
        library = None if first is None else arrays.library_of(first)
        handle = None if library is None else arrays.stream_of(library, first)
        with self._lock:
            self.device.activate()
            stream = self.runs.at(handle)
            self._follow(stream)
            bound = [self.inputs.bind(i, x, stream) for i, x in enumerate(inputs)]
            rows = self.policy.rows([b.shape for b in bound])
            made = self.new_outputs(library or "irkit", rows, stream)
            addresses = [b.address for b in bound] + [address for address, _ in made]
            if self.state is not None:
                with self.state.advance.step():
                    self.plan_of(rows)._run(addresses + self.state.addresses, rows, stream)
            elif rows > 0 or not all(p.shape[:1] == (-1,) for p in self.program.outputs):
                self.plan_of(rows)._run(addresses, rows, stream)
        if self._tensors is not None and library == "torch":
            self._tensors.learn(inputs, rows)
        return [array if library is not None else array.numpy() for _, array in made]

    def again(self, inputs: Sequence[Any]) -> list[Any] | None:
        """As `run`, for tensors such as came before, in the stream of the last call; None for others.

        Raises InvalidInputError for values that the program does not take, DeviceError.
        """
        found = None if self._tensors is None else self._tensors.call(inputs)
        if found is None:
            return None
        addresses, rows, handle, makers = found
        with self._lock:
            if not self.runs.is_at(handle):
                return None
            self.device.activate()
            stream, ahead = self.runs.current, self.facts.any_values
            self.inputs.start(inputs, addresses, stream)
            if not ahead:
                self.inputs.finish(inputs, addresses, stream)
            outputs = [make() for make in makers]
            self.plan_of(rows)._run([*addresses, *(y.data_ptr() for y in outputs)], rows, stream)
            if ahead:
                # It runs meanwhile: of what is refused nobody sees the outputs.
                self.inputs.finish(inputs, addresses, stream)
        return outputs

    def _follow(self, stream: Any) -> None:
        """Order this run after the last one, and reads of the state after this one."""
        self.runs.follow(stream)
        if self.state is not None:
            self.state.stream = stream

    def new_outputs(self, library: str, rows: int, stream: Any) -> list[Any]:
        """(address, array) of each output, from `library`'s allocator."""
        return [
            arrays.new_output(library, self.pool, port.shape_of(rows), port.dtype, stream)
            for port in self.program.outputs
        ]

    def _run(self, addresses: list[int], rows: int, stream: Any) -> None:
        mode, timed = self.choice.pick(rows)
        if not timed:
            self._queue(mode, addresses, rows, stream)
            return
        start, end = Event(), Event()
        start.record(stream)
        self._queue(mode, addresses, rows, stream)
        end.record(stream)
        self.choice.auto.report(rows, mode, end.since(start) / 1000)

    def _queue(self, mode: Mode, addresses: list[int], rows: int, stream: Any) -> None:
        """Queue one run in `mode` over arrays at these addresses."""
        if mode is Mode.PER_OP and self._single is not None:
            self._single.launch(addresses, rows, stream, self.blocks, self._graphs)
            return
        self.residence.bind(addresses, -(-rows // 16) * 16, stream)
        self.launch(mode, rows, stream)

    @cached_property
    def _single(self) -> SingleLaunch | None:
        """What queues runs of a plan that is one launch of an rKernel, and keeps nothing per row."""
        of = self.pool, self.residence, self.ops, self.stream
        return SingleLaunch(*of) if is_single(self.program, self.facts) else None

    def launch(self, mode: Mode, rows: int, stream: Any) -> None:
        """Queue one run in `mode` over the arrays bound last."""
        if mode is Mode.PERSISTENT:
            self._launch_persistent(rows, stream)
            return
        record = self._record_ops if mode is Mode.PER_OP else self._record_waves
        if self._steps is not None:
            self._steps.play(mode, partial(self._record_run, record), stream)
            return
        key = (mode, rows, self._places(mode))
        graph = self._graphs.get(key)
        if graph is None:
            if len(self._graphs) >= _MAX_GRAPHS:
                call("cuStreamSynchronize", stream)
                self._graphs.clear()
                self._fork.events.clear()
            # Capture is not allowed on the default stream; the graph may run on any.
            graph = Graph(partial(record, rows), self.stream)
            self._graphs[key] = graph
        graph.launch(stream)

    def within(self, residence: Residence, mode: Mode) -> CudaExecutor:
        """The same plan with its tables, arena and arguments elsewhere, ready to `put` runs in a mode."""
        _ = self._persistent if mode is Mode.PERSISTENT else self._wave
        made = copy(self)
        made.residence = residence
        return made

    def put(self, mode: Mode, rows: int, stream: Any) -> None:
        """Queue one run, per wave or persistent, whatever ran before: it may be recorded into a graph."""
        with self._lock:
            if mode is Mode.PERSISTENT:
                self.residence.restart(stream)
                self._launch_persistent(rows, stream)
            else:
                self._record_waves(rows, stream)

    def _places(self, mode: Mode) -> tuple[int, ...]:
        """Addresses that a recording in `mode` holds: kernels find theirs in tables, library calls do not."""
        if mode is not Mode.PER_OP or not self.facts.library:
            return ()
        bases = self.libraries.bases(self.program.appends)
        return tuple(self.residence.host_bases[base] for base in bases)

    def _launch_persistent(self, rows: int, stream: Any, *more: int) -> None:
        home = self.residence
        epoch = home.epoch + 1
        if self._steps is not None:
            given = self._steps.arguments(home, epoch)
            self._persistent.launch(self._steps.blocks, given, stream, together=True)
            home.epoch = epoch
            return
        arguments = (
            home.records,
            home.begin,
            home.begin + 8,
            home.bases,
            home.counters,
            home.residents,
            home.resident_begin,
            epoch,
            rows,
            -(-rows // 16) * 16,
            *more,
        )
        self._persistent.launch(self.program.veus, arguments, stream, together=True)
        # Only now: the counters of a run that could not be started do not move.
        home.epoch = epoch

    def _record_run(self, record: Any, run: Ran, stream: Any) -> None:
        """One run of a program with loops, as waves or appends."""
        record(1, stream, (run.first, run.last))

    def _record_waves(self, rows: int, stream: Any, part: tuple[int, int] = ALL) -> None:
        home, row_bytes = self.residence, 8 * self.program.veus
        # Of `persistent`, which without counters neither waits nor signals.
        others = () if self.facts.waves else (0, home.residents, home.resident_begin, 0)
        for wave in sorted({append.wave for append in self.program.appends[slice(*part)]}):
            starts = home.wave_begin + wave * row_bytes
            arguments = (home.unpinned, starts, starts + row_bytes, home.bases, *others, rows)
            self._wave.launch(self.program.veus, (*arguments, -(-rows // 16) * 16), stream)

    def _record_ops(self, rows: int, stream: Any, part: tuple[int, int] = ALL) -> None:
        first = [0, *accumulate(a.tasks for a in self.program.appends)]

        def launch(number: int, stream: Any, early: bool) -> bool:
            number += part[0]
            return self._launch_op(number, first[number], rows, stream, early)

        self._fork.run_lanes(stream, lanes(self.program.appends[slice(*part)]), launch)

    def _launch_op(self, number: int, first: int, rows: int, stream: Any, early: bool) -> bool:
        """Append `number`, whose rTasks are the records from `first` on; whether the next may begin early."""
        home, append = self.residence, self.program.appends[number]
        padded = -(-rows // 16) * 16
        if self.libraries.launch(number, append, home.host_bases, padded, stream):
            return False
        arguments = (home.serial + first * home.record_bytes, home.bases, rows)
        blocks = self.blocks(append.kernel, append.tasks, rows)
        ahead = self.device if early else None
        self.ops[append.kernel].launch(blocks, (*arguments, padded), stream, early=ahead)
        return self.facts.early and self.device.records_early

    def blocks(self, kernel: int, tasks: int, rows: int) -> int:
        """Blocks to run an rOperator alone: its rTasks, or as many shares of these or of the batch as fit."""
        most = self.facts.spread[kernel] if self.facts.spread else 1
        if most == 1 and not self.facts.batch[kernel]:
            return tasks
        if self.facts.clusters and self.facts.clusters[kernel] > 1:
            return tasks * most
        fitting = self.ops[kernel].blocks_per_multiprocessor * self.device.multiprocessors
        if self.facts.batch[kernel]:
            at_once = self.facts.rows_at_once[kernel] if self.facts.rows_at_once else 1
            return max(1, min(-(-rows // at_once), fitting))
        return tasks * max(1, min(most, fitting // tasks))

    def synchronize(self) -> None:
        """Wait until everything queued has run."""
        self.device.activate()
        call("cuStreamSynchronize", self.runs.current)
