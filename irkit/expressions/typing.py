"""Of which types values are: every part of an expression with its NumPy type.

Numbers and indices take the type of what they meet, as Python's numbers do beside NumPy's arrays: alone,
whole ones are int64 and others float64. Two tensors of different types do not meet without a cast.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from irkit.expressions.syntax import Apply, Expr, ExpressionError, Name, Number, Read

DType = np.dtype[Any]
BOOL, INT, FLOAT = np.dtype(np.bool_), np.dtype(np.int64), np.dtype(np.float64)

TYPES: dict[str, DType] = {
    "float": np.dtype(np.float32),
    "double": FLOAT,
    "half": np.dtype(np.float16),
    "int": np.dtype(np.int32),
    "long": INT,
    **{
        name: np.dtype(name)
        for name in (
            *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
            *("float16", "float32", "float64"),
        )
    },
}
"""Names of element types. Any other name is a type that may be any."""

CASTS = {name: t for name, t in TYPES.items() if t != np.dtype(np.float16)}
"""Names of types that are casts too."""

UNARY = (
    *(
        "abs",
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atanh",
        "cbrt",
        "ceil",
        "cos",
        "cosh",
        "erf",
        "exp",
    ),
    *(
        "exp2",
        "expm1",
        "floor",
        "log",
        "log10",
        "log1p",
        "log2",
        "relu",
        "round",
        "sigmoid",
        "sign",
        "sin",
    ),
    *("sinh", "sqrt", "tan", "tanh"),
)
PAIRS = ("max", "min", "pow", "atan2", "copysign")
WHOLE_TOO = frozenset({"abs", "relu", "sign", "max", "min"})
"""Functions of integers too; all others are of floats."""
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
FUNCTIONS: dict[str, int] = {
    **dict.fromkeys(UNARY, 1),
    **dict.fromkeys(PAIRS, 2),
    **dict.fromkeys(CASTS, 1),
    "like": 2,
}
"""Functions, and how many arguments each takes. `like(x, y)` is x in the type of y."""


@dataclass(frozen=True)
class Typed:
    """A part of an expression, and what it is made of. `kind`: number, index, read, cast, or what is applied.
    `source` is the part as it was written."""

    kind: str
    dtype: DType
    arguments: tuple[Typed, ...]
    source: Expr


@dataclass(frozen=True)
class _Weak:
    """The type of numbers and indices alone."""

    whole: bool

    @property
    def dtype(self) -> DType:
        return INT if self.whole else FLOAT


_Kind = DType | _Weak


def typed(expr: Expr, tensors: Mapping[str, DType]) -> Typed:
    """`expr` with types; `tensors` has those of all that it reads. Raises ExpressionError."""
    kind = _kind(expr, tensors)
    return _as(expr, kind.dtype if isinstance(kind, _Weak) else kind, tensors)


def index(expr: Expr, tensors: Mapping[str, DType]) -> Typed:
    """An index, as an int64. Raises ExpressionError for what is no whole number."""
    kind = _kind(expr, tensors)
    whole = kind.whole if isinstance(kind, _Weak) else kind.kind in "iu"
    if not whole:
        raise ExpressionError(
            f"an index of type {_named(kind)}: expected a whole number", expr.place
        )
    made = _as(expr, INT if isinstance(kind, _Weak) else kind, tensors)
    return _cast(made, INT)


def _named(kind: _Kind) -> str:
    return str(kind.dtype if isinstance(kind, _Weak) else kind)


def _kind(expr: Expr, tensors: Mapping[str, DType]) -> _Kind:
    if isinstance(expr, Number):
        return _Weak(isinstance(expr.value, int))
    if isinstance(expr, Name):
        return _Weak(True)
    if isinstance(expr, Read):
        return tensors[expr.tensor]
    assert isinstance(expr, Apply)
    return _applied(expr, [_kind(a, tensors) for a in expr.arguments])


def _applied(expr: Apply, kinds: list[_Kind]) -> _Kind:
    name = expr.function
    if name == "like":
        return kinds[1]
    if name in CASTS:
        return CASTS[name]
    if name in ("&&", "||", "!"):
        for kind in kinds:
            _expect(kind == BOOL, expr, f"'{name}' of {_named(kind)}: expected a condition")
        return BOOL
    if name in COMPARISONS:
        _met(expr, kinds)
        return BOOL
    if name == "select":
        _expect(kinds[0] == BOOL, expr, f"a choice by {_named(kinds[0])}: expected a condition")
        return _met(expr, kinds[1:])
    return _number(expr, name, _met(expr, kinds))


def _number(expr: Apply, name: str, met: _Kind) -> _Kind:
    """The type of an operator or function of numbers of type `met`."""
    shown = f"'{name}' of {_named(met)}"
    _expect(met != BOOL, expr, f"{shown}: cast it, or choose by it")
    whole = met.whole if isinstance(met, _Weak) else met.kind in "iu"
    if name in FUNCTIONS and name not in WHOLE_TOO:
        _expect(not whole or isinstance(met, _Weak), expr, f"{shown}: cast it to a float")
        return _Weak(False) if isinstance(met, _Weak) else met
    _expect(name != "%" or whole, expr, f"{shown}: a remainder is of whole numbers")
    return met


def _expect(held: bool, expr: Expr, message: str) -> None:
    if not held:
        raise ExpressionError(message, expr.place)


def _met(expr: Apply, kinds: list[_Kind]) -> _Kind:
    """The one type of operands. Raises ExpressionError where there is none."""
    strong = list(dict.fromkeys(k for k in kinds if not isinstance(k, _Weak)))
    weak = [k for k in kinds if isinstance(k, _Weak)]
    if len(strong) > 1:
        both = " and ".join(map(str, strong))
        raise ExpressionError(f"'{expr.function}' of {both}: cast one of them", expr.place)
    if not strong:
        return _Weak(all(k.whole for k in weak))
    whole = strong[0].kind in "iub"
    fraction = any(not k.whole for k in weak)
    _expect(
        not (whole and fraction), expr, f"'{expr.function}' of {strong[0]} and a fraction: cast it"
    )
    _expect(
        strong[0] != BOOL or not weak,
        expr,
        f"'{expr.function}' of a condition and a number: cast it",
    )
    return strong[0]


def _as(expr: Expr, want: DType, tensors: Mapping[str, DType]) -> Typed:
    """`expr`, whose own type is `want`, or which is of numbers and indices alone and becomes it."""
    if isinstance(expr, Number):
        _check_number(expr, want)
        return Typed("number", want, (), expr)
    if isinstance(expr, Name):
        return _cast(Typed("index", INT, (), expr), want)
    if isinstance(expr, Read):
        return Typed("read", tensors[expr.tensor], (), expr)
    assert isinstance(expr, Apply)
    kinds = [_kind(a, tensors) for a in expr.arguments]
    own = _applied(expr, kinds)
    if isinstance(own, _Weak) and own.whole and want != INT:
        return _cast(_as(expr, INT, tensors), want)
    return _made(expr, kinds, want, tensors)


def _made(expr: Apply, kinds: list[_Kind], want: DType, tensors: Mapping[str, DType]) -> Typed:
    name, given = expr.function, expr.arguments
    if name in CASTS or name == "like":
        return _cast(typed(given[0], tensors), want)
    if name in COMPARISONS:
        met = _met(expr, kinds)
        inner = [met.dtype if isinstance(met, _Weak) else met] * 2
    elif name == "select":
        inner = [BOOL, want, want]
    else:
        inner = [want] * len(given)
    parts = tuple(_as(a, t, tensors) for a, t in zip(given, inner, strict=True))
    zero = name in ("/", "%") and isinstance(given[1], Number) and not given[1].value
    _expect(not (zero and want.kind in "iu"), expr, f"'{name}' of a whole number by 0")
    return Typed(name, want, parts, expr)


def _check_number(expr: Number, want: DType) -> None:
    """A whole number is one of its type, as NumPy would have it; of floats, none becomes infinity."""
    if want.kind not in "iu":
        with np.errstate(over="ignore"):
            kept = np.array(float(expr.value)).astype(want).astype(FLOAT)
        if np.isinf(kept):
            raise ExpressionError(f"{expr.value} is larger than any {want}", expr.place)
        return
    known = np.iinfo(want)
    if not known.min <= expr.value <= known.max:
        raise ExpressionError(
            f"{expr.value} is no {want}: expected {known.min} to {known.max}", expr.place
        )


def _cast(made: Typed, to: DType) -> Typed:
    return made if made.dtype == to else Typed("cast", to, (made,), made.source)
