"""What each column of a value is of one column of the input: what a check of it comes to, there.

A walk over a function of one argument, rows×columns, by a rule for each op that works column by column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from xdsl.dialects.builtin import Float32Type, Float64Type, IntegerType
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from irkit.dialects.constants import constant_array
from irkit.dialects.graph import (
    AbsOp,
    AddOp,
    AndOp,
    CastOp,
    CeilOp,
    ClipOp,
    CompareOp,
    ConcatOp,
    DivOp,
    FloorOp,
    GatherOp,
    IsNanOp,
    MatmulOp,
    MaxOp,
    MinOp,
    MulOp,
    NegOp,
    OrOp,
    ReluOp,
    RoundOp,
    SubOp,
    WhereOp,
)
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.semantics import evaluate
from irkit.dialects.types import is_float, tensor_type
from irkit.weights import Array, WeightStore


class Kind(IntEnum):
    """What a column is of its source, a column of the input."""

    UNKNOWN = 0
    NUMBER = 1
    """A number, or an infinity, wherever the source is, and monotone in it."""
    SIZE = 2
    """The magnitude of such a one."""
    TRUTH = 3
    """True, or 1, on an interval of the source's numbers, elsewhere false, or 0."""
    MISSING = 4
    """False for every number of the source."""
    BIT = 5
    """0 or 1, whatever the row has."""
    SURE = 6
    """True, or 1, whatever the row has."""


_BITS = (Kind.TRUTH, Kind.BIT, Kind.SURE)
NONE = -1


@dataclass(frozen=True)
class Columns:
    """Of each column its kind and its source; NONE where no column of the input is."""

    kinds: Array
    sources: Array

    def picked(self, numbers: Array) -> Columns:
        """Some of the columns."""
        return Columns(self.kinds[numbers], self.sources[numbers])

    def at(self, width: int) -> Columns:
        """As many columns as they broadcast to."""
        return Columns(np.broadcast_to(self.kinds, width), np.broadcast_to(self.sources, width))


def of_columns(main: FuncOp) -> bool:
    """Whether the one argument is rows×columns of f32 or f64."""
    if len(main.body.block.args) != 1:
        return False
    t = tensor_type(main.body.block.args[0])
    return t.get_num_dims() == 2 and isinstance(t.element_type, Float32Type | Float64Type)


def column_facts(main: FuncOp, weights: WeightStore) -> dict[SSAValue, Columns]:
    """The columns of all values, rows×columns, of which something is known."""
    block = main.body.block
    (x,) = block.args
    count = tensor_type(x).get_shape()[1]
    facts: Facts = {x: Columns(np.full(count, Kind.NUMBER), np.arange(count))}
    for op in block.ops:
        rule = _RULES.get(type(op))
        known = None if rule is None else rule(op, facts, weights)
        if known is not None:
            facts[op.results[0]] = known
    return facts


def as_function(
    main: FuncOp, value: SSAValue, weights: WeightStore
) -> Callable[[Array], Array] | None:
    """`value` as a function of the argument; None if something that it is made of cannot be run."""
    (x,) = main.body.block.args
    needed, constants, steps = {value}, dict[SSAValue, Array](), list[GraphOp]()
    for op in reversed(list(main.body.block.ops)):
        if not needed.intersection(op.results):
            continue
        if isinstance(op, GraphOp):
            steps.append(op)
            needed.update(op.operands)
            continue
        array = constant_array(op.results[0], weights)
        if array is None:
            return None
        constants[op.results[0]] = array

    def run(points: Array) -> Array:
        values = {x: points, **constants}
        for op in reversed(steps):
            results = evaluate(op, [values[v] for v in op.operands])
            values.update(zip(op.results, results, strict=True))
        return values[value]

    return run


Facts = dict[SSAValue, Columns]
Rule = Callable[[Any, Facts, WeightStore], Columns | None]


def _width(value: SSAValue) -> int:
    return tensor_type(value).get_shape()[-1]


def _row(value: SSAValue, width: int, weights: WeightStore) -> Array | None:
    """A constant as one number for each column."""
    array = constant_array(value, weights)
    if array is None or array.ndim > 2 or (array.ndim == 2 and len(array) != 1):
        return None
    return np.broadcast_to(array.reshape(-1), width)


def _mapped(known: Columns, kinds: Any) -> Columns:
    """Columns of the same sources; what has none of interest has none."""
    plain = np.isin(kinds, (Kind.UNKNOWN, Kind.BIT, Kind.SURE))
    return Columns(np.asarray(kinds), np.where(plain, NONE, known.sources))


def _gather(op: GatherOp, facts: Facts, weights: WeightStore) -> Columns | None:
    known, numbers = facts.get(op.data), constant_array(op.indices, weights)
    if known is None or numbers is None or op.axis.value.data != 1 or numbers.ndim != 1:
        return None
    if len(numbers) == 0 or numbers.min() < 0 or numbers.max() >= len(known.kinds):
        return None
    return known.picked(numbers.astype(np.int64))


def _concat(op: ConcatOp, facts: Facts, weights: WeightStore) -> Columns | None:
    if op.axis.value.data != 1 or len(tensor_type(op.results[0]).get_shape()) != 2:
        return None
    parts = [facts.get(v, _nothing(_width(v))) for v in op.inputs]
    return Columns(
        np.concatenate([p.kinds for p in parts]), np.concatenate([p.sources for p in parts])
    )


def _nothing(width: int) -> Columns:
    return Columns(np.full(width, Kind.UNKNOWN), np.full(width, NONE))


def _with_constant(
    op: Operation, facts: Facts, weights: WeightStore
) -> tuple[Columns, Array, bool] | None:
    """Columns, a constant beside them, and whether the columns come first."""
    for first, (value, other) in ((True, op.operands[:2]), (False, op.operands[1::-1])):
        known, width = facts.get(value), _width(op.results[0])
        row = None if known is None else _row(other, width, weights)
        if known is not None and row is not None:
            return known.at(width), row, first
    return None


def _arithmetic(op: Operation, facts: Facts, weights: WeightStore) -> Columns | None:
    """x + c, x - c, c - x, x * c, x / c, max(x, c), min(x, c)"""
    found = _with_constant(op, facts, weights)
    if found is None or (isinstance(op, DivOp) and not found[2]):
        return None
    known, row, _ = found
    # Of a number and a finite one that is no zero these make no NaN.
    sound = np.isfinite(row) & ((row != 0) | (not isinstance(op, MulOp | DivOp)))
    kept = sound & (known.kinds == Kind.NUMBER)
    return _mapped(known, np.where(kept, Kind.NUMBER, Kind.UNKNOWN))


def _monotone(op: Operation, facts: Facts, weights: WeightStore) -> Columns | None:
    """-x, floor(x), ceil(x), round(x), relu(x), and x within limits that are numbers"""
    known = facts.get(op.operands[0])
    if known is None:
        return None
    limits = (op.min.value.data, op.max.value.data) if isinstance(op, ClipOp) else ()
    if np.isnan(limits).any():
        return None
    return _mapped(known, np.where(known.kinds == Kind.NUMBER, Kind.NUMBER, Kind.UNKNOWN))


def _abs(op: AbsOp, facts: Facts, weights: WeightStore) -> Columns | None:
    known = facts.get(op.x)
    if known is None:
        return None
    bits = np.where(np.isin(known.kinds, _BITS), known.kinds, Kind.UNKNOWN)
    return _mapped(known, np.where(known.kinds == Kind.NUMBER, Kind.SIZE, bits))


def _cast(op: CastOp, facts: Facts, weights: WeightStore) -> Columns | None:
    """Between floats, which keeps their order, and of truths as numbers"""
    given = tensor_type(op.x).element_type
    if not is_float(op.to) or len(tensor_type(op.x).get_shape()) != 2:
        return None
    if given == IntegerType(1):
        known = facts.get(op.x, _nothing(_width(op.x)))
        stays = np.isin(known.kinds, (Kind.TRUTH, Kind.SURE))
        return _mapped(known, np.where(stays, known.kinds, Kind.BIT))
    known = facts.get(op.x)
    if known is None or not is_float(given):
        return None
    stays = np.isin(known.kinds, (Kind.NUMBER, *_BITS))
    return _mapped(known, np.where(stays, known.kinds, Kind.UNKNOWN))


def _compare(op: CompareOp, facts: Facts, weights: WeightStore) -> Columns | None:
    """x == x is false for NaN alone; x against a constant holds on an interval, |x| where it is below one"""
    predicate = op.predicate.data
    known = facts.get(op.lhs)
    if op.lhs is op.rhs and known is not None and predicate == "eq":
        number = np.isin(known.kinds, (Kind.NUMBER, Kind.SIZE))
        bits = np.where(np.isin(known.kinds, _BITS), Kind.SURE, Kind.UNKNOWN)
        return _mapped(known, np.where(number, Kind.TRUTH, bits))
    found = _with_constant(op, facts, weights)
    if found is None or not found[2] or predicate == "ne":
        return None
    known, row, _ = found
    below = predicate in ("lt", "le")
    holds = (known.kinds == Kind.NUMBER) | ((known.kinds == Kind.SIZE) & below)
    always = np.isin(known.kinds, _BITS) & (predicate == "le") & (row >= 1)
    rest = np.where(always, Kind.SURE, Kind.UNKNOWN)
    return _mapped(known, np.where(holds, Kind.TRUTH, rest))


def _is_nan(op: IsNanOp, facts: Facts, weights: WeightStore) -> Columns | None:
    known = facts.get(op.x)
    if known is None:
        return None
    return _mapped(known, np.where(known.kinds == Kind.NUMBER, Kind.MISSING, Kind.UNKNOWN))


def _two(op: Operation, facts: Facts) -> tuple[Columns, Columns] | None:
    """The columns of two operands."""
    found = [facts.get(v) for v in op.operands[:2]]
    if found[0] is None or found[1] is None:
        return None
    width = _width(op.results[0])
    return found[0].at(width), found[1].at(width)


def _and(op: AndOp, facts: Facts, weights: WeightStore) -> Columns | None:
    """Intervals of one source meet in one."""
    found = _two(op, facts)
    if found is None:
        return None
    a, b = found
    both = (a.kinds == Kind.TRUTH) & (b.kinds == Kind.TRUTH) & (a.sources == b.sources)
    return _mapped(a, np.where(both, Kind.TRUTH, Kind.UNKNOWN))


def _or(op: OrOp, facts: Facts, weights: WeightStore) -> Columns | None:
    """What holds on an interval, or where the source is missing."""
    found = _two(op, facts)
    if found is None:
        return None
    a, b = found
    one = (a.kinds == Kind.TRUTH) & (b.kinds == Kind.MISSING)
    other = (a.kinds == Kind.MISSING) & (b.kinds == Kind.TRUTH)
    sure = (a.kinds == Kind.SURE) | (b.kinds == Kind.SURE)
    holds = (one | other) & (a.sources == b.sources)
    kinds = np.where(sure, Kind.SURE, np.where(holds, Kind.TRUTH, Kind.UNKNOWN))
    return _mapped(a, kinds)


def _where(op: WhereOp, facts: Facts, weights: WeightStore) -> Columns | None:
    """A constant where the source is missing, else a number of it."""
    condition, chosen, other = op.operands
    missing, known, width = facts.get(condition), facts.get(other), _width(op.results[0])
    if missing is None or known is None or _row(chosen, width, weights) is None:
        return None
    missing, known = missing.at(width), known.at(width)
    same = (missing.kinds == Kind.MISSING) & (missing.sources == known.sources)
    kept = same & (known.kinds == Kind.NUMBER)
    return _mapped(known, np.where(kept, Kind.NUMBER, Kind.UNKNOWN))


def _matmul(op: MatmulOp, facts: Facts, weights: WeightStore) -> Columns | None:
    """How many knots of a column of the input itself are no larger, or what they weigh: more as it rises"""
    w, bits = constant_array(op.b, weights), op.a.owner
    compare = bits.x.owner if isinstance(bits, CastOp) else None
    if w is None or w.ndim != 2 or not isinstance(compare, CompareOp):
        return None
    known, width = facts.get(compare.lhs), _width(compare.results[0])
    knots = _row(compare.rhs, width, weights)
    if known is None or knots is None or compare.predicate.data not in ("ge", "gt"):
        return None
    if not _is_input(compare.lhs) or not (np.isfinite(w) & (w >= 0)).all():
        return None
    sources = np.where(w != 0, known.at(width).sources[:, None], NONE)
    last = sources.max(axis=0, initial=NONE)
    alone = ((sources == last) | (sources == NONE)).all(axis=0) & (last != NONE)
    return Columns(np.where(alone, Kind.NUMBER, Kind.UNKNOWN), np.where(alone, last, NONE))


def _is_input(value: SSAValue) -> bool:
    """Whether it is the function's argument, or columns picked from it."""
    source = value.owner.data if isinstance(value.owner, GatherOp) else value
    return isinstance(source, BlockArgument)


_RULES: dict[type[Operation], Rule] = {
    AbsOp: _abs,
    AndOp: _and,
    CastOp: _cast,
    CompareOp: _compare,
    ConcatOp: _concat,
    GatherOp: _gather,
    IsNanOp: _is_nan,
    MatmulOp: _matmul,
    OrOp: _or,
    WhereOp: _where,
    **dict.fromkeys((AddOp, DivOp, MaxOp, MinOp, MulOp, SubOp), _arithmetic),
    **dict.fromkeys((CeilOp, ClipOp, FloorOp, NegOp, ReluOp, RoundOp), _monotone),
}
