"""The program level on NumPy arrays: effects one after another, as NumPy has them.

It also runs what `functionalise` makes: functions of values, with loops that carry them.

What was allocated and never written is 0: no program means anything by it.

Arrays of the device are kept apart from those of the host: a function of either is given none of the
other, and only copies touch both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
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


class Execution:
    """A function of arrays, executed in place."""

    def __init__(
        self, main: FuncOp, weights: WeightStore, functions: Mapping[str, HostFunction]
    ) -> None:
        """`functions` are those that `program.call` names, and what is to run in place of functions of the
        program that it calls, each called with its arrays."""
        self._main = main
        self._weights = weights
        self._functions = functions
        self._values: dict[SSAValue, Any] = {}

    def run(self, buffers: Sequence[Array]) -> list[Array]:
        """The arrays that the function returns: views of `buffers`, which it changes, and of new ones.

        Raises InvalidInputError for buffers of other dtypes or shapes than the arguments, or that are not
        contiguous, InvalidModelError where a constant's bytes are missing, UnsupportedError for an op of
        another level and for a function that is not there.
        """
        arguments = self._main.body.block.args
        if len(buffers) != len(arguments):
            raise InvalidInputError(f"expected {len(arguments)} buffers, got {len(buffers)}")
        for argument, array in zip(arguments, buffers, strict=True):
            _check_buffer(argument, array)
        self._values = dict(zip(arguments, buffers, strict=True))
        ended = self._block(self._main.body.block)
        assert isinstance(ended, ReturnOp)
        return _on_host(ended, [self._values[v] for v in ended.operands])

    def compute(self, ops: Sequence[Operation], values: Mapping[SSAValue, Any]) -> None:
        """Execute some ops of the function, whose operands are among `values` or made by others of them.

        Raises as `run`.
        """
        self._values = dict(values)
        for op in ops:
            self._values.update(zip(op.results, self._op(op), strict=True))

    def _block(self, block: Block) -> Operation:
        """Execute the ops of a block; returns the one that ends it."""
        for op in block.ops:
            if op is block.last_op and isinstance(op, _ENDS):
                return op
            results = self._op(op)
            self._values.update(zip(op.results, results, strict=True))
        raise InvalidModelError("a block without terminator")

    def _op(self, op: Operation) -> list[Any]:
        operands = [self._values[v] for v in op.operands]
        if isinstance(op, CollectiveOp):
            return collective(op, operands)
        if isinstance(op, GraphOp):
            return evaluate(op, operands)
        execute = _EXECUTE.get(type(op))
        if execute is None:
            raise UnsupportedError(f"the program interpreter does not know '{op.name}'")
        return list(execute(self, op, operands))

    def constant(self, op: Operation, operands: list[Any]) -> Iterator[Array]:
        """A constant tensor, or index."""
        assert isinstance(op, arith.ConstantOp)
        array = constant_array(op.result, self._weights)
        if array is None:
            raise InvalidModelError(f"the weights hold no bytes for {op.value}")
        yield array

    def alloc(self, op: Operation, operands: list[Any]) -> Iterator[Array | DeviceArray]:
        """A new array."""
        t = array_type(op.results[0])
        made = np.zeros(t.get_shape(), numpy_dtype(t.element_type))
        apart = on_device(op.results[0]) and not is_of_device(self._main)
        yield DeviceArray(made) if apart else made

    def view(self, op: Operation, operands: list[Any]) -> Iterator[Array | DeviceArray]:
        """A strided view of a buffer."""
        view = view_of(op.results[0])
        whole, at = self._values[view.buffer], self._number(view.offset)
        if isinstance(whole, DeviceArray):
            yield DeviceArray(strided(whole.elements, view, at))
        else:
            yield strided(whole, view, at)

    def read(self, op: Operation, operands: list[Any]) -> Iterator[Array]:
        """What an array holds now."""
        yield _on_host(op, operands)[0].copy()

    def write(self, op: Operation, operands: list[Any]) -> Iterator[Array]:
        """The only effect, but for calls."""
        value, target = _on_host(op, operands)
        target[...] = value
        return iter(())

    def copy(self, op: Operation, operands: list[Any]) -> Iterator[Array]:
        """What an array holds, to another one, on either side."""
        source, target = map(_elements, operands)
        target[...] = source.copy()
        return iter(())

    def call(self, op: Operation, operands: list[Any]) -> Iterator[Array]:
        """A function of the host."""
        assert isinstance(op, CallOp)
        name = op.callee.root_reference.data
        if name not in self._functions:
            raise UnsupportedError(f"'{op.name}' of @{name}: no such function was given")
        self._functions[name](*_on_host(op, operands))
        return iter(())

    def call_function(self, op: Operation, operands: list[Any]) -> Iterator[Array]:
        """Another function of the program: the one that was given under its name, or its own ops."""
        assert isinstance(op, FunctionCall)
        name, callee = op.callee.string_value(), function_called(op)
        if callee is not None and is_of_device(callee):
            operands = _of_device(name, operands)
        else:
            operands = _on_host(op, operands)
        if name in self._functions:
            self._functions[name](*operands)
            return iter(())
        if callee is None:
            raise InvalidModelError(f"the module has no function '@{name}'")
        return iter(Execution(callee, self._weights, self._functions).run(operands))

    def repeat(self, op: Operation, operands: list[Any]) -> Iterator[Array]:
        """A loop that counts."""
        assert isinstance(op, scf.ForOp)
        variable, *carried = op.body.block.args
        values = operands[3:]
        for number in trips_of(op):
            self._values[variable] = np.int64(number)
            self._values.update(zip(carried, values, strict=True))
            values = [self._values[v] for v in self._block(op.body.block).operands]
        return iter(values)

    def repeat_while(self, op: Operation, operands: list[Any]) -> Iterator[Array]:
        """A loop that asks."""
        assert isinstance(op, scf.WhileOp)
        while True:
            asked = self._block(op.before_region.block)
            if not self._values[asked.operands[0]]:
                return iter(())
            self._block(op.after_region.block)

    def number(self, op: Operation, operands: list[Any]) -> Iterator[Any]:
        """An induction variable as a number, that as a tensor; the one element of a tensor."""
        dtype = np.bool_ if isinstance(op, tensor.ExtractOp) else np.int64
        yield np.asarray(operands[0], dtype)

    def part(self, op: Operation, operands: list[Any]) -> Iterator[Array]:
        """A part of a tensor, or a tensor with another part; an index that is computed."""
        return iter(evaluate_op(op, operands, self._weights))

    def affine(self, op: Operation, operands: list[Any]) -> Iterator[Any]:
        """An index."""
        assert isinstance(op, affine.ApplyOp)
        yield np.int64(op.map.data.eval([int(v) for v in operands], [])[0])

    def _number(self, at: Affine) -> int:
        return at.constant + sum(f * int(self._values[v]) for v, f in at.factors.items())


_ENDS = (ReturnOp, scf.YieldOp, scf.ConditionOp)
_EXECUTE: dict[type[Operation], Callable[[Execution, Operation, list[Any]], Iterator[Any]]] = {
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


def _check_buffer(argument: SSAValue, array: object) -> None:
    t = array_type(argument)
    want = f"a contiguous array of {numpy_dtype(t.element_type)}{list(t.get_shape())}"
    if not isinstance(array, np.ndarray):
        raise InvalidInputError(f"expected {want}, got {type(array).__name__}")
    array = cast(Array, array)
    fits = array.shape == t.get_shape() and array.dtype == numpy_dtype(t.element_type)
    if not fits or not array.flags.c_contiguous:
        raise InvalidInputError(f"expected {want}, got {array.dtype}{list(array.shape)}")
