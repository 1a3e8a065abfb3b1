"""Meaning of tensor expressions: all indices of the result at once, those that are reduced one after another."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from irkit.dialects import graph
from irkit.dialects.extremes import greatest, least
from irkit.dialects.graph.semantics.elementwise import (
    convert,
    erf,
    maximum,
    minimum,
    power,
    relu,
    sigmoid,
)
from irkit.dialects.graph.semantics.rule import Rules
from irkit.dialects.precision import precision_of, rounded
from irkit.expressions.binding import Step
from irkit.expressions.syntax import Name, Number, Read
from irkit.expressions.typing import DType, Typed, index, typed
from irkit.weights import Array

Function = Callable[..., Any]


def _quotient(x: Array, y: Array) -> Array:
    """x / y; whole numbers round down, and x / 0 is 0."""
    return x / y if x.dtype.kind == "f" else x // y


def _sign(x: Array) -> Array:
    return np.where(x > 0, 1, np.where(x < 0, -1, x))


FUNCTIONS: dict[str, Function] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": _quotient,
    "%": np.remainder,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
    "&&": np.logical_and,
    "||": np.logical_or,
    "!": np.logical_not,
    "neg": np.negative,
    "select": np.where,
    "max": maximum,
    "min": minimum,
    "pow": power,
    "atan2": np.arctan2,
    "copysign": np.copysign,
    "abs": np.abs,
    "relu": relu,
    "sigmoid": sigmoid,
    "sign": _sign,
    "erf": erf,
    "round": np.rint,
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    **{
        name: getattr(np, name)
        for name in (
            *(
                "cbrt",
                "ceil",
                "cos",
                "cosh",
                "exp",
                "exp2",
                "expm1",
                "floor",
                "log",
                "log10",
                "log1p",
                "log2",
            ),
            *("sin", "sinh", "sqrt", "tan", "tanh"),
        )
    },
}
"""Operators and functions by name."""


def neutral(operator: str, dtype: DType) -> Any:
    """What a reduction starts from."""
    if operator in ("max", "min"):
        return least(dtype) if operator == "max" else greatest(dtype)
    return 1 if operator == "*" else 0


class _Walk:
    """Values of parts of an expression over grids of indices."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self._arrays = arrays
        self._dtypes = {name: a.dtype for name, a in arrays.items()}
        self.indices: dict[str, Array] = {}

    def value(self, part: Typed) -> Array:
        """The elements of a part, in its type."""
        source = part.source
        if part.kind == "number":
            assert isinstance(source, Number)
            return np.array(source.value).astype(part.dtype)
        if part.kind == "index":
            assert isinstance(source, Name)
            return self.indices[source.name]
        if part.kind == "read":
            assert isinstance(source, Read)
            return self._read(source)
        values = [self.value(a) for a in part.arguments]
        if part.kind == "cast":
            return convert(values[0], part.dtype)
        return np.asarray(FUNCTIONS[part.kind](*values)).astype(part.dtype, copy=False)

    def _read(self, read: Read) -> Array:
        array = self._arrays[read.tensor]
        places = [self.value(index(e, self._dtypes)) for e in read.indices]
        clipped = [np.clip(p, 0, s - 1) for p, s in zip(places, array.shape, strict=True)]
        return array[tuple(clipped)]


def evaluate_step(step: Step, arrays: Mapping[str, Array]) -> Array:
    """The result of a statement on arrays, by name, whose types are those of the statement's operands."""
    walk, shape = _Walk(arrays), step.domain.shape
    for number, loop in enumerate(step.domain.parallel):
        grid = [1] * len(shape)
        grid[number] = loop.size
        walk.indices[loop.name] = np.arange(loop.low, loop.high).reshape(grid)
    value = typed(step.statement.value, {name: a.dtype for name, a in arrays.items()})
    if not step.statement.operator:
        return np.broadcast_to(walk.value(value), shape)
    operator = step.statement.operator
    combine = FUNCTIONS[operator]
    total: Array = np.full(shape, neutral(operator, value.dtype), value.dtype)
    names = [loop.name for loop in step.domain.reduced]
    spans = [range(loop.low, loop.high) for loop in step.domain.reduced]
    for point in itertools.product(*spans):
        walk.indices.update((n, np.array(i)) for n, i in zip(names, point, strict=True))
        total = np.asarray(combine(total, walk.value(value))).astype(value.dtype, copy=False)
    return np.broadcast_to(total, shape)


def _expression(op: graph.ExpressionOp, *operands: Array) -> Array:
    precision = precision_of(op)
    step = op.step
    arrays = {
        name: rounded(a, precision) if step.is_product else a
        for name, a in zip(step.operands, operands, strict=True)
    }
    return evaluate_step(step, arrays)


RULES: Rules = {graph.ExpressionOp: _expression}
