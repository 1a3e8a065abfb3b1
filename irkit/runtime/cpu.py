"""Run an emitted module on a CPU: vEUs are threads, one row goes straight through."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Sequence
from concurrent.futures import Future
from copy import copy
from typing import Any

import numpy as np

from irkit.bfloat16 import is_half
from irkit.errors import DeviceError
from irkit.model_info import ModelInfo
from irkit.row_ranges import Others
from irkit.runtime.cpu_steps import StepRunner
from irkit.runtime.input_policy import InputPolicy
from irkit.runtime.intrinsics.cpu_team import CALL, JOB_WORDS, RANGE
from irkit.runtime.loading import LoadedModule
from irkit.runtime.mode_choice import AUTO, ModeChoice, not_proved, worth_measuring
from irkit.runtime.one_output import Walked, parts_of, with_addresses
from irkit.runtime.output_memory import LARGE, OutputMemory
from irkit.runtime.row_call import RowCall
from irkit.runtime.state_memory import host_state
from irkit.runtime.stored_arrays import in_place
from irkit.runtime.value_checks import ValueCheck
from irkit.runtime.veu_team import Ranges, ranges_of, veu_team
from irkit.runtime.veu_threads import Places, join, veu_threads, walk_in_place
from irkit.runtime.workspace import Workspace, aligned
from irkit.schedule.modes import Mode
from irkit.schedule.tables import HEADER, Program, build_tables
from irkit.weights import Array


def _bits(arrays: Sequence[Array]) -> list[Array]:
    """16-bit floats as the bits that they are: the type that entry points have for them."""
    return [a.view(np.uint16) if is_half(a.dtype) else a for a in arrays]


# More than any counter reaches, and far from overflow.
_RELEASED = 1 << 62


class CpuExecutor:
    """Runs one program. Thread-safe: each call in flight has a workspace of its own; those that change state
    go one after another.

    `auto` and `mode` are of the modes alone that the program is proved for. A program with plans for ranges
    of rows has an executor a plan, `plan_of` the rows of a call; that of the fewest rows is this one.
    """

    remarks: Sequence[str] = ()

    # Whether other vEUs are threads of the team, which run compiled code and nothing else.
    _of_a_team = True

    def __init__(
        self,
        module: LoadedModule,
        weights: dict[str, Array],
        info: ModelInfo | None = None,
        mode: str = AUTO,
    ) -> None:
        self._module, program = module, module.program
        self.policy = InputPolicy(program.inputs, info)
        self._run, self._call = module.run, module.call
        self.state = host_state(program.states)
        self._weights = weights
        place = in_place(weights, program.constants)
        if place is None:
            self._constants = aligned(program.constant_bytes)
            for name, at, size in program.constants:
                self._constants[at : at + size] = weights[name].reshape(-1).view(np.uint8)
            place = self._constants.ctypes.data
        self._constants_at = place
        self._plan_for(program, program.plans, mode)
        self._prepare_outputs()
        self._prepare_row()
        # This is the executor of the plan for the fewest rows; each other plan has one of its own.
        self._others = Others[CpuExecutor]()
        others = [self._of_plan(plan, mode) for plan in program.others]
        self._others = Others([plan.rows for plan in program.plans], others)

    def _plan_for(self, plan: Program, plans: Sequence[Program], mode: str) -> None:
        """Have the tables of a plan, of several that have one walker, and what a call of it needs."""
        self.program, self.tables = plan, build_tables(plan, plans)
        # Walkers call rKernels by their addresses in this process.
        addresses = np.array(self._module.rkernels, dtype=np.int64)
        self._records, self._serial_records, self._one_row = (
            with_addresses(t, addresses)
            for t in (self.tables.records, self.tables.serial, self.tables.one_row)
        )
        self._no_records = self._serial_records[:0]
        proved = not_proved("cpu", plan.modes)
        self.choice = ModeChoice("cpu", mode, worth_measuring(plan), proved)
        # Workspaces that no call has. One whose call failed is not put back: its counters may be wrong.
        self._idle: list[Workspace] = []
        self._unwaited = self._records.copy()
        self._unwaited[:, 3], self._unwaited[:, 4] = -1, 0
        tables = (self._records, self._unwaited, self._serial_records)
        self._steps = StepRunner(self.tables, *tables) if plan.steps else None
        self._whole = ranges_of(list(itertools.pairwise(self.tables.begin.tolist())))
        begin = self.tables.wave_begin
        self._all = Walked(self._serial_records, self._one_row, self._unwaited, begin)
        self._parts = parts_of(self._all, plan, self.choice.auto)

    def _of_plan(self, plan: Program, mode: str) -> CpuExecutor:
        """The same program by another of its plans: same code, constants and state."""
        made = copy(self)
        made._plan_for(plan, self.program.plans, mode)
        made._prepare_row()
        return made

    def _prepare_outputs(self) -> None:
        """Each output's shape behind the batch, dtype, and whether it has a batch."""
        self._memory = OutputMemory()
        self._outputs = [
            (p.shape[1:], np.dtype(p.dtype), True)
            if p.shape[:1] == (-1,)
            else (p.shape, np.dtype(p.dtype), False)
            for p in self.program.outputs
        ]
        # Elements of all outputs, without a batch and for each row of it: few need no memory that is kept.
        self._sizes = [
            sum(math.prod(s) * d.itemsize for s, d, batch in self._outputs if batch is of)
            for of in (False, True)
        ]
        ports = (*self.program.inputs, *self.program.outputs)
        looked_at = not (self.policy.any_value and self.policy.any_index)
        fixed = not looked_at and not any(-1 in p.shape[:1] for p in self.program.inputs)
        shapes = [p.shape for p in self.program.inputs]
        self._fixed_inputs = list(zip(shapes, self.policy.dtypes, strict=True)) if fixed else None
        self._halves = any(is_half(np.dtype(p.dtype)) for p in ports)
        some_fixed = not all(dynamic for _, _, dynamic in self._outputs)
        self._without_rows = some_fixed or self.state is not None

    def _prepare_row(self) -> None:
        """One row takes microseconds: what is known of it is made ready here."""
        serial = Mode.SERIAL in self.choice.allowed and self.choice.fixed in (None, Mode.SERIAL)
        self._straight = serial and self.program.dynamic
        first = self.program.inputs[0] if len(self.program.inputs) == 1 else None
        self.plain_row = self._straight and first is not None and self.state is None
        self.plain_row = self.plain_row and self.policy.any_index
        self._row_check: ValueCheck | None = None
        if self.plain_row and self.policy.restricts(0):
            self._row_check = self.policy.value_check(0)
            self.plain_row = self._row_check is not None
        self._row_shape = (1, *first.shape[1:]) if first is not None else ()
        self._row_dtype = self.policy.dtypes[0] if self.plain_row else None
        self.row_outputs: Sequence[tuple[tuple[int, ...], np.dtype[Any]]] = [
            ((1, *shape) if dynamic else shape, dtype) for shape, dtype, dynamic in self._outputs
        ]

    def row_call(self, number: int, casts: bool) -> RowCall | None:
        """Calls with one row that want output `number`; None where such a call is none of the plain ones."""
        return RowCall.of(self, number, casts) if self.plain_row else None

    @property
    def mode(self) -> str:
        """ "auto", or the mode of every call. Setting it raises DeviceError if it cannot be."""
        return self.choice.mode

    @mode.setter
    def mode(self, mode: str) -> None:
        for executor in self.plans:
            executor.choice.mode = mode
            executor._prepare_row()

    @property
    def plans(self) -> tuple[CpuExecutor, ...]:
        """The executors of all plans, in the order of their rows."""
        return (self, *self._others.values)

    def plan_of(self, rows: int) -> CpuExecutor:
        """The executor of the plan for so many rows."""
        return self._others.of(rows, self)

    # Running

    def again(self, inputs: Sequence[Any]) -> None:
        """Arrays on the host are looked at in every call."""

    def run(self, inputs: Sequence[Any], only: int | None = None) -> list[Any]:
        """All outputs, in order, or of output `only` what it is: others may then be anything. Raises
        InvalidInputError, DeviceError."""
        if self.plain_row and len(inputs) == 1 and self._is_plain_row(inputs[0]):
            outputs = [np.empty(shape, dtype) for shape, dtype in self.row_outputs]
            self.run_row(inputs, outputs, only=only)
            return outputs
        if self._as_they_are(inputs):
            arrays, rows = inputs, 1
        else:
            self.policy.check_count(inputs)
            arrays = [self.policy.host_array(i, x) for i, x in enumerate(inputs)]
            rows = self.policy.rows([a.shape for a in arrays])
        small = self._sizes[0] + rows * self._sizes[1] < LARGE
        empty = np.empty if small else self._memory.empty
        outputs = [
            empty((rows, *shape) if dynamic else shape, dtype)
            for shape, dtype, dynamic in self._outputs
        ]
        if rows > 0 or self._without_rows:
            self.plan_of(rows)._fill(arrays, outputs, rows, only)
        return outputs

    def _as_they_are(self, inputs: Sequence[Any]) -> bool:
        """Whether these are arrays of fixed shapes in which there is nothing to mend or to refuse."""
        wanted = self._fixed_inputs
        if wanted is None or len(inputs) != len(wanted):
            return False
        return all(
            type(x) is np.ndarray and x.shape == shape and x.dtype == dtype and x.flags.carray
            for x, (shape, dtype) in zip(inputs, wanted, strict=True)
        )

    def _is_plain_row(self, x: Any) -> bool:
        return (
            type(x) is np.ndarray
            and x.shape == self._row_shape
            and x.dtype == self._row_dtype
            and x.flags.c_contiguous
            and x.flags.aligned
            and (self._row_check is None or self._row_check.holds(x))
        )

    def _fill(
        self, inputs: Sequence[Array], outputs: Sequence[Array], rows: int, only: int | None = None
    ) -> None:
        """Compute `outputs`. All arrays are C-contiguous, of the ports' dtypes and shapes."""
        space = self.workspace()
        padded = -(-rows // 16) * 16
        if padded > space.rows_capacity:
            space.reserve(padded)
        arrays = (*_bits(inputs), *_bits(outputs)) if self._halves else (*inputs, *outputs)
        if self.state is None:
            self._compute(space, arrays, rows, padded, self._parts.get(only, self._all))
        else:
            with self.state.lock, self.state.advance.step():
                self._compute(space, arrays, rows, padded, self._all)
        self._idle.append(space)

    def _compute(
        self, space: Workspace, arrays: Sequence[Array], rows: int, padded: int, part: Walked
    ) -> None:
        """Inputs and outputs are `arrays`."""
        if rows == 1 and self._straight:
            self._serial(space, arrays, rows, padded, part)
            return
        auto = part.auto or self.choice.auto
        mode, timed = self.choice.pick(rows, auto)
        start = time.perf_counter()
        self._run_mode(mode, space, arrays, rows, padded, part)
        if timed:
            auto.report(rows, mode, time.perf_counter() - start)

    def workspace(self) -> Workspace:
        """One that no call has; it is put back by who ends well."""
        try:
            return self._idle.pop()
        except IndexError:
            state = self.state.addresses if self.state is not None else ()
            return Workspace(self.program, self.tables, self._constants_at, state)

    def run_row(
        self,
        inputs: Sequence[Array],
        outputs: Sequence[Array],
        space: Workspace | None = None,
        only: int | None = None,
    ) -> None:
        """Fill `outputs`, or of them `only`, for one row of a row-wise program, on this thread."""
        if space is None:
            space = self.workspace()
        if space.rows_capacity < 16:
            space.reserve(16)
        address = space.addresses[0]
        if self._halves:
            inputs, outputs = _bits(inputs), _bits(outputs)
        records = self._parts.get(only, self._all).one_row
        self._call(records, space.bases, space.counters, address, 1, 16, *inputs, *outputs)
        self._idle.append(space)

    def _run_mode(
        self,
        mode: Mode,
        space: Workspace,
        arrays: Sequence[Array],
        rows: int,
        padded: int,
        part: Walked,
    ) -> None:
        if mode is Mode.SERIAL and self._steps is None:
            self._serial(space, arrays, rows, padded, part)
            return
        # Compiled code finds an array's address in a tenth of the time: walked are no records.
        self._straight_through(self._no_records, space, arrays, rows, padded)
        if self._steps is not None:
            self._steps.run(space, mode, rows, padded)
        elif mode is Mode.PERSISTENT:
            self._persistent(space, rows, padded)
        elif mode is Mode.PER_WAVE:
            self._per_wave(space, rows, padded, part)
        else:
            self._per_op(space, rows, padded)

    def _serial(
        self, space: Workspace, arrays: Sequence[Array], rows: int, padded: int, part: Walked
    ) -> None:
        self._straight_through(part.serial, space, arrays, rows, padded)

    def _straight_through(
        self, records: Any, space: Workspace, arrays: Sequence[Array], rows: int, padded: int
    ) -> None:
        """Bind the arrays to the bases, and walk `records` on this thread."""
        address = space.addresses[0]
        self._call(records, space.bases, space.counters, address, rows, padded, *arrays)

    def _ranges(
        self, space: Workspace, walked: Ranges, records: Any, epoch: int, rows: int, padded: int
    ) -> None:
        """Walk one range of records per vEU: the first on this thread, the others on the team's, or on the
        pool's."""
        ranges, busy = walked.of_veus, walked.busy
        if len(busy.values) > 1 and self._of_a_team:
            jobs = space.jobs(records, HEADER + 2 * self.tables.max_waits)
            values = jobs.values
            for veu in busy.values:
                first, call = JOB_WORDS * veu + RANGE.start, JOB_WORDS * veu + CALL.start
                values[first], values[first + 1] = ranges[veu]
                values[call], values[call + 1], values[call + 2] = epoch, rows, padded
            self._check(veu_team().run(jobs, busy), walked)
            return
        arguments = (space.counters, epoch, rows, padded)
        futures: list[Future[int]] = []
        wanted = [True]
        try:
            if len(busy.values) > 1:
                others = [(v, ranges[v]) for v in busy.values[1:]]
                self._submit(futures, wanted, space, others, records, arguments)
            done = sum(
                self._run(records, *ranges[v], space.bases, *arguments, space.addresses[v])
                for v in busy.values[:1]
            )
        except BaseException:
            # Nobody may wait for a vEU that did not start, nor start one that nobody waits for.
            wanted.clear()
            space.counters.fill(_RELEASED)
            raise
        finally:
            join(futures)
        self._check(done + sum(f.result() for f in futures), walked)

    def _check(self, done: int, walked: Ranges) -> None:
        """Raises DeviceError unless all were walked."""
        if done != walked.total:
            raise DeviceError("a vEU gave up waiting: the program did not finish")

    def _submit(
        self,
        futures: list[Future[int]],
        wanted: list[bool],
        space: Workspace,
        ranges: Sequence[tuple[int, tuple[int, int]]],
        records: Any,
        arguments: tuple[Any, ...],
    ) -> None:
        """Start each vEU's range on the pool. Raises DeviceError if there are no threads for them."""
        pool, places = veu_threads().pool(len(ranges)), Places()
        try:
            for veu, (begin, end) in ranges:
                walk = (records, begin, end, space.bases, *arguments, space.addresses[veu])
                futures.append(pool.submit(walk_in_place, wanted, places, self._run, *walk))
        except RuntimeError as error:
            raise DeviceError(f"no threads for {len(ranges)} more vEUs: {error}") from None

    def _persistent(self, space: Workspace, rows: int, padded: int) -> None:
        space.epoch += 1
        with veu_threads().together:
            self._ranges(space, self._whole, self._records, space.epoch, rows, padded)

    def _per_wave(self, space: Workspace, rows: int, padded: int, part: Walked) -> None:
        # Waits are satisfied by the joins between waves, so counters need not be looked at.
        for wave in part.waves:
            self._ranges(space, wave, part.unwaited, 0, rows, padded)

    def _per_op(self, space: Workspace, rows: int, padded: int) -> None:
        first = 0
        for append in self.program.appends:
            cut = [first + append.tasks * v // append.veus for v in range(append.veus + 1)]
            ranges = list(itertools.pairwise(cut))
            ranges += [(0, 0)] * (self.program.veus - len(ranges))
            self._ranges(space, ranges_of(ranges), self._serial_records, 0, rows, padded)
            first += append.tasks
