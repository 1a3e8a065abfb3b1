"""What a run of a module takes and gives: the entry point's input types and names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation

from irkit.batch_place import BatchPlace
from irkit.dialects.batch_border import INPUT_BATCH, places_of
from irkit.dialects.bufferization import Array, tensor_of_array
from irkit.dialects.host import ProgramOp
from irkit.dialects.program.check import result_names
from irkit.dialects.state import StatePair, state_of
from irkit.dialects.types import Tensor, tensor
from irkit.driver.diagnostics.diagnostic import UserError
from irkit.driver.diagnostics.locations import place_of
from irkit.interp import level_of


@dataclass(frozen=True)
class EntryPoint:
    """Input types and names, output names, and state, of `func.func @main`, which a scheduled module has
    too. State is among the inputs and outputs. Types are as the caller sees them, wherever `batch-to-front`
    has put the batch."""

    inputs: tuple[Tensor, ...]
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    state: tuple[StatePair, ...] = ()


def entry_point_of(module: ModuleOp) -> EntryPoint:
    """The entry point of `module`. Raises UserError if there is none, or more than one."""
    main = main_function_of(module)
    types = main.function_type
    if level_of(module) == "program":
        return _of_arrays(main)
    places = places_of(main, INPUT_BATCH, len(types.inputs.data))
    return EntryPoint(
        tuple(_outside(t, p) for t, p in zip(types.inputs.data, places, strict=True)),
        _names(main, "irkit.inputs", len(types.inputs.data), "input"),
        _names(main, "irkit.outputs", len(types.outputs.data), "output"),
        state_of(main),
    )


def _of_arrays(main: FuncOp) -> EntryPoint:
    """Of a program of arrays: what it returns, and then the argument buffers that it may write."""
    inputs = main.function_type.inputs.data
    return EntryPoint(
        tuple(tensor_of_array(cast(Array, t)) for t in inputs),
        _names(main, "irkit.inputs", len(inputs), "input"),
        tuple(result_names(main)),
    )


def _outside(t: Attribute, place: BatchPlace | None) -> Tensor:
    seen = cast(Tensor, t)
    return seen if place is None else tensor(seen.element_type, place.outside(seen.get_shape()))


def main_function_of(module: ModuleOp) -> FuncOp:
    """The function that runs. Raises UserError if there is none, or more than one."""
    plans = [op for op in module.ops if isinstance(op, ProgramOp)]
    if plans:
        raise UserError(
            f"expected a function @main, got a plan of tasks, 'host.program' @{plans[0].sym_name.data}: it"
            " names what is called and does not have it; run the text from before lower-to-host",
            place_of(plans[0]),
        )
    functions = [op for op in module.ops if isinstance(op, FuncOp)]
    named = [f for f in functions if f.sym_name.data == "main"]
    if len(named or functions) != 1:
        raise UserError(
            f"expected a function @main, got {len(functions)} functions", place_of(module)
        )
    return (named or functions)[0]


def _names(op: Operation, attribute: str, count: int, prefix: str) -> tuple[str, ...]:
    """The names in a string array attribute of `op`, or made-up ones."""
    found = op.attributes.get(attribute)
    if isinstance(found, ArrayAttr):
        items = cast(ArrayAttr[Attribute], found).data
        names = [item.data for item in items if isinstance(item, StringAttr)]
        if len(names) == count:
            return tuple(names)
    return tuple(f"{prefix}{i}" for i in range(count))
