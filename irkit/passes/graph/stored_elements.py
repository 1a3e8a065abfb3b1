"""Values of rows×columns of which only what is stored is computed: what becomes of an element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from xdsl.dialects.builtin import f32, f64, i1
from xdsl.ir import Attribute, SSAValue

from irkit.dialects.csr_steps import STEPS
from irkit.dialects.graph import (
    AbsOp,
    AddOp,
    CastOp,
    CompareOp,
    DivOp,
    LogOp,
    MulOp,
    NegOp,
    SqrtOp,
    SubOp,
    WhereOp,
)
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.errors import UnsupportedError
from irkit.weights import Array

NAMES: dict[type[GraphOp], str] = {
    AbsOp: "abs",
    AddOp: "add",
    DivOp: "div",
    LogOp: "log",
    MulOp: "mul",
    NegOp: "neg",
    SqrtOp: "sqrt",
    SubOp: "sub",
    WhereOp: "where",
}
"""Ops that are a step each; comparisons and casts are by what they say."""


@dataclass(frozen=True, eq=False)
class Node:
    """An element as a step of others: `step` is empty for the one that is stored."""

    step: str = ""
    values: tuple[Node | SSAValue, ...] = ()


@dataclass(frozen=True, eq=False)
class Stored:
    """A value of rows×columns.

    `node`: what a stored element becomes. `element`: its type. `absent`: what is at each of its columns where
    none is stored, or at all of them (one element). `columns`: which of the rows' own columns these are; None
    for all, in order. `low`, `high`: between what all elements lie that are no NaN.
    """

    node: Node
    element: Attribute
    absent: Array
    columns: Array | None = None
    low: float = -np.inf
    high: float = np.inf

    @property
    def is_sparse(self) -> bool:
        """Whether it is 0 where nothing is stored."""
        return not self.absent.any()

    def picked(self, columns: Array) -> Stored:
        """Some of its columns. Raises UnsupportedError for one that is asked for twice."""
        if len(np.unique(columns)) < len(columns):
            raise UnsupportedError("columns that are picked twice")
        absent = self.absent if len(self.absent) == 1 else self.absent[columns]
        own = columns if self.columns is None else self.columns[columns]
        return replace(self, absent=absent, columns=own)


def step_of(op: GraphOp) -> str | None:
    """The step that an elementwise op is; "" for one that changes nothing, None if it is none."""
    if isinstance(op, CompareOp):
        return op.predicate.data
    if not isinstance(op, CastOp):
        return NAMES.get(type(op))
    have, becomes = (tensor_type(v).element_type for v in (op.operands[0], op.results[0]))
    if becomes not in (f32, f64) or have not in (i1, f32, f64):
        return None
    return "" if have == becomes else f"{becomes}_of" if have == i1 else f"{becomes}"


def elementwise(
    op: GraphOp,
    known: Sequence[Stored | Array | SSAValue],
    full: Callable[[Array, Array | None], SSAValue],
) -> Stored:
    """What an elementwise op makes of stored elements.

    Its operands are such, constants (one element, or one a column), or values of one element a row; `full`
    makes an operand of a constant for all columns of the rows.

    Raises UnsupportedError for what cannot be said of what is stored alone.
    """
    step = step_of(op)
    if step is None:
        raise UnsupportedError(f"'{op.name}' of stored elements")
    stored = [v for v in known if isinstance(v, Stored)]
    first = stored[0]
    if any(not _same_columns(v.columns, first.columns) for v in stored[1:]):
        raise UnsupportedError(f"'{op.name}' of different columns")
    if step == "":
        return first
    by_row = [n for n, v in enumerate(known) if isinstance(v, SSAValue)]
    if by_row:
        _check_by_row(op, step, by_row, first)
        absent = np.zeros(1, numpy_dtype(first.element))
    else:
        arrays = [v.absent if isinstance(v, Stored) else v for v in known]
        with np.errstate(all="ignore"):
            absent = np.atleast_1d(STEPS[step].meaning(*arrays))
    values = tuple(
        v.node
        if isinstance(v, Stored)
        else full(v, first.columns)
        if isinstance(v, np.ndarray)
        else v
        for v in known
    )
    element = tensor_type(op.results[0]).element_type
    low, high = _range(step, first)
    return Stored(Node(step, values), element, absent, first.columns, low, high)


def _same_columns(one: Array | None, other: Array | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)


def _check_by_row(op: GraphOp, step: str, by_row: Sequence[int], first: Stored) -> None:
    """A row is scaled: what is 0 stays so."""
    scales = (step == "div" and by_row == [1]) or (step == "mul" and len(by_row) == 1)
    if not scales or not first.is_sparse:
        raise UnsupportedError(f"'{op.name}' of stored elements with one value a row")


def _range(step: str, of: Stored) -> tuple[float, float]:
    """Between what the results of a step lie, where it says so."""
    if step in ("abs", "sqrt"):
        return 0.0, np.inf
    if step in ("eq", "ge", "gt", "le", "lt", "ne", "f32_of", "f64_of"):
        return 0.0, 1.0
    return (of.low, of.high) if step in ("f32", "f64") else (-np.inf, np.inf)
