"""State of a function: arguments that, from the second run on, are what results of the run before were.

`irkit.state = array<i64: 1, 0, 2, 3>` on a `func.func` says so of pairs of an argument and a result, here of 1
and 0, and of 2 and 3. The function as such stays one of all its arguments, at every level.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerType, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.utils.hints import isa

from irkit.dialects.types import DYNAMIC, Tensor, int_array, ints
from irkit.errors import InvalidModelError, UnsupportedError

STATE = "irkit.state"


class StatePair(NamedTuple):
    """Argument `argument` of the next run is result `result` of this one."""

    argument: int
    result: int


def set_state(function: FuncOp, pairs: Sequence[StatePair]) -> None:
    """Say that these are the state of a function. Raises as `state_of`."""
    function.attributes[STATE] = int_array([number for pair in pairs for number in pair])
    state_of(function)


def state_of(function: FuncOp) -> tuple[StatePair, ...]:
    """The state of a function, in the order of its attribute.

    Raises InvalidModelError where the attribute pairs what cannot be one, UnsupportedError for state whose
    size is the batch.
    """
    given = function.attributes.get(STATE)
    if given is None:
        return ()
    where = f"{STATE} of @{function.sym_name.data}"
    flat = ints(given) if isa(given, DenseArrayBase[IntegerType]) else (0,)
    if len(flat) % 2:
        raise InvalidModelError(f"{where}: expected pairs of an argument and a result, got {given}")
    pairs = tuple(StatePair(*flat[i : i + 2]) for i in range(0, len(flat), 2))
    for which, kind in enumerate(("argument", "result")):
        numbers = [pair[which] for pair in pairs]
        again = next((n for n in numbers if numbers.count(n) > 1), None)
        if again is not None:
            raise InvalidModelError(f"{where}: {kind} {again} is in two pairs")
    for pair in pairs:
        _check_types(function, pair, where)
    return pairs


def _check_types(function: FuncOp, pair: StatePair, where: str) -> None:
    inputs, outputs = function.function_type.inputs.data, function.function_type.outputs.data
    for kind, number, types in (("argument", pair[0], inputs), ("result", pair[1], outputs)):
        if not 0 <= number < len(types):
            raise InvalidModelError(f"{where}: there is no {kind} {number}")
    if inputs[pair.argument] != outputs[pair.result]:
        raise InvalidModelError(
            f"{where}: {_named(function, 'argument', pair.argument)} is {inputs[pair.argument]}, "
            f"{_named(function, 'result', pair.result)} is {outputs[pair.result]}"
        )
    held = inputs[pair.argument]
    if not isa(held, Tensor):
        raise InvalidModelError(f"{where}: argument {pair.argument} is {held}, which is no tensor")
    if DYNAMIC in held.get_shape():
        raise UnsupportedError(
            f"{where}: {_named(function, 'argument', pair.argument)} is {inputs[pair.argument]}, as large as "
            "the batch: state has a size of its own"
        )


def _named(function: FuncOp, kind: str, number: int) -> str:
    """What messages call an argument or a result."""
    given = function.attributes.get("irkit.inputs" if kind == "argument" else "irkit.outputs")
    names = [name.data for name in given.data] if isa(given, ArrayAttr[StringAttr]) else []
    return f"{kind} {number}" + (f" ('{names[number]}')" if number < len(names) else "")
