"""The NumPy meaning of scheduled programs one after another and in loops: each run of one in some order that
its mode allows, on bytes that lie as the composite says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue

from irkit.dialects.functions import function_named
from irkit.dialects.state import StatePair, state_of
from irkit.dialects.task import BufferOp, CompositeOp, ProgramOp, RepeatOp, RunOp, WhileOp
from irkit.dialects.task.composite import Place
from irkit.dialects.types import Tensor, numpy_dtype, tensor_type
from irkit.errors import InvalidModelError
from irkit.weights import Array

Bytes = NDArray[np.uint8]
Runner = Callable[[ProgramOp, Sequence[Array]], list[Array]]
"""The results of a program's function on arrays of its arguments."""


def composite_of(module: ModuleOp) -> CompositeOp | None:
    """The schedule of `@main` as a function of calls, if that is what it is."""
    for op in module.ops:
        if isinstance(op, CompositeOp) and op.function.string_value() == "main":
            return op
    return None


def run_composite(
    module: ModuleOp, composite: CompositeOp, inputs: Sequence[Array], run: Runner
) -> list[Array]:
    """The outputs of a composite. Raises InvalidModelError for a program that is not there."""
    main = function_named(module, composite.function.string_value())
    pairs = () if main is None else state_of(main)
    memory = _memory(composite, inputs, pairs)
    for op, iterations in _runs(composite.body.block, (), memory):
        _run(module, op, iterations, memory, run)
    found = {
        (pairs[port].result if op.space.data == "state" else port): _array(
            memory[op.result], tensor_type(op.result)
        )
        for op in composite.body.block.ops
        if isinstance(op, BufferOp) and op.space.data in ("output", "state")
        if (port := -1 if op.port is None else op.port.value.data) >= 0
    }
    return [found[port] for port in sorted(found)]


def _runs(
    block: Block, iterations: tuple[int, ...], memory: Mapping[SSAValue, Bytes]
) -> Iterator[tuple[RunOp, tuple[int, ...]]]:
    """Runs as they come: who asks for the next has done the one before."""
    for op in block.ops:
        if isinstance(op, RunOp):
            yield op, iterations
        elif isinstance(op, RepeatOp):
            for i in range(op.trips.value.data):
                yield from _runs(op.body.block, (*iterations, i), memory)
        elif isinstance(op, WhileOp):
            turns = 0
            while memory[op.condition][0]:
                yield from _runs(op.body.block, (*iterations, turns), memory)
                turns += 1


def _memory(
    composite: CompositeOp, inputs: Sequence[Array], pairs: Sequence[StatePair]
) -> dict[SSAValue, Bytes]:
    """The bytes of each buffer; those of the arena are views of one, full of NaN."""
    size = composite.link_bytes.value.data if composite.link_bytes is not None else 0
    arena = np.full(size, 0xFF, dtype=np.uint8)
    found: dict[SSAValue, Bytes] = {}
    for op in composite.body.block.ops:
        if not isinstance(op, BufferOp):
            continue
        t = tensor_type(op.result)
        nbytes = int(np.prod(t.get_shape(), dtype=np.int64)) * numpy_dtype(t.element_type).itemsize
        number = op.port.value.data if op.port is not None else 0
        if op.space.data == "state":
            number = pairs[number].argument
        if op.space.data in ("input", "state"):
            given = np.array(inputs[number], dtype=numpy_dtype(t.element_type), order="C")
            found[op.result] = given.reshape(-1).view(np.uint8)
        elif op.space.data == "output":
            found[op.result] = np.full(nbytes, 0xFF, dtype=np.uint8)
        else:
            at = op.offset.value.data if op.offset is not None else 0
            found[op.result] = arena[at : at + nbytes]
    return found


def _array(data: Bytes, t: Tensor) -> Array:
    return data.copy().view(numpy_dtype(t.element_type)).reshape(t.get_shape())


def _run(
    module: ModuleOp,
    op: RunOp,
    iterations: tuple[int, ...],
    memory: dict[SSAValue, Bytes],
    run: Runner,
) -> None:
    program = _program(module, op.program.string_value())
    function = function_named(module, program.function.string_value())
    if function is None:
        raise InvalidModelError(f"there is no function @{program.function.string_value()}")
    reads, writes, held = op.places()
    pairs = state_of(function)
    types = [tensor_type(v) for v in function.body.block.args]

    def window(place: Place, nbytes: int) -> Bytes:
        steps = zip(place.steps, iterations, strict=False)
        at = place.offset + sum(step * i for step, i in steps)
        return memory[place.buffer][at : at + nbytes]

    def nbytes(t: Tensor) -> int:
        count = int(np.prod(t.get_shape(), dtype=np.int64))
        return count * numpy_dtype(t.element_type).itemsize

    of_state = {p.argument: place for p, place in zip(pairs, held, strict=True)}
    others = iter(reads)
    places = [of_state[n] if n in of_state else next(others) for n in range(len(types))]
    arguments = [_array(window(p, nbytes(t)), t) for p, t in zip(places, types, strict=True)]
    results = run(program, arguments)
    kept = {p.result: place for p, place in zip(pairs, held, strict=True)}
    made = iter(writes)
    for number, result in enumerate(results):
        place = kept[number] if number in kept else next(made)
        window(place, result.nbytes)[:] = np.ascontiguousarray(result).reshape(-1).view(np.uint8)


def _program(module: ModuleOp, name: str) -> ProgramOp:
    for op in module.ops:
        if isinstance(op, ProgramOp) and op.sym_name.data == name:
            return op
    raise InvalidModelError(f"the module has no task.program @{name}")
