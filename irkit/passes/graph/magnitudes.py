"""How large values can become where an input is no larger than a bound, by the arithmetic that makes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from irkit.dialects.constants import constant_array
from irkit.dialects.graph import (
    AbsOp,
    AddOp,
    CastOp,
    CompareOp,
    ConcatOp,
    DivOp,
    GatherOp,
    MatmulOp,
    MulOp,
    NegOp,
    OrOp,
    ReluOp,
    SubOp,
    WhereOp,
)
from irkit.dialects.types import is_float, numpy_dtype, tensor_type
from irkit.weights import Array, WeightStore

Sizes = dict[SSAValue, Array]
"""Of rows×columns a magnitude for each column that no row's exceeds; infinite where nothing is known."""
Rule = Callable[[Any, list[Array], WeightStore], Array]


def overflow_bound(main: FuncOp, truths: SSAValue, weights: WeightStore) -> float | None:
    """The largest power of two of an input's magnitude up to which nothing that `truths` is made of can
    overflow, where `truths` are that each of some values is no larger than the largest float.

    Of a function of one argument of finite rows×columns. None if `truths` are anything else, or there is no
    such power.
    """
    values = _asked_of(truths, weights)
    if values is None:
        return None
    limits = np.finfo(numpy_dtype(tensor_type(main.body.block.args[0]).element_type))
    low, high = -1, int(limits.maxexp)
    while high - low > 1:
        middle = (low + high) // 2
        fits = _fit(main, values, 2.0**middle, weights)
        low, high = (middle, high) if fits else (low, middle)
    return None if low < 0 else 2.0**low


def _asked_of(truths: SSAValue, weights: WeightStore) -> list[SSAValue] | None:
    """The values v of |v| <= largest, side by side and cast."""
    op = truths.owner
    if isinstance(op, CastOp):
        return _asked_of(op.x, weights)
    if isinstance(op, ConcatOp):
        parts = [_asked_of(v, weights) for v in op.inputs]
        known = [v for part in parts if part is not None for v in part]
        return known if all(part is not None for part in parts) else None
    if isinstance(op, OrOp):
        # What always holds does so whatever else may.
        first = _asked_of(op.lhs, weights)
        return first if first is not None else _asked_of(op.rhs, weights)
    if not isinstance(op, CompareOp) or op.predicate.data != "le":
        return None
    most, size = constant_array(op.rhs, weights), op.lhs.owner
    if most is None or not isinstance(size, AbsOp) or most.dtype.kind != "f":
        return None
    return [size.x] if (most == np.finfo(most.dtype).max).all() else None


def _fit(main: FuncOp, values: list[SSAValue], most: float, weights: WeightStore) -> bool:
    """Whether all that `values` are made of stays half the largest float or less. Sums of rounded numbers are
    larger than sums, by far less than that."""
    (x,) = main.body.block.args
    width = tensor_type(x).get_shape()[1]
    sizes: Sizes = {x: np.full(width, most)}
    needed = set(values)
    for op in reversed(list(main.body.block.ops)):
        if needed.intersection(op.results):
            needed.update(_read_by(op))
    for op in main.body.block.ops:
        if op.results and op.results[0] in needed:
            found = _size(op, sizes, weights)
            if found is None or not np.isfinite(found).all():
                return False
            sizes[op.results[0]] = found
    return True


def _read_by(op: Operation) -> Sequence[SSAValue]:
    """The operands whose numbers become the result's."""
    return op.operands[1:] if isinstance(op, WhereOp) else op.operands


def _size(op: Operation, sizes: Sizes, weights: WeightStore) -> Array | None:
    array = constant_array(op.results[0], weights)
    if array is not None:
        return _size_of_constant(array)
    rule, read = _RULES.get(type(op)), _read_by(op)
    element = tensor_type(op.results[0]).element_type
    if rule is None or any(v not in sizes for v in read) or not is_float(element):
        return None
    with np.errstate(all="ignore"):
        found = np.atleast_1d(rule(op, [sizes[v] for v in read], weights))
    limit = float(np.finfo(numpy_dtype(element)).max) / 2
    return np.where(found <= limit, found, np.inf)


def _size_of_constant(array: Array) -> Array:
    """Of a row by column; of what is no row the largest. What is no number is none of a check's."""
    size = np.abs(array.astype(np.float64)) if array.dtype.kind in "fiu" else np.zeros(1)
    a_row = size.ndim > 0 and size.size == size.shape[-1]
    return size.reshape(-1) if a_row else np.full(1, size.max(initial=0.0))


def _sum(op: Operation, given: list[Array], weights: WeightStore) -> Array:
    return given[0] + given[1]


def _product(op: Operation, given: list[Array], weights: WeightStore) -> Array:
    return given[0] * given[1]


def _quotient(op: DivOp, given: list[Array], weights: WeightStore) -> Array:
    """By a constant; what is not one may be next to zero."""
    divisor = constant_array(op.rhs, weights)
    return given[0] / np.abs(divisor) if divisor is not None else np.full(1, np.inf)


def _larger(op: Operation, given: list[Array], weights: WeightStore) -> Array:
    return np.maximum(given[0], given[1])


def _same(op: Operation, given: list[Array], weights: WeightStore) -> Array:
    return given[0]


def _gather(op: GatherOp, given: list[Array], weights: WeightStore) -> Array:
    numbers = constant_array(op.indices, weights)
    if numbers is None or numbers.ndim != 1 or op.axis.value.data != 1 or given[0].ndim != 1:
        return np.full(1, np.inf)
    return np.broadcast_to(given[0], tensor_type(op.data).get_shape()[1:2])[numbers]


def _concat(op: ConcatOp, given: list[Array], weights: WeightStore) -> Array:
    if op.axis.value.data != 1:
        return np.full(1, np.inf)
    widths = [tensor_type(v).get_shape()[1] for v in op.inputs]
    rows = [np.broadcast_to(a.reshape(-1), w) for a, w in zip(given, widths, strict=True)]
    return np.concatenate(rows)


def _matmul(op: MatmulOp, given: list[Array], weights: WeightStore) -> Array:
    """Of a constant matrix: terms, and sums of any of them, are below the sum of all magnitudes."""
    w = constant_array(op.b, weights)
    if w is None or w.ndim != 2 or given[0].ndim != 1:
        return np.full(1, np.inf)
    return np.broadcast_to(given[0], len(w)) @ np.abs(w).astype(np.float64)


_RULES: dict[type[Operation], Rule] = {
    **dict.fromkeys((AddOp, SubOp), _sum),
    **dict.fromkeys((AbsOp, CastOp, NegOp, ReluOp), _same),
    ConcatOp: _concat,
    DivOp: _quotient,
    GatherOp: _gather,
    MatmulOp: _matmul,
    MulOp: _product,
    WhereOp: _larger,
}
