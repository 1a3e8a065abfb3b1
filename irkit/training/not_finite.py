"""Which op first made what is no finite number."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.dialects.builtin import FileLineColLoc
from xdsl.ir import Operation

from irkit.dialects.functions import function_named
from irkit.dialects.segments import unmarked
from irkit.frontends.module import ImportedModel
from irkit.interp.composed import run_blocks
from irkit.interp.graph import op_results
from irkit.passes.graph.differentiation.function import INPUTS, names_of
from irkit.weights import Array


class _Found(Exception):
    """The op was met."""


def first_op(imported: ImportedModel, inputs: Sequence[Array], loss: Array) -> str:
    """Where the NaN (or, of an infinite loss, the infinity) of a step comes from: computed anew, op by op, in
    NumPy, from the same state and inputs. Of a loss that is finite, where the first NaN comes from, or, if
    there is none, the first infinity. In words, for a message."""
    nan, infinity = (np.isnan, "NaN"), (np.isinf, "infinity")
    kinds = (
        [nan, infinity] if np.isfinite(loss).all() else [nan if np.isnan(loss).any() else infinity]
    )
    for kind, text in kinds:
        found = _first(imported, inputs, kind, text)
        if found is not None:
            return found
    names = " or ".join(text for _, text in kinds)
    return f"no op makes {names} of the same arrays in NumPy, which rounds otherwise"


def _first(
    imported: ImportedModel, inputs: Sequence[Array], kind: Callable[[Array], Array], text: str
) -> str | None:
    """The input that has what `kind` looks for, or the op that first made it."""
    main = function_named(imported.module, "main")
    assert main is not None

    def has(array: Array) -> bool:
        return array.dtype.kind == "f" and bool(kind(array).any())

    for name, array in zip(names_of(main, INPUTS), inputs, strict=True):
        if has(array):
            return f"'{name}' has {text}"

    def leaf(op: Operation, operands: list[Array]) -> list[Array]:
        results = op_results(op, operands, imported.weights)
        if any(map(has, results)) and not any(map(has, operands)) and op.operands:
            raise _Found(f"the first op that made {text} is {_described(op, operands)}")
        return results

    try:
        with np.errstate(all="ignore"):
            run_blocks(main, imported.weights, inputs, leaf)
    except _Found as found:
        return str(found)
    return None


def _described(op: Operation, operands: Sequence[Array]) -> str:
    at = unmarked(op.location)
    place = ""
    if isinstance(at, FileLineColLoc):
        place = f" ({at.filename.data}:{at.line.data})"
    floats = [x for x in operands if x.dtype.kind == "f" and x.size]
    ranges = ", ".join(f"{np.min(x):.6g} to {np.max(x):.6g}" for x in floats)
    return f"{op.name}{place}, of {ranges}"
