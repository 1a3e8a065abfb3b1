"""The NumPy meaning of a scheduled program: rTasks, one at a time, in a random legal interleaving.

Memory is bytes, as on the device: an arena full of NaN, planned offsets, views. An rTask sees only
the boxes it is known to read (zeros elsewhere) and writes only its own, so that a wait too few, a
wrong offset or a box too small gives a wrong answer. The scheduler's data model is imported for the
interleaving; nothing of its algorithms is.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp
from xdsl.ir import Operation, SSAValue

from irkit.dialects.access_boxes import operand_boxes
from irkit.dialects.functions import function_named, is_composed
from irkit.dialects.state import StatePair, state_of
from irkit.dialects.task import AppendOp, BufferOp, ProgramOp, ROperatorOp, ViewOp
from irkit.dialects.types import DYNAMIC, Tensor, ints, numpy_dtype, tensor_type
from irkit.errors import InvalidInputError, InvalidModelError, UnsupportedError
from irkit.interp.composed import run_blocks
from irkit.interp.composite import composite_of, run_composite
from irkit.interp.interleave import interleave
from irkit.interp.task import evaluate_body, roperators
from irkit.row_ranges import is_in
from irkit.schedule.model import Append, Launch, Schedule, VDevice
from irkit.schedule.modes import Mode
from irkit.weights import Array, WeightStore

Boxes = tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]]


def run_schedule(
    module: ModuleOp,
    weights: WeightStore,
    inputs: Sequence[Array],
    seed: int = 0,
    mode: Mode = Mode.PERSISTENT,
) -> list[Array]:
    """The outputs of the schedule of `@main` under one interleaving that `mode` allows, picked by `seed`.

    Raises ScheduleError if the program deadlocks, InvalidModelError if there is none.
    """
    # Each run in an order of its own.
    seeds = itertools.count(seed)

    def run(program: ProgramOp, given: Sequence[Array]) -> list[Array]:
        return _run_program(module, program, weights, given, next(seeds), mode)

    def leaf(op: Operation, given: list[Array]) -> list[Array]:
        if not isinstance(op, CallOp):
            raise UnsupportedError(f"the schedule interpreter does not know '{op.name}'")
        return run(_program(module, given, op.callee.string_value()), given)

    composite, main = composite_of(module), function_named(module, "main")
    if composite is not None:
        return run_composite(module, composite, inputs, run)
    if main is not None and is_composed(main):
        # Scheduled in parts, which nothing links yet.
        return run_blocks(main, weights, inputs, leaf)
    return _run_program(module, _program(module, inputs), weights, inputs, seed, mode)


def _run_program(
    module: ModuleOp,
    program: ProgramOp,
    weights: WeightStore,
    inputs: Sequence[Array],
    seed: int,
    mode: Mode,
) -> list[Array]:
    memory = _Memory(program, weights, inputs, _state(module, program))
    machine = _Machine(module, program, memory, weights)
    interleave(machine.schedule(), machine.run, np.random.default_rng(seed), mode)
    return memory.outputs()


def _program(module: ModuleOp, inputs: Sequence[Array], name: str = "main") -> ProgramOp:
    """The schedule of a function, or of the first function that has one, that is for the inputs' rows."""
    programs = [op for op in module.ops if isinstance(op, ProgramOp)]
    named = [op for op in programs if op.function.string_value() == name]
    if not programs:
        raise InvalidModelError("the module has no task.program")
    function = (named or programs)[0].function
    plans = [op for op in programs if op.function == function]
    rows = _batch(plans[0], inputs)
    for program in plans:
        if is_in(program.row_range, rows):
            return program
    raise InvalidModelError(f"no task.program of @{function.string_value()} is for {rows} rows")


def _batch(program: ProgramOp, inputs: Sequence[Array]) -> int:
    """Rows of the batch; 1 where there is none."""
    for op in program.body.block.ops:
        if not isinstance(op, BufferOp) or op.space.data != "input" or op.port is None:
            continue
        if tensor_type(op.result).get_shape()[:1] == (DYNAMIC,):
            return len(inputs[op.port.value.data])
    return 1


def _state(module: ModuleOp, program: ProgramOp) -> Sequence[StatePair]:
    """The state of the function that `program` is a schedule of."""
    function = function_named(module, program.function.string_value())
    return state_of(function) if function is not None else ()


class _Memory:
    """Bytes of every buffer."""

    def __init__(
        self,
        program: ProgramOp,
        weights: WeightStore,
        inputs: Sequence[Array],
        state: Sequence[StatePair],
    ) -> None:
        self.state = state
        self.rows = _batch(program, inputs)
        self.padded = -(-self.rows // 16) * 16
        arena = program.arena_bytes.value.data if program.arena_bytes is not None else 0
        per_row = program.row_bytes.value.data if program.row_bytes is not None else 0
        self.spaces = {"arena": _poisoned(arena), "rows": _poisoned(per_row * self.padded)}
        self.weights, self.inputs = weights, inputs
        self.views: dict[SSAValue, NDArray[np.uint8]] = {}
        self.results: dict[int, tuple[Tensor, NDArray[np.uint8]]] = {}
        for op in program.body.block.ops:
            if isinstance(op, BufferOp):
                self.views[op.result] = self._buffer(op)
            elif isinstance(op, ViewOp):
                self.views[op.result] = self._view(op)

    def shape(self, t: Tensor) -> tuple[int, ...]:
        """Shape for this run's batch."""
        return tuple(self.rows if s == DYNAMIC else s for s in t.get_shape())

    def size(self, t: Tensor) -> int:
        """Bytes for this run's batch."""
        return int(np.prod(self.shape(t), dtype=np.int64)) * numpy_dtype(t.element_type).itemsize

    def _buffer(self, op: BufferOp) -> NDArray[np.uint8]:
        t = tensor_type(op.result)
        number = op.port.value.data if op.port is not None else 0
        offset = op.offset.value.data if op.offset is not None else 0
        match op.space.data:
            case "input":
                return self._input(number, t)
            case "state":
                data = self._input(self.state[number].argument, t).copy()
                self.results[self.state[number].result] = (t, data)
                return data
            case "output":
                data = _poisoned(self.size(t))
                self.results[number] = (t, data)
                return data
            case "constant":
                assert op.source is not None
                return np.array(self.weights[op.source.data]).reshape(-1).view(np.uint8)
            case space:
                start = offset * (self.padded if space == "rows" else 1)
                return self.spaces[space][start : start + self.size(t)]

    def _input(self, number: int, t: Tensor) -> NDArray[np.uint8]:
        # Not `ascontiguousarray`: it makes one dimension of none.
        array = np.asarray(self.inputs[number], dtype=numpy_dtype(t.element_type), order="C")
        if array.shape != self.shape(t):
            raise InvalidInputError(f"input {number}: expected {t}, got shape {array.shape}")
        return array.reshape(-1).view(np.uint8)

    def _view(self, op: ViewOp) -> NDArray[np.uint8]:
        batch = tensor_type(op.source).get_shape()[:1] == (DYNAMIC,)
        start = op.offset.value.data * (self.padded if batch else 1)
        return self.views[op.source][start : start + self.size(tensor_type(op.result))]

    def array(self, value: SSAValue) -> Array:
        """A buffer's bytes as an array that shares them."""
        t = tensor_type(value)
        return self.views[value].view(numpy_dtype(t.element_type)).reshape(self.shape(t))

    def outputs(self) -> list[Array]:
        """All outputs, in order."""
        return [
            data.view(numpy_dtype(t.element_type)).reshape(self.shape(t))
            for _, (t, data) in sorted(self.results.items())
        ]


def _poisoned(nbytes: int) -> NDArray[np.uint8]:
    """Bytes that are NaN as any float: reading what nobody wrote shows."""
    return np.full(nbytes, 0xFF, dtype=np.uint8)


class _Machine:
    """Runs rTasks of the appends."""

    def __init__(
        self, module: ModuleOp, program: ProgramOp, memory: _Memory, weights: WeightStore
    ) -> None:
        self.memory, self.weights = memory, weights
        self.symbols = roperators(module)
        self.appends = [op for op in program.body.block.ops if isinstance(op, AppendOp)]
        self._boxes: dict[str, Boxes] = {}

    def schedule(self) -> Schedule:
        """The order and waits, without memory."""
        tokens: dict[SSAValue, int] = {op.token: n for n, op in enumerate(self.appends)}
        launches = [
            Launch(f"a{n}", self._symbol(op), self._operator(op).tasks, (), ())
            for n, op in enumerate(self.appends)
        ]
        appends = [
            Append(
                n,
                op.range[0],
                op.range[1] - op.range[0] + 1,
                op.wave.value.data,
                (*(tokens[w] for w in op.waits), *self._sources(op)),
            )
            for n, op in enumerate(self.appends)
        ]
        veus = max((op.range[1] + 1 for op in self.appends), default=1)
        device = VDevice("interpreter", "test", veus, 1, 0, 0.0)
        return Schedule(device, [], launches, appends)

    def _sources(self, op: AppendOp) -> list[int]:
        """The appends from which carried operands come: each element of these is there before the append."""
        values = [op.reads[operand] for operand in ints(op.carried)]
        return [n for n, other in enumerate(self.appends) if any(v in other.writes for v in values)]

    def _symbol(self, op: AppendOp) -> str:
        return op.callee.string_value()

    def _operator(self, op: AppendOp) -> ROperatorOp:
        return self.symbols[self._symbol(op)]

    def run(self, number: int, task: int) -> None:
        """One rTask."""
        op = self.appends[number]
        roperator = self._operator(op)
        symbol = self._symbol(op)
        if symbol not in self._boxes:
            self._boxes[symbol] = operand_boxes(roperator)
        read_boxes, write_boxes = self._boxes[symbol]
        operands: list[Array] = []
        for value, boxes in zip(op.reads, read_boxes, strict=True):
            seen = np.zeros_like(self.memory.array(value))
            where = self._slices(value, boxes[task], roperator)
            seen[where] = self.memory.array(value)[where]
            operands.append(seen)
        results = evaluate_body(roperator, operands, self.weights)
        for value, boxes, result in zip(op.writes, write_boxes, results, strict=True):
            where = self._slices(value, boxes[task], roperator)
            self.memory.array(value)[where] = result[where]

    def _slices(
        self, value: SSAValue, box: NDArray[np.int64], roperator: ROperatorOp
    ) -> tuple[slice, ...]:
        """A box as slices; the batch's shares become rows."""
        slices: list[Any] = [slice(int(a), int(b)) for a, b in box]
        if tensor_type(value).get_shape()[:1] == (DYNAMIC,):
            shares, rows = roperator.tasks, self.memory.rows
            low, high = (int(n) for n in box[0])
            slices[0] = slice(rows * low // shares, rows * high // shares)
        return tuple(slices)
