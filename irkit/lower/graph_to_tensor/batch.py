"""What no program for every batch size can be: refused before anything is lowered."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import OpResult

from irkit.dialects.graph.batch import analyse
from irkit.dialects.symbols import argument_symbols, open_fault
from irkit.errors import UnsupportedError

REMEDY = (
    "fix the batch size: irkit.compile(..., batch=N), shapes={{...}} of an ONNX model, or the pass"
    " specialise-batch{{size=N}}{symbol}"
)


def check_batch(function: FuncOp) -> None:
    """Raises UnsupportedError, naming the ops, for a function that is open in two symbols or mixes rows."""
    name = f"@{function.sym_name.data}"
    if (wrong := open_fault(function)) is not None:
        raise UnsupportedError(f"{name} {wrong}")
    found = analyse(function)
    if found.mixing:
        raise UnsupportedError(
            f"{name} has no program for every batch size, as rows of the batch mix:",
            [*map(str, found.mixing), remedy(function)],
        )
    if values := [v for v in found.elsewhere() if isinstance(v, OpResult)]:
        made = values[0]
        raise UnsupportedError(
            f"{name} has no program for every batch size, as the batch does not lead in all values"
            " (batch-to-front moves it where it can):",
            [f"'{made.op.name}': its result is {made.type}", remedy(function)],
        )


def remedy(function: FuncOp) -> str:
    """How to get a program of one size."""
    names = [n for own in argument_symbols(function) for n in own]
    symbol = f" of '{names[0]}'" if names else ""
    return REMEDY.format(symbol=symbol)
