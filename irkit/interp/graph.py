"""The graph level on NumPy arrays: what a module means before any lowering."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import cast

import numpy as np
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.dialects.tensor import ExtractSliceOp, InsertSliceOp
from xdsl.ir import Operation, SSAValue

from irkit.dialects.constants import constant_array
from irkit.dialects.dist import CollectiveOp
from irkit.dialects.dist.semantics import collective
from irkit.dialects.functions import function_named, is_composed
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.semantics import evaluate
from irkit.dialects.symbols import STORED, argument_symbols
from irkit.dialects.types import DYNAMIC, Tensor, numpy_dtype, tensor_type
from irkit.errors import InvalidInputError, InvalidModelError, UnsupportedError
from irkit.weights import Array, WeightStore


def run_graph(
    module: ModuleOp, weights: WeightStore, inputs: Sequence[Array], function: str = "main"
) -> list[Array]:
    """The results of `function` of a graph-level `module` on `inputs`, one array per argument.

    Arrays have the arguments' dtypes and shapes; `?` is any size, the same for all arguments.
    Raises InvalidInputError for other inputs, InvalidModelError where a constant's bytes are
    missing, UnsupportedError for an op of another level.
    """
    main = function_named(module, function)
    if main is None:
        raise InvalidModelError(f"the module has no function '@{function}'")
    if is_composed(main):
        return _run_composed(module, main, weights, inputs)
    for op, operands, _ in steps(main, weights, inputs):
        if isinstance(op, ReturnOp):
            return operands
    raise InvalidModelError(f"function '@{function}' has no return")


def _run_composed(
    module: ModuleOp, main: FuncOp, weights: WeightStore, inputs: Sequence[Array]
) -> list[Array]:
    """A function with loops or calls of others."""
    from irkit.interp.composed import run_blocks

    def leaf(op: Operation, operands: list[Array]) -> list[Array]:
        if isinstance(op, CallOp):
            return run_graph(module, weights, operands, op.callee.string_value())
        return op_results(op, operands, weights)

    _check_inputs(main, inputs)
    return run_blocks(main, weights, inputs, leaf)


def steps(
    main: FuncOp, weights: WeightStore, inputs: Sequence[Array]
) -> Iterator[tuple[Operation, list[Array], list[Array]]]:
    """The ops of `main` one after another, with their operands and results. Raises as `run_graph`."""
    _check_inputs(main, inputs)
    values: dict[SSAValue, Array] = dict(zip(main.body.block.args, inputs, strict=True))
    left = Counter(v for op in main.body.block.ops for v in op.operands)
    for op in main.body.block.ops:
        operands = [values[v] for v in op.operands]
        results = [] if isinstance(op, ReturnOp) else op_results(op, operands, weights)
        yield op, operands, results
        values.update(zip(op.results, results, strict=True))
        # What nothing reads any more is dropped: a network's values together are many times its weights.
        for value in op.operands:
            left[value] -= 1
            if not left[value]:
                del values[value]


def op_results(op: Operation, operands: list[Array], weights: WeightStore) -> list[Array]:
    """The results of one op on arrays. Raises UnsupportedError for an op of another level."""
    if isinstance(op, CollectiveOp):
        return collective(op, operands)
    if isinstance(op, GraphOp):
        return evaluate(op, operands)
    if isinstance(op, ExtractSliceOp | InsertSliceOp):
        from irkit.interp.tensor import evaluate_op

        return evaluate_op(op, operands, weights)
    if not isinstance(op, ConstantOp):
        raise UnsupportedError(f"the graph interpreter does not know '{op.name}'")
    array = constant_array(op.result, weights)
    if array is None:
        raise InvalidModelError(f"the weights hold no bytes for {op.value}")
    return [array]


def _input_names(main: FuncOp) -> list[str]:
    if "irkit.inputs" not in main.attributes:
        return [f"#{i}" for i in range(len(main.body.block.args))]
    names = cast(ArrayAttr[StringAttr], main.attributes["irkit.inputs"])
    return [f"'{name.data}'" for name in names]


def _check_inputs(main: FuncOp, inputs: Sequence[Array]) -> None:
    arguments = main.body.block.args
    if len(inputs) != len(arguments):
        raise InvalidInputError(f"expected {len(arguments)} inputs, got {len(inputs)}")
    sizes: dict[bool, int] = {}
    given = zip(_input_names(main), arguments, argument_symbols(main), inputs, strict=True)
    for name, argument, symbols, array in given:
        want = tensor_type(argument)
        _check_input(name, want, array)
        if DYNAMIC not in want.get_shape():
            continue
        rows = array.shape[want.get_shape().index(DYNAMIC)]
        batch = sizes.setdefault(STORED in symbols, rows)
        if batch != rows:
            raise InvalidInputError(f"input {name}: expected {batch} rows, got {rows}")


def _check_input(name: str, want: Tensor, given: object) -> None:
    if not isinstance(given, np.ndarray):
        raise InvalidInputError(f"input {name}: expected a NumPy array, got {type(given).__name__}")
    array = cast(Array, given)
    dtype = numpy_dtype(want.element_type)
    if array.dtype != dtype:
        raise InvalidInputError(f"input {name}: expected dtype {dtype}, got {array.dtype}")
    shape = want.get_shape()
    sizes_match = all(s in (DYNAMIC, a) for s, a in zip(shape, array.shape, strict=False))
    if len(shape) != array.ndim or not sizes_match:
        expected = "x".join("?" if s == DYNAMIC else str(s) for s in shape)
        got = "x".join(map(str, array.shape))
        raise InvalidInputError(f"input {name}: expected shape {expected}, got {got}")
