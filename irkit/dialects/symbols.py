"""Names of the dynamic dimensions of a function's arguments: attribute `irkit.dims`.

    func.func @main(%x: tensor<?x4xf32>, %k: tensor<4xf32>) -> ... attributes {irkit.dims = [["batch"], []]}

One array an argument, with one name for each of its dynamic dimensions. Dimensions of one name are of one size,
whatever it is. A function without the attribute has one name for all: `batch`. A program that is open has one
symbol, beside which it may be so in `stored`; more of them can be written, to be fixed by `specialise-batch`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, StringAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from irkit.dialects.types import DYNAMIC

DIMS = "irkit.dims"
BATCH = "batch"
"""The symbol of a function that names none."""
STORED = "stored"
"""The symbol of how many elements rows of a CSR matrix have stored: a length of its own beside the batch, of
arguments of 1×stored that come from the host (`irkit/dialects/csr_base.py`)."""


def dims_attribute(
    types: Sequence[Attribute], names: Sequence[Sequence[str]]
) -> ArrayAttr[Attribute] | None:
    """The value of `irkit.dims` for arguments of `types` whose dynamic dimensions are called `names`; None
    where there is none."""
    if not any(_open_dimensions(t) for t in types):
        return None
    return ArrayAttr([ArrayAttr([StringAttr(n) for n in own]) for own in names])


def argument_symbols(function: FuncOp) -> list[list[str]]:
    """The names of the dynamic dimensions of each argument. The attribute, if there is one, is sound."""
    types = function.function_type.inputs.data
    found = function.attributes.get(DIMS)
    if found is None:
        return [[BATCH] * _open_dimensions(t) for t in types]
    outer = cast("ArrayAttr[ArrayAttr[StringAttr]]", found)
    return [[name.data for name in own] for own in outer]


def symbols(function: FuncOp) -> list[str]:
    """The symbols of a function, each once."""
    return list(dict.fromkeys(n for own in argument_symbols(function) for n in own))


def dims_fault(function: FuncOp) -> str | None:
    """What is wrong with the `irkit.dims` of a function, in words that follow its name, or None."""
    found = function.attributes.get(DIMS)
    types = function.function_type.inputs.data
    if found is None:
        return None
    if not _is_names(found):
        return f"has an {DIMS} that is no array of arrays of names, one array an argument"
    names = argument_symbols(function)
    counts = [_open_dimensions(t) for t in types]
    if [len(own) for own in names] != counts:
        return f"has {[len(own) for own in names]} names in {DIMS}, and {counts} dynamic dimensions"
    if any(not n for own in names for n in own):
        return f"has an empty name in {DIMS}"
    return None


def open_fault(function: FuncOp) -> str | None:
    """Why a function is not open in one symbol alone, or None."""
    found = [n for n in symbols(function) if n != STORED]
    if len(found) < 2:
        return None
    shown = " and ".join(f"'{n}'" for n in found)
    return (
        f"has {len(found)} open symbols, {shown}: a program is compiled for any size of one alone"
        f" (fix others with specialise-batch{{size=N symbol={found[-1]}}})"
    )


def _open_dimensions(t: Attribute) -> int:
    if not isinstance(t, TensorType):
        return 0
    return list(cast("TensorType[Attribute]", t).get_shape()).count(DYNAMIC)


def _is_names(found: Attribute) -> bool:
    if not isinstance(found, ArrayAttr):
        return False
    rows = cast("ArrayAttr[Attribute]", found).data
    return all(
        isinstance(own, ArrayAttr)
        and all(isinstance(n, StringAttr) for n in cast("ArrayAttr[Attribute]", own))
        for own in rows
    )
