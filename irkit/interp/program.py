"""The program level on NumPy arrays: effects one after another, as NumPy has them.

It also runs what `functionalise` makes: functions of values, with loops that carry them.

What was allocated and never written is 0: no program means anything by it.

Arrays of the device are kept apart from those of the host: a function of either is given none of the
other, and only copies touch both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from xdsl.dialects import affine, arith, memref, scf, tensor
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp as FunctionCall
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue

from irkit.dialects.bufferization import MaterializeInDestinationOp, ToTensorOp
from irkit.dialects.constants import constant_array
from irkit.dialects.dist import CollectiveOp
from irkit.dialects.dist.semantics import collective
from irkit.dialects.functions import function_named
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.semantics import evaluate
from irkit.dialects.program import CallOp
from irkit.dialects.program.check import function_called, written_arguments
from irkit.dialects.program.spaces import is_of_device, on_device
from irkit.dialects.program.views import Affine, StridedView, array_type, trips_of, view_of
from irkit.dialects.types import numpy_dtype
from irkit.errors import InvalidInputError, InvalidModelError, UnsupportedError
from irkit.interp.tensor import evaluate_op
from irkit.weights import Array, WeightStore

HostFunction = Callable[..., object]


@dataclass(frozen=True, eq=False)
class DeviceArray:
    """An array in a device's memory, of which the host can have a copy alone."""

    elements: Array


def run_program(
    module: ModuleOp,
    weights: WeightStore,
    inputs: Sequence[Array],
    functions: Mapping[str, HostFunction] | None = None,
) -> list[Array]:
    """What `@main` returns, then what is in the argument buffers that it may write, in order, in the end.

    `inputs`, one contiguous array per argument, stay as they are. `functions` are those that `program.call`
    names: each is called with its arrays. Raises as `Execution`.
    """
    main = function_named(module, "main")
    if main is None:
        raise InvalidModelError("the module has no function '@main'")
    buffers = [np.array(x, order="C") for x in inputs]
    returned = Execution(main, weights, functions or {}).run(buffers)
    results = [view.copy() for view in returned]
    return results + [buffers[n] for n in written_arguments(main)]


Values = dict[SSAValue, Any]
Step = Callable[[Values], Sequence[Any]]
"""What an op gives, of what was given before."""


class Execution:
    """A function of arrays, executed in place, as often as one likes: what its blocks say is read once."""

    def __init__(
        self, main: FuncOp, weights: WeightStore, functions: Mapping[str, HostFunction]
    ) -> None:
        """`functions` are those that `program.call` names, and what is to run in place of functions of the
        program that it calls, each called with its arrays."""
        self._main = main
        self._weights = weights
        self._functions = functions
        self._apart = not is_of_device(main)
        types = map(array_type, main.body.block.args)
        self._wanted = [(t.get_shape(), numpy_dtype(t.element_type)) for t in types]
        self._known: dict[Block, tuple[list[tuple[Sequence[SSAValue], Step]], Operation]] = {}

    def run(self, buffers: Sequence[Array]) -> list[Array]:
        """The arrays that the function returns: views of `buffers`, which it changes, and of new ones.

        Raises InvalidInputError for buffers of other dtypes or shapes than the arguments, or that are not
        contiguous, InvalidModelError where a constant's bytes are missing, UnsupportedError for an op of
        another level and for a function that is not there.
        """
        arguments = self._main.body.block.args
        if len(buffers) != len(arguments):
            raise InvalidInputError(f"expected {len(arguments)} buffers, got {len(buffers)}")
        for wanted, array in zip(self._wanted, buffers, strict=True):
            _check_buffer(*wanted, array)
        values: Values = dict(zip(arguments, buffers, strict=True))
        ended = self._block(self._main.body.block, values)
        assert isinstance(ended, ReturnOp)
        return _on_host(ended, [values[v] for v in ended.operands])

    def compute(self, ops: Sequence[Operation], values: Mapping[SSAValue, Any]) -> None:
        """Execute some ops of the function, whose operands are among `values` or made by others of them.

        Raises as `run`.
        """
        known = dict(values)
        for op in ops:
            known.update(zip(op.results, self._step(op)(known), strict=True))

    def _block(self, block: Block, values: Values) -> Operation:
        """Execute the ops of a block; returns the one that ends it."""
        found = self._known.get(block)
        if found is None:
            found = self._known[block] = self._read(block)
        steps, ended = found
        for results, step in steps:
            values.update(zip(results, step(values), strict=True))
        return ended

    def _read(self, block: Block) -> tuple[list[tuple[Sequence[SSAValue], Step]], Operation]:
        ended = block.last_op
        if not isinstance(ended, _ENDS):
            raise InvalidModelError("a block without terminator")
        inner = (op for op in block.ops if op is not ended)
        return [(tuple(op.results), self._step(op)) for op in inner], ended

    def _step(self, op: Operation) -> Step:
        operands = tuple(op.operands)
        if isinstance(op, CollectiveOp):
            return lambda values: collective(op, [values[v] for v in operands])
        if isinstance(op, GraphOp):
            return lambda values: evaluate(op, [values[v] for v in operands])
        step = _STEPS.get(type(op))
        if step is None:
            raise UnsupportedError(f"the program interpreter does not know '{op.name}'")
        return step(self, op)

    def constant(self, op: Operation) -> Step:
        """A constant tensor, or index."""
        assert isinstance(op, arith.ConstantOp)
        array = constant_array(op.result, self._weights)
        if array is None:
            raise InvalidModelError(f"the weights hold no bytes for {op.value}")
        return lambda values: (array,)

    def alloc(self, op: Operation) -> Step:
        """A new array."""
        t = array_type(op.results[0])
        shape, dtype = t.get_shape(), numpy_dtype(t.element_type)
        if on_device(op.results[0]) and self._apart:
            return lambda values: (DeviceArray(np.zeros(shape, dtype)),)
        return lambda values: (np.zeros(shape, dtype),)

    def view(self, op: Operation) -> Step:
        """A strided view of a buffer."""
        view = view_of(op.results[0])

        def step(values: Values) -> Sequence[Any]:
            whole, at = values[view.buffer], _number(view.offset, values)
            if isinstance(whole, DeviceArray):
                return (DeviceArray(strided(whole.elements, view, at)),)
            return (strided(whole, view, at),)

        return step

    def read(self, op: Operation) -> Step:
        """What an array holds now."""
        (source,) = op.operands
        return lambda values: (_on_host(op, [values[source]])[0].copy(),)

    def write(self, op: Operation) -> Step:
        """The only effect, but for calls."""
        written = tuple(op.operands)

        def step(values: Values) -> Sequence[Any]:
            value, target = _on_host(op, [values[v] for v in written])
            target[...] = value
            return ()

        return step

    def copy(self, op: Operation) -> Step:
        """What an array holds, to another one, on either side."""
        source, target = op.operands

        def step(values: Values) -> Sequence[Any]:
            _elements(values[target])[...] = _elements(values[source]).copy()
            return ()

        return step

    def call(self, op: Operation) -> Step:
        """A function of the host."""
        assert isinstance(op, CallOp)
        name, given = op.callee.root_reference.data, tuple(op.operands)
        if name not in self._functions:
            raise UnsupportedError(f"'{op.name}' of @{name}: no such function was given")
        function = self._functions[name]

        def step(values: Values) -> Sequence[Any]:
            function(*_on_host(op, [values[v] for v in given]))
            return ()

        return step

    def call_function(self, op: Operation) -> Step:
        """Another function of the program: the one that was given under its name, or its own ops."""
        assert isinstance(op, FunctionCall)
        name, callee, given = op.callee.string_value(), function_called(op), tuple(op.operands)
        function = self._functions.get(name)
        if callee is None and function is None:
            raise InvalidModelError(f"the module has no function '@{name}'")
        there = callee is not None and is_of_device(callee)
        own = None if callee is None else Execution(callee, self._weights, self._functions)

        def step(values: Values) -> Sequence[Any]:
            found = [values[v] for v in given]
            arrays = _of_device(name, found) if there else _on_host(op, found)
            if function is None:
                assert own is not None
                return own.run(arrays)
            function(*arrays)
            return ()

        return step

    def repeat(self, op: Operation) -> Step:
        """A loop that counts."""
        assert isinstance(op, scf.ForOp)
        (variable, *carried), block = op.body.block.args, op.body.block
        first, trips = tuple(op.operands)[3:], trips_of(op)

        def step(values: Values) -> Sequence[Any]:
            found = [values[v] for v in first]
            for number in trips:
                values[variable] = np.int64(number)
                values.update(zip(carried, found, strict=True))
                found = [values[v] for v in self._block(block, values).operands]
            return found

        return step

    def repeat_while(self, op: Operation) -> Step:
        """A loop that asks."""
        assert isinstance(op, scf.WhileOp)
        before, after = op.before_region.block, op.after_region.block

        def step(values: Values) -> Sequence[Any]:
            while values[self._block(before, values).operands[0]]:
                self._block(after, values)
            return ()

        return step

    def number(self, op: Operation) -> Step:
        """An induction variable as a number, that as a tensor; the one element of a tensor."""
        dtype, source = np.bool_ if isinstance(op, tensor.ExtractOp) else np.int64, op.operands[0]
        return lambda values: (np.asarray(values[source], dtype),)

    def part(self, op: Operation) -> Step:
        """A part of a tensor, or a tensor with another part; an index that is computed."""
        operands = tuple(op.operands)
        return lambda values: evaluate_op(op, [values[v] for v in operands], self._weights)

    def affine(self, op: Operation) -> Step:
        """An index."""
        assert isinstance(op, affine.ApplyOp)
        operands, at = tuple(op.operands), op.map.data
        return lambda values: (np.int64(at.eval([int(values[v]) for v in operands], [])[0]),)


_ENDS = (ReturnOp, scf.YieldOp, scf.ConditionOp)
_STEPS: dict[type[Operation], Callable[[Execution, Operation], Step]] = {
    affine.ApplyOp: Execution.affine,
    arith.ConstantOp: Execution.constant,
    arith.AddiOp: Execution.part,
    arith.MuliOp: Execution.part,
    arith.IndexCastOp: Execution.number,
    tensor.ExtractSliceOp: Execution.part,
    tensor.InsertSliceOp: Execution.part,
    tensor.FromElementsOp: Execution.number,
    tensor.ExtractOp: Execution.number,
    memref.AllocOp: Execution.alloc,
    memref.CopyOp: Execution.copy,
    memref.ReinterpretCastOp: Execution.view,
    ToTensorOp: Execution.read,
    MaterializeInDestinationOp: Execution.write,
    CallOp: Execution.call,
    FunctionCall: Execution.call_function,
    scf.ForOp: Execution.repeat,
    scf.WhileOp: Execution.repeat_while,
}


def _number(at: Affine, values: Values) -> int:
    return at.constant + sum(f * int(values[v]) for v, f in at.factors.items())


def _elements(array: Any) -> Array:
    return array.elements if isinstance(array, DeviceArray) else array


def _on_host(op: Operation, values: list[Any]) -> list[Any]:
    """Values that the host may touch. Raises InvalidModelError if an array of the device is among them."""
    if any(isinstance(v, DeviceArray) for v in values):
        raise InvalidModelError(f"'{op.name}' of the host touches an array of the device")
    return values


def _of_device(name: str, values: list[Any]) -> list[Any]:
    """What a function of the device may touch. Raises InvalidModelError if an array of the host is among
    its arguments."""
    if not all(isinstance(v, DeviceArray) for v in values):
        raise InvalidModelError(f"'@{name}' runs on the device, and is given an array of the host")
    return list(map(_elements, values))


def strided(buffer: Array, view: StridedView, offset: int) -> Array:
    """A view of a contiguous array as NumPy has it. Raises InvalidModelError where it reaches beyond."""
    if view.is_empty:
        return np.empty(view.sizes, buffer.dtype)
    first, last = (offset + reach for reach in view.reach())
    if first < 0 or last >= buffer.size:
        raise InvalidModelError(
            f"a view reaches elements {first} to {last} of a buffer of {math.prod(buffer.shape)}"
        )
    flat = buffer.reshape(-1)[offset:]
    steps = [s * buffer.itemsize for s in view.strides]
    return np.lib.stride_tricks.as_strided(flat, view.sizes, steps)


def _check_buffer(shape: tuple[int, ...], dtype: np.dtype[Any], array: object) -> None:
    if not isinstance(array, np.ndarray):
        got = type(array).__name__
    else:
        known = cast(Array, array)
        if known.shape == shape and known.dtype == dtype and known.flags.c_contiguous:
            return
        got = f"{known.dtype}{list(known.shape)}"
    raise InvalidInputError(f"expected a contiguous array of {dtype}{list(shape)}, got {got}")
